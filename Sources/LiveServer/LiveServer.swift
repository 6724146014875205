package import NIOCore
import NIOHTTP1
import NIOPosix

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A small HTTP/1.1 server on an event loop of its own: GET and HEAD of a few paths, and server-sent events.
///
/// It has to be closed.
package struct LiveServer: Sendable {
    /// The address that it listens on, with the port that port 0 became.
    package let address: SocketAddress
    private let group: MultiThreadedEventLoopGroup
    private let channel: any Channel
    private let hub: NIOLoopBound<LiveHub>
    private let counter: LiveCounter

    /// Listens.
    ///
    /// - Parameters:
    ///   - host: a name or an IP address of this host. On loopback only requests to a name of loopback, or to this one,
    ///     are answered.
    ///   - port: 0 takes a free one.
    ///   - routes: by path, such as `/metrics`.
    ///   - limits: the bounds for clients.
    /// - Returns: the server, which accepts connections.
    /// - Throws: the reason why it does not listen.
    package static func start(
        host: String,
        port: Int,
        routes: [String: LiveRoute],
        limits: LiveLimits = LiveLimits()
    ) async throws(LiveServerError) -> LiveServer {
        guard 0...65535 ~= port else { throw .notAPort(port) }
        let address = try await self.resolve(host, port)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let counter = LiveCounter()
        let hosts = LiveHosts(given: host, address: address.ipAddress ?? "")
        do {
            let loop = group.any()
            let hub = try await loop.submit {
                let hub = LiveHub(routes: routes, hosts: hosts, limits: limits, counter: counter, eventLoop: loop)
                return NIOLoopBound(hub, eventLoop: loop)
            }.get()
            let channel = try await self.bootstrap(group, hub, limits).bind(to: address).get()
            let bound = channel.localAddress ?? address
            return LiveServer(address: bound, group: group, channel: channel, hub: hub, counter: counter)
        } catch {
            try? await group.shutdownGracefully()
            throw self.reason(error, host, port)
        }
    }

    /// The resolver blocks, so it runs on a thread of its own.
    private static func resolve(_ host: String, _ port: Int) async throws(LiveServerError) -> SocketAddress {
        do {
            return try await NIOThreadPool.singleton.runIfActive {
                try SocketAddress.makeAddressResolvingHost(host, port: port)
            }
        } catch {
            throw .unknownHost(host)
        }
    }

    private static func reason(_ error: any Error, _ host: String, _ port: Int) -> LiveServerError {
        guard let error = error as? IOError else { return .other(host: host, port: port, reason: "\(error)") }
        return switch error.errnoCode {
        case EADDRINUSE: .portInUse(host: host, port: port)
        case EACCES, EPERM: .notPermitted(host: host, port: port)
        case EADDRNOTAVAIL: .notLocal(host: host)
        default: .other(host: host, port: port, reason: "\(error)")
        }
    }

    private static func bootstrap(
        _ group: MultiThreadedEventLoopGroup,
        _ hub: NIOLoopBound<LiveHub>,
        _ limits: LiveLimits
    ) -> ServerBootstrap {
        ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            // Accepted sockets inherit it.
            .serverChannelOption(.socketOption(.so_sndbuf), value: SocketOptionValue(limits.sendBufferBytes))
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            // A read holds few requests, so a client that sends many cannot fill the memory with them.
            .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 4096))
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let connection = hub.value.makeConnection() else { throw ChannelError.ioOnClosedChannel }
                    var sizes = NIOHTTPDecoderLimitConfiguration()
                    sizes.maxHeaderFieldSize = limits.headBytes
                    sizes.maxHeaderListSize = limits.headBytes
                    let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: sizes)
                    let reader = ByteToMessageHandler(decoder, maximumBufferSize: limits.headBytes)
                    try channel.pipeline.syncOperations.addHandlers([reader, connection])
                }
            }
    }

    /// Sends an event to the clients of all event streams, and to each one that comes until the next event.
    ///
    /// Where no stream is open, only the last event is kept for later clients, and no event is sent after it. A client
    /// that has not taken one event gets only the latest of those that followed.
    package func send(event: LiveEvent) {
        self.counter.whileOpen {
            self.channel.eventLoop.execute { [hub] in hub.value.send(event) }
        }
    }

    /// Clients with an open event stream.
    package var listeners: Int { self.counter.listeners }

    /// The number of responses to GET with status 200 that are out as a whole; of an event stream those that began.
    package func requests(of path: String) -> Int { self.counter.count(of: path) }

    /// Closes the port and all connections; what was begun is still sent, within a bounded time.
    ///
    /// Further calls do nothing.
    package func close() async {
        guard self.counter.close() else { return }
        try? await self.channel.close()
        try? await self.channel.eventLoop.flatSubmit { [hub] in hub.value.close() }.get()
        try? await self.group.shutdownGracefully()
    }
}
