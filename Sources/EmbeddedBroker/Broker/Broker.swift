import DequeModule
import FaultInjection
package import MQTTCodec
package import NIOCore

/// Names a connection of a ``Broker``; used again once its end has been told.
package typealias ConnectionID = Int

/// What a broker wants done.
package enum BrokerAction: Hashable, Sendable {
    /// There is output to take and write, best when all that came in with this turn has been read.
    case flush(ConnectionID)
    /// The same, but without waiting.
    case flushNow(ConnectionID)
    /// Write the output, then close; nothing more is read.
    case close(ConnectionID)
    /// Write the output, wait until the peer has it, then reset; nothing more is read.
    case reset(ConnectionID)
    case pauseReading(ConnectionID)
    case resumeReading(ConnectionID)
    /// Neither read nor write until then, and say `stalled` after it.
    case stall(until: NIODeadline)
}

/// An MQTT broker without IO: bytes and the time go in, bytes and actions come out.
///
/// A session that ends with its connection takes its subscriptions along. Of a client that goes without DISCONNECT they
/// are remembered, but only to count what it misses.
/// A client whose filters overlap gets one copy, at the highest QoS, with all subscription identifiers.
///
/// Spec: MQTT 5.0, MQTT 3.1.1, MQTT 3.1.
package struct Broker: ~Copyable {
    package let configuration: BrokerConfiguration
    let faults: FaultPlan

    var connections = ConnectionTable()
    var freeConnections: [ConnectionID] = []
    var sessions: [BrokerSession] = []
    var freeSessions: [Int32] = []
    var sessionsByKey: [[UInt8]: Int32] = [:]
    var subscriptions: [BrokerSubscription] = []
    var freeSubscriptions: [Int32] = []
    var subscriptionsMade: UInt64 = 0
    var groups: [ShareGroup] = []
    var freeGroups: [Int32] = []
    var groupsByName: [[UInt8]: Int32] = [:]
    /// Values: a subscription's index times 2, or a group's times 2 plus 1.
    var trie = SubscriptionTrie()
    var cache = TopicCache()
    /// Raised by every change of a subscription; a cached route of another version is stale.
    var version: UInt64 = 1
    var retained = RetainedStore()
    var statisticsSubscriptions = 0
    /// Ends of sessions and delays of wills.
    var sessionsDue = DueQueue()
    var sessionTickets: UInt64 = 0
    /// Sessions without their client.
    var sessionsAway = 0
    /// Bytes that wait in them.
    var storedBytes = 0
    /// The time of the latest event.
    var clock: NIODeadline
    let scramKeys = BrokerKeys()

    var actions = Deque<BrokerAction>()
    var spare: [ByteBuffer] = []
    var frames = SharedFrames()
    var congested = 0
    var paused: [ConnectionID] = []

    var tally = BrokerCounters()
    var holdTimes = HoldTimes()
    let started: NIODeadline
    var firstConnect: NIODeadline?
    var scanDue: NIODeadline
    var statisticsDue: NIODeadline
    var stallDue: NIODeadline?
    var disconnectDue: NIODeadline?
    var disconnectCursor = 0
    var assignedIDs: UInt64 = 0
    var publishers: [[UInt8]: UInt32] = [:]
    var tickets: UInt64 = 0
    var delayed = Deque<DelayedMessage>()
    var reorderTimeouts = Deque<ReorderTimeout>()

    /// How often silence is looked for: 1.5 keep-alives are exact to this.
    static let scanInterval = TimeAmount.milliseconds(500)
    /// Output of one client that is written without waiting for the end of the turn.
    static let urgentBytes = 256 << 10

    package init(_ configuration: BrokerConfiguration, now: NIODeadline) {
        self.configuration = configuration
        self.faults = configuration.faults
        self.started = now
        self.clock = now
        self.scanDue = now + Self.scanInterval
        self.statisticsDue = now + configuration.statisticsInterval
    }

    package mutating func nextAction() -> BrokerAction? { self.actions.popFirst() }

    // MARK: Connections

    /// A client's TCP connection is up.
    package mutating func connected(now: NIODeadline) -> ConnectionID {
        self.clock = now
        self.tally.connections += 1
        let connection: ConnectionID
        if let reused = self.freeConnections.popLast() {
            connection = reused
            self.connections[connection] = BrokerConnection(lastHeard: now)
        } else {
            connection = self.connections.count
            self.connections.append(BrokerConnection(lastHeard: now))
        }
        self.connections[connection].state = .awaitingConnect
        return connection
    }

    /// Bytes came in on a connection; `decoder` is its own, in the server's role.
    package mutating func received(
        _ bytes: UnsafeRawBufferPointer,
        from connection: ConnectionID,
        decoder: inout PacketDecoder,
        now: NIODeadline
    ) {
        guard self.connections[connection].state != .closing else { return }
        self.clock = now
        self.connections[connection].lastHeard = now
        self.tally.receivedBytes &+= UInt64(bytes.count)
        let before = decoder.packets
        do {
            try withUnsafeMutablePointer(to: &self) { broker throws(DecodeError) in
                var sink = BrokerSink(broker: broker, connection: connection, now: now)
                try decoder.decode(bytes, into: &sink)
            }
        } catch {
            self.refuse(connection, error, version: decoder.version, now: now)
        }
        self.tally.receivedPackets &+= decoder.packets &- before
        if !self.connections[connection].isWritable { self.chokeIfNeeded(connection) }
    }

    /// The connection has ended, whoever ended it; its name may be used again.
    package mutating func closed(_ connection: ConnectionID, now: NIODeadline) {
        self.clock = now
        self.end(connection, .closed, now: now)
        self.dropOutput(connection)
        self.connections[connection] = BrokerConnection(lastHeard: now)
        self.freeConnections.append(connection)
    }
}

/// Takes a connection's packets straight out of the receive buffer.
struct BrokerSink: PacketSink {
    let broker: UnsafeMutablePointer<Broker>
    let connection: ConnectionID
    let now: NIODeadline

    mutating func publish(_ view: PublishView) -> Bool {
        self.broker.pointee.publish(view, from: self.connection, now: self.now)
    }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        self.broker.pointee.acknowledged(type, id: id, reason: reason, from: self.connection, now: self.now)
    }

    mutating func control(_ packet: Packet) -> Bool {
        self.broker.pointee.control(packet, from: self.connection, now: self.now)
        return self.broker.pointee.connections[self.connection].state != .closing
    }
}
