import EmbeddedBroker
import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded
import NIOPosix
import Synchronization
import TestSupport
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// A server of MQTT 5 for one connection at a time: answers CONNECT, SUBSCRIBE, PINGREQ and PUBLISH at QoS 1.
final class SmallServer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// A message with this topic ends the connection instead.
    static let fatal = "fatal"

    private var bytes = ByteBuffer()

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.bytes.writeImmutableBuffer(self.unwrapInboundIn(data))
        // All packets of these tests have a length of one byte.
        while let head = self.bytes.getBytes(at: self.bytes.readerIndex, length: 2),
            let packet = self.bytes.readBytes(length: 2 + Int(head[1]))
        {
            self.answer(packet, context)
        }
    }

    private func answer(_ packet: [UInt8], _ context: ChannelHandlerContext) {
        switch packet[0] >> 4 {
        case 1: self.send([0x20, 3, 0, 0, 0], context)
        case 3:
            let topic = Array(packet[4..<(4 + Int(packet[3]))])
            if topic == Array(Self.fatal.utf8) { return context.close(promise: nil) }
            if packet[0] & 6 == 2 {
                self.send([0x40, 2] + packet[(4 + topic.count)..<(6 + topic.count)], context)
            }
        case 12: self.send([0xD0, 0], context)
        case 14: context.close(promise: nil)
        default: break
        }
    }

    private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }
}

/// Counts the bytes that pass.
private final class Counting: ChannelDuplexHandler, Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer

    let read = Atomic(0)
    let written = Atomic(0)

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.read.add(self.unwrapInboundIn(data).readableBytes, ordering: .relaxed)
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        self.written.add(self.unwrapOutboundIn(data).readableBytes, ordering: .relaxed)
        context.write(data, promise: promise)
    }
}

@Suite("A transport of the application's own", .timeLimit(.minutes(10)))
struct CustomTransportTests {
    private static func client(
        _ transport: MQTTTransport,
        _ change: (inout MQTTClientConfiguration) -> Void = { _ in }
    ) -> MQTTClient {
        MQTTClient(
            MQTTClientConfiguration(port: 7, id: "c") {
                $0.host = "server.test"
                $0.port = nil
                $0.transport = transport
                change(&$0)
            }
        )
    }

    private static func serve(_ channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(SmallServer()) }
    }

    @Test("[SPEC A6] a Unix domain socket: request, messages, ping, end")
    func unixSocket() async throws {
        let folder = try ScratchFolder()
        let path = "\(folder.path)/mqtt"
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { Self.serve($0) }
            .bind(unixDomainSocketPath: path)
            .get()
        let requests = Mutex<[String]>([])
        let transport = MQTTTransport.custom(defaultPort: 1_234) { request in
            requests.withLock { $0.append("\(request.host):\(request.port)") }
            return try await ClientBootstrap(group: request.eventLoop).connect(unixDomainSocketPath: path).get()
        }
        let client = Self.client(transport)
        try await client.connect()
        #expect(requests.withLock(\.self) == ["server.test:1234"])
        try await client.publish(MQTTMessage(topic: "t", payload: [1], qos: .atLeastOnce))
        try await client.publish(MQTTMessage(topic: "t"))
        _ = try await client.ping()
        await client.disconnect()
        // Another server, over the same transport.
        try await client.connect(host: "other.test", port: 7)
        #expect(requests.withLock(\.self).last == "other.test:7")
        await client.shutDown()
        try await server.close()
    }

    @Test("handlers of the application between the socket and the client see every byte")
    func handlers() async throws {
        let counting = Counting()
        try await withBroker { broker in
            let transport = MQTTTransport.custom(defaultPort: UInt16(broker.port)) { request in
                try await ClientBootstrap(group: request.eventLoop)
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandler(counting)
                        }
                    }
                    .connect(host: "127.0.0.1", port: Int(request.port))
                    .get()
            }
            let client = Self.client(transport)
            try await client.connect()
            let before = counting.written.load(ordering: .relaxed)
            #expect(before > 0)
            // More than a socket takes at once.
            let payload = [UInt8](repeating: 1, count: 1_000_000)
            for _ in 0..<8 { try await client.publish(MQTTMessage(topic: "t", payload: payload, qos: .atLeastOnce)) }
            #expect(counting.written.load(ordering: .relaxed) - before >= 8_000_000)
            #expect(counting.read.load(ordering: .relaxed) > 0)
            await client.shutDown()
        }
    }

    @Test("a pair of connected sockets in this process")
    func pair() async throws {
        let transport = MQTTTransport.custom(defaultPort: 1) { request in
            var ends: [CInt] = [-1, -1]
            guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { throw ChannelError.eof }
            _ = try await ClientBootstrap(group: request.eventLoop)
                .channelInitializer { Self.serve($0) }
                .withConnectedSocket(ends[0])
                .get()
            return try await ClientBootstrap(group: request.eventLoop).withConnectedSocket(ends[1]).get()
        }
        let client = Self.client(transport)
        try await client.connect()
        try await client.publish(MQTTMessage(topic: "t", payload: [1], qos: .atLeastOnce))
        await client.shutDown()
    }

    @Test("a channel without a socket, on an event loop of a test")
    func inMemory() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let channel = NIOAsyncTestingChannel(loop: loop)
        let running = Task { while !Task.isCancelled { await loop.run() } }
        try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
        let client = MQTTClient(
            MQTTClientConfiguration(port: 1, id: "c") {
                $0.transport = .custom(defaultPort: 1) { _ in channel }
            },
            eventLoopGroup: loop
        )
        async let connected = client.connect()
        let connect = try await channel.waitForOutboundWrite(as: ByteBuffer.self)
        #expect(connect.readableBytesView.first == 0x10)
        try await channel.writeInbound(ByteBuffer(bytes: [0x20, 3, 0, 0, 0]))
        _ = try await connected
        async let published = client.publish(MQTTMessage(topic: "t", qos: .atLeastOnce))
        let publish = try await channel.waitForOutboundWrite(as: ByteBuffer.self)
        #expect(publish.readableBytesView.first == 0x32)
        try await channel.writeInbound(ByteBuffer(bytes: [0x40, 2, 0, 1]))
        _ = try await published
        client.abort()
        try await channel.closeFuture.get()
        #expect(!channel.isActive, "the client closes the channel")
        running.cancel()
        await running.value
        await loop.shutdownGracefully()
    }

    struct Refused: Error, CustomStringConvertible { let description = "the proxy refused" }

    @Test("an error of the closure is the error of the connect; one of the system has its usual kind")
    func fails() async throws {
        let client = Self.client(.custom(defaultPort: 9) { _ in throw Refused() })
        let words = "no connection to server.test:9: the proxy refused"
        #expect(
            await failure { try await client.connect() }
                == .noConnection(MQTTConnectFailure(kind: "transport", words: words))
        )
        let reserved = try ReservedPort()
        defer { reserved.release() }
        let port = reserved.port
        let refused = Self.client(
            .custom(defaultPort: 9) { request in
                do {
                    return try await ClientBootstrap(group: request.eventLoop).connect(host: "127.0.0.1", port: port)
                        .get()
                } catch let error as NIOConnectionError {
                    throw error.connectionErrors.first?.error ?? error
                }
            }
        )
        guard case .noConnection(let why)? = await failure(of: { try await refused.connect() }) else {
            Issue.record("connected")
            return
        }
        #expect(why.kind == "refused" && why.words == "server.test:9 refused the connection")
    }

    @Test(
        "the deadline and a cancelled call end the wait for the closure, whose task is cancelled",
        arguments: [true, false]
    )
    func neverCompletes(_ isLate: Bool) async throws {
        let (cancelled, cancel) = AsyncStream.makeStream(of: Void.self)
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let transport = MQTTTransport.custom(defaultPort: 9) { request in
            await withTaskCancellationHandler {
                begin.yield()
                for await _ in cancelled { break }
            } onCancel: {
                cancel.yield()
            }
            // Too late: the client closes what comes now.
            var ends: [CInt] = [-1, -1]
            guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { throw ChannelError.eof }
            let other = try await ClientBootstrap(group: request.eventLoop).withConnectedSocket(ends[0]).get()
            other.closeFuture.whenComplete { _ in end.yield() }
            return try await ClientBootstrap(group: request.eventLoop).withConnectedSocket(ends[1]).get()
        }
        let client = Self.client(transport) { if isLate { $0.timeouts.connect = .milliseconds(20) } }
        let connecting = Task { await failure { try await client.connect() } }
        for await _ in begun { break }
        if !isLate { connecting.cancel() }
        let late = MQTTConnectFailure(kind: "timeout", words: "the transport did not connect in time")
        #expect(await connecting.value == (isLate ? .noConnection(late) : .cancelled))
        for await _ in ended { break }
        #expect(client.state == .closed)
        await client.shutDown()
    }

    @Test("a channel of another event loop is refused, and closed")
    func otherLoop() async throws {
        let channels = Mutex<[any Channel]>([])
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        try await withBroker { broker in
            let port = broker.port
            let client = Self.client(
                .custom(defaultPort: 9) { _ in
                    let channel = try await ClientBootstrap(group: group).connect(host: "127.0.0.1", port: port).get()
                    channels.withLock { $0.append(channel) }
                    return channel
                }
            )
            let words = "the transport's channel must be on the event loop of its request"
            #expect(await failure(of: { try await client.connect() }) == .invalid(words))
            try await #require(channels.withLock(\.first)).closeFuture.get()
        }
        try await group.shutdownGracefully()
    }

    @Test("a transport that ends in the middle of a flow ends the call, and a manager connects over it again")
    func ends() async throws {
        let counter = Counter()
        let transport = MQTTTransport.custom(defaultPort: 1) { request in
            counter.add(1)
            var ends: [CInt] = [-1, -1]
            guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { throw ChannelError.eof }
            _ = try await ClientBootstrap(group: request.eventLoop)
                .channelInitializer { Self.serve($0) }
                .withConnectedSocket(ends[0])
                .get()
            return try await ClientBootstrap(group: request.eventLoop).withConnectedSocket(ends[1]).get()
        }
        let client = Self.client(transport)
        try await client.connect()
        let error = await failure {
            try await client.publish(MQTTMessage(topic: SmallServer.fatal, qos: .atLeastOnce))
        }
        #expect(error == .connectionLost(.closedByServer))
        await client.until(.closed)
        await client.shutDown()
        let waits = Waits()
        let manager = MQTTSessionManager(client.configuration, waits)
        manager.connect()
        await manager.until(.connected)
        _ = await failure { try await manager.publish(MQTTMessage(topic: SmallServer.fatal, qos: .atLeastOnce)) }
        for await _ in waits.begun { break }
        waits.end()
        await manager.until(.connected)
        #expect(counter.value == 3)
        await manager.shutDown()
    }
}
