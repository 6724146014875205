package import NIOCore
package import XMPPCodec

/// Copies of what the other clients of the account send and get.
///
/// Spec: XEP-0280, XEP-0297.
package final class XMPPCarbons: XMPPModule {
    package enum Direction: Hashable, Sendable {
        case sent, received
    }

    /// Copies from senders that are not allowed to send them.
    package private(set) var foreign = 0
    private let copied: (Direction, XMPPElement) -> Void

    /// - Parameter copied: called for each copy. A copy is not delivered as a message, because it would count twice.
    package init(copied: @escaping (Direction, XMPPElement) -> Void) { self.copied = copied }

    package static func enable(
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping (Result<Void, XMPPRequestError>) -> Void
    ) {
        let enable = XMPPElement("enable", namespace: XMPPNamespace.carbons)
        connection.request(.iq("set", enable), timeout: timeout) { answer($0.map { _ in }) }
    }

    package static func disable(
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping (Result<Void, XMPPRequestError>) -> Void
    ) {
        let disable = XMPPElement("disable", namespace: XMPPNamespace.carbons)
        connection.request(.iq("set", disable), timeout: timeout) { answer($0.map { _ in }) }
    }

    package func handle(_ stanza: XMPPElement, on connection: XMPPConnection, now: NIODeadline) -> Bool {
        guard stanza.name == "message" else { return false }
        let sent = stanza.child("sent", XMPPNamespace.carbons)
        guard let carbon = sent ?? stanza.child("received", XMPPNamespace.carbons) else { return false }
        // §11: only copies from the own account are accepted, because others could forge messages.
        guard connection.isFromOwnAccount(stanza) else {
            self.foreign += 1
            return true
        }
        if let message = carbon.child("forwarded", XMPPNamespace.forward)?.child("message", XMPPNamespace.client) {
            self.copied(sent == nil ? .received : .sent, message)
        }
        return true
    }
}
