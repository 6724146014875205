package import XMPPCodec

/// Copies of what the other clients of the account send and get.
///
/// Spec: XEP-0280, XEP-0297.
package final class CarbonsHandler: XMPPHandler {
    /// Copies from senders that are not allowed to send them.
    package private(set) var foreign = 0
    /// Whether a new stream asks for copies.
    package var isWanted: Bool
    private let told: (XMPPCarbons.Event) -> Void

    package init(isAutomatic: Bool = false, _ told: @escaping (XMPPCarbons.Event) -> Void) {
        self.isWanted = isAutomatic
        self.told = told
    }

    package static func request(_ isEnabled: Bool) -> XMPPElement {
        .iq("set", XMPPElement(isEnabled ? "enable" : "disable", namespace: XMPPNamespace.carbons))
    }

    /// Copies go on over a resumption (§5).
    package func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
        guard self.isWanted, !session.isResumed, !session.enabled.contains(.carbons) else { return }
        context.request(Self.request(true)) { [told] result in
            if case .failure(.refused(let error)) = result { told(.refused(error)) }
        }
    }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name == "message" else { return false }
        let sent = stanza.child("sent", XMPPNamespace.carbons)
        guard let carbon = sent ?? stanza.child("received", XMPPNamespace.carbons) else { return false }
        // §11: only copies from the own account are accepted, because others could forge messages.
        guard context.isFromOwnAccount(stanza) else {
            self.foreign += 1
            return true
        }
        if let message = carbon.child("forwarded", XMPPNamespace.forward)?.child("message", XMPPNamespace.client) {
            self.told(sent == nil ? .received(message) : .sent(message))
        }
        return true
    }
}
