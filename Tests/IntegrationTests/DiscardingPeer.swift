import NIOCore
import NIOPosix

/// A server that accepts every CONNECT and throws away whatever else comes; it answers a FIN with its own.
struct DiscardingPeer {
    let port: Int

    private struct NoPort: Error {}

    static func with<Result>(_ body: (DiscardingPeer) async throws -> Result) async throws -> Result {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let server = try await ServerBootstrap(group: group)
            .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 1 << 18))
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Discarder())
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let outcome: Swift.Result<Result, any Error>
        do {
            guard let port = server.localAddress?.port else { throw NoPort() }
            outcome = .success(try await body(DiscardingPeer(port: port)))
        } catch {
            outcome = .failure(error)
        }
        try? await server.close()
        try await group.shutdownGracefully()
        return try outcome.get()
    }
}

private final class Discarder: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var isConnected = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !self.isConnected else { return }
        self.isConnected = true
        // CONNACK of MQTT 5: no session, success, no properties.
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: [0x20, 3, 0, 0, 0])), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
