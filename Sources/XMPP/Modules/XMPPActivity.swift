/// Tells the server whether the client is in use, so that the server can delay less urgent stanzas.
///
/// Nothing is sent to a server that does not offer it. The state is sent again on each new stream.
///
/// Spec: XEP-0352.
public final class XMPPActivity: XMPPModule {
    /// Whether the client is in use.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// The client is in use; every stream begins so.
        case active
        /// The client is not in use, such as an app in the background.
        case inactive
    }

    /// The way to the client.
    public let link = XMPPModuleLink()

    /// A client that is active.
    public init() {}

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler { ActivityHandler() }

    /// Sets the state, also without a connection.
    ///
    /// - Returns: whether the server knows it now; else the next stream tells it, if its server offers that.
    /// - Throws: ``XMPPClientError/notConnected`` without a client or after its end, `cancelled`.
    @discardableResult
    public func set(_ state: State) async throws(XMPPClientError) -> Bool {
        try await self.withHandler { (handler: ActivityHandler) in _ = handler.set(state, in: nil) }
        do throws(XMPPClientError) {
            return try await self.ask { (handler: ActivityHandler, context, answer) in
                answer(.success(handler.set(state, in: context)))
            }
        } catch .notConnected {
            return false
        }
    }
}
