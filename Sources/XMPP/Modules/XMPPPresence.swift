public import XMPPCodec

/// The own presence, the presences of contacts, and the subscriptions to them.
///
/// The module repeats the own presence on each new stream. It remembers the presences of others that the present
/// stream has brought, rooms apart. All presences go to ``XMPPClient/stanzas`` as well.
///
/// Spec: RFC 6121 §3, §4.
public final class XMPPPresence: XMPPModule {
    /// A kind of availability other than plainly available.
    public enum Show: String, Hashable, Sendable, CaseIterable {
        /// Away for a short time.
        case away
        /// Would like to chat.
        case chat
        /// Does not want to be disturbed.
        case dnd
        /// Away for a longer time.
        case xa
    }

    /// A client, or another entity, that is available.
    public struct Resource: Hashable, Sendable {
        /// Its address.
        public let jid: JID
        /// How available it is; `nil`: simply there.
        public let show: Show?
        /// The status in words, in the first language that was given.
        public let status: String?
        /// The higher, the rather it gets messages to the bare address; negative: none of them.
        public let priority: Int8
        /// When the presence was sent, if its server delayed it (XEP-0203); `nil`: just now.
        public let delay: XMPPTimestamp?

        init(_ jid: JID, _ presence: XMPPElement) {
            self.jid = jid
            // §4.7.2.1: an unknown value counts as none.
            self.show = presence.child("show").flatMap { Show(rawValue: String($0.text.trimmed)) }
            self.status = presence.child("status")?.text
            self.priority = presence.child("priority").flatMap { Int8($0.text.trimmed) } ?? 0
            self.delay = presence.child("delay", XMPPNamespace.delay)?["stamp"].flatMap { XMPPTimestamp($0) }
        }

        var estimatedSize: Int { 192 + self.jid.description.utf8.count + (self.status?.utf8.count ?? 0) }
    }

    /// Something that others did.
    public enum Event: Hashable, Sendable {
        /// A resource is available, or has changed its presence.
        case available(Resource)
        /// A resource is gone; with a bare address all of the contact's are.
        case unavailable(JID, status: String?)
        /// A contact asks to see the own presence: ``approve(_:)`` and ``deny(_:)`` answer. A server may repeat it.
        case requested(JID, status: String?)
        /// The same, and the module has approved it.
        case accepted(JID)
        /// A contact lets the account see its presence.
        case approved(JID)
        /// A contact does not let the account see its presence, or no longer.
        case denied(JID)
        /// A contact does not want to see the own presence any more.
        case cancelled(JID)
        /// A presence sent to this address has come back as an error.
        case failed(JID, StanzaError)
        /// A new stream has begun after a loss: no contact is known to be available.
        case reset
    }

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let source = XMPPEvents<Event> { event in
        switch event {
        case .available(let resource): resource.estimatedSize
        case .unavailable(let jid, let status), .requested(let jid, let status):
            128 + jid.description.utf8.count + (status?.utf8.count ?? 0)
        case .failed(let jid, let error): jid.estimatedSize + error.estimatedSize
        case .accepted(let jid), .approved(let jid), .denied(let jid), .cancelled(let jid):
            128 + jid.description.utf8.count
        case .reset: 64
        }
    }
    private let resends: Bool
    private let maximum: Int
    private let accepts: @Sendable (JID) -> Bool

    /// - Parameters:
    ///   - resends: sends the last broadcast presence again on a stream that is not resumed.
    ///   - maximum: resources to remember, and 16 MiB of them; the presence that was heard longest ago makes room.
    ///   - accepts: whether to approve a contact's request without asking; called on the event loop. By default none.
    public init(
        resends: Bool = true,
        maximum: Int = 10_000,
        accepts: @escaping @Sendable (JID) -> Bool = { _ in false }
    ) {
        self.resends = resends
        self.maximum = maximum
        self.accepts = accepts
    }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler {
        PresenceHandler(resends: self.resends, maximum: self.maximum, accepts: self.accepts) { [source] in
            source.send($0)
        }
    }

    /// Ends the streams of events.
    public func clientReleased() { self.source.finish() }

    /// Changes of others from now on; each stream gets all of them.
    public var events: AsyncStream<Event> { self.source.stream() }

    // MARK: The own presence

    /// Tells the server and all contacts that the client is there.
    ///
    /// - Throws: as ``XMPPClient/send(_:until:)``.
    public func set(show: Show? = nil, status: String? = nil, priority: Int8 = 0) async throws(XMPPClientError) {
        try await self.link.send(Self.available(show: show, status: status, priority: priority))
    }

    /// Tells the server and all contacts that the client is not there, though it stays connected.
    ///
    /// - Throws: as ``XMPPClient/send(_:until:)``.
    public func setUnavailable(status: String? = nil) async throws(XMPPClientError) {
        try await self.link.send(Self.presence("unavailable", status: status))
    }

    /// Tells one entity that the client is there, whether it is a contact or not (§4.6).
    ///
    /// - Throws: as ``XMPPClient/send(_:until:)``.
    public func send(
        to jid: JID,
        show: Show? = nil,
        status: String? = nil,
        priority: Int8 = 0
    ) async throws(XMPPClientError) {
        try await self.link.send(Self.available(to: jid, show: show, status: status, priority: priority))
    }

    /// The presence that was broadcast last, available or not; `nil` before the first and after a disconnect.
    ///
    /// - Throws: as ``XMPPModule/withHandler(_:)``.
    public func current() async throws(XMPPClientError) -> XMPPElement? {
        try await self.withHandler { (handler: PresenceHandler) in handler.current }
    }

    /// Broadcasts the last presence again, if it was an available one.
    ///
    /// - Returns: whether it was.
    /// - Throws: as ``XMPPClient/send(_:until:)``.
    @discardableResult
    public func resend() async throws(XMPPClientError) -> Bool {
        guard let current = try await self.current(), current["type"] == nil else { return false }
        try await self.link.send(current)
        return true
    }

    // MARK: The presences of others

    /// The available resources of a contact, the ones of the highest priority first.
    ///
    /// - Throws: as ``XMPPModule/withHandler(_:)``.
    public func resources(of jid: JID) async throws(XMPPClientError) -> [Resource] {
        let bare = jid.bare
        return try await self.withHandler { (handler: PresenceHandler) in handler.resources(of: bare) }
    }

    /// The available resources of all contacts, by bare address.
    ///
    /// - Throws: as ``XMPPModule/withHandler(_:)``.
    public func contacts() async throws(XMPPClientError) -> [JID: [Resource]] {
        try await self.withHandler { (handler: PresenceHandler) in handler.everybody }
    }

    // MARK: Subscriptions

    /// Asks a contact to let the account see its presence.
    ///
    /// Servers tell the answer only to clients that have asked for the roster, see ``XMPPRoster/items()``.
    ///
    /// - Throws: as ``XMPPClient/send(_:until:)``.
    public func request(_ jid: JID, status: String? = nil) async throws(XMPPClientError) {
        try await self.link.send(Self.presence("subscribe", to: jid.bare, status: status))
    }

    /// Lets a contact see the own presence, as it has asked.
    ///
    /// - Throws: as ``XMPPClient/send(_:until:)``.
    public func approve(_ jid: JID) async throws(XMPPClientError) {
        try await self.link.send(Self.presence("subscribed", to: jid.bare))
    }

    /// Does not let a contact see the own presence, as it has asked, or no longer.
    ///
    /// - Throws: as ``XMPPClient/send(_:until:)``.
    public func deny(_ jid: JID) async throws(XMPPClientError) {
        try await self.link.send(Self.presence("unsubscribed", to: jid.bare))
    }

    /// Gives up seeing a contact's presence.
    ///
    /// - Throws: as ``XMPPClient/send(_:until:)``.
    public func cancel(_ jid: JID) async throws(XMPPClientError) {
        try await self.link.send(Self.presence("unsubscribe", to: jid.bare))
    }

    /// Approves the request of a contact before it comes (§3.4).
    ///
    /// - Returns: `false`, and nothing is sent, where the server does not offer it.
    /// - Throws: as ``XMPPClient/send(_:until:)``.
    @discardableResult
    public func preapprove(_ jid: JID) async throws(XMPPClientError) -> Bool {
        let isOffered = try await self.withHandler { (handler: PresenceHandler) in handler.canPreapprove }
        guard isOffered else { return false }
        try await self.approve(jid)
        return true
    }

    // MARK: Stanzas

    package static func available(
        to jid: JID? = nil,
        show: Show? = nil,
        status: String? = nil,
        priority: Int8 = 0
    ) -> XMPPElement {
        var presence = self.presence(nil, to: jid)
        presence.add("show", text: show?.rawValue)
        presence.add("status", text: status)
        presence.add("priority", text: priority == 0 ? nil : String(priority))
        return presence
    }

    package static func presence(_ type: String?, to jid: JID? = nil, status: String? = nil) -> XMPPElement {
        var presence = XMPPElement(
            "presence",
            namespace: XMPPNamespace.client,
            attributes: ["type": type, "to": jid?.description]
        )
        presence.add("status", text: status)
        return presence
    }
}

extension String {
    /// The text without white space at its ends, as for values between tags.
    var trimmed: Substring {
        let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        let front = self.utf8.drop(while: isSpace)
        guard let last = front.lastIndex(where: { !isSpace($0) }) else { return "" }
        return self[front.startIndex...last]
    }
}
