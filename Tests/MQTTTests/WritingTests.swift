import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded
import TestSupport
import Testing

@Suite("Packets that a connection writes")
struct WritingTests {
    // MARK: The server's maximum packet size

    private func small(_ limit: UInt32) throws -> ConnectionRig {
        let rig = try ConnectionRig(SessionOptions(version: .v5, keepAlive: 0, acknowledgesMessages: .byOwner))
        try rig.connect(ConnAck(properties: [.maximumPacketSize(limit)]))
        return rig
    }

    @Test("[MQTT-3.2.2-15] a request above the server's maximum is not sent, and keeps no identifier")
    func requests() throws {
        let rig = try self.small(12)
        #expect(rig.connection.subscribe([Subscription(filter: "aaaa")]) == 1)
        #expect(rig.connection.subscribe([Subscription(filter: "aaaaa")]) == nil)
        #expect(rig.connection.unsubscribe(["aaaaa"]) == 3)
        #expect(rig.connection.unsubscribe(["aaaaaa"]) == nil)
        #expect(try rig.sent().map(\.count) == [12, 12])
        try rig.receive(.subAck(SubAck(1, codes: [0])), .unsubAck(UnsubAck(3, codes: [0])))
        #expect(rig.observer.calls.suffix(2) == [.subscribed(1, [0]), .unsubscribed(3, [0])])
        #expect(rig.connection.subscribe([Subscription(filter: "b")]) != nil)
    }

    @Test("[MQTT-3.4.2-2] [MQTT-3.14.2-3] reason strings and user properties are left out rather than too large")
    func reasons() throws {
        let properties: Properties = [.reasonString("too long for this"), .userProperty("a", "b")]
        let rig = try self.small(10)
        #expect(rig.connection.write(.pubAck(PubAck(1, reason: .quotaExceeded, properties: properties))))
        #expect(!rig.connection.write(publish("far too long")))
        rig.connection.flush()
        var goodbye = Disconnect(reason: .disconnectWithWillMessage, properties: properties)
        rig.connection.finish(goodbye)
        goodbye.properties = Properties()
        #expect(
            try rig.sent() == [wire(.pubAck(PubAck(1, reason: .quotaExceeded))), wire(.disconnect(goodbye))]
        )
        let large = try self.small(1_000)
        large.connection.finish(Disconnect(reason: .disconnectWithWillMessage, properties: properties))
        #expect(try large.sent().first?.count == 31)
    }

    @Test("a server that takes not even an acknowledgement is left")
    func noRoomAtAll() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect(ConnAck(properties: [.maximumPacketSize(3)]))
        guard case .violation(.packetTooLarge, _) = rig.observer.end else {
            Issue.record("\(rig.observer.calls)")
            return
        }
    }

    @Test("CONNECT knows no limit yet: that of the last connection is gone")
    func connectIsNeverTooLarge() throws {
        let rig = try self.small(8)
        rig.connection.abort()
        let next = try rig.again()
        next.start()
        #expect(try next.sent().count == 1)
    }

    // MARK: Goodbyes

    @Test(
        "[MQTT-3.14.4-1] DISCONNECT is the last packet, and before MQTT 5 it has no content, whatever was given",
        arguments: [ProtocolVersion.v31, .v311, .v5]
    )
    func goodbye(_ version: ProtocolVersion) throws {
        let rig = try ConnectionRig(version)
        try rig.connect()
        let goodbye = Disconnect(reason: .disconnectWithWillMessage, properties: [.reasonString("x")])
        rig.connection.finish(goodbye)
        #expect(try rig.sent() == [version == .v5 ? wire(.disconnect(goodbye)) : hex("E000")])
        // No packet follows ([MQTT-3.14.4-1]).
        rig.connection.sendRaw([0xC0, 0])
        rig.connection.ping()
        #expect(try rig.sent().isEmpty)
    }

    @Test("a goodbye from within a read keeps its words")
    func goodbyeInRead() throws {
        let rig = try ConnectionRig(.v5)
        try rig.connect()
        let goodbye = Disconnect(reason: .administrativeAction, properties: [.reasonString("enough")])
        rig.observer.onMessage = { [unowned rig] in rig.connection.finish(goodbye) }
        try rig.receive(publish("a", qos: .atLeastOnce, id: 1))
        #expect(try rig.sent() == [hex("4002 0001"), wire(.disconnect(goodbye))])
    }

    // MARK: Raw

    @Test("a CONNECT in bytes goes out as it is, and what comes back is taken as it comes")
    func verbatim() throws {
        let rig = try ConnectionRig(.v5)
        let bytes = hex("10 0D 0004 4D515454 05 03 0000 00 0000")
        rig.session.pointee.connectVerbatim(now: rig.now)
        rig.connection.start(verbatim: bytes, deadline: rig.now + .seconds(1))
        #expect(try rig.sent() == [bytes])
        // This side does not check the session-present flag or the authentication method here.
        try rig.receive(
            .connAck(ConnAck(sessionPresent: true, properties: [.authenticationMethod("X")])),
            .auth(Auth(reason: .continueAuthentication, properties: [.authenticationMethod("X")])),
            .subAck(SubAck(9, codes: [0]))
        )
        #expect(rig.observer.calls == [.connected(resumed: true)])
        rig.connection.sendRaw([0x36, 0xFF])
        #expect(try rig.sent() == [[0x36, 0xFF]])
    }

    @Test("raw bytes may go out before CONNACK, and count as sent")
    func rawEarly() throws {
        let rig = try ConnectionRig(.v311)
        rig.session.pointee.connectVerbatim(now: rig.now)
        rig.connection.start(verbatim: [], deadline: rig.now + .seconds(1))
        rig.connection.sendRaw([0xC0, 0, 0xC0, 0])
        #expect(try rig.sent() == [[0xC0, 0, 0xC0, 0]])
        #expect(rig.connection.bytesHanded == 4)
        rig.advance(.seconds(1))
        rig.connection.timerFired(now: rig.now)
        #expect(rig.observer.end == .connackTimedOut)
    }

    // MARK: Layers below

    @Test("what a layer makes longer is counted in what was handed, and no more")
    func longerBelow() throws {
        let rig = try ConnectionRig(.v5)
        let layer = DoublingHandler()
        try rig.channel.pipeline.syncOperations.addHandler(layer, position: .first)
        rig.start(isBare: false)
        let connect = try rig.sent().flatMap { $0 }
        #expect(rig.observer.wrote * 2 == connect.count)
        try rig.receive(.connAck(ConnAck()))
        rig.connection.ping()
        #expect(try rig.sent() == [[0xC0, 0xC0, 0, 0]])
        #expect(rig.connection.unsent == 0)
    }

    @Test("a peer's end below a layer is the answer to ours, and a loss before it")
    func endBelow() throws {
        for isFinishing in [true, false] {
            let rig = try ConnectionRig(.v5)
            rig.start(isBare: false)
            try rig.receive(.connAck(ConnAck()))
            if isFinishing { rig.connection.finish() }
            rig.channel.pipeline.fireChannelInactive()
            #expect(rig.observer.end == (isFinishing ? .answered : .closedByPeer))
        }
    }
}

/// Writes each byte twice.
private final class DoublingHandler: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let bytes = self.unwrapOutboundIn(data).readableBytesView.flatMap { [$0, $0] }
        context.write(self.wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: promise)
    }
}
