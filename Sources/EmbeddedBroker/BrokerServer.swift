import LoopContext
import NIOCore
import NIOPosix

/// A broker that listens on a socket, on one event loop of its own.
package final class BrokerServer: Sendable {
    /// The port that is bound, also where the configuration said 0.
    package let port: Int
    private let group: MultiThreadedEventLoopGroup
    private let listener: any Channel
    private let loop: NIOLoopBound<BrokerLoop>

    private init(
        port: Int,
        group: MultiThreadedEventLoopGroup,
        listener: any Channel,
        loop: NIOLoopBound<BrokerLoop>
    ) {
        self.port = port
        self.group = group
        self.listener = listener
        self.loop = loop
    }

    /// Binds and serves.
    ///
    /// - Throws: what bind(2) or the resolver says; nothing is left running then.
    package static func start(_ configuration: BrokerConfiguration) async throws -> BrokerServer {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            let eventLoop = group.next()
            let loop = try await eventLoop.submit {
                NIOLoopBound(BrokerLoop(configuration, eventLoop: eventLoop), eventLoop: eventLoop)
            }.get()
            let listener = try await Self.bootstrap(configuration, on: eventLoop, loop)
                .bind(host: configuration.host, port: configuration.port).get()
            let port = listener.localAddress?.port ?? configuration.port
            return BrokerServer(port: port, group: group, listener: listener, loop: loop)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    private static func bootstrap(
        _ configuration: BrokerConfiguration,
        on eventLoop: any EventLoop,
        _ loop: NIOLoopBound<BrokerLoop>
    ) -> ServerBootstrap {
        var bootstrap = ServerBootstrap(group: eventLoop)
            .serverChannelOption(.backlog, value: configuration.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.maxMessagesPerRead, value: 64)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            // A client's FIN is answered once all that came before it has been served.
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // Writable means that at most a byte is pending, so a client's output is handed over one write at a time.
            .childChannelOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let loop = loop.value
                    try channel.syncOptions?.setOption(.recvAllocator, value: loop.context.receive.makeAllocator())
                    try channel.pipeline.syncOperations.addHandler(BrokerLink(loop: loop))
                }
            }
        if configuration.faults.maximumRate != nil {
            // Accepted sockets inherit it. A large buffer would take for a while what a slow broker does not read.
            bootstrap = bootstrap.serverChannelOption(.socketOption(.so_rcvbuf), value: 8_192)
        }
        return bootstrap
    }

    /// The counters as they stand now.
    package func counters() async -> BrokerCounters {
        let loop = self.loop
        let counters = try? await self.group.next().submit { loop.value.counters }.get()
        return counters ?? BrokerCounters()
    }

    /// Ends every connection, closes the listener, and gives the last counters.
    @discardableResult
    package func stop() async -> BrokerCounters {
        let loop = self.loop
        try? await self.listener.close()
        try? await self.group.next().submit { loop.value.shutDown() }.get()
        let counters = await self.counters()
        try? await self.group.shutdownGracefully()
        return counters
    }
}
