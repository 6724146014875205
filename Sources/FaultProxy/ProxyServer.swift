import FaultInjection
import NIOCore
import NIOPosix
import Transport

/// A proxy that puts faults in front of a server, whatever the two sides speak, on one event loop of its own.
package final class ProxyServer: Sendable {
    /// Bytes of a kernel's receive buffer where `rate` holds back.
    static let receiveBufferAtRate = 65_536

    /// The port that is bound, also where the configuration said 0.
    package let port: Int
    private let group: MultiThreadedEventLoopGroup
    private let socket: any Channel
    private let loop: NIOLoopBound<ProxyLoop>
    private let isWanted: ServingFlag

    private init(
        port: Int,
        group: MultiThreadedEventLoopGroup,
        socket: any Channel,
        loop: NIOLoopBound<ProxyLoop>,
        isWanted: ServingFlag
    ) {
        self.port = port
        self.group = group
        self.socket = socket
        self.loop = loop
        self.isWanted = isWanted
    }

    /// Binds and serves.
    ///
    /// - Parameter configuration: what to serve, and where.
    /// - Returns: the proxy, which serves until ``stop()``.
    /// - Throws: ``ProxyStartError``; nothing is left running then.
    package static func start(_ configuration: ProxyConfiguration) async throws -> ProxyServer {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let isWanted = ServingFlag()
        do {
            let eventLoop = group.next()
            let loop = try await eventLoop.submit {
                let loop = ProxyLoop(configuration, eventLoop: eventLoop, isWanted: isWanted)
                return NIOLoopBound(loop, eventLoop: eventLoop)
            }.get()
            let socket = try await Self.bootstrap(configuration, on: eventLoop)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try loop.value.admit(channel) }
                }
                .bind(host: configuration.host, port: configuration.port).get()
            let port = socket.localAddress?.port ?? configuration.port
            return ProxyServer(port: port, group: group, socket: socket, loop: loop, isWanted: isWanted)
        } catch {
            try? await group.shutdownGracefully()
            throw ProxyStartError(host: configuration.host, port: configuration.port, reason: SystemError.words(error))
        }
    }

    private static func bootstrap(
        _ configuration: ProxyConfiguration,
        on eventLoop: any EventLoop
    ) -> ServerBootstrap {
        let bootstrap = ServerBootstrap(group: eventLoop)
            .serverChannelOption(.backlog, value: configuration.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.maxMessagesPerRead, value: 64)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            // A FIN is passed on, and what the other side still sends comes through.
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
            // Nothing is read before the server is there to have it.
            .childChannelOption(.autoRead, value: false)
        guard configuration.faults.rate != nil else { return bootstrap }
        // Accepted sockets inherit it.
        return bootstrap.serverChannelOption(.socketOption(.so_rcvbuf), value: self.receiveBufferAtRate)
    }

    /// The counters as they stand now.
    package func counters() async -> ProxyCounters {
        let loop = self.loop
        let counters = try? await self.group.next().submit { loop.value.allCounters }.get()
        return counters ?? ProxyCounters()
    }

    /// Ends every connection, closes the listener, and gives the last counters.
    @discardableResult
    package func stop() async -> ProxyCounters {
        let loop = self.loop
        // Wakes the loop out of a stall.
        self.isWanted.clear()
        try? await self.socket.close()
        try? await self.group.next().submit { loop.value.shutDown() }.get()
        let counters = await self.counters()
        try? await self.group.shutdownGracefully()
        return counters
    }
}

/// Why a proxy does not serve: what bind(2) or the resolver said.
package struct ProxyStartError: Error, Hashable, Sendable, CustomStringConvertible {
    package let host: String
    package let port: Int
    package let reason: String

    package var description: String { "cannot listen on \(self.host):\(self.port): \(self.reason)" }
}
