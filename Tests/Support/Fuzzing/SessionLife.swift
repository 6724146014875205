import LoopContext
import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded
import Transport

/// One input: a session over its connections.
final class SessionLife {
    let loop: EmbeddedEventLoop
    let context: LoopContext
    let options: SessionOptions
    let authenticates: Bool
    /// The topics of the server's aliases on this connection.
    var aliases: [UInt16: String] = [:]
    /// Any bytes may have brought others, or half a packet.
    var knowsAliases = true
    let session: UnsafeMutablePointer<MQTTSession>
    let observer: SessionObserver
    var channel: EmbeddedChannel?
    var connection: MQTTConnection?
    /// The server that reads what this client writes.
    var server = PacketDecoder(role: .server)
    var written = WrittenLog()
    var sequence: UInt64 = 0

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
            maximumPacketSize: [nil, nil, 64, 300][Int(input[3]) & 3],
            receiveMaximum: input[3] & 8 == 0 ? nil : 3,
            topicAliasMaximum: input[3] & 4 == 0 ? 0 : 3,
            dupTimeout: input[1] & 8 == 0 ? nil : .milliseconds(300),
            defersReleases: input[3] & 32 != 0,
            defersCompletions: input[1] & 4 != 0,
            acknowledgesMessages: input[3] & 16 == 0 ? .atOnce : .byOwner,
            tellsProperties: input[3] & 128 != 0,
            showsPackets: input[3] & 128 != 0
        )
        self.authenticates = input[3] & 64 != 0 && self.options.version == .v5
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

    var now: NIODeadline { self.loop.now }

    var isOpen: Bool { self.connection != nil && !self.observer.hasEnded }

    // MARK: What the owner does

    func connect() throws(Finding) {
        let channel = EmbeddedChannel(loop: self.loop)
        let connection = MQTTConnection(
            client: 1,
            loop: self.context,
            session: self.session,
            observer: self.observer
        )
        do {
            try channel.pipeline.syncOperations.addHandler(connection.makeHandler())
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
        self.aliases = [:]
        self.knowsAliases = true
        let authenticator = self.authenticates ? MQTTAuthenticator { FuzzMechanism() } : nil
        self.connection?.start(connect, deadline: self.now + .seconds(10), authenticator: authenticator)
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
        let most = Int(self.session.pointee.limits.receiveMaximum)
        let awaited = self.observer.taken.values.count {
            if case .publish(_, timedOut: false) = $0 { true } else { false }
        }
        try Finding.unless(
            room == max(0, min(self.options.window - awaited, most - self.observer.publishes)),
            "room for \(room) with \(awaited) awaited of \(self.options.window), "
                + "\(self.observer.publishes) in flight of \(most)"
        )
        if count > room { self.observer.note(.windowFull) }
        for _ in 0..<min(count, room) {
            self.sequence += 1
            let publish = InFlightPublish(due: self.now, written: self.now, sequence: self.sequence, qos: qos)
            let id = self.session.pointee.publish(publish)
            try Finding.unless(id != 0, "packet identifier 0")
            try Finding.unless(self.observer.taken[id] == nil, "packet identifier \(id) is taken already")
            self.observer.taken[id] = .publish(self.sequence, timedOut: false)
            self.observer.released.remove(id)
            self.observer.publishes += 1
            connection.write(.publish(Self.publish(id, qos, dup: false)))
        }
        connection.flush()
    }

    private func request(_ id: PacketID?, _ kind: SessionObserver.Taken) throws(Finding) {
        guard let id = id?.rawValue else {
            let isSmall = self.session.pointee.limits.maximumPacketSize ?? .max < 64
            return try Finding.unless(
                self.session.pointee.state != .connected || isSmall,
                "no packet identifier left"
            )
        }
        try Finding.unless(self.observer.taken[id] == nil, "packet identifier \(id) is taken already")
        self.observer.taken[id] = kind
    }

    func call(_ code: UInt8, _ argument: UInt8) throws(Finding) {
        self.context.refresh()
        let count = Int(argument & 15)
        guard self.isOpen else {
            if code % 24 == 14 { try self.connect() }
            if code % 24 == 17 { self.release(argument) }
            if code % 24 == 9 { self.loop.advanceTime(by: .milliseconds(Int64(argument) * 10)) }
            return
        }
        switch code % 24 {
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
        case 16: self.sendPublish(argument)
        case 17: self.release(argument)
        case 18: self.acknowledge(argument)
        case 19:
            if let id = Self.take(argument, from: &self.observer.toComplete) { self.connection?.complete(id) }
        case 20: self.connection?.reauthenticate()
        case 21: self.sendAuth(argument)
        case 22: try self.sendAliased(argument)
        default: self.connection?.finish(Disconnect(properties: [.sessionExpiryInterval(UInt32(count))]))
        }
    }

    /// The owner has written down that a PUBREC came.
    private func release(_ choice: UInt8) {
        guard let id = Self.take(choice, from: &self.observer.toRelease) else { return }
        self.observer.released.insert(id)
        self.connection?.release(id)
    }

    /// The owner is done with a message.
    private func acknowledge(_ argument: UInt8) {
        guard let message = Self.take(argument >> 1, from: &self.observer.toAcknowledge) else { return }
        let reason: ReasonCode = argument & 1 == 0 ? .success : .quotaExceeded
        if self.connection?.acknowledge(message.qos, id: message.id, reason: reason) ?? false {
            if message.qos == .atLeastOnce { self.observer.acknowledgedByOwner += 1 }
        }
    }

    private static func take<Element>(_ choice: UInt8, from list: inout [Element]) -> Element? {
        list.isEmpty ? nil : list.remove(at: Int(choice) % list.count)
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
        let held = Int(self.session.pointee.window.heldBack)
        try Finding.unless(held <= window, "\(held) held back of \(window)")
        try self.readWritten()
        if self.options.acknowledgesMessages == .byOwner {
            let acknowledged = self.observer.acknowledgedByOwner
            try Finding.unless(
                self.written.pubAcks == acknowledged,
                "\(self.written.pubAcks) times PUBACK, \(acknowledged) by the owner"
            )
        }
        guard self.options.defersReleases else { return }
        let wrong = self.written.releases.first { !self.observer.released.contains($0) }
        if let wrong { throw Finding("PUBREL for \(wrong), which its owner has not released") }
        self.written.releases = []
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
