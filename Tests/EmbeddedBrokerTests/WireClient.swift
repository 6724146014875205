import EmbeddedBroker
import MQTTCodec
import NIOCore
import NIOPosix
import NIOSSL
import Transport

/// A client on a socket that sends given bytes and keeps the received ones.
final class WireClient: Sendable {
    final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private var decoder: PacketDecoder
        private var collector = VirtualBroker.Collector()
        private var waiting: [(count: Int, promise: EventLoopPromise<[Packet]>)] = []
        private let answers: Bool
        private var isClosed = false
        let closed: EventLoopPromise<Void>
        /// Bytes of each read.
        private(set) var reads: [Int] = []

        init(_ version: ProtocolVersion, answers: Bool, closed: EventLoopPromise<Void>) {
            self.decoder = PacketDecoder(role: .client(version))
            self.answers = answers
            self.closed = closed
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = self.unwrapInboundIn(data)
            self.reads.append(bytes.readableBytes)
            let known = self.collector.packets.count
            bytes.withUnsafeReadableBytes { try? self.decoder.decode($0, into: &self.collector) }
            if self.answers {
                var out = ByteBuffer()
                for packet in self.collector.packets[known...] {
                    switch packet {
                    case .publish(let publish):
                        guard let id = publish.packetID else { continue }
                        let answer: Packet = publish.qos == .atLeastOnce ? .pubAck(PubAck(id)) : .pubRec(PubRec(id))
                        answer.encode(as: .v311, into: &out)
                    case .pubRel(let pubRel): PubComp(pubRel.packetID).encode(as: .v311, into: &out)
                    case .pubRec(let pubRec): PubRel(pubRec.packetID).encode(as: .v311, into: &out)
                    default: continue
                    }
                }
                context.writeAndFlush(NIOAny(out), promise: nil)
            }
            self.serve()
        }

        func channelInactive(context: ChannelHandlerContext) {
            self.isClosed = true
            self.serve()
            self.closed.succeed()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        /// Resolves with at least `count` packets, or with what there is when the connection ends.
        func wait(for count: Int, _ promise: EventLoopPromise<[Packet]>) {
            self.waiting.append((count, promise))
            self.serve()
        }

        private func serve() {
            while let first = self.waiting.first, self.collector.packets.count >= first.count || self.isClosed {
                self.waiting.removeFirst()
                first.promise.succeed(self.collector.packets)
                self.collector.packets.removeAll()
            }
        }
    }

    private let channel: any Channel
    private let handler: NIOLoopBound<Handler>
    let version: ProtocolVersion

    private init(_ channel: any Channel, _ handler: NIOLoopBound<Handler>, _ version: ProtocolVersion) {
        self.channel = channel
        self.handler = handler
        self.version = version
    }

    /// - Parameters:
    ///   - port: on 127.0.0.1.
    ///   - version: what is spoken.
    ///   - answers: whether it acknowledges by itself.
    ///   - transport: what lies below MQTT.
    /// - Returns: a client whose transport is up.
    /// - Throws: why there is no transport.
    static func open(
        port: Int,
        _ version: ProtocolVersion = .v5,
        answers: Bool = true,
        over transport: BrokerListener.Transport = .tcp
    ) async throws -> WireClient {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        let tls = try transport.isSecure ? NIOSSLContext(configuration: configuration) : nil
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let tls else { return }
                    let handler = try NIOSSLClientHandler(context: tls, serverHostname: nil)
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        let settings = try WebSocketSettings()
        let handler = try await channel.eventLoop.flatSubmit {
            let promise = channel.eventLoop.makePromise(of: NIOLoopBound<Handler>.self)
            let closed = channel.eventLoop.makePromise(of: Void.self)
            let handler = Handler(version, answers: answers, closed: closed)
            let finish: (Result<Void, ConnectError.Reason>) -> Void = { result in
                promise.completeWith(
                    Result {
                        try result.get()
                        try channel.pipeline.syncOperations.addHandler(handler)
                        return NIOLoopBound(handler, eventLoop: channel.eventLoop)
                    }
                )
            }
            guard transport.isWebSocket else {
                finish(.success(()))
                return promise.futureResult
            }
            WebSocketLayer(settings, isSecure: transport.isSecure, receive: nil)
                .begin(channel, client: 0, target: Target(host: "127.0.0.1", port: port), done: finish)
            return promise.futureResult
        }.get()
        return WireClient(channel, handler, version)
    }

    /// A client that is connected when this returns.
    static func connect(
        port: Int,
        _ clientID: String,
        _ version: ProtocolVersion = .v5,
        answers: Bool = true,
        over transport: BrokerListener.Transport = .tcp
    ) async throws -> WireClient {
        let client = try await self.open(port: port, version, answers: answers, over: transport)
        try await client.send(.connect(Connect(version: version, clientID: clientID)))
        _ = try await client.next(1)
        return client
    }

    func send(_ packets: Packet...) async throws { try await self.send(packets) }

    func send(_ packets: [Packet]) async throws {
        var bytes = ByteBuffer()
        for packet in packets { packet.encode(as: self.version, into: &bytes) }
        try await self.channel.writeAndFlush(bytes)
    }

    /// Sends bytes as they are.
    func send(raw bytes: [UInt8]) async throws { try await self.channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

    func subscribe(_ filter: String, _ qos: QoS = .exactlyOnce) async throws {
        try await self.send(.subscribe(Subscribe(1, [Subscription(filter: filter, qos: qos)])))
        _ = try await self.next(1)
    }

    /// Waits for `count` packets and takes all there are.
    func next(_ count: Int) async throws -> [Packet] {
        let promise = self.channel.eventLoop.makePromise(of: [Packet].self)
        let handler = self.handler
        self.channel.eventLoop.execute { handler.value.wait(for: count, promise) }
        return try await promise.futureResult.get()
    }

    /// The payloads of the next `count` packets, all of them PUBLISH.
    func payloads(_ count: Int) async throws -> [String] {
        try await self.next(count).compactMap { packet in
            guard case .publish(let publish) = packet else { return nil }
            return String(buffer: publish.payload)
        }
    }

    func reads() async throws -> [Int] {
        let handler = self.handler
        return try await self.channel.eventLoop.submit { handler.value.reads }.get()
    }

    /// Until the broker has closed the connection.
    func closed() async throws {
        let handler = self.handler
        try await self.channel.eventLoop.flatSubmit { handler.value.closed.futureResult }.get()
    }

    func close() async throws { try await self.channel.close() }

    func setReading(_ isReading: Bool) async throws {
        try await self.channel.setOption(.autoRead, value: isReading).get()
    }
}
