package import NIOCore
package import XMPPCodec

/// Remembers the presence that the client broadcast last, to repeat it after a reconnect.
package final class XMPPOwnPresence: XMPPModule {
    /// The last presence without `to`, available or not.
    package private(set) var last: XMPPElement?

    package init() {}

    package func filterSent(_ stanza: XMPPElement, on connection: XMPPConnection) -> XMPPElement? {
        if stanza.name == "presence", stanza["to"] == nil, stanza["type"] == nil || stanza["type"] == "unavailable" {
            self.last = stanza
        }
        return stanza
    }

    /// Sends the last presence once more, if it was an available one.
    @discardableResult
    package func resend(on connection: XMPPConnection) throws(XMPPWriteError) -> Bool {
        guard let last = self.last, last["type"] == nil else { return false }
        return try connection.send(last)
    }

    /// Presence survives a resumption (XEP-0198 §5).
    package func ready(_ jid: JID, _ readiness: XMPPReadiness, on connection: XMPPConnection, now: NIODeadline) {
        if !readiness.resumed { self.last = nil }
    }
}
