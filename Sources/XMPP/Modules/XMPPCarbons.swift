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
