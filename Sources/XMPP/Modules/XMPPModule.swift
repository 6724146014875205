import LoopContext
package import NIOCore
package import XMPPCodec

/// A plug-in of a client's streams: it sees incoming and outgoing stanzas, one module after the other, and does no IO.
///
/// Every call comes on the connection's event loop and passes the connection: a module stores none. With a module every
/// stanza is parsed into a tree, so load runs without modules.
package protocol XMPPModule: AnyObject {
    /// When ``timerFired(on:now:)`` has something to do.
    var deadline: NIODeadline { get }

    /// Stanzas may be sent.
    func ready(_ jid: JID, _ readiness: XMPPReadiness, on connection: XMPPConnection, now: NIODeadline)

    /// Filters an outgoing stanza, as the previous module left it; `nil` drops it.
    func filterSent(_ stanza: XMPPElement, on connection: XMPPConnection) -> XMPPElement?

    /// Filters an incoming stanza, as the previous module left it; `nil` drops it.
    func filterReceived(_ stanza: XMPPElement, on connection: XMPPConnection) -> XMPPElement?

    /// Handles a stanza that passed all filters; `true` hides it from later modules and keeps a request from being
    /// refused.
    func handle(_ stanza: XMPPElement, on connection: XMPPConnection, now: NIODeadline) -> Bool

    func timerFired(on connection: XMPPConnection, now: NIODeadline)

    func ended(_ end: XMPPConnectionEnd, now: NIODeadline)
}

extension XMPPModule {
    package var deadline: NIODeadline { .distantFuture }
    package func ready(_ jid: JID, _ readiness: XMPPReadiness, on connection: XMPPConnection, now: NIODeadline) {}
    package func filterSent(_ stanza: XMPPElement, on connection: XMPPConnection) -> XMPPElement? { stanza }
    package func filterReceived(_ stanza: XMPPElement, on connection: XMPPConnection) -> XMPPElement? { stanza }
    package func handle(_ stanza: XMPPElement, on connection: XMPPConnection, now: NIODeadline) -> Bool { false }
    package func timerFired(on connection: XMPPConnection, now: NIODeadline) {}
    package func ended(_ end: XMPPConnectionEnd, now: NIODeadline) {}
}

/// The modules of one connection, in the order in which they are asked.
final class XMPPModules {
    private let modules: [any XMPPModule]
    /// Owns this, and takes it along when it goes.
    private unowned(unsafe) let connection: XMPPConnection

    init(_ modules: [any XMPPModule], of connection: XMPPConnection) {
        self.modules = modules
        self.connection = connection
    }

    var deadline: NIODeadline { self.modules.lazy.map(\.deadline).min() ?? .distantFuture }

    func ready(_ jid: JID, _ readiness: XMPPReadiness, now: NIODeadline) {
        for module in self.modules where self.connection.end == nil {
            module.ready(jid, readiness, on: self.connection, now: now)
        }
    }

    /// All stanzas pass here one after the other, so none overtakes another.
    func filterSent(_ stanza: XMPPElement) -> XMPPElement? {
        var stanza = stanza
        for module in self.modules {
            guard let left = module.filterSent(stanza, on: self.connection), self.connection.end == nil else {
                return nil
            }
            stanza = left
        }
        return stanza
    }

    func filterReceived(_ stanza: XMPPElement) -> XMPPElement? {
        var stanza = stanza
        for module in self.modules {
            guard let left = module.filterReceived(stanza, on: self.connection), self.connection.end == nil else {
                return nil
            }
            stanza = left
        }
        return stanza
    }

    func handle(_ stanza: XMPPElement, now: NIODeadline) -> Bool {
        // One that has ended the connection has had the last word.
        self.modules.contains { $0.handle(stanza, on: self.connection, now: now) || self.connection.end != nil }
    }

    func timerFired(now: NIODeadline) {
        for module in self.modules where module.deadline <= now && self.connection.end == nil {
            module.timerFired(on: self.connection, now: now)
        }
    }

    func ended(_ end: XMPPConnectionEnd, now: NIODeadline) {
        for module in self.modules { module.ended(end, now: now) }
    }
}

extension XMPPConnection {
    /// Puts modules in, in this order; before ``start(deadline:isBare:isSecure:)``.
    package func plugIn(_ modules: [any XMPPModule]) {
        self.needsExtras.modules = modules.isEmpty ? nil : XMPPModules(modules, of: self)
    }

    /// The address that the server assigned.
    package var jid: JID? { self.stream.pointee.jid }

    /// Answers a request with a result.
    package func answer(_ request: XMPPElement, with payload: XMPPElement? = nil) {
        self.stream.pointee.answer(request, with: payload, into: &self.out.pointee)
        self.flushUnlessReading()
    }

    /// Answers a request with an error.
    package func refuse(_ request: XMPPElement, _ error: StanzaError) {
        self.stream.pointee.refuse(request, error, into: &self.out.pointee)
        self.flushUnlessReading()
    }

    /// Whether a stanza speaks for the own account: only the server can send such a one (RFC 6120 §8.1.2.1).
    package func isFromOwnAccount(_ stanza: XMPPElement) -> Bool {
        // The other end is a peer, not the account's server.
        if self.stream.pointee.options.peerRole != nil { return false }
        guard let from = stanza["from"] else { return true }
        guard let jid = self.jid, let sender = try? JID(received: from) else { return false }
        return sender == jid.bare
    }
}

extension XMPPElement {
    static func iq(_ type: String, to: JID? = nil, _ payload: XMPPElement) -> XMPPElement {
        XMPPElement(
            "iq",
            namespace: XMPPNamespace.client,
            attributes: ["type": type, "to": to?.description],
            children: [.element(payload)]
        )
    }
}
