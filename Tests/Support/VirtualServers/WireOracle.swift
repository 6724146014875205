package import MQTTCodec
import NIOCore

/// A second opinion of what was expected, lost, duplicated and reordered: made of the bytes that pass the clients'
/// sockets, message by message, in sets.
package final class WireOracle {
    /// One message of a run, and who should hear it.
    package struct Message: Hashable {
        package var publisher: UInt32
        package var sequence: UInt64
        package var qos: UInt8
        /// Since 1970, nanoseconds.
        package var due: Int64

        /// From the header in front of a payload: "CLM" and 1, publisher at 8, flags at 12, sequence at 16, due at 24, all
        /// big-endian.
        package init?(_ payload: UnsafeRawBufferPointer) {
            guard payload.count >= 32, payload.starts(with: [0x43, 0x4C, 0x4D, 0x01]) else { return nil }
            func number(_ range: Range<Int>) -> UInt64 { payload[range].reduce(0) { $0 << 8 | UInt64($1) } }
            self.publisher = UInt32(number(8..<12))
            self.qos = UInt8(number(12..<16) & 3)
            self.sequence = number(16..<24)
            self.due = Int64(number(24..<32))
        }
    }

    package struct Row: Hashable {
        package var expected = 0
        package var received = 0
        package var lost = 0
        package var duplicated = 0
        package var reordered = 0

        package init(expected: Int = 0, received: Int = 0, lost: Int = 0, duplicated: Int = 0, reordered: Int = 0) {
            self.expected = expected
            self.received = received
            self.lost = lost
            self.duplicated = duplicated
            self.reordered = reordered
        }

        /// Whether the ledger may say this.
        ///
        /// A message that the end of a connection took with it is excused, and the wire does not show which ones these
        /// are. The wire proves the loss of messages that the ledger calls `outstanding`, so it is held against both.
        package func agrees(with seen: Sums, outstanding: Int = 0) -> Bool {
            let isSame =
                self.received == seen.row.received && self.duplicated == seen.row.duplicated
                && self.reordered == seen.row.reordered
            return isSame && self.expected == self.received + self.lost
                && (max(0, seen.proven - outstanding)...seen.row.lost).contains(self.lost)
        }
    }

    /// What the wire shows, and how many of the lost messages no absence can excuse.
    package struct Sums {
        package var row = Row()
        package var proven = 0
    }

    /// Acknowledged, or confirmed by the end of its connection.
    package fileprivate(set) var known: Set<Message> = []
    package fileprivate(set) var written: Set<Message> = []
    /// Counts writes and arrivals: when each message was written first, and when each connection had its first message
    /// after SUBACK.
    fileprivate var clock = 0
    fileprivate var writtenAt: [Message: Int] = [:]
    fileprivate var heardAt: [[Int]: Int] = [:]
    fileprivate var isEffective: Set<[Int]> = []
    /// Publishes that named their topic by an alias alone, and those that named both.
    package fileprivate(set) var aliased = 0
    package fileprivate(set) var introduced = 0
    /// CONNACKs and SUBACKs that came to clients.
    package fileprivate(set) var connacks: UInt64 = 0
    package fileprivate(set) var subacks: UInt64 = 0
    /// By client.
    fileprivate var arrivals: [Int: [(message: Message, visit: Int)]] = [:]
    /// Connections of each client, and those that ended well.
    fileprivate var visits: [Int: Int] = [:]
    fileprivate var endedWell: Set<[Int]> = []

    /// A packet of a flow, or CONNACK, as it passes.
    package enum Step {
        case connected(resumed: Bool)
        case sent(Message)
        case sentAck(PacketType, id: UInt16)
        case came(id: UInt16)
        case cameAck(PacketType, id: UInt16)
    }

    /// Told before the client reads it, and before the server does.
    package var onStep: ((_ client: Int, Step) -> Void)?

    func connection(_ client: Int) -> Connection {
        self.visits[client, default: 0] += 1
        return Connection(client, self)
    }

    /// The clients that make a subscription, and the publishers that it hears.
    package typealias Subscription = (clients: [Int], hears: (UInt32) -> Bool)

    /// The sums of one QoS, over subscriptions.
    package func sums(_ qos: UInt8, _ subscriptions: [Subscription]) -> Sums {
        var (row, proven) = (Row(), 0)
        for subscription in subscriptions {
            var seen: Set<Message> = []
            for client in subscription.clients {
                var highest: [UInt32: UInt64] = [:]
                for message in (self.arrivals[client] ?? []).map(\.message) where message.qos == qos {
                    guard seen.insert(message).inserted else {
                        row.duplicated += 1
                        continue
                    }
                    let above = highest[message.publisher]
                    // The server keeps no order for shared subscriptions.
                    if let above, message.sequence < above, subscription.clients.count == 1 { row.reordered += 1 }
                    highest[message.publisher] = max(above ?? 0, message.sequence)
                }
            }
            let known = self.known.filter { $0.qos == qos && subscription.hears($0.publisher) }
            row.expected += known.union(seen).count
            row.received += seen.count
            let lost = known.subtracting(seen)
            row.lost += lost.count
            proven += lost.count { self.isProven($0, subscription) }
        }
        return Sums(row: row, proven: proven)
    }

    /// Whether no absence of a subscription's clients can excuse a lost message.
    private func isProven(_ message: Message, _ subscription: Subscription) -> Bool {
        let isWhole = subscription.clients.allSatisfy { client in
            let visits = self.visits[client] ?? 0
            return visits == 1 && self.endedWell.contains([client, 1])
        }
        guard !isWhole else { return true }
        guard let client = subscription.clients.first, subscription.clients.count == 1 else { return false }
        // It lies between two messages of its publisher that came on one connection, and that were sent when the
        // subscription was surely in effect; at QoS 0 on a connection that ended well.
        let same = (self.arrivals[client] ?? []).filter {
            guard $0.message.publisher == message.publisher, let heard = self.heardAt[[client, $0.visit]],
                let written = self.writtenAt[$0.message]
            else { return false }
            return written > heard && (message.qos > 0 || self.endedWell.contains([client, $0.visit]))
        }
        return Dictionary(grouping: same, by: \.visit).values.contains { visit in
            visit.contains { $0.message.sequence < message.sequence }
                && visit.contains { $0.message.sequence > message.sequence }
        }
    }

    /// The messages of one QoS that came, each once for each subscription.
    package func firstArrivals(_ qos: UInt8, _ subscriptions: [Subscription]) -> [Message] {
        subscriptions.flatMap { subscription in
            Set(subscription.clients.flatMap { self.arrivals[$0] ?? [] }.map(\.message).filter { $0.qos == qos })
        }
    }

    /// The bytes that one connection of a client wrote and read.
    package final class Connection: PacketSink {
        private let client: Int
        private let visit: Int
        private let oracle: WireOracle
        private var written = PacketDecoder(role: .server)
        private var read = PacketDecoder(role: .client(.v5))
        private var isWriting = false
        private var awaiting: [UInt16: Message] = [:]
        private var unconfirmed: [Message] = []
        private var saidGoodbye = false

        fileprivate init(_ client: Int, _ oracle: WireOracle) {
            self.client = client
            self.visit = oracle.visits[client] ?? 0
            self.oracle = oracle
        }

        func wrote(_ bytes: ByteBuffer) {
            self.isWriting = true
            var sink = self
            bytes.withUnsafeReadableBytes { try? self.written.decode($0, into: &sink) }
        }

        func read(_ bytes: ByteBuffer) {
            self.isWriting = false
            var sink = self
            bytes.withUnsafeReadableBytes { try? self.read.decode($0, into: &sink) }
        }

        /// The client had shut its side, and the broker's FIN has come.
        func answered() {
            guard self.saidGoodbye else { return }
            self.oracle.known.formUnion(self.unconfirmed)
            self.oracle.endedWell.insert([self.client, self.visit])
        }

        package func publish(_ view: PublishView) -> Bool {
            if !self.isWriting, view.qos == .exactlyOnce {
                self.oracle.onStep?(self.client, .came(id: view.packetID))
            }
            guard let message = Message(view.payload) else { return true }
            if self.isWriting, view.packetID != 0 { self.oracle.onStep?(self.client, .sent(message)) }
            if self.isWriting, view.topic.isEmpty { self.oracle.aliased += 1 }
            if self.isWriting, !view.topic.isEmpty, !view.rawProperties.isEmpty { self.oracle.introduced += 1 }
            if !self.isWriting {
                self.oracle.arrivals[self.client, default: []].append((message, self.visit))
                self.oracle.clock += 1
                let place = [self.client, self.visit]
                if self.oracle.isEffective.contains(place), self.oracle.heardAt[place] == nil {
                    self.oracle.heardAt[place] = self.oracle.clock
                }
            } else {
                self.oracle.written.insert(message)
                self.oracle.clock += 1
                if self.oracle.writtenAt[message] == nil { self.oracle.writtenAt[message] = self.oracle.clock }
                if view.packetID == 0 {
                    self.unconfirmed.append(message)
                } else {
                    self.awaiting[view.packetID] = message
                }
            }
            return true
        }

        package func acknowledgement(
            _ type: PacketType,
            id: UInt16,
            reason: UInt8,
            rawProperties: UnsafeRawBufferPointer
        ) -> Bool {
            // With an error it ends a flow that the other side knows nothing of.
            if reason < 0x80 {
                self.oracle.onStep?(self.client, self.isWriting ? .sentAck(type, id: id) : .cameAck(type, id: id))
            }
            guard !self.isWriting, reason < 0x80, type == .pubAck || type == .pubComp else { return true }
            if let message = self.awaiting.removeValue(forKey: id) { self.oracle.known.insert(message) }
            return true
        }

        package func control(_ packet: Packet) -> Bool {
            if self.isWriting, case .disconnect = packet { self.saidGoodbye = true }
            if !self.isWriting, case .subAck = packet {
                self.oracle.subacks += 1
                self.oracle.isEffective.insert([self.client, self.visit])
            }
            if !self.isWriting, case .connAck(let connack) = packet {
                self.oracle.connacks += 1
                self.oracle.onStep?(self.client, .connected(resumed: connack.sessionPresent))
            }
            return true
        }
    }
}
