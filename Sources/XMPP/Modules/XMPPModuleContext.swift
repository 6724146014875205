import LoopContext
public import NIOCore
public import XMPPCodec

/// The connection of a client, for the handlers of its modules.
///
/// It is valid during the call that passes it, and on the client's event loop only.
public struct XMPPModuleContext {
    package let connection: XMPPConnection

    package init(_ connection: XMPPConnection) { self.connection = connection }

    /// The address that the server assigned; `nil` before the first binding.
    public var jid: JID? { self.connection.stream.pointee.jid }

    /// The time of the event that is being handled.
    public var now: NIODeadline { self.connection.loop.now }

    /// Sends an element by the filters of all handlers; it leaves with the answers to the present read.
    ///
    /// - Returns: whether the stream took it; `false` before the stream is ready and after its end, and if a filter
    ///   dropped it.
    /// - Throws: the reason why XML cannot represent the element.
    @discardableResult
    public func send(_ element: XMPPElement) throws(XMPPWriteError) -> Bool {
        try self.connection.offer(element) == .sent
    }

    /// Sends an IQ of type get or set, sets its id, and passes the answer of the addressee on.
    ///
    /// - Parameters:
    ///   - iq: without `to` it goes to the own account's server.
    ///   - answer: called once, on the event loop: with the result, the error, the time-out
    ///     (``XMPPClientConfiguration/requestTimeout``) or the loss of a stream that is not resumed.
    public func request(_ iq: XMPPElement, _ answer: @escaping (Result<XMPPElement, XMPPRequestError>) -> Void) {
        self.connection.request(iq, answer)
    }

    /// Answers a request with a result.
    public func answer(_ request: XMPPElement, with payload: XMPPElement? = nil) {
        self.connection.answer(request, with: payload)
    }

    /// Answers a request with an error.
    public func refuse(_ request: XMPPElement, _ error: StanzaError) { self.connection.refuse(request, error) }

    /// Whether a stanza speaks for the own account: only the server can send such a stanza (RFC 6120 §8.1.2.1).
    public func isFromOwnAccount(_ stanza: XMPPElement) -> Bool { self.connection.isFromOwnAccount(stanza) }

    /// An unguessable id that is unique on the stream.
    public func makeID() -> String { self.connection.stream.pointee.makeID() }
}

extension XMPPConnection {
    /// Puts handlers in, in this order; before ``start(deadline:isBare:isSecure:)``.
    package func plugIn(_ handlers: [any XMPPHandler]) {
        self.needsExtras.handlers = handlers.isEmpty ? nil : XMPPHandlers(handlers, of: self)
    }

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

    /// Whether a stanza speaks for the own account.
    package func isFromOwnAccount(_ stanza: XMPPElement) -> Bool {
        // A peer and a component have no account at a server.
        let options = self.stream.pointee.options
        if options.peerRole != nil || options.isComponent { return false }
        guard let from = stanza["from"] else { return true }
        guard let jid = self.stream.pointee.jid, let sender = try? JID(received: from) else { return false }
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
