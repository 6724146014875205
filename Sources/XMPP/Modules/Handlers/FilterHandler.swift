package import XMPPCodec

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
