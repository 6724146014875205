import NIOCore
public import XMPPCodec

/// Finds out whether a silent server is still there, and measures round trips.
///
/// Every client answers pings; this module sends them too.
///
/// Spec: XEP-0199.
public final class XMPPPing: XMPPModule {
    /// The way to the client.
    public let link = XMPPModuleLink()
    private let interval: Duration
    private let timeout: Duration

    /// - Parameters:
    ///   - interval: silence of the server after which the client pings it; zero is never.
    ///   - timeout: the wait for the answer, after which the connection counts as lost.
    public init(interval: Duration = .seconds(60), timeout: Duration = .seconds(10)) {
        self.interval = interval
        self.timeout = timeout
    }

    /// Pings.
    public var features: [String] { [XMPPNamespace.ping] }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler {
        PingHandler(interval: TimeAmount(self.interval), timeout: TimeAmount(self.timeout))
    }

    /// Pings an address.
    ///
    /// - Parameter jid: the address; `nil` pings the own server.
    /// - Returns: the time until the answer, including an outage after which the stream was resumed. An error reply that
    ///   pings are unknown counts as an answer (§4.1).
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func ping(_ jid: JID? = nil) async throws(XMPPClientError) -> Duration {
        try await self.ask { (_: PingHandler, context, answer) in
            PingHandler.ping(jid, in: context) { answer($0.map { .nanoseconds($0.nanoseconds) }) }
        }
    }
}
