import NIOCore
import NIOPosix
import Synchronization

/// Takes connections on a port of 127.0.0.1, and says nothing.
final class SilentPeer: Sendable {
    private let channel: any Channel
    private let arrivals: AsyncStream<Void>
    private let isHangingUp: Flag

    var port: Int { self.channel.localAddress?.port ?? 0 }

    private init(_ channel: any Channel, _ arrivals: AsyncStream<Void>, _ isHangingUp: Flag) {
        self.channel = channel
        self.arrivals = arrivals
        self.isHangingUp = isHangingUp
    }

    static func start() async throws -> SilentPeer {
        let (arrivals, told) = AsyncStream<Void>.makeStream()
        let isHangingUp = Flag()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                if isHangingUp.value.load(ordering: .relaxed) { return channel.close() }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Listener { told.yield() })
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return SilentPeer(channel, arrivals, isHangingUp)
    }

    /// Returns when a client's first bytes have come.
    func hasClient() async throws {
        var arrivals = self.arrivals.makeAsyncIterator()
        _ = await arrivals.next()
    }

    /// Closes each connection that comes from now on.
    func hangUp() { self.isHangingUp.value.store(true, ordering: .relaxed) }

    func stop() async throws { try await self.channel.close() }

    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    private final class Listener: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private var told: (() -> Void)?

        init(_ told: @escaping () -> Void) { self.told = told }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.told.take()?() }
    }
}
