import DequeModule
package import MQTTCodec
package import NIOCore

/// The messages of one client that its store has to know before the client sends them.
///
/// Events go in. The changes that the store has to make come out of ``takeChanges(_:)``; when their commit has
/// returned, ``committed(_:)`` says for each of them what may be sent. Messages are known by their place in the store's
/// order, the sequence.
///
/// Pure: it holds no store, no connection, no clock and no closure. The session gives the identifiers, and is told of
/// those that are free again.
///
/// Spec: MQTT 5.0 §4.3 (QoS), §4.4 (what is sent again), §4.6 (order).
package struct StoredFlows {
    /// A message of ours at QoS 1 or 2.
    package struct Flow {
        package let due: NIODeadline
        /// Its expiry interval counts from here.
        package let since: NIODeadline
        package fileprivate(set) var message: MQTTMessage
        package internal(set) var stage: MQTTStoredMessage.Stage
        /// The server does not take it; only its identifier is still to be freed there.
        package internal(set) var isGivenUp = false
        /// The store has been told of it.
        package fileprivate(set) var isInserted = false
        /// The commit that has its identifier has returned.
        var isCommitted = false
        /// The number of the connection that it was last written on: 0 for none, -1 for one of an earlier process.
        fileprivate(set) var writtenOn = 0

        package var wasWritten: Bool { self.writtenOn != 0 }

        /// It has an identifier, and was never written.
        package var isUnsent: Bool { self.stage.isPublished && !self.wasWritten }
    }

    /// What a commit lets happen.
    package enum Action: Hashable, Sendable {
        /// Write the message with this sequence.
        case send(UInt64)
        /// Send PUBREL.
        case release(PacketID)
        /// Send PUBREC.
        case record(PacketID)
        /// Send PUBCOMP.
        case complete(PacketID)
    }

    /// What a store had: publishes by their identifiers, in order, and QoS 2 messages of the server's.
    package typealias Restored = (outbound: [(id: UInt16, publish: InFlightPublish, released: Bool)], inbound: [UInt16])

    package internal(set) var flows: [UInt64: Flow] = [:]
    /// Those without an identifier, in order.
    private var queue: Deque<UInt64> = []
    /// Their topics and payloads.
    package private(set) var bytes = 0
    /// Changes that no commit has yet, in order.
    package internal(set) var changes: [MQTTStoreChange] = []
    /// Something of ``changes`` holds back a packet.
    package private(set) var isUrgent = false
    /// QoS 2 messages of the server's that the store has or is told of, by their sequence.
    private var inbound: [PacketID: UInt64] = [:]
    /// Released on this connection; PUBCOMP waits for the store.
    private var completing: Set<PacketID> = []
    private var lastSequence: UInt64 = 0
    private var inboundSequence: UInt64 = 0
    private var connection = 1
    private var isStopped = false
    /// They have identifiers, and the server of this connection does not take them.
    private var untakeable: [(sequence: UInt64, reason: ReasonCode)] = []
    var refusals = StoreRefusals()

    package init() {}

    /// The message that gets the next identifier.
    package var firstQueued: UInt64? { self.queue.first }

    package var queuedCount: Int { self.queue.count }

    // MARK: - Before the first connection

    /// Takes up what another process left; the session is told of it.
    package mutating func restore(_ messages: [MQTTStoredMessage], now: NIODeadline) -> Restored {
        var restored: Restored = ([], [])
        var holders: [PacketID: UInt64] = [:]
        for stored in messages.sorted(by: { $0.sequence < $1.sequence }) {
            if case .received(let id) = stored.stage {
                restored.inbound.append(id.rawValue)
                self.inbound[id] = stored.sequence
                self.inboundSequence = max(self.inboundSequence, stored.sequence)
                continue
            }
            self.lastSequence = max(self.lastSequence, stored.sequence)
            var flow = Flow(due: now, since: now, message: stored.message, stage: stored.stage)
            flow.isInserted = true
            flow.isCommitted = true
            if let id = stored.stage.packetID {
                // It may have been sent.
                flow.writtenOn = -1
                if let earlier = holders.updateValue(stored.sequence, forKey: id) {
                    // The identifier was given again, so that flow was over; only the store did not take that.
                    restored.outbound.removeAll { $0.id == id.rawValue }
                    self.finish(earlier)
                }
                let qos = stored.message.qos
                let publish = InFlightPublish(due: now, written: now, sequence: stored.sequence, qos: qos)
                restored.outbound.append((id.rawValue, publish, stored.stage == .released(id)))
            } else {
                self.queue.append(stored.sequence)
            }
            self.keep(flow, stored.sequence)
        }
        return restored
    }

    private mutating func keep(_ flow: Flow, _ sequence: UInt64) {
        self.flows[sequence] = flow
        self.bytes += flow.message.storedSize
    }

    // MARK: - Messages of ours

    /// Takes a message that waits for an identifier; its sequence.
    ///
    /// The store hears of it with its identifier (``assign(_:to:)``), or by ``insert(_:)``.
    package mutating func add(_ message: MQTTMessage, now: NIODeadline) -> UInt64 {
        self.lastSequence += 1
        self.keep(Flow(due: now, since: now, message: message, stage: .queued), self.lastSequence)
        self.queue.append(self.lastSequence)
        return self.lastSequence
    }

    /// Takes a message that has its identifier and its sequence already.
    package mutating func add(
        _ message: MQTTMessage,
        sequence: UInt64,
        _ id: PacketID,
        due: NIODeadline,
        now: NIODeadline
    ) {
        self.lastSequence = sequence
        self.keep(Flow(due: due, since: now, message: message, stage: .published(id)), sequence)
        self.insert(sequence)
    }

    /// Tells the store of a message, if it does not know it.
    package mutating func insert(_ sequence: UInt64) {
        guard let flow = self.flows[sequence], !flow.isInserted else { return }
        self.flows[sequence]?.isInserted = true
        self.change(.insert(MQTTStoredMessage(sequence: sequence, stage: flow.stage, message: flow.message)))
    }

    /// Gives the first message of the queue its identifier.
    ///
    /// It is sent when the store knows the identifier, not when it knows the message: else the successor of a killed
    /// client sends it again under another one, and those before it are overtaken.
    package mutating func assign(_ id: PacketID, to sequence: UInt64) {
        self.queue.removeFirst()
        self.flows[sequence]?.stage = .published(id)
        self.flows[sequence]?.isCommitted = false
        if self.flows[sequence]?.isInserted ?? false {
            self.change(.advance(sequence: sequence, to: .published(id)))
        } else {
            self.insert(sequence)
        }
    }

    /// The packet of a message that the store has, unless it was written on this connection.
    ///
    /// - Parameters:
    ///   - sequence: of the message.
    ///   - repeats: also if it was written on this connection.
    ///   - now: the time that its expiry interval is lowered by.
    /// - Returns: the packet, with DUP if the message was written before.
    package func packet(_ sequence: UInt64, repeats: Bool = false, now: NIODeadline) -> Publish? {
        guard let flow = self.flows[sequence], flow.isCommitted, repeats || flow.writtenOn != self.connection,
            case .published(let id) = flow.stage
        else { return nil }
        var publish = Publish(flow.message, age: now - flow.since)
        publish.packetID = id
        // [MQTT-3.3.1-1]
        publish.dup = flow.wasWritten
        return publish
    }

    /// The packet was written; with `false` it turned out that none of it left.
    package mutating func wrote(_ sequence: UInt64, _ left: Bool = true) {
        self.flows[sequence]?.writtenOn = left ? self.connection : 0
    }

    /// PUBREC came: PUBREL waits for the store.
    ///
    /// - Returns: whether PUBREC was awaited.
    @discardableResult
    package mutating func recorded(_ sequence: UInt64, keepsPayload: Bool) -> Bool {
        guard case .published(let id)? = self.flows[sequence]?.stage else { return false }
        if !keepsPayload { self.dropPayload(sequence) }
        self.flows[sequence]?.stage = .released(id)
        self.change(.advance(sequence: sequence, to: .released(id)))
        return true
    }

    private mutating func dropPayload(_ sequence: UInt64) {
        self.bytes -= self.flows[sequence]?.message.payload.count ?? 0
        self.flows[sequence]?.message.payload = []
    }

    /// A message is done with, and with `forgets` the store removes it.
    @discardableResult
    package mutating func finish(_ sequence: UInt64, forgets: Bool = true) -> Flow? {
        guard let flow = self.flows.removeValue(forKey: sequence) else { return nil }
        if self.queue.first == sequence {
            self.queue.removeFirst()
        } else if flow.stage == .queued {
            self.queue.removeAll { $0 == sequence }
        }
        self.bytes -= flow.message.storedSize
        if forgets, flow.isInserted { self.change(.remove(sequence: sequence)) }
        return flow
    }

    /// Messages that were never sent wait for an identifier of the next session.
    package mutating func requeue(_ sequences: [UInt64]) {
        for sequence in sequences where self.flows[sequence]?.isInserted ?? false {
            self.change(.advance(sequence: sequence, to: .queued))
        }
        self.putBack(sequences)
    }

    /// Puts messages whose identifiers are free again in front of those that came later.
    mutating func putBack(_ sequences: [UInt64]) {
        guard !sequences.isEmpty else { return }
        for sequence in sequences {
            self.flows[sequence]?.stage = .queued
            self.flows[sequence]?.isCommitted = false
        }
        self.queue = Deque((sequences + self.queue).sorted())
    }

    // MARK: - What the server does not take

    /// CONNACK does not allow the message: it is ended when the step of the session is over.
    package mutating func refused(_ sequence: UInt64, _ reason: ReasonCode) {
        self.untakeable.append((sequence, reason))
    }

    package var hasUntakeable: Bool { !self.untakeable.isEmpty }

    package mutating func takeUntakeable() -> [(sequence: UInt64, reason: ReasonCode)] {
        defer { self.untakeable = [] }
        return self.untakeable
    }

    /// Ends a message that the server does not take ([MQTT-3.2.2-11], [MQTT-3.2.2-14], [MQTT-3.2.2-15]).
    ///
    /// A QoS 2 message that may have been sent leaves its identifier with PUBCOMP, for the server may have it too
    /// (§4.3.3). It goes the way of one whose PUBREC came, without its payload.
    ///
    /// - Returns: whether the flow is over.
    package mutating func giveUp(_ sequence: UInt64, _ session: inout MQTTSession) -> Bool {
        guard let flow = self.flows[sequence], case .published(let id) = flow.stage else { return false }
        if flow.message.qos == .exactlyOnce, flow.wasWritten, session.giveUp(id) {
            self.recorded(sequence, keepsPayload: false)
            self.flows[sequence]?.isGivenUp = true
            return false
        }
        session.withdraw(publish: id)
        self.finish(sequence)
        return true
    }

    // MARK: - Messages of the server's

    /// A QoS 2 message was taken: PUBREC waits for the store.
    package mutating func received(_ id: PacketID) {
        self.inboundSequence += 1
        self.inbound[id] = self.inboundSequence
        // The message itself is with the application: its identifier is all that a repetition is known by.
        let message = MQTTMessage(topic: "", qos: .exactlyOnce)
        self.change(.insert(MQTTStoredMessage(sequence: self.inboundSequence, stage: .received(id), message: message)))
    }

    /// PUBREL came: PUBCOMP waits for the store.
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

    /// The server has no session: what the store knows of the server's messages belongs to the old one.
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

    /// Everything that the store has of the client is out of date.
    package mutating func removeAll() { self.change(.removeAll) }

    private func holdsBack(_ change: MQTTStoreChange) -> Bool {
        switch change {
        case .insert, .advance(_, .published), .advance(_, .released): true
        case .forget(let id): self.completing.contains(id)
        case .advance, .remove, .removeAll: false
        }
    }

    /// The changes of the next commit, so many at most.
    package mutating func takeChanges(_ limit: Int = .max) -> [MQTTStoreChange] {
        guard limit < self.changes.count else {
            self.isUrgent = false
            defer { self.changes = [] }
            return self.changes
        }
        defer { self.changes.removeFirst(limit) }
        return Array(self.changes[..<limit])
    }

    /// The store has made a change: what it lets happen, unless that is out of date.
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

    /// The store is given up: it hears of no new message, and of nothing that happens from here on.
    package mutating func stop() {
        self.isStopped = true
        self.changes.removeAll { if case .insert = $0 { true } else { false } }
    }
}

extension MQTTMessage {
    /// What it counts towards a limit of bytes.
    package var storedSize: Int { self.topic.utf8.count + self.payload.count }
}

extension MQTTStoredMessage.Stage {
    /// The identifier that the message goes under.
    var packetID: PacketID? {
        switch self {
        case .queued: nil
        case .published(let id), .released(let id), .received(let id): id
        }
    }

    package var isPublished: Bool {
        if case .published = self { true } else { false }
    }
}
