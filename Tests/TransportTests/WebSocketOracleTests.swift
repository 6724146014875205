import LoopContext
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import TestSupport
import Testing
import Transport

/// Against SwiftNIO's own WebSocket, which shares no line with ours.
@Suite("Another implementation's WebSocket", .timeLimit(.minutes(10)))
struct WebSocketOracleTests {
    static let sizes = [1, 2, 7, 125, 126, 127, 65_535, 65_536, 200_000]

    static func bytes(_ size: Int) -> [UInt8] { (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ size) } }

    /// Sends back what comes, in two fragments with a ping between; answers a Close frame.
    private final class Echo: ChannelInboundHandler {
        typealias InboundIn = WebSocketFrame
        typealias OutboundOut = WebSocketFrame
        let seen: NIOLoopBoundBox<[String]>

        init(_ seen: NIOLoopBoundBox<[String]>) { self.seen = seen }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let frame = self.unwrapInboundIn(data)
            var payload = frame.unmaskedData
            self.seen.value.append("\(frame.opcode) \(frame.maskKey == nil ? "plain" : "masked")")
            switch frame.opcode {
            case .binary, .continuation:
                let half = payload.readSlice(length: payload.readableBytes / 2) ?? ByteBuffer()
                self.write(context, .binary, half, fin: false)
                self.write(context, .ping, ByteBuffer(string: "p"), fin: true)
                self.write(context, .continuation, payload, fin: true)
                context.flush()
            case .connectionClose:
                self.write(context, .connectionClose, payload, fin: true)
                context.flush()
            default: break
            }
        }

        private func write(
            _ context: ChannelHandlerContext,
            _ opcode: NIOWebSocket.WebSocketOpcode,
            _ data: ByteBuffer,
            fin: Bool
        ) {
            context.write(self.wrapOutboundOut(WebSocketFrame(fin: fin, opcode: opcode, data: data)), promise: nil)
        }
    }

    @Test("our client and NIO's server: every size there and back, pings, and the closing handshake")
    func client() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let seen = try await group.next().submit {
            NIOLoopBoundBox([String](), eventLoop: MultiThreadedEventLoopGroup.currentEventLoop ?? group.next())
        }.get()
        let server = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                let upgrader = NIOWebSocketServerUpgrader(
                    maxFrameSize: 1 << 20,
                    shouldUpgrade: { channel, _ in
                        channel.eventLoop.makeSucceededFuture(["Sec-WebSocket-Protocol": "mqtt"])
                    },
                    upgradePipelineHandler: { channel, _ in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandler(Echo(seen))
                        }
                    }
                )
                return channel.pipeline.configureHTTPServerPipeline(
                    withServerUpgrade: (upgraders: [upgrader], completionHandler: { _ in })
                )
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        try await WebSocketLayerTests.withClient(of: port) { loop in
            let connection = try await loop.connect().get()
            for size in Self.sizes {
                try await connection.channel.writeAndFlush(ByteBuffer(bytes: Self.bytes(size)))
            }
            let expected = Self.sizes.flatMap(Self.bytes)
            try await connection.until { $0.bytes.count >= expected.count }
            #expect(try await connection.ask(\.bytes) == expected)
            try await connection.channel.close(mode: .output)
            try await connection.until { $0.events.contains("inputClosed") }
        }
        let frames = try await group.next().submit { seen.value }.get()
        #expect(frames.count { $0.hasSuffix("binary masked") || $0.contains("binary") } == Self.sizes.count)
        #expect(frames.allSatisfy { $0.hasSuffix(" masked") })
        #expect(frames.contains { $0.contains("pong") })
        try await group.shutdownGracefully()
    }

    /// Bytes in, bytes out, as a broker is above a WebSocket.
    private final class ByteEcho: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.writeAndFlush(data, promise: nil)
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
        }
    }

    /// Asks for the upgrade.
    private final class Request: ChannelInboundHandler, RemovableChannelHandler {
        typealias InboundIn = HTTPClientResponsePart
        typealias OutboundOut = HTTPClientRequestPart

        func channelActive(context: ChannelHandlerContext) {
            let headers: HTTPHeaders = ["Host": "b", "Sec-WebSocket-Protocol": "mqtt"]
            let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/mqtt", headers: headers)
            context.write(self.wrapOutboundOut(.head(head)), promise: nil)
            context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
        }
    }

    /// Writes masked frames, with a ping each, and keeps what comes.
    private final class Frames: ChannelInboundHandler {
        typealias InboundIn = WebSocketFrame
        typealias OutboundOut = WebSocketFrame
        private var data: [UInt8] = []
        private var pongs = 0
        private let done: EventLoopPromise<(data: [UInt8], pongs: Int)>

        init(_ done: EventLoopPromise<(data: [UInt8], pongs: Int)>) { self.done = done }

        func handlerAdded(context: ChannelHandlerContext) {
            for size in WebSocketOracleTests.sizes {
                let bytes = ByteBuffer(bytes: WebSocketOracleTests.bytes(size))
                self.write(context, .ping, ByteBuffer(string: "p"))
                self.write(context, .binary, bytes)
            }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let frame = self.unwrapInboundIn(data)
            switch frame.opcode {
            case .binary: self.data += frame.unmaskedData.readableBytesView
            case .pong: self.pongs += 1
            case .connectionClose: self.done.succeed((self.data, self.pongs))
            default: break
            }
            let total = WebSocketOracleTests.sizes.reduce(0, +)
            if frame.opcode == .binary, self.data.count >= total {
                self.write(context, .connectionClose, ByteBuffer(bytes: [0x03, 0xE8]))
            }
        }

        func channelInactive(context: ChannelHandlerContext) { self.done.fail(ChannelError.eof) }

        private func write(_ context: ChannelHandlerContext, _ opcode: NIOWebSocket.WebSocketOpcode, _ data: ByteBuffer)
        {
            let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: [9, 8, 7, 6], data: data)
            context.writeAndFlush(self.wrapOutboundOut(frame), promise: nil)
        }
    }

    @Test("NIO's client and our server: every size there and back, pings, and the closing handshake")
    func server() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let server = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let buffers = WebSocketBuffers(receive: nil)
                    let handler = WebSocketHandler(server: WebSocketServerSettings(path: "/mqtt"), buffers: buffers)
                    try channel.pipeline.syncOperations.addHandlers([handler, ByteEcho()])
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let done = group.next().makePromise(of: (data: [UInt8], pongs: Int).self)
        let client = try await ClientBootstrap(group: group)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let request = Request()
                    let upgrader = NIOWebSocketClientUpgrader(
                        requestKey: NIOWebSocketClientUpgrader.randomRequestKey(),
                        maxFrameSize: 1 << 20,
                        upgradePipelineHandler: { channel, _ in
                            channel.eventLoop.makeCompletedFuture {
                                try channel.pipeline.syncOperations.addHandler(Frames(done))
                            }
                        }
                    )
                    let bound = NIOLoopBound(request, eventLoop: channel.eventLoop)
                    try channel.pipeline.syncOperations.addHTTPClientHandlers(
                        withClientUpgrade: (
                            upgraders: [upgrader],
                            completionHandler: { context in
                                context.pipeline.syncOperations.removeHandler(bound.value, promise: nil)
                            }
                        )
                    )
                    try channel.pipeline.syncOperations.addHandler(request)
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        let (data, pongs) = try await done.futureResult.get()
        #expect(data == Self.sizes.flatMap(Self.bytes))
        // Of pings that come together only the last need be answered (§5.5.3).
        #expect((1...Self.sizes.count).contains(pongs))
        try await client.closeFuture.get()
        try await group.shutdownGracefully()
    }
}
