public import Logging
public import NIOCore
public import NIOPosix

/// Accepts streams of other clients without a server (XEP-0174).
///
/// ```swift
/// let listener = try await XMPPPeerListener.bind(jid: "romeo@forza", host: "0.0.0.0", port: 5298)
/// for await peer in listener.peers { ... }
/// ```
///
/// The library announces nothing: the application publishes the port, for example by mDNS as `_presence._tcp`. A peer
/// says who it is, and nothing proves it: there is neither login nor TLS.
public final class XMPPPeerListener: Sendable {
    /// Peers that wait to be taken at most; with more the oldest is turned away.
    public static let maximumPending = 128

    private let channel: any Channel
    private let inbox: XMPPInbox<XMPPClient>

    private init(_ channel: any Channel, _ inbox: XMPPInbox<XMPPClient>) {
        self.channel = channel
        self.inbox = inbox
    }

    deinit {
        self.channel.close(promise: nil)
        self.inbox.finish()
    }

    /// Clients on the accepted streams, each connecting until the peer's header has come.
    ///
    /// Each client goes to one reader. A client that is released closes its connection.
    public var peers: AsyncStream<XMPPClient> { AsyncStream { [inbox = self.inbox] in await inbox.next() } }

    /// The port in use.
    public var port: UInt16 { UInt16(truncatingIfNeeded: self.channel.localAddress?.port ?? 0) }

    /// Listens.
    ///
    /// - Parameters:
    ///   - jid: the own address, `user@machine`.
    ///   - host: a local address.
    ///   - port: 0 for any free one.
    ///   - configure: further settings of the clients, such as timeouts and limits.
    ///   - modules: made for each peer.
    ///   - eventLoopGroup: whose event loops the clients live on.
    ///   - logger: of the clients; by default nothing is logged.
    /// - Returns: the listener, which stops when it is released.
    /// - Throws: the reason why the address cannot be used.
    public static func bind(
        jid: String,
        host: String,
        port: UInt16 = 0,
        configure: @escaping @Sendable (inout XMPPClientConfiguration) -> Void = { _ in },
        modules: @escaping @Sendable () -> [any XMPPModule] = { [] },
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
        logger: Logger? = nil
    ) async throws -> XMPPPeerListener {
        var configuration = XMPPClientConfiguration(jid: jid, password: "").accepted()
        configure(&configuration)
        _ = try configuration.account()
        let settings = configuration
        let inbox = XMPPInbox<XMPPClient>(count: Self.maximumPending, bytes: .max)
        let channel = try await ServerBootstrap(group: eventLoopGroup)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    // A client that is turned away is released, which closes its channel.
                    let client = try XMPPClient(settings, modules: modules(), logger: logger, accepted: channel)
                    inbox.put(client, size: 0)
                }
            }
            .bind(host: host, port: Int(port)).get()
        return XMPPPeerListener(channel, inbox)
    }

    /// Stops listening; accepted streams go on.
    public func close() async {
        try? await self.channel.close()
        self.inbox.finish()
    }
}
