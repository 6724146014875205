import LoopContext
import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded
import Transport

/// A connection on a channel without a socket, in virtual time.
final class ConnectionRig {
    let channel: EmbeddedChannel
    let context: LoopContext
    private let place: SessionPlace
    let observer = RecordingObserver()
    let connection: MQTTConnection
    let version: ProtocolVersion

    init(
        _ options: SessionOptions,
        context: LoopContext? = nil,
        on loop: EmbeddedEventLoop = EmbeddedEventLoop(),
        place: SessionPlace? = nil
    ) throws {
        self.channel = EmbeddedChannel(loop: loop)
        self.context = context ?? LoopContext(eventLoop: loop)
        self.version = options.version
        self.place = place ?? SessionPlace(options)
        self.connection = MQTTConnection(
            client: 3,
            loop: self.context,
            session: self.place.pointer,
            observer: self.observer
        )
        try self.channel.pipeline.syncOperations.addHandler(self.connection.makeHandler())
        self.channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
    }

    var session: UnsafeMutablePointer<MQTTSession> { self.place.pointer }

    convenience init(_ version: ProtocolVersion) throws { try self.init(SessionOptions(version: version)) }

    var now: NIODeadline { self.channel.embeddedEventLoop.now }

    /// The same session on a new channel, as after a loss.
    func again() throws -> ConnectionRig {
        try ConnectionRig(
            self.session.pointee.options,
            context: self.context,
            on: self.channel.embeddedEventLoop,
            place: self.place
        )
    }

    /// CONNECT, without its answer.
    func start(
        within time: TimeAmount = .seconds(10),
        isBare: Bool = true,
        authenticator: MQTTAuthenticator? = nil
    ) {
        let connect = self.session.pointee.connect(clientID: "c", username: nil, password: nil, now: self.now)
        self.connection.start(connect, deadline: self.now + time, isBare: isBare, authenticator: authenticator)
    }

    /// CONNECT and CONNACK.
    func connect(_ connack: ConnAck = ConnAck()) throws {
        self.start()
        _ = try self.sent()
        try self.receive(wire(.connAck(connack), version: self.version))
    }

    func receive(_ bytes: [UInt8]) throws { try self.channel.writeInbound(ByteBuffer(bytes: bytes)) }

    func receive(_ packets: Packet...) throws {
        try self.receive(packets.flatMap { wire($0, version: self.version) })
    }

    /// The bytes written since the last call, one entry for each write.
    func sent() throws -> [[UInt8]] {
        var writes: [[UInt8]] = []
        while let buffer = try self.channel.readOutbound(as: ByteBuffer.self) {
            writes.append(Array(buffer.readableBytesView))
        }
        return writes
    }

    /// Publishes one message, without writing it yet.
    func begin(_ sequence: UInt64, qos: QoS) -> UInt16 {
        self.context.refresh()
        return self.session.pointee.publish(
            InFlightPublish(due: self.now, written: self.now, sequence: sequence, qos: qos)
        )
    }

    func advance(_ time: TimeAmount) {
        self.channel.embeddedEventLoop.advanceTime(by: time)
        self.context.refresh()
    }
}

extension ConnAck {
    /// A refusal in the form of 3.1.1, which has no properties.
    static func version3(_ code: UInt8) -> ConnAck {
        var answer = ConnAck(code: code)
        answer.isVersion3 = true
        return answer
    }
}
