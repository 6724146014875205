package import MQTTCodec

// The server's messages, the end of connections and sessions, and the commits themselves.
extension StoredFlows {
    // MARK: - Messages of the server's

    /// The application has a QoS 2 message: PUBREC waits for the commit.
    package mutating func received(_ id: PacketID) {
        self.inboundSequence += 1
        self.inbound[id] = self.inboundSequence
        // A repetition is recognised by the identifier alone, so the content is not stored.
        let message = MQTTMessage(topic: "", qos: .exactlyOnce)
        self.change(.insert(MQTTStoredMessage(sequence: self.inboundSequence, stage: .received(id), message: message)))
    }

    /// PUBREL came: PUBCOMP waits for the commit.
    package mutating func released(_ id: PacketID) {
        self.inbound[id] = nil
        self.completing.insert(id)
        self.change(.forget(id))
    }

    // MARK: - Connections and sessions

    package mutating func connectionEnded() {
        self.connection += 1
        self.completing = []
    }

    /// The server has no session: the store forgets the server's messages of the old one.
    package mutating func sessionBegan() {
        for id in self.inbound.keys { self.change(.forget(id)) }
        self.inbound = [:]
    }

    // MARK: - The store

    mutating func change(_ change: MQTTStoreChange) {
        if self.isStopped || self.joinsRefused(change) { return }
        self.changes.append(change)
        self.isUrgent = self.isUrgent || self.holdsBack(change)
    }

    /// Removes everything that the store has of this client.
    package mutating func removeAll() { self.change(.removeAll) }

    private func holdsBack(_ change: MQTTStoreChange) -> Bool {
        switch change {
        case .insert, .advance(_, .published), .advance(_, .released): true
        case .forget(let id): self.completing.contains(id)
        case .advance, .remove, .removeAll: false
        }
    }

    /// Removes and returns the changes of the next commit, `limit` at most.
    package mutating func takeChanges(_ limit: Int = .max) -> [MQTTStoreChange] {
        guard limit < self.changes.count else {
            self.isUrgent = false
            defer { self.changes = [] }
            return self.changes
        }
        defer { self.changes.removeFirst(limit) }
        return Array(self.changes[..<limit])
    }

    /// The store has made a change: returns the packet that may be sent now.
    package mutating func committed(_ change: MQTTStoreChange) -> Action? {
        switch change {
        case .insert(let stored):
            switch stored.stage {
            case .published(let id): return self.committed(stored.sequence, id)
            case .received(let id): return self.inbound[id] == stored.sequence ? .record(id) : nil
            case .queued, .released: return nil
            }
        case .advance(let sequence, .published(let id)):
            return self.committed(sequence, id)
        case .advance(let sequence, let stage):
            guard case .released(let id) = stage, self.flows[sequence]?.stage == stage else { return nil }
            return .release(id)
        case .forget(let id):
            return self.completing.remove(id).map { .complete($0) }
        case .remove, .removeAll:
            return nil
        }
    }

    private mutating func committed(_ sequence: UInt64, _ id: PacketID) -> Action? {
        guard let index = self.flows.index(forKey: sequence), self.flows.values[index].stage == .published(id),
            !self.flows.values[index].isCommitted
        else { return nil }
        self.flows.values[index].isCommitted = true
        return .send(sequence)
    }

    /// The store failed for good: later changes are ignored, and inserts that wait are dropped.
    package mutating func stop() {
        self.isStopped = true
        self.changes.removeAll { if case .insert = $0 { true } else { false } }
    }
}
