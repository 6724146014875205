public import XMPPCodec

/// Copies of what the other clients of the account send and get.
///
/// A copy is no message of ``XMPPClient/stanzas``, because it would count twice.
///
/// Spec: XEP-0280, XEP-0297.
public final class XMPPCarbons: XMPPModule {
    /// A copy, or news about copies.
    public enum Event: Hashable, Sendable {
        /// Another client of the account has sent this message.
        case sent(XMPPElement)
        /// Another client of the account has got this message.
        case received(XMPPElement)
        /// The server does not send copies, on a new stream.
        case refused(StanzaError)
    }

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let source = XMPPEvents<Event> { event in
        switch event {
        case .sent(let message), .received(let message): message.estimatedSize
        case .refused(let error): error.estimatedSize
        }
    }
    private let isAutomatic: Bool

    /// - Parameter isAutomatic: whether the copies are asked for on each new stream; a resumed one still has them.
    public init(isAutomatic: Bool = true) { self.isAutomatic = isAutomatic }

    /// Copies.
    public var features: [String] { [XMPPNamespace.carbons] }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler {
        CarbonsHandler(isAutomatic: self.isAutomatic) { [source] in source.send($0) }
    }

    /// Ends the streams of events.
    public func clientReleased() { self.source.finish() }

    /// Events from now on; each stream gets all of them.
    public var events: AsyncStream<Event> { self.source.stream() }

    /// Asks for copies, on new streams from now on too.
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func enable() async throws(XMPPClientError) { try await self.set(true) }

    /// Asks for no more copies, on new streams from now on neither.
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func disable() async throws(XMPPClientError) { try await self.set(false) }

    private func set(_ isEnabled: Bool) async throws(XMPPClientError) {
        try await self.withHandler { (handler: CarbonsHandler) in handler.isWanted = isEnabled }
        try await self.link.request(CarbonsHandler.request(isEnabled))
    }
}

/// Copies of what the other clients of the account send and get.
///
/// Spec: XEP-0280, XEP-0297.
package final class CarbonsHandler: XMPPHandler {
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
        guard context.isFromOwnAccount(stanza) else { return true }
        if let message = carbon.child("forwarded", XMPPNamespace.forward)?.child("message", XMPPNamespace.client) {
            self.told(sent == nil ? .received(message) : .sent(message))
        }
        return true
    }
}
