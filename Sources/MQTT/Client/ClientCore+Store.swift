import LoopContext
import MQTTCodec
import NIOCore

extension ClientCore {
    enum StoreState {
        case unused
        case loading([(MQTTClientError?) -> Void])
        case loaded
        case failed(String)
    }

    /// What a change lets happen once its commit has returned.
    enum Then {
        case nothing
        /// Write the message, if it still has this identifier.
        case send(UInt64, PacketID)
        /// Send PUBREL, if the message still has this identifier.
        case release(UInt64, PacketID)
        /// Send PUBREC.
        case record(Taken)
        /// Send PUBCOMP, if the connection is still the same.
        case complete(PacketID, epoch: Int)
    }

    /// The name as configured: one that the server gives comes too late for what the store has to be asked first.
    private var storeKey: String { self.configuration.clientID }

    /// Who has no name shares the store's place with all who have none, and would remove what they keep; in memory a
    /// store is one client's own, as a rule.
    var storeProblem: MQTTClientError? {
        guard self.storeKey.isEmpty, !(self.seed.store is MQTTMemoryStore) else { return nil }
        return .invalid("a store keeps messages under the client identifier: set clientID, or leave the store out")
    }

    // MARK: Loading

    /// Runs `body` when it is known what the store holds: at once, as a rule.
    func whenLoaded(_ body: @escaping (MQTTClientError?) -> Void) {
        switch self.storeState {
        case .loaded: body(nil)
        case .loading(let waiting): self.storeState = .loading(waiting + [body])
        case .unused, .failed:
            if let error = self.storeProblem { body(error) } else { self.load(body) }
        }
    }

    private func load(_ body: @escaping (MQTTClientError?) -> Void) {
        guard self.keepsSession else {
            // An older session of this name ends with the first connection; what the store has of it ends here.
            self.storeState = .loaded
            if let store = self.seed.store as? MQTTMemoryStore {
                store.apply([.removeAll], client: self.storeKey)
            } else {
                self.change(.removeAll, then: .nothing)
            }
            return body(nil)
        }
        if let store = self.seed.store as? MQTTMemoryStore {
            self.storeState = .loaded
            self.restore(store.messages(of: self.storeKey))
            return body(nil)
        }
        self.storeState = .loading([body])
        let (seed, key) = (self.seed, self.storeKey)
        Task {
            do {
                let messages = try await seed.store.load(client: key)
                seed.executeIfLive { $0.loaded(.success(messages)) }
            } catch {
                seed.executeIfLive { $0.loaded(.failure(.storeFailed("\(error)"))) }
            }
        }
    }

    private func loaded(_ result: Result<[MQTTStoredMessage], MQTTClientError>) {
        guard case .loading(let waiting) = self.storeState else { return }
        self.waitingForStore = []
        switch result {
        case .success(let messages):
            self.storeState = .loaded
            self.restore(messages)
            for body in waiting { body(nil) }
        case .failure(let error):
            self.storeState = .failed("\(error)")
            for body in waiting { body(error) }
        }
        self.settle()
    }

    /// Takes up what another client of this name left.
    private func restore(_ messages: [MQTTStoredMessage]) {
        var flows: [(id: UInt16, publish: InFlightPublish, released: Bool)] = []
        var inbound: [UInt16] = []
        var holders: [PacketID: UInt64] = [:]
        let now = self.context.now
        for stored in messages.sorted(by: { $0.sequence < $1.sequence }) {
            if case .received(let id) = stored.stage {
                inbound.append(id.rawValue)
                self.recorded.insert(id)
                self.inboundSequence = max(self.inboundSequence, stored.sequence)
                continue
            }
            self.lastSequence = max(self.lastSequence, stored.sequence)
            var outgoing = Outgoing(message: stored.message, stage: stored.stage, since: now)
            outgoing.isInserted = true
            outgoing.isCommitted = true
            let publish = InFlightPublish(due: now, written: now, sequence: stored.sequence, qos: stored.message.qos)
            switch stored.stage {
            case .queued: self.queue.append(stored.sequence)
            case .published(let id), .released(let id):
                // It may have been sent, under a connection that nobody remembers.
                outgoing.writtenOn = -1
                if let earlier = holders.updateValue(stored.sequence, forKey: id) {
                    // Its identifier was given again, so it was done with, and only the store had not taken that.
                    flows.removeAll { $0.id == id.rawValue }
                    self.finish(earlier, .success(MQTTPublishResult()), forgets: true)
                }
                flows.append((id.rawValue, publish, stored.stage == .released(id)))
            case .received: break
            }
            self.outgoing[stored.sequence] = outgoing
            self.outgoingBytes += outgoing.size
        }
        self.session.pointee.restore(outbound: flows, inbound: inbound)
    }

    // MARK: Committing

    func change(_ change: MQTTStoreChange, then: Then) {
        if self.joinsRefused(change, then) { return }
        self.changes.append(change)
        self.thens.append(then)
    }

    /// Hands over the changes of this turn; while a commit is under way they gather.
    func commit() {
        guard !self.changes.isEmpty, !self.isCommitting, self.retryAt == .distantFuture else { return }
        let count = self.singleCommits > 0 ? 1 : self.changes.count
        let (changes, thens, key) = (Array(self.changes[..<count]), Array(self.thens[..<count]), self.storeKey)
        self.changes.removeFirst(count)
        self.thens.removeFirst(count)
        if let store = self.seed.store as? MQTTMemoryStore {
            // Nothing to wait for, so nothing waits.
            store.apply(changes, client: key)
            return self.committed(thens)
        }
        self.isCommitting = true
        let seed = self.seed
        let bound = NIOLoopBound(thens, eventLoop: seed.eventLoop)
        Task {
            do {
                try await seed.store.commit(changes, client: key)
                seed.executeIfLive { core in
                    core.isCommitting = false
                    core.singleCommits = max(0, core.singleCommits - 1)
                    core.storeTook(changes)
                    core.committed(bound.value)
                    core.settle()
                }
            } catch {
                seed.executeIfLive { core in
                    core.isCommitting = false
                    core.failed(changes, bound.value, error)
                    core.settle()
                }
            }
        }
    }

    func committed(_ thens: [Then]) {
        var writes = false
        for then in thens {
            switch then {
            case .nothing: break
            case .send(let sequence, let id):
                guard self.outgoing[sequence]?.stage == .published(id) else { continue }
                self.outgoing[sequence]?.isCommitted = true
                // What the server's receive maximum holds back goes out by `resend` ([MQTT-3.3.4-7]).
                guard self.state == .connected,
                    self.session.pointee.writes(id.rawValue, sequence: sequence, now: self.context.now)
                else { continue }
                writes = self.write(sequence) || writes
            case .release(let sequence, let id):
                guard self.outgoing[sequence]?.stage == .released(id) else { continue }
                if let connection = self.connection {
                    connection.release(id.rawValue)
                } else {
                    // PUBREL goes out when the session is resumed.
                    _ = self.session.pointee.release(id.rawValue)
                }
            case .record(let taken):
                if taken.epoch == self.sessionNumber { self.sendAcknowledgement(taken, .success) }
            case .complete(let id, let epoch):
                if epoch == self.epoch { self.connection?.complete(id.rawValue) }
            }
        }
        if writes { self.connection?.flush() }
    }
}
