import LoopContext
import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded

/// A client's connection and session between a server that sends what it likes and an owner that makes use of it.
///
/// Runs on a channel without a socket, in virtual time. A model beside it knows which packet identifiers are taken.
package final class SessionTarget: FuzzTarget {
    package static var layout: FuzzInput.Layout { .program }
    package private(set) var reached = Reached()
    package private(set) var signature: UInt64 = 0

    /// Few for most inputs, for what one more brings grows slower than what it costs.
    private static func steps(_ input: UnsafeRawBufferPointer) -> Int { input[2] >> 4 == 0 ? 40 : 12 }

    private let loop = EmbeddedEventLoop()
    private let context: LoopContext

    package init() { self.context = LoopContext(eventLoop: self.loop) }

    package func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
        self.reached.inputs += 1
        guard input.count > FuzzInput.settingsCount else { return }
        let life = SessionLife(input, loop: self.loop, context: self.context)
        defer { life.tearDown() }
        try life.connect()
        var walk = ProgramWalk(UnsafeRawBufferPointer(rebasing: input[FuzzInput.settingsCount...]))
        var left = Self.steps(input)
        while left > 0, let step = walk.next() {
            left -= 1
            switch step {
            case .feed(_, let bytes): life.receive(bytes)
            case .call(let code, let argument): try life.call(code, argument)
            }
            try life.check()
        }
        try life.finish()
        self.note(life)
    }

    private func note(_ life: SessionLife) {
        var signature: UInt64 = 0
        for type in life.observer.packets.indices {
            self.reached.packets[type] += life.observer.packets[type]
            if life.observer.packets[type] > 0 { signature |= 1 << UInt64(type) }
        }
        if life.observer.packets.contains(where: { $0 > 0 }) { self.reached.withPacket += 1 }
        for (index, count) in life.observer.events.enumerated() where count > 0 {
            self.reached.note(SessionEvent.allCases[index].rawValue, count)
            signature |= 1 << UInt64(16 + index)
        }
        for end in life.observer.ends {
            switch end {
            case .malformed(let error):
                self.reached.note(error)
                signature |= 1 << UInt64(50 + ErrorKind(error).rawValue % 8)
            case .answered: self.reached.note("end: answered")
            case .refused: self.reached.note("end: refused")
            case .connackTimedOut: self.reached.note("end: no CONNACK")
            case .pingTimedOut: self.reached.note("end: no PINGRESP")
            case .closedByPeer: self.reached.note("end: closed by peer")
            case .disconnected: self.reached.note("end: DISCONNECT")
            case .violation: self.reached.note("end: violation")
            case .failed: self.reached.note("end: failed")
            case .aborted: self.reached.note("end: aborted")
            }
        }
        self.signature = signature
    }
}

enum SessionEvent: String, CaseIterable {
    case connected, resumed
    case completedQoS1 = "completed at QoS 1"
    case completedQoS2 = "completed at QoS 2"
    case failed = "refused by PUBACK or PUBREC"
    case released, late
    case timedOut = "timed out"
    case lost, resent, subscribed, unsubscribed, pinged
    case receivedQoS0 = "received at QoS 0"
    case receivedQoS1 = "received at QoS 1"
    case receivedQoS2 = "received at QoS 2"
    case windowFull = "window full"

    static let indices = Dictionary(uniqueKeysWithValues: Self.allCases.enumerated().map { ($1, $0) })
    var index: Int { Self.indices[self] ?? 0 }
}

/// One input: a session over its connections.
private final class SessionLife {
    private let loop: EmbeddedEventLoop
    private let context: LoopContext
    private let options: SessionOptions
    private let session: UnsafeMutablePointer<MQTTSession>
    let observer: SessionObserver
    private var channel: EmbeddedChannel?
    private var connection: MQTTConnection?
    /// The server that reads what this client writes.
    private var server = PacketDecoder(role: .server)
    private var written = WrittenLog()
    private var sequence: UInt64 = 0

    init(_ input: UnsafeRawBufferPointer, loop: EmbeddedEventLoop, context: LoopContext) {
        self.loop = loop
        self.context = context
        self.options = SessionOptions(
            version: ProtocolVersion.allCases[Int(input[0] & 7) % 3],
            cleanStart: input[0] & 8 == 0,
            keepAlive: [0, 1, 60, 65_535][Int(input[2]) & 3],
            sessionExpiry: input[0] & 16 == 0 ? nil : 100,
            window: [16, 1, 2, 40][Int(input[1]) & 3],
            ackTimeout: input[2] & 4 == 0 ? .seconds(30) : .milliseconds(500),
            pingTimeout: input[2] & 8 == 0 ? .seconds(10) : .milliseconds(100),
            maximumPacketSize: [nil, nil, 64, 300][Int(input[3]) & 3]
        )
        self.session = .allocate(capacity: 1)
        self.session.initialize(to: MQTTSession(self.options))
        self.observer = SessionObserver()
    }

    func tearDown() {
        self.observer.resend = nil
        self.connection?.abort()
        self.connection = nil
        self.channel?.pipeline.fireChannelInactive()
        self.channel = nil
        self.loop.run()
        self.session.deinitialize(count: 1)
        self.session.deallocate()
    }

    private var now: NIODeadline { self.loop.now }

    private var isOpen: Bool { self.connection != nil && !self.observer.hasEnded }

    // MARK: What the owner does

    func connect() throws(Finding) {
        let channel = EmbeddedChannel(loop: self.loop)
        let connection = MQTTConnection(
            client: 1,
            loop: self.context,
            session: self.session,
            maximumPacketSize: self.options.maximumPacketSize,
            observer: self.observer
        )
        do {
            try channel.pipeline.syncOperations.addHandler(connection)
            channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        } catch {
            throw Finding("no channel: \(error)")
        }
        self.channel = channel
        self.connection = connection
        self.server = PacketDecoder(role: .server)
        self.written = WrittenLog()
        self.observer.begin()
        self.observer.resend = { [unowned self] id, publish in
            self.connection?.write(.publish(Self.publish(id, publish.qos, dup: true)))
        }
        self.context.refresh()
        let connect = self.session.pointee.connect(clientID: "c", username: nil, password: nil, now: self.now)
        self.connection?.start(connect, deadline: self.now + .seconds(10))
    }

    private static func publish(_ id: UInt16, _ qos: QoS, dup: Bool) -> Publish {
        Publish(topic: "a/b", qos: qos, dup: dup, packetID: PacketID(rawValue: id))
    }

    private func publish(_ count: Int, _ qos: QoS) throws(Finding) {
        guard let connection = self.connection, self.isOpen, connection.isWritable,
            self.session.pointee.state == .connected
        else { return }
        if qos == .atMostOnce {
            connection.write(.publish(Publish(topic: "a/b")))
            connection.flush()
            return
        }
        let room = self.session.pointee.room
        try Finding.unless(
            room == max(0, self.session.pointee.window.limit - self.observer.publishes),
            "room for \(room) with \(self.observer.publishes) in flight of \(self.session.pointee.window.limit)"
        )
        if count > room { self.observer.note(.windowFull) }
        for _ in 0..<min(count, room) {
            self.sequence += 1
            let publish = InFlightPublish(due: self.now, written: self.now, sequence: self.sequence, qos: qos)
            let id = self.session.pointee.publish(publish)
            try Finding.unless(id != 0, "packet identifier 0")
            try Finding.unless(self.observer.taken[id] == nil, "packet identifier \(id) is taken already")
            self.observer.taken[id] = .publish(self.sequence, timedOut: false)
            self.observer.publishes += 1
            connection.write(.publish(Self.publish(id, qos, dup: false)))
        }
        connection.flush()
    }

    private func request(_ id: PacketID?, _ kind: SessionObserver.Taken) throws(Finding) {
        guard let id = id?.rawValue else {
            return try Finding.unless(self.session.pointee.state != .connected, "no packet identifier left")
        }
        try Finding.unless(self.observer.taken[id] == nil, "packet identifier \(id) is taken already")
        self.observer.taken[id] = kind
    }

    func call(_ code: UInt8, _ argument: UInt8) throws(Finding) {
        self.context.refresh()
        let count = Int(argument & 15)
        guard self.isOpen else {
            if code % 17 == 14 { try self.connect() }
            if code % 17 == 9 { self.loop.advanceTime(by: .milliseconds(Int64(argument) * 10)) }
            return
        }
        switch code % 17 {
        case 0: self.answer(self.written.requests.count)
        case 1: self.answerOne(Int(argument))
        case 2: self.sendConnAck(argument)
        case 3: try self.publish(1 + count, .atLeastOnce)
        case 4: try self.publish(1 + count, .exactlyOnce)
        case 5: try self.publish(1, .atMostOnce)
        case 6:
            let filters = (0...Int(argument & 3)).map { Subscription(filter: "a/\($0)", qos: .exactlyOnce) }
            try self.request(self.connection?.subscribe(filters), .subscribe)
        case 7:
            let filters = ["a/0", "a/1"].dropLast(Int(argument & 1))
            try self.request(self.connection?.unsubscribe(Array(filters)), .unsubscribe)
        case 8: if self.session.pointee.state == .connected { self.connection?.ping() }
        case 9: try self.advance(by: .milliseconds(Int64(argument) * 10))
        case 10:
            let due = min(self.observer.timer, self.now + .seconds(70))
            try self.advance(by: max(due - self.now, .zero))
        case 11: self.connection?.finish()
        case 12: self.connection?.abort()
        case 13: self.lose(argument)
        case 14: break
        case 15:
            self.channel?.isWritable = argument & 1 == 0
            self.channel?.pipeline.fireChannelWritabilityChanged()
        default: self.sendPublish(argument)
        }
    }

    // MARK: What the server does

    func receive(_ bytes: UnsafeRawBufferPointer) {
        guard self.isOpen, let pipeline = self.channel?.pipeline else { return }
        pipeline.fireChannelRead(ByteBuffer(bytes: bytes))
        pipeline.fireChannelReadComplete()
    }

    private func receive(_ packet: Packet) {
        var buffer = ByteBuffer()
        packet.encode(as: self.options.version, into: &buffer)
        guard self.isOpen, let pipeline = self.channel?.pipeline else { return }
        pipeline.fireChannelRead(buffer)
        pipeline.fireChannelReadComplete()
    }

    /// Answers what has been asked, first in, first out.
    private func answer(_ count: Int) {
        for _ in 0..<min(count, self.written.requests.count) { self.answerOne(0) }
    }

    /// Answers one request, in any order.
    private func answerOne(_ choice: Int) {
        guard !self.written.requests.isEmpty else { return }
        let request = self.written.requests.remove(at: choice % self.written.requests.count)
        switch request {
        case .publish(let publish):
            guard let id = publish.packetID else { return }
            self.receive(publish.qos == .atLeastOnce ? .pubAck(PubAck(id)) : .pubRec(PubRec(id)))
        case .pubRel(let packet): self.receive(.pubComp(PubComp(packet.packetID)))
        case .pubRec(let packet): self.receive(.pubRel(PubRel(packet.packetID)))
        case .subscribe(let packet):
            self.receive(.subAck(SubAck(packet.packetID, codes: packet.subscriptions.map(\.qos.rawValue))))
        case .unsubscribe(let packet):
            let codes = [UInt8](repeating: 0, count: self.options.version == .v5 ? packet.filters.count : 0)
            self.receive(.unsubAck(UnsubAck(packet.packetID, codes: codes)))
        case .pingReq: self.receive(.pingResp)
        default: break
        }
    }

    private func sendConnAck(_ argument: UInt8) {
        var answer = ConnAck(sessionPresent: argument & 1 == 1)
        if self.options.version == .v5 {
            if argument & 2 != 0 { answer.properties.receiveMaximum = UInt16(argument >> 4) + 1 }
            if argument & 4 != 0 { answer.properties.serverKeepAlive = UInt16(argument >> 4) }
        }
        self.receive(.connAck(answer))
    }

    private func sendPublish(_ argument: UInt8) {
        let qos = QoS.allCases[Int(argument) % 3]
        let id = qos == .atMostOnce ? nil : PacketID(rawValue: UInt16(argument >> 4) + 1)
        self.receive(.publish(Publish(topic: "s/t", qos: qos, packetID: id)))
    }

    private func lose(_ how: UInt8) {
        guard let pipeline = self.channel?.pipeline else { return }
        switch how % 3 {
        case 0:
            pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            pipeline.fireChannelInactive()
        case 1:
            pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "reset"))
            pipeline.fireChannelInactive()
        default:
            pipeline.fireChannelReadComplete()
            pipeline.fireChannelInactive()
        }
    }

    private func advance(by time: TimeAmount) throws(Finding) {
        let end = self.now + time
        var left = 200
        while self.isOpen, self.observer.timer <= end {
            left -= 1
            try Finding.unless(left > 0, "timers without end")
            self.loop.advanceTime(to: max(self.now, self.observer.timer))
            self.context.refresh()
            self.observer.timer = .distantFuture
            self.connection?.timerFired(now: self.now)
            if self.isOpen, let next = self.session.pointee.deadline {
                try Finding.unless(next > self.now, "a timer that does not move")
                self.observer.timer = min(self.observer.timer, next)
            }
            try self.check()
        }
        self.loop.advanceTime(to: max(self.now, end))
        self.context.refresh()
    }

    // MARK: What must hold

    func check() throws(Finding) {
        self.observer.settle(self.session)
        if let problem = self.observer.problem { throw Finding(problem) }
        try Finding.unless(self.context.scratch.pointee.readableBytes == 0, "bytes left in the loop's scratch buffer")
        let window = self.session.pointee.window.inFlight
        try Finding.unless(window == self.observer.publishes, "\(window) in flight, \(self.observer.publishes) counted")
        let awaited = self.session.pointee.window.awaited
        try Finding.unless(awaited >= 0 && awaited <= window, "\(awaited) awaited of \(window)")
        try self.readWritten()
    }

    private func readWritten() throws(Finding) {
        while true {
            let buffer: ByteBuffer?
            do { buffer = try self.channel?.readOutbound(as: ByteBuffer.self) } catch { throw Finding("\(error)") }
            guard let buffer else { return }
            try Finding.unless(buffer.readableBytes > 0, "an empty write")
            try Finding.unless(!self.written.hasSaidGoodbye, "bytes behind DISCONNECT")
            let error = buffer.withUnsafeReadableBytes { bytes -> DecodeError? in
                do throws(DecodeError) {
                    try self.server.decode(bytes, into: &self.written)
                    return nil
                } catch {
                    return error
                }
            }
            try Finding.unless(error == nil, "wrote what a server refuses: \(String(describing: error))")
            try Finding.unless(self.server.isAtPacketBoundary, "wrote half a packet")
        }
    }

    func finish() throws(Finding) {
        self.connection?.abort()
        self.loop.run()
        self.context.refresh()
        try self.check()
        try Finding.unless(self.observer.hasEnded, "no word about the end")
        try Finding.unless(self.session.pointee.state == .idle, "not idle behind the end")
        if self.options.cleanStart {
            try Finding.unless(self.observer.publishes == 0, "in flight without a session")
        }
    }
}

/// What a client has written, and waits for answers.
private struct WrittenLog: PacketSink {
    var requests: [Packet] = []
    var hasSaidGoodbye = false

    mutating func publish(_ view: PublishView) -> Bool {
        guard let publish = try? Publish(view) else { return false }
        if publish.qos != .atMostOnce { self.requests.append(.publish(publish)) }
        return true
    }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        guard type == .pubRel || type == .pubRec,
            let packet = Packet(acknowledgement: type, id: id, reason: reason, rawProperties: rawProperties)
        else { return true }
        self.requests.append(packet)
        return true
    }

    mutating func control(_ packet: Packet) -> Bool {
        if packet.type == .disconnect { self.hasSaidGoodbye = true }
        if packet.type != .connect { self.requests.append(packet) }
        return true
    }
}

/// The owner: books what it is told, and knows which packet identifiers are taken.
private final class SessionObserver: MQTTConnectionObserver {
    enum Taken {
        case publish(UInt64, timedOut: Bool)
        case subscribe
        case unsubscribe

        var isRequest: Bool { if case .publish = self { false } else { true } }
    }

    var taken: [UInt16: Taken] = [:]
    var publishes = 0
    var timer = NIODeadline.distantFuture
    var problem: String?
    var hasEnded = false
    var ends: [ConnectionEnd] = []
    var packets = [Int](repeating: 0, count: 16)
    var events = [Int](repeating: 0, count: SessionEvent.allCases.count)
    var resend: ((UInt16, InFlightPublish) -> Void)?
    private var hasConnected = false
    private var isEnding = false

    func begin() {
        self.hasEnded = false
        self.isEnding = false
        self.hasConnected = false
        self.timer = .distantFuture
    }

    func note(_ event: SessionEvent) { self.events[event.index] += 1 }

    private func complain(_ words: String) { if self.problem == nil { self.problem = words } }

    private func heard(_ type: PacketType) {
        self.packets[Int(type.rawValue)] += 1
        if self.hasEnded { self.complain("\(type) behind the end") }
    }

    /// Requests end with their connection, and with a CONNACK.
    func settle(_ session: UnsafeMutablePointer<MQTTSession>) {
        if session.pointee.state == .idle, session.pointee.options.cleanStart { self.forgetRequests() }
    }

    private func forgetRequests() { self.taken = self.taken.filter { !$0.value.isRequest } }

    private func id(of sequence: UInt64) -> UInt16? {
        self.taken.first { if case .publish(sequence, _) = $0.value { true } else { false } }?.key
    }

    func connected(_ client: Int, _ connack: ConnAck, resumed: Bool, now: NIODeadline) {
        self.heard(.connAck)
        if self.hasConnected { self.complain("connected twice") }
        self.hasConnected = true
        self.note(resumed ? .resumed : .connected)
        self.forgetRequests()
        if !resumed, self.publishes > 0 { self.complain("\(self.publishes) in flight in a new session") }
    }

    func read(_ client: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool) {
        if self.hasEnded { self.complain("a read behind the end") }
    }

    func readEnded(_ client: Int, packets: Int, now: NIODeadline) {
        if self.hasEnded { self.complain("a read behind the end") }
    }

    func message(_ client: Int, _ view: PublishView, now: NIODeadline) {
        self.heard(.publish)
        self.note(view.qos == .atMostOnce ? .receivedQoS0 : view.qos == .atLeastOnce ? .receivedQoS1 : .receivedQoS2)
    }

    func acknowledged(
        _ client: Int,
        _ type: PacketType,
        reason: UInt8,
        _ publish: InFlightPublish,
        finished: Bool,
        timedOut: Bool,
        now: NIODeadline
    ) {
        self.heard(type)
        guard let id = self.id(of: publish.sequence), case .publish(_, let wasTimedOut)? = self.taken[id] else {
            return self.complain("\(type) for a publish that is not in flight")
        }
        if timedOut != wasTimedOut { self.complain("timed out \(timedOut), booked as \(wasTimedOut)") }
        if timedOut { self.note(.late) }
        guard finished else { return self.note(.released) }
        self.taken[id] = nil
        self.publishes -= 1
        self.note(reason >= 0x80 ? .failed : publish.qos == .atLeastOnce ? .completedQoS1 : .completedQoS2)
    }

    func abandoned(_ client: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        guard let id = self.id(of: publish.sequence), case .publish(_, let wasTimedOut)? = self.taken[id] else {
            return self.complain("a publish is abandoned that is not in flight")
        }
        switch why {
        case .timedOut:
            if wasTimedOut { self.complain("timed out twice") }
            self.taken[id] = .publish(publish.sequence, timedOut: true)
            self.note(.timedOut)
        case .connectionLost(let timedOutBefore):
            if timedOutBefore != wasTimedOut { self.complain("lost, timed out \(timedOutBefore)") }
            self.taken[id] = nil
            self.publishes -= 1
            self.note(.lost)
        }
    }

    func resend(_ client: Int, id: UInt16, _ publish: InFlightPublish, now: NIODeadline) {
        if case .publish(publish.sequence, _)? = self.taken[id] {
            self.note(.resent)
            self.resend?(id, publish)
        } else {
            self.complain("\(id) is sent again, and is not in flight")
        }
    }

    func subscribed(_ client: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        self.heard(.subAck)
        guard case .subscribe? = self.taken[id.rawValue] else { return self.complain("SUBACK for nothing") }
        self.taken[id.rawValue] = nil
        self.note(.subscribed)
    }

    func unsubscribed(_ client: Int, _ id: PacketID, now: NIODeadline) {
        self.heard(.unsubAck)
        guard case .unsubscribe? = self.taken[id.rawValue] else { return self.complain("UNSUBACK for nothing") }
        self.taken[id.rawValue] = nil
        self.note(.unsubscribed)
    }

    func pingAnswered(_ client: Int, after: TimeAmount, now: NIODeadline) {
        self.heard(.pingResp)
        if after < .zero { self.complain("a ping took \(after)") }
        self.note(.pinged)
    }

    func wrote(_ client: Int, bytes: Int) { if bytes <= 0 { self.complain("wrote \(bytes) bytes") } }

    func writable(_ client: Int, now: NIODeadline) { if self.hasEnded { self.complain("writable behind the end") } }

    func ending(_ client: Int, unsent: Int) {
        if self.isEnding || self.hasEnded { self.complain("ends twice") }
        if unsent < 0 { self.complain("\(unsent) bytes unsent") }
        self.isEnding = true
    }

    func ended(_ client: Int, _ end: ConnectionEnd, now: NIODeadline) {
        if self.hasEnded { self.complain("ends twice") }
        self.hasEnded = true
        self.ends.append(end)
        if case .disconnected = end { self.packets[Int(PacketType.disconnect.rawValue)] += 1 }
    }

    func wantsTimer(_ client: Int, at: NIODeadline) { self.timer = min(self.timer, at) }
}
