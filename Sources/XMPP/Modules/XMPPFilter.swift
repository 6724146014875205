public import XMPPCodec

/// An application's look at all that is sent and received, with the right to change or drop it.
///
/// Filters work in the order of the client's modules, both ways. Answers that the client or its modules give to
/// requests, and answers that requests get, pass no filter.
public final class XMPPFilter: XMPPModule {
    /// Returns the element as it is, another one, or `nil` to drop it; called on the event loop, must not block.
    public typealias Filter = @Sendable (XMPPElement) -> XMPPElement?

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let sent: Filter
    private let received: Filter

    /// - Parameters:
    ///   - sent: for elements that the client sends. A request that is dropped fails after its timeout.
    ///   - received: for stanzas that come. A request that is dropped is refused.
    public init(sent: @escaping Filter = { $0 }, received: @escaping Filter = { $0 }) {
        self.sent = sent
        self.received = received
    }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler { FilterHandler(sent: self.sent, received: self.received) }
}

/// Two closures as filters.
package final class FilterHandler: XMPPHandler {
    private let sent: (XMPPElement) -> XMPPElement?
    private let received: (XMPPElement) -> XMPPElement?

    package init(sent: @escaping (XMPPElement) -> XMPPElement?, received: @escaping (XMPPElement) -> XMPPElement?) {
        self.sent = sent
        self.received = received
    }

    package func filterSent(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? { self.sent(stanza) }

    package func filterReceived(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? {
        self.received(stanza)
    }
}
