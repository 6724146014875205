import NIOCore
import NIOPosix

/// Takes connections on a port of 127.0.0.1, and says nothing.
final class SilentPeer: Sendable {
    private let channel: any Channel
    private let arrivals: AsyncStream<Void>

    var port: Int { self.channel.localAddress?.port ?? 0 }

    private init(_ channel: any Channel, _ arrivals: AsyncStream<Void>) {
        self.channel = channel
        self.arrivals = arrivals
    }

    static func start() async throws -> SilentPeer {
        let (arrivals, told) = AsyncStream<Void>.makeStream()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Listener { told.yield() })
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return SilentPeer(channel, arrivals)
    }

    /// Returns when a client's first bytes have come.
    func hasClient() async throws {
        var arrivals = self.arrivals.makeAsyncIterator()
        _ = await arrivals.next()
    }

    func stop() async throws { try await self.channel.close() }

    private final class Listener: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private var told: (() -> Void)?

        init(_ told: @escaping () -> Void) { self.told = told }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.told.take()?() }
    }
}
