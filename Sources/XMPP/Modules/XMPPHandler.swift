public import NIOCore
public import XMPPCodec

/// The part of an ``XMPPModule`` that lives on the client's event loop: an observer and filter of its stanzas.
///
/// The client asks its handlers one after the other, in the order of its modules. A handler outlives connections: it
/// gets the context of the present one with each call, and stores none. It does no IO of its own and must not block.
public protocol XMPPHandler: AnyObject, SendableMetatype {
    /// When ``timerFired(in:)`` has something to do; `.distantFuture` is never.
    var deadline: NIODeadline { get }

    /// Stanzas may be sent, on a new stream or on a resumed one.
    func ready(_ session: XMPPSession, in context: XMPPModuleContext)

    /// Filters an outgoing element, as the previous handler left it; `nil` drops it.
    ///
    /// Answers to requests pass no filter: each request has to be answered once (RFC 6120 §8.2.3).
    func filterSent(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement?

    /// Filters an incoming stanza, as the previous handler left it; `nil` drops it.
    ///
    /// A dropped request is still answered, by the client's automatic reply. Answers to own requests pass no filter.
    func filterReceived(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement?

    /// Handles a stanza that passed all filters.
    ///
    /// - Returns: `true` hides the stanza from later handlers and from ``XMPPClient/stanzas``. A handler that returns
    ///   `true` for a request answers it, now or later.
    func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool

    /// The server has this many more of the oldest stanzas sent (XEP-0198).
    func acknowledged(_ count: Int, in context: XMPPModuleContext)

    /// ``deadline`` has come.
    func timerFired(in context: XMPPModuleContext)

    /// The connection is gone; a stream that can be resumed may come back.
    func ended(_ end: XMPPClientEnd)
}

extension XMPPHandler {
    /// Never.
    public var deadline: NIODeadline { .distantFuture }
    /// Does nothing.
    public func ready(_ session: XMPPSession, in context: XMPPModuleContext) {}
    /// Leaves the element as it is.
    public func filterSent(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? { stanza }
    /// Leaves the stanza as it is.
    public func filterReceived(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? { stanza }
    /// Leaves the stanza to others.
    public func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool { false }
    /// Does nothing.
    public func acknowledged(_ count: Int, in context: XMPPModuleContext) {}
    /// Does nothing.
    public func timerFired(in context: XMPPModuleContext) {}
    /// Does nothing.
    public func ended(_ end: XMPPClientEnd) {}
}

/// The handlers of one connection, in the order in which they are asked.
final class XMPPHandlers {
    private let handlers: [any XMPPHandler]
    /// Owns this, and takes it along when it goes.
    private unowned(unsafe) let connection: XMPPConnection

    init(_ handlers: [any XMPPHandler], of connection: XMPPConnection) {
        self.handlers = handlers
        self.connection = connection
    }

    private var context: XMPPModuleContext { XMPPModuleContext(self.connection) }
    var deadline: NIODeadline { self.handlers.lazy.map(\.deadline).min() ?? .distantFuture }

    func ready(_ session: XMPPSession) {
        for handler in self.handlers where self.connection.end == nil { handler.ready(session, in: self.context) }
    }

    /// All stanzas pass here one after the other, so none overtakes another.
    func filterSent(_ stanza: XMPPElement) -> XMPPElement? {
        var stanza = stanza
        for handler in self.handlers {
            guard let left = handler.filterSent(stanza, in: self.context), self.connection.end == nil else {
                return nil
            }
            stanza = left
        }
        return stanza
    }

    func filterReceived(_ stanza: XMPPElement) -> XMPPElement? {
        var stanza = stanza
        for handler in self.handlers {
            guard let left = handler.filterReceived(stanza, in: self.context), self.connection.end == nil else {
                return nil
            }
            stanza = left
        }
        return stanza
    }

    func handle(_ stanza: XMPPElement) -> Bool {
        // One that has ended the connection has had the last word.
        self.handlers.contains { $0.handle(stanza, in: self.context) || self.connection.end != nil }
    }

    func acknowledged(_ count: Int) {
        for handler in self.handlers where self.connection.end == nil {
            handler.acknowledged(count, in: self.context)
        }
    }

    func timerFired(now: NIODeadline) {
        for handler in self.handlers where handler.deadline <= now && self.connection.end == nil {
            handler.timerFired(in: self.context)
        }
    }

    func ended(_ end: XMPPClientEnd) {
        for handler in self.handlers { handler.ended(end) }
    }
}
