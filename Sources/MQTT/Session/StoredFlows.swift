import DequeModule
package import MQTTCodec
package import NIOCore

/// Messages of one client that must be in its store before the client sends them.
///
/// Events go in. ``takeChanges(_:)`` returns the changes for the store. After their commit, ``committed(_:)`` returns
/// for each change what may be sent. A message is identified by its sequence, its place in the store's order.
///
/// Pure: it has no store, no connection, no clock and no closure. The session assigns the identifiers, and gets free
/// ones back.
///
/// Spec: MQTT 5.0 §4.3 (QoS), §4.4 (what is sent again), §4.6 (order).
package struct StoredFlows {
    /// A message of ours at QoS 1 or 2.
    package struct Flow {
        package let due: NIODeadline
        /// The start of its expiry interval.
        package let since: NIODeadline
        package fileprivate(set) var message: MQTTMessage
        package internal(set) var stage: MQTTStoredMessage.Stage
        /// The server does not accept it; only its identifier must still be freed there.
        package internal(set) var isGivenUp = false
        /// The store has received it.
        package fileprivate(set) var isInserted = false
        /// The commit of its identifier has returned.
        var isCommitted = false
        /// Number of the connection of its last write: 0 for none, -1 for one of an earlier process.
        fileprivate(set) var writtenOn = 0

        package var wasWritten: Bool { self.writtenOn != 0 }

        /// It has an identifier and was never written.
        package var isUnsent: Bool { self.stage.isPublished && !self.wasWritten }
    }

    /// The packet that may be sent after a commit.
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

    /// Contents of a store: publishes by their identifiers, in order, and QoS 2 messages of the server.
    package typealias Restored = (outbound: [(id: UInt16, publish: InFlightPublish, released: Bool)], inbound: [UInt16])

    package internal(set) var flows: [UInt64: Flow] = [:]
    /// Sequences of messages without an identifier, in order.
    private var queue: Deque<UInt64> = []
    /// Bytes of topics and payloads of ``flows``.
    package private(set) var bytes = 0
    /// Changes for the next commit, in order.
    package internal(set) var changes: [MQTTStoreChange] = []
    /// A packet waits for one of ``changes``.
    package internal(set) var isUrgent = false
    /// Sequences of the server's QoS 2 messages in the store, or in a commit.
    var inbound: [PacketID: UInt64] = [:]
    /// PUBREL came on this connection, and PUBCOMP waits for the commit.
    var completing: Set<PacketID> = []
    private var lastSequence: UInt64 = 0
    var inboundSequence: UInt64 = 0
    var connection = 1
    var isStopped = false
    /// Messages with an identifier that CONNACK does not allow.
    private var untakeable: [(sequence: UInt64, reason: ReasonCode)] = []
    var refusals = StoreRefusals()

    package init() {}

    /// The message that gets the next identifier.
    package var firstQueued: UInt64? { self.queue.first }
    package var queuedCount: Int { self.queue.count }

    // MARK: - Before the first connection

    /// Restores the messages of another process, for the session to restore them too.
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
                // The earlier process may have sent the message.
                flow.writtenOn = -1
                if let earlier = holders.updateValue(stored.sequence, forKey: id) {
                    // The identifier was assigned again, so that flow was over; only the store had not removed it.
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

    /// Adds a message that waits for an identifier, and returns its sequence.
    ///
    /// The store receives it with its identifier (``assign(_:to:)``), or by ``insert(_:)``.
    package mutating func add(_ message: MQTTMessage, now: NIODeadline) -> UInt64 {
        self.lastSequence += 1
        self.keep(Flow(due: now, since: now, message: message, stage: .queued), self.lastSequence)
        self.queue.append(self.lastSequence)
        return self.lastSequence
    }

    /// Adds a message that has its identifier and its sequence already.
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

    /// Adds a message to the store, if the store does not have it.
    package mutating func insert(_ sequence: UInt64) {
        guard let flow = self.flows[sequence], !flow.isInserted else { return }
        self.flows[sequence]?.isInserted = true
        self.change(.insert(MQTTStoredMessage(sequence: sequence, stage: flow.stage, message: flow.message)))
    }

    /// Assigns the first message of the queue its identifier.
    ///
    /// It is sent when the store has the identifier, not when it has the message. Otherwise the successor of a killed
    /// client would send it again under another identifier, after later messages.
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

    /// The packet of a stored message, unless it was written on this connection.
    ///
    /// - Parameters:
    ///   - sequence: of the message.
    ///   - repeats: `true` returns the packet even if it was written on this connection.
    ///   - now: the current time, which lowers its expiry interval.
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

    /// Records that the packet was written; `false` if none of it was sent.
    package mutating func wrote(_ sequence: UInt64, _ left: Bool = true) {
        self.flows[sequence]?.writtenOn = left ? self.connection : 0
    }

    /// PUBREC came: PUBREL waits for the commit.
    ///
    /// - Returns: whether the flow waited for PUBREC.
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

    /// Ends a message; with `forgets` the store removes it.
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

    /// Puts messages that were never sent back, to wait for an identifier of the next session.
    package mutating func requeue(_ sequences: [UInt64]) {
        for sequence in sequences where self.flows[sequence]?.isInserted ?? false {
            self.change(.advance(sequence: sequence, to: .queued))
        }
        self.putBack(sequences)
    }

    /// Puts messages whose identifiers are free again before later ones.
    mutating func putBack(_ sequences: [UInt64]) {
        guard !sequences.isEmpty else { return }
        for sequence in sequences {
            self.flows[sequence]?.stage = .queued
            self.flows[sequence]?.isCommitted = false
        }
        self.queue = Deque((sequences + self.queue).sorted())
    }

    // MARK: - Messages that the server does not accept

    /// CONNACK does not allow the message: it ends after the current step of the session.
    package mutating func refused(_ sequence: UInt64, _ reason: ReasonCode) {
        self.untakeable.append((sequence, reason))
    }

    package var hasUntakeable: Bool { !self.untakeable.isEmpty }

    package mutating func takeUntakeable() -> [(sequence: UInt64, reason: ReasonCode)] {
        defer { self.untakeable = [] }
        return self.untakeable
    }

    /// Ends a message that the server does not accept ([MQTT-3.2.2-11], [MQTT-3.2.2-14], [MQTT-3.2.2-15]).
    ///
    /// A QoS 2 message that may have been sent keeps its identifier until PUBCOMP, because the server may use it too
    /// (§4.3.3). It continues without its payload, like a message whose PUBREC came.
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
}

extension MQTTMessage {
    /// Bytes towards ``MQTTClientLimits/bytes``.
    package var storedSize: Int { self.topic.utf8.count + self.payload.count }
}

extension MQTTStoredMessage.Stage {
    /// The identifier of the message.
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
