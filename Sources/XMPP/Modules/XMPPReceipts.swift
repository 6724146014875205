import NIOCore
public import XMPPCodec

/// Confirmations that a message was delivered, or displayed.
///
/// The module answers requests for delivery receipts by itself. A displayed marker is the application's to send, by
/// ``markDisplayed(_:)``.
///
/// Spec: XEP-0184, XEP-0333.
public final class XMPPReceipts: XMPPModule {
    /// A step on a message's way.
    public enum Stage: Hashable, Sendable, CaseIterable {
        /// The message has reached a client of the receiver (XEP-0184).
        case received
        /// The receiver has displayed it (XEP-0333).
        case displayed
    }

    /// A confirmation.
    ///
    /// Any sender can claim any id: check that the message went to `from`, as ``deliver(_:until:timeout:)`` does.
    public struct Event: Hashable, Sendable {
        /// The progress of the message.
        public let stage: Stage
        /// The id of the message.
        public let id: String
        /// The confirming client; `nil` is the own account.
        public let from: JID?
    }

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let source = XMPPEvents<Event> { 128 + $0.id.utf8.count + ($0.from?.estimatedSize ?? 0) }
    private let answers: @Sendable (JID) -> Bool

    /// - Parameter answers: whether a sender's requests for receipts are answered, which shows it that this client is
    ///   online; called on the client's event loop. Default: all.
    public init(answers: @escaping @Sendable (JID) -> Bool = { _ in true }) { self.answers = answers }

    /// Receipts and markers.
    public var features: [String] { [XMPPNamespace.receipts, XMPPNamespace.chatMarkers] }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler {
        ReceiptsHandler(answers: self.answers, told: { [source] in source.send($0) })
    }

    /// Ends the streams of events.
    public func clientReleased() { self.source.finish() }

    /// Events from now on; each stream gets all of them.
    public var events: AsyncStream<Event> { self.source.stream() }

    /// Sends a message that asks for confirmations, which ``events`` reports.
    ///
    /// - Parameters:
    ///   - message: gets an id unless it has one. A message to a room asks for markers only (XEP-0184 §5.3).
    ///   - stages: the confirmations.
    /// - Returns: the message's id.
    /// - Throws: as ``XMPPClient/send(_:until:)``; `invalid` for a stanza of another kind.
    @discardableResult
    public func send(
        _ message: XMPPElement,
        asking stages: Set<Stage> = [.received]
    ) async throws(XMPPClientError) -> String {
        let message = try await self.prepared(message, stages)
        try await self.link.send(message)
        return message["id"] ?? ""
    }

    /// Sends a message, and waits until its receiver confirms it.
    ///
    /// - Parameters:
    ///   - message: has a `to`, and gets an id unless it has one.
    ///   - stage: the confirmation to wait for.
    ///   - timeout: the wait at most; `nil` waits until the connection ends.
    /// - Returns: the client that confirmed.
    /// - Throws: ``XMPPClientError/refused(_:)`` for a message that comes back as an error; `timedOut`; `ended` at the
    ///   end of the connection, though the message may arrive after a resumption; as ``XMPPClient/send(_:until:)``.
    @discardableResult
    public func deliver(
        _ message: XMPPElement,
        until stage: Stage = .received,
        timeout: Duration? = .seconds(30)
    ) async throws(XMPPClientError) -> JID {
        guard let to = message["to"].flatMap({ try? JID($0) }) else {
            throw .invalid("a message to wait for has a 'to' that is a JID")
        }
        guard message["type"] != "groupchat" else { throw .invalid("a room confirms no message (XEP-0184 §5.3)") }
        let message = try await self.prepared(message, [stage])
        return try await self.ask { (handler: ReceiptsHandler, context, answer) in
            handler.deliver(message, to: to, until: stage, timeout: timeout.map { TimeAmount($0) }, in: context, answer)
        }
    }

    /// Tells the sender of a message that it was displayed.
    ///
    /// - Returns: whether the message asked for that.
    /// - Throws: as ``XMPPClient/send(_:until:)``.
    @discardableResult
    public func markDisplayed(_ message: XMPPElement) async throws(XMPPClientError) -> Bool {
        guard let marker = ReceiptsHandler.marker(for: message) else { return false }
        try await self.link.send(marker)
        return true
    }

    private func prepared(_ message: XMPPElement, _ stages: Set<Stage>) async throws(XMPPClientError) -> XMPPElement {
        guard message.isNamed("message", XMPPNamespace.client), message["type"] != "error" else {
            throw .invalid("a receipt is for a message of \(XMPPNamespace.client) that is no error")
        }
        var message = message
        if message["id"] == nil {
            message["id"] = try await self.ask { (_: ReceiptsHandler, context, answer) in
                answer(.success(context.makeID()))
            }
        }
        if stages.contains(.received) { ReceiptsHandler.ask(in: &message) }
        if stages.contains(.displayed) { ReceiptsHandler.askForMarker(in: &message) }
        return message
    }
}
