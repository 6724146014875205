import FaultInjection
import LoopContext
import NIOCore
import NIOPosix
package import NIOSSL
import Transport

/// A broker that listens on one or more sockets, on an event loop of its own.
package final class BrokerServer: Sendable {
    /// The bound port of plain TCP, also if the configuration said 0.
    package var port: Int { self.listeners[0].port }
    /// All listeners with their bound ports: plain TCP first, then in the configured order.
    package let listeners: [BrokerListener]
    private let group: MultiThreadedEventLoopGroup
    private let sockets: [any Channel]
    private let loop: NIOLoopBound<BrokerLoop>
    private let isWanted: ServingFlag

    private init(
        listeners: [BrokerListener],
        group: MultiThreadedEventLoopGroup,
        sockets: [any Channel],
        loop: NIOLoopBound<BrokerLoop>,
        isWanted: ServingFlag
    ) {
        self.isWanted = isWanted
        self.listeners = listeners
        self.group = group
        self.sockets = sockets
        self.loop = loop
    }

    /// The port of the first listener of a kind.
    package func port(of transport: BrokerListener.Transport) -> Int? {
        self.listeners.first { $0.transport == transport }?.port
    }

    /// Binds and serves.
    ///
    /// - Parameters:
    ///   - configuration: the settings and addresses.
    ///   - tls: the context of all TLS listeners.
    /// - Returns: the broker, which serves until ``stop()``.
    /// - Throws: ``BrokerStartError``; nothing keeps running then.
    package static func start(
        _ configuration: BrokerConfiguration,
        tls: NIOSSLContext? = nil
    ) async throws -> BrokerServer {
        let wanted = [BrokerListener(.tcp, port: configuration.port)] + configuration.listeners
        if tls == nil, let listener = wanted.first(where: { $0.transport.isSecure }) {
            throw BrokerStartError.noTLS(listener)
        }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let isWanted = ServingFlag()
        do {
            let eventLoop = group.next()
            let loop = try await eventLoop.submit {
                let loop = BrokerLoop(configuration, eventLoop: eventLoop, isWanted: isWanted)
                return NIOLoopBound(loop, eventLoop: eventLoop)
            }.get()
            let doors = try await eventLoop.submit {
                NIOLoopBound(BrokerDoors(loop: loop.value, tls: tls), eventLoop: eventLoop)
            }.get()
            var sockets: [any Channel] = []
            for listener in wanted {
                sockets.append(try await Self.bind(listener, configuration, on: eventLoop, doors))
            }
            let bound = zip(wanted, sockets).map { listener, socket in
                var bound = listener
                bound.port = socket.localAddress?.port ?? listener.port
                return bound
            }
            return BrokerServer(listeners: bound, group: group, sockets: sockets, loop: loop, isWanted: isWanted)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    private static func bind(
        _ listener: BrokerListener,
        _ configuration: BrokerConfiguration,
        on eventLoop: any EventLoop,
        _ doors: NIOLoopBound<BrokerDoors>
    ) async throws -> any Channel {
        let host = listener.host ?? configuration.host
        do {
            return try await Self.bootstrap(configuration, on: eventLoop)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try doors.value.admit(channel, by: listener.transport) }
                }
                .bind(host: host, port: listener.port).get()
        } catch {
            throw BrokerStartError.cannotListen(listener, host: host, error)
        }
    }

    private static func bootstrap(
        _ configuration: BrokerConfiguration,
        on eventLoop: any EventLoop
    ) -> ServerBootstrap {
        var bootstrap = ServerBootstrap(group: eventLoop)
            .serverChannelOption(.backlog, value: configuration.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.maxMessagesPerRead, value: 64)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            // A client's FIN is answered after everything before it was served.
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // Writable means that at most one byte is pending, so a client's output is written one write at a time.
            .childChannelOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
        if configuration.faults.maximumRate != nil {
            // Accepted sockets inherit it. A large buffer would absorb bytes that a slow broker does not read.
            bootstrap = bootstrap.serverChannelOption(.socketOption(.so_rcvbuf), value: 8_192)
        }
        return bootstrap
    }

    /// The current counters.
    package func counters() async -> BrokerCounters {
        let loop = self.loop
        let counters = try? await self.group.next().submit { loop.value.counters }.get()
        return counters ?? BrokerCounters()
    }

    /// Ends every connection, closes the listener, and returns the final counters.
    @discardableResult
    package func stop() async -> BrokerCounters {
        let loop = self.loop
        // Wakes the loop out of a stall.
        self.isWanted.clear()
        for socket in self.sockets { try? await socket.close() }
        try? await self.group.next().submit { loop.value.shutDown() }.get()
        let counters = await self.counters()
        try? await self.group.shutdownGracefully()
        return counters
    }
}
