import EmbeddedBroker
import FaultLines
import MQTTCodec
import NIOCore

/// The broker's core between four connections that send what they like, in virtual time, with and without faults.
///
/// A model beside it knows who is subscribed to what, and says how many deliveries the books have to account for.
package final class BrokerTarget: FuzzTarget {
    package static var layout: FuzzInput.Layout { .program }
    package private(set) var reached = Reached()
    package private(set) var signature: UInt64 = 0

    private let faults: [FaultPlan] = [
        "", "", "", "", "drop 30%", "duplicate 2", "reorder 2", "delay 5ms delay-every 2",
        "drop 20% duplicate 3 reorder 2 delay 40ms", "disconnect-every 200ms", "stall 50ms@20ms",
        "refuse 5",
    ].map { line in
        do { return try FaultPlan.parse(line: line) } catch { preconditionFailure("\(error)") }
    }

    /// Few for most inputs, for what one more brings grows slower than what it costs.
    private static func steps(_ input: UnsafeRawBufferPointer) -> Int { input[2] >> 4 == 0 ? 40 : 12 }

    package init() {}

    package func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
        self.reached.inputs += 1
        guard input.count > FuzzInput.settingsCount else { return }
        let life = BrokerLife(input, faults: self.faults[Int(input[0]) % self.faults.count])
        var walk = ProgramWalk(UnsafeRawBufferPointer(rebasing: input[FuzzInput.settingsCount...]))
        var left = Self.steps(input)
        while left > 0, let step = walk.next() {
            left -= 1
            switch step {
            case .feed(let slot, let bytes): try life.receive(bytes, on: slot)
            case .call(let code, let argument): try life.call(code, argument)
            }
        }
        let counters = try life.finish()
        self.note(life, counters)
    }

    private func note(_ life: BrokerLife, _ counters: BrokerCounters) {
        var signature: UInt64 = 0
        for type in life.packets.indices where life.packets[type] > 0 {
            self.reached.packets[type] += life.packets[type]
            signature |= 1 << UInt64(type)
        }
        if life.packets.contains(where: { $0 > 0 }) { self.reached.withPacket += 1 }
        for error in life.errors {
            self.reached.note(error)
            signature |= 1 << UInt64(50 + ErrorKind(error).rawValue % 8)
        }
        let events: [(String, UInt64)] = [
            ("connects", counters.connects), ("connects refused", counters.connectsRefused),
            ("delivered at QoS 0", counters.delivered.qos0), ("delivered at QoS 1", counters.delivered.qos1),
            ("delivered at QoS 2", counters.delivered.qos2), ("retained delivered", counters.deliveredRetained.total),
            ("offline", counters.notDeliveredOffline.total), ("undelivered", counters.undelivered.total),
            ("queue full", counters.queueFull.total), ("too large", counters.tooLarge.total),
            ("dropped", counters.dropped.total), ("duplicated", counters.duplicated.total),
            ("reordered", counters.reordered.total), ("reorder released", counters.reorderReleased.total),
            ("delayed", counters.delayed.total), ("reset", counters.disconnected),
            ("repeated", counters.receivedRepeated.total), ("paused", counters.publishersPaused),
            ("PUBCOMP received", counters.acknowledgementsReceived.pubcomp), ("resent", counters.resent.total),
            ("expired", counters.expired.total), ("wills", counters.wills.total),
            ("sessions expired", counters.sessionsExpired), ("sessions away", counters.sessionsAway),
        ]
        for (index, (name, count)) in events.enumerated() where count > 0 {
            self.reached.note(name, Int(count))
            signature |= 1 << UInt64(20 + index % 30)
        }
        for (cause, count) in counters.disconnects { self.reached.note("end: \(cause)", Int(count)) }
        self.signature = signature
    }
}

/// One input: a broker from its start to the end of its last connection.
private final class BrokerLife {
    /// One of the four places for a connection.
    final class Slot {
        let id: ConnectionID
        var serverSide: PacketDecoder
        /// Reads the same bytes for the model.
        var tap: PacketDecoder
        /// Reads what the broker writes; there is none before the CONNECT has told the version.
        var clientSide: PacketDecoder?
        var isWritable = true
        /// The broker has sent DISCONNECT; further input is ignored.
        var isClosing = false
        let model = ModelConnection()
        /// Packets that the client has not answered.
        var pending: [Packet] = []

        init(_ id: ConnectionID, maximumPacketSize: Int) {
            self.id = id
            self.serverSide = PacketDecoder(role: .server, maximumPacketSize: maximumPacketSize)
            self.tap = PacketDecoder(role: .server, maximumPacketSize: maximumPacketSize)
        }
    }

    private var broker: Broker
    private var now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private let configuration: BrokerConfiguration
    /// Connections stay for a while behind the broker's goodbye.
    private let lingers: Bool
    /// A connection that begins with something else gets a CONNECT in front.
    private let connectsFirst: Bool
    private var slots: [Slot?] = [nil, nil, nil, nil]
    private var model = BrokerModel()
    private var log = PacketLog()
    private var opened: UInt64 = 0
    /// PUBLISH that the broker has handed out.
    private var delivered: UInt64 = 0
    private var hasStatistics = false
    /// A client has come back to its session, with all that waited there.
    private var hasResumed = false
    private var isDown = false
    private(set) var packets = [Int](repeating: 0, count: 16)
    private(set) var errors: [DecodeError] = []

    init(_ input: UnsafeRawBufferPointer, faults: FaultPlan) {
        var configuration = BrokerConfiguration(port: 0, faults: faults)
        if input[1] & 1 != 0 { configuration.maximumInFlight = 2 }
        if input[1] & 2 != 0 { configuration.receiveMaximum = 2 }
        if input[1] & 4 != 0 { configuration.queueLimit = 60 }
        if input[1] & 8 != 0 { configuration.highWaterMark = 30 }
        if input[1] & 16 != 0 { configuration.maximumPacketSize = 40 }
        self.lingers = input[2] & 1 != 0
        self.connectsFirst = input[3] & 7 != 0
        self.configuration = configuration
        self.broker = Broker(configuration, now: self.now)
    }

    // MARK: Clients

    private func slot(_ index: Int) -> Slot {
        if let slot = self.slots[index] { return slot }
        self.opened += 1
        let id = self.broker.connected(now: self.now)
        let slot = Slot(id, maximumPacketSize: self.configuration.maximumPacketSize)
        self.slots[index] = slot
        return slot
    }

    private func index(of id: ConnectionID) -> Int? { self.slots.firstIndex { $0?.id == id } }

    func receive(_ bytes: UnsafeRawBufferPointer, on index: Int) throws(Finding) {
        guard !self.isDown else { return }
        let isNew = self.slots[index] == nil
        let slot = self.slot(index)
        if isNew, self.connectsFirst, let first = bytes.first, first >> 4 != 1 {
            let version = ProtocolVersion.allCases[(index + Int(bytes.count)) % 3]
            try self.send(.connect(Connect(version: version, clientID: "c\(index)")), on: index)
            guard self.slots[index] === slot else { return }
        }
        self.log.begin(limit: .max)
        var error: DecodeError?
        do throws(DecodeError) { try slot.tap.decode(bytes, into: &self.log) } catch let problem { error = problem }
        let taken = self.log.packets
        let before = slot.serverSide.packets
        let hasConnect = taken.first?.type == .connect
        let connects = hasConnect ? self.broker.counters.connects : 0
        let wasClosing = slot.isClosing
        self.broker.received(bytes, from: slot.id, decoder: &slot.serverSide, now: self.now)
        let count = Int(slot.serverSide.packets - before)
        try Finding.unless(count <= taken.count, "the broker read \(count) packets of \(taken.count)")
        try Finding.unless(!wasClosing || count == 0, "the broker reads behind the end")
        if !wasClosing, count == taken.count, let error { self.errors.append(error) }
        let isAccepted = hasConnect && self.broker.counters.connects > connects
        for packet in taken.prefix(count) {
            if case .connect(let connect) = packet, !connect.cleanStart { self.hasResumed = true }
            self.packets[Int(packet.type.rawValue)] += 1
            self.model.take(packet, from: slot.model, isAccepted: isAccepted, self.configuration, now: self.now)
        }
        try self.act()
    }

    private func send(_ packet: Packet, on index: Int) throws(Finding) {
        var buffer = ByteBuffer()
        packet.encode(as: self.slot(index).tap.version, into: &buffer)
        let bytes = Array(buffer.readableBytesView)
        try bytes.withBytes { bytes throws(Finding) in try self.receive(bytes, on: index) }
    }

    func call(_ code: UInt8, _ argument: UInt8) throws(Finding) {
        guard !self.isDown else { return }
        let index = Int(argument & 3)
        let rest = argument >> 2
        switch code % 13 {
        case 0: try self.answer(index)
        case 1: try self.advance(to: self.now + .milliseconds(Int64(argument) * 10))
        case 2: try self.advance(to: max(self.now, self.broker.nextDeadline))
        case 3: try self.close(index)
        case 4: try self.setWritable(index, false)
        case 5: try self.setWritable(index, true)
        case 6:
            let filters = ["a/b", "#", "a/+", "+/b", "$share/g/a/b", "$share/g/#", "a", "a/#"]
            let filter = Subscription(
                filter: filters[Int(rest) & 7],
                qos: QoS.allCases[Int(rest) % 3],
                noLocal: rest & 32 != 0 && rest & 4 == 0
            )
            try self.send(.subscribe(Subscribe(9, [filter])), on: index)
        case 7, 8:
            var publish = Publish(topic: rest & 8 == 0 ? "a/b" : "a", qos: QoS.allCases[Int(rest) % 3])
            publish.retain = rest & 16 != 0
            publish.payload = ByteBuffer(bytes: [rest, 1, 2, 3].prefix(Int(rest) & 3))
            if publish.qos != .atMostOnce { publish.packetID = PacketID(rawValue: UInt16(rest >> 4) + 1) }
            if rest & 4 != 0 { publish.properties = [.messageExpiryInterval(UInt32(rest >> 4))] }
            try self.send(.publish(publish), on: index)
        case 9 where rest & 1 != 0:
            guard self.slots[index] != nil else { return }
            var disconnect = Disconnect(reason: rest & 2 == 0 ? .normalDisconnection : .disconnectWithWillMessage)
            if rest & 4 != 0 { disconnect.properties = [.sessionExpiryInterval(UInt32(rest >> 4))] }
            try self.send(.disconnect(disconnect), on: index)
        case 9:
            self.broker.stalled(from: 1, to: 2, now: self.now)
            if let slot = self.slots[index] { self.broker.heard(slot.id, now: self.now) }
        case 12: try self.goDeep(levels: rest == 63 ? 65_535 : Int(rest) + 1, on: index)
        case 10 where rest == 0:
            self.isDown = true
            self.broker.shutDown(now: self.now)
            try self.act()
        default:
            let version = ProtocolVersion.allCases[Int(rest) % 3]
            if self.slots[index] != nil { try self.close(index) }
            var connect = Connect(version: version, clientID: "c\(rest & 3)", keepAlive: rest & 16 == 0 ? 0 : 1)
            if rest & 8 != 0 {
                connect.cleanStart = false
                connect.properties = [.sessionExpiryInterval(rest & 4 == 0 ? 1 : .max)]
            }
            if rest & 32 != 0 {
                connect.will = Will(topic: "a/b", payload: [rest], qos: QoS.allCases[Int(rest) % 3])
                connect.will?.properties = [.willDelayInterval(UInt32(rest & 1))]
            }
            try self.send(.connect(connect), on: index)
        }
    }

    /// Topics of many levels, retained and not, and filters that take them.
    private func goDeep(levels: Int, on index: Int) throws(Finding) {
        let topic = String(repeating: "/", count: levels)
        for filter in ["#", topic, String(repeating: "+/", count: min(levels, 32_766)) + "#"] {
            try self.send(.subscribe(Subscribe(9, [Subscription(filter: filter)])), on: index)
            try self.send(.publish(Publish(topic: topic, payload: ByteBuffer(string: "p"), retain: true)), on: index)
        }
        try self.send(.subscribe(Subscribe(9, [Subscription(filter: "+/#")])), on: index)
        try self.send(.publish(Publish(topic: topic, retain: true)), on: index)
    }

    /// The connection breaks.
    private func close(_ index: Int) throws(Finding) {
        guard let slot = self.slots[index] else { return }
        self.model.end(slot.model, byClient: false, isDown: self.isDown, now: self.now)
        self.slots[index] = nil
        self.broker.closed(slot.id, now: self.now)
        try self.act()
    }

    private func setWritable(_ index: Int, _ isWritable: Bool) throws(Finding) {
        guard let slot = self.slots[index] else { return }
        slot.isWritable = isWritable
        self.broker.setWritable(slot.id, isWritable)
        try self.act()
    }

    private func answer(_ index: Int) throws(Finding) {
        guard let slot = self.slots[index] else { return }
        let pending = slot.pending
        slot.pending.removeAll(keepingCapacity: true)
        for packet in pending {
            // An answer may have ended it.
            guard self.slots[index] === slot else { return }
            switch packet {
            case .publish(let publish):
                guard let id = publish.packetID else { continue }
                try self.send(publish.qos == .atLeastOnce ? .pubAck(PubAck(id)) : .pubRec(PubRec(id)), on: index)
            case .pubRel(let pubRel): try self.send(.pubComp(PubComp(pubRel.packetID)), on: index)
            case .pubRec(let pubRec): try self.send(.pubRel(PubRel(pubRec.packetID)), on: index)
            default: continue
            }
        }
    }

    // MARK: Time and actions

    private func advance(to end: NIODeadline) throws(Finding) {
        var left = 2_000
        while self.broker.nextDeadline <= end {
            left -= 1
            try Finding.unless(left > 0, "deadlines without end")
            self.now = max(self.now, self.broker.nextDeadline)
            self.broker.advance(to: self.now)
            self.model.advance(to: self.now)
            try self.act()
        }
        self.now = max(self.now, end)
    }

    private func act() throws(Finding) {
        var left = 5_000
        while let action = self.broker.nextAction() {
            left -= 1
            try Finding.unless(left > 0, "actions without end")
            switch action {
            case .flush(let id), .flushNow(let id):
                guard let index = self.index(of: id), let slot = self.slots[index] else { continue }
                if slot.isWritable || slot.isClosing { try self.flush(slot) }
            case .close(let id), .reset(let id):
                guard let index = self.index(of: id), let slot = self.slots[index] else {
                    throw Finding("the end of a connection that is none")
                }
                self.model.end(slot.model, byClient: false, isDown: self.isDown, now: self.now)
                try self.flush(slot)
                if self.lingers {
                    slot.isClosing = true
                } else {
                    self.slots[index] = nil
                    self.broker.closed(id, now: self.now)
                }
            case .stall(let until): try Finding.unless(until > self.now, "a stall into the past")
            case .pauseReading, .resumeReading: continue
            }
        }
    }

    private func flush(_ slot: Slot) throws(Finding) {
        guard self.broker.hasOutput(slot.id) else { return }
        let output = self.broker.takeOutput(slot.id)
        if slot.clientSide == nil { slot.clientSide = PacketDecoder(role: .client(slot.tap.version)) }
        self.log.begin(limit: .max)
        let error = output.withUnsafeReadableBytes { bytes -> DecodeError? in
            do throws(DecodeError) {
                try slot.clientSide?.decode(bytes, into: &self.log)
                return nil
            } catch {
                return error
            }
        }
        self.broker.recycle(output)
        try Finding.unless(error == nil, "the broker wrote what a client refuses: \(String(describing: error))")
        try Finding.unless(slot.clientSide?.isAtPacketBoundary ?? true, "the broker wrote half a packet")
        var publishBytes = 0
        for packet in self.log.packets {
            switch packet {
            case .publish(let publish):
                publishBytes += publish.topic.utf8.count + publish.payload.readableBytes
                self.delivered += 1
                if publish.topic.hasPrefix("$SYS") { self.hasStatistics = true }
                try slot.model.receives(publish, self.configuration)
                if publish.qos != .atMostOnce { slot.pending.append(packet) }
            case .pubRel(let pubRel):
                slot.model.isReleased(pubRel.packetID.rawValue)
                slot.pending.append(packet)
            case .pubRec: slot.pending.append(packet)
            default: continue
            }
        }
        try Finding.unless(
            publishBytes <= self.configuration.queueLimit || self.hasResumed,
            "\(publishBytes) bytes of PUBLISH waited for one client"
        )
    }

    // MARK: The end

    /// Ends every connection, lets what is held go, and balances the books.
    func finish() throws(Finding) -> BrokerCounters {
        for index in self.slots.indices {
            try self.setWritable(index, true)
            if let slot = self.slots[index] { try self.flush(slot) }
        }
        for index in self.slots.indices { try self.close(index) }
        self.isDown = true
        try self.advance(to: self.now + .milliseconds(600))
        let counters = self.broker.counters
        if counters.sessionsAway == 0 {
            try Finding.unless(counters.waiting == CountPerQoS(), "still waiting: \(counters.waiting)")
            try Finding.unless(counters.storedBytes == 0, "\(counters.storedBytes) bytes stored without a receiver")
        }
        try Finding.unless(
            counters.sessionsAway == UInt64(self.model.sessionsAway),
            "\(counters.sessionsAway) sessions are left, \(self.model.sessionsAway) by the model"
        )
        try Finding.unless(counters.clientsNow == 0, "\(counters.clientsNow) clients are left")
        try Finding.unless(counters.connections == self.opened, "connections are miscounted")
        let ends = counters.disconnects.values.reduce(0, +)
        try Finding.unless(counters.connects == ends, "\(counters.connects) connects, \(ends) ends")
        try Finding.unless(
            counters.expected == self.model.expected,
            "the books expect \(counters.expected), the model \(self.model.expected)"
        )
        let copies = counters.delivered.total + counters.resent.total
        try Finding.unless(copies <= self.delivered, "\(copies) delivered by the books, \(self.delivered) handed out")
        if counters.deliveredRetained.total == 0, !self.hasStatistics {
            try Finding.unless(copies == self.delivered, "\(copies) by the books, \(self.delivered) handed out")
        }
        return counters
    }
}
