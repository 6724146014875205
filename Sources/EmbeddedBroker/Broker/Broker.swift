import DequeModule
import FaultInjection
package import MQTTCodec
package import NIOCore

/// The id of a connection of a ``Broker``; reused after the end of the connection was reported.
package typealias ConnectionID = Int

package enum BrokerAction: Hashable, Sendable {
    /// Output is ready. It is best written after everything that arrived in this turn has been read.
    case flush(ConnectionID)
    /// Output is ready and should be written without waiting.
    case flushNow(ConnectionID)
    /// Write the output, then close; read nothing more.
    case close(ConnectionID)
    /// Write the output, wait until the peer has it, then reset; read nothing more.
    case reset(ConnectionID)
    case pauseReading(ConnectionID)
    case resumeReading(ConnectionID)
    /// Neither read nor write until then, and call `stalled` afterwards.
    case stall(until: NIODeadline)
}

/// An MQTT broker without IO: its input is bytes and time, its output bytes and actions.
///
/// A session that ends with its connection loses its subscriptions. After an end without DISCONNECT they are
/// remembered, but only to count the messages that the client misses. A client with overlapping filters gets one copy,
/// at the highest QoS, with all subscription identifiers.
///
/// Spec: MQTT 5.0, MQTT 3.1.1, MQTT 3.1.
package struct Broker: ~Copyable {
    package let configuration: BrokerConfiguration
    let faults: FaultPlan
    var spun: UInt64 = 1
    /// `ROOT/p2p/` of each P2P root.
    let p2pPrefixes: [[UInt8]]

    var connections = ConnectionTable()
    var freeConnections: [ConnectionID] = []
    var sessions: [BrokerSession] = []
    var freeSessions: [Int32] = []
    var sessionsByKey: [[UInt8]: Int32] = [:]
    var subscriptions: [BrokerSubscription] = []
    var freeSubscriptions: [Int32] = []
    var subscriptionsMade: UInt64 = 0
    var subscriptionBytes = 0
    var groups: [ShareGroup] = []
    var freeGroups: [Int32] = []
    var groupsByName: [[UInt8]: Int32] = [:]
    /// Values: a subscription's index times 2, or a group's index times 2 plus 1.
    var trie = SubscriptionTrie()
    var cache = TopicCache()
    /// Incremented by every change of a subscription; a cached route with another version is stale.
    var version: UInt64 = 1
    var retained = RetainedStore()
    var debts = Deque<RetainedDebt>()
    /// The time of their next turn.
    var debtsDue = NIODeadline.distantFuture
    var stepsLeft = Broker.stepsPerTurn
    var statisticsSubscriptions = 0
    /// Ends of sessions and will delays.
    var sessionsDue = DueQueue()
    var sessionTickets: UInt64 = 0
    /// Sessions of offline clients.
    var sessionsAway = 0
    /// Bytes waiting in them.
    var storedBytes = 0
    /// The time of the latest event.
    var clock: NIODeadline
    let scramKeys = BrokerKeys()
    /// Soonest first; the connection is nil after its end, as a client that does not wait has guessed all the same.
    var refusals = Deque<(connection: ConnectionID?, peer: String, code: UInt8, due: NIODeadline)>()
    var guesses: [String: UInt64] = [:]

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

    /// Interval of the silence check, which is the precision of the limit of 1.5 keep-alives.
    static let scanInterval = TimeAmount.milliseconds(500)
    /// Output of one client above this size is written without waiting for the end of the turn.
    static let urgentBytes = 256 << 10

    package init(_ configuration: BrokerConfiguration, now: NIODeadline) {
        self.configuration = configuration
        self.faults = configuration.faults
        self.p2pPrefixes = configuration.p2pRoots.map { Array("\($0)/p2p/".utf8) }
        self.started = now
        self.clock = now
        self.scanDue = now + Self.scanInterval
        self.statisticsDue = now + configuration.statisticsInterval
    }

    package mutating func nextAction() -> BrokerAction? { self.actions.popFirst() }

    // MARK: Connections

    /// A client's TCP connection is up; `peer` is its address, where wrong credentials are counted by it.
    package mutating func connected(from peer: String? = nil, now: NIODeadline) -> ConnectionID {
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
        if let peer { self.extras(of: connection).peer = peer }
        return connection
    }

    /// Handles bytes from a connection; `decoder` is the connection's decoder, in the server's role.
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
        if self.connections[connection].state == .open { decoder.takesLarger() }
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

    /// The connection has ended, on either side; its id may be reused.
    package mutating func closed(_ connection: ConnectionID, now: NIODeadline) {
        self.clock = now
        self.end(connection, .closed, now: now)
        for index in self.refusals.indices where self.refusals[index].connection == connection {
            self.refusals[index].connection = nil
        }
        self.dropOutput(connection)
        self.connections[connection] = BrokerConnection(lastHeard: now)
        self.freeConnections.append(connection)
    }
}

/// Takes a connection's packets directly from the receive buffer.
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
