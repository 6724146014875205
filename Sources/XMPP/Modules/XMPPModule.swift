import LoopContext
public import NIOCore
import Synchronization
public import XMPPCodec

/// Takes the result of a request.
package typealias Answer<Value> = (Result<Value, XMPPRequestError>) -> Void

/// A part of a client: an extension of XMPP with its own calls and events.
///
/// A module is the Sendable face of a handler, which lives on the client's event loop. A module belongs to one client,
/// and is given to it when the client is made. This one counts the messages of the account:
///
/// ```swift
/// final class MessageCounter: XMPPModule {
///     let link = XMPPModuleLink()
///
///     func makeHandler() -> any XMPPHandler { Handler() }
///
///     func count() async throws -> Int { try await self.withHandler { (handler: Handler) in handler.count } }
///
///     final class Handler: XMPPHandler {
///         var count = 0
///
///         func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
///             if stanza.name == "message" { self.count += 1 }
///             return false
///         }
///     }
/// }
/// ```
public protocol XMPPModule: AnyObject, Sendable {
    /// The way to the client: one link for each module, made with it.
    var link: XMPPModuleLink { get }

    /// Namespaces that the client announces because of this module (XEP-0030).
    var features: [String] { get }

    /// Makes the handler; called once, on the client's event loop, before its first connection.
    func makeHandler() -> any XMPPHandler

    /// The client is gone, so streams of events end.
    func clientReleased()
}

extension XMPPModule {
    /// None.
    public var features: [String] { [] }
    /// Does nothing.
    public func clientReleased() {}

    /// Runs `body` with the handler on the client's event loop, also without a connection.
    ///
    /// - Parameter body: gets the handler as the type that ``makeHandler()`` makes.
    /// - Returns: what `body` returns.
    /// - Throws: ``XMPPClientError/notConnected`` without a client or after its end, `cancelled`.
    public func withHandler<Handler: XMPPHandler, Value: Sendable>(
        _ body: @escaping @Sendable (Handler) -> Value
    ) async throws(XMPPClientError) -> Value {
        guard let client = self.link.client else { throw .notConnected }
        return try await client.perform { core, waiter in
            guard let handler = core.handler(of: self) as? Handler else { return waiter.fail(.notConnected) }
            waiter.complete(.success(body(handler)))
            core.connection?.watchDeadline()
        }
    }

    /// Starts something with the handler on a connection, and waits for its end.
    ///
    /// - Parameter start: gets the handler, the connection and a closure to call once with the outcome.
    /// - Returns: the success of the outcome.
    /// - Throws: ``XMPPClientError/notConnected``, or the failure of the outcome as ``XMPPClient/request(_:)`` throws it.
    public func ask<Handler: XMPPHandler, Value: Sendable>(
        _ start:
            @escaping @Sendable (
                Handler, XMPPModuleContext, _ answer: @escaping (Result<Value, XMPPRequestError>) -> Void
            ) -> Void
    ) async throws(XMPPClientError) -> Value {
        guard let client = self.link.client else { throw .notConnected }
        return try await client.perform { core, waiter in
            guard let handler = core.handler(of: self) as? Handler, let connection = core.connection else {
                return waiter.fail(.notConnected)
            }
            start(handler, XMPPModuleContext(connection)) { waiter.complete($0.mapError { XMPPClientError($0) }) }
            connection.watchDeadline()
        }
    }
}

/// The way from a module to the client that it is part of.
public final class XMPPModuleLink: Sendable {
    private enum Place {
        case unused
        case part(of: XMPPClientHandle)
        /// The client is gone.
        case left
    }

    private let place = Mutex(Place.unused)

    /// A link to no client yet.
    public init() {}

    var client: XMPPClientHandle? {
        self.place.withLock { place in
            if case .part(let client) = place { client } else { nil }
        }
    }

    /// - Precondition: the module is part of no other client.
    func join(_ client: XMPPClientHandle) {
        self.place.withLock { place in
            guard case .unused = place else { preconditionFailure("a module is part of one client") }
            place = .part(of: client)
        }
    }

    /// Client and modules no longer retain each other.
    func leave() { self.place.withLock { $0 = .left } }

    /// The namespaces that the client and all its modules announce.
    public var features: Set<String> { self.client?.features ?? [] }

    /// Sends a stanza; see ``XMPPClient/send(_:until:)``.
    public func send(
        _ stanza: XMPPElement,
        until progress: XMPPSendProgress = .accepted
    ) async throws(XMPPClientError) {
        guard let client = self.client else { throw .notConnected }
        try await client.send(stanza, until: progress)
    }

    /// Sends an IQ of type get or set, and returns the result; see ``XMPPClient/request(_:)``.
    @discardableResult
    public func request(_ iq: XMPPElement) async throws(XMPPClientError) -> XMPPElement {
        guard let client = self.client else { throw .notConnected }
        return try await client.request(iq)
    }
}

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

    package func answer(_ request: XMPPElement, with payload: XMPPElement? = nil) {
        self.stream.pointee.answer(request, with: payload, into: &self.out.pointee)
        self.flushUnlessReading()
    }

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
    /// Adds an element of the same namespace that holds a text; without one nothing is added.
    mutating func add(_ name: String, text: String?) {
        if let text { self.add(XMPPElement(name, namespace: self.namespace, text: text)) }
    }

    /// The address in an attribute; `nil` if there is none that can be read.
    func jid(_ attribute: String) -> JID? { self[attribute].flatMap { try? JID(received: $0) } }

    /// The text of a child of the same namespace; `nil` if there is none.
    func nonEmptyText(of name: String) -> String? {
        self.child(name, self.namespace).flatMap { $0.text.isEmpty ? nil : $0.text }
    }

    static func iq(_ type: String, to: JID? = nil, _ payload: XMPPElement) -> XMPPElement {
        XMPPElement(
            "iq",
            namespace: XMPPNamespace.client,
            attributes: ["type": type, "to": to?.description],
            children: [.element(payload)]
        )
    }
}
