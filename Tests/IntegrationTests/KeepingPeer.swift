import NIOCore
import NIOPosix
import Synchronization

/// A server that accepts every CONNECT, acknowledges nothing, and keeps all that it reads, by connection.
final class KeepingPeer: Sendable {
    let port: Int
    private let streams: Streams

    private final class Streams: Sendable {
        let all = Mutex<[[UInt8]]>([])
    }

    private struct NoPort: Error {}

    private init(port: Int, _ streams: Streams) {
        self.port = port
        self.streams = streams
    }

    /// The bytes of each connection that has ended, in the order of their bytes.
    var kept: [[UInt8]] { self.streams.all.withLock { $0 }.sorted { $0.lexicographicallyPrecedes($1) } }

    static func with<Result>(_ body: (KeepingPeer) async throws -> Result) async throws -> Result {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let streams = Streams()
        let server = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        Keeper { stream in streams.all.withLock { $0.append(stream) } }
                    )
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let outcome: Swift.Result<Result, any Error>
        do {
            guard let port = server.localAddress?.port else { throw NoPort() }
            outcome = .success(try await body(KeepingPeer(port: port, streams)))
        } catch {
            outcome = .failure(error)
        }
        try? await server.close()
        try await group.shutdownGracefully()
        return try outcome.get()
    }
}

private final class Keeper: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let done: ([UInt8]) -> Void
    private var bytes: [UInt8] = []

    init(done: @escaping ([UInt8]) -> Void) { self.done = done }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let isFirst = self.bytes.isEmpty
        self.bytes += self.unwrapInboundIn(data).readableBytesView
        // CONNACK of MQTT 5: no session, success, no properties.
        if isFirst { context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: [0x20, 3, 0, 0, 0])), promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) { self.done(self.bytes) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
