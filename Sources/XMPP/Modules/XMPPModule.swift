import LoopContext
import NIOCore
import Synchronization
public import XMPPCodec

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
            guard let handler = core.handler(of: self) as? Handler else {
                waiter.complete(.failure(.notConnected))
                return
            }
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
                waiter.complete(.failure(.notConnected))
                return
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
