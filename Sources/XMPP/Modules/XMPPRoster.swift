public import XMPPCodec

/// The contacts of the account, as the server keeps them.
///
/// The roster is asked for by ``items()``; later changes arrive by themselves, and the module applies them. With a
/// server that knows versions a repeated call transfers changes only.
///
/// A server reports changes to clients that have asked for the roster on the same stream. Once loaded, the module asks
/// again by itself on each stream that is not resumed, and ``events`` has what has changed in between.
///
/// Spec: RFC 6121 §2.
public final class XMPPRoster: XMPPModule {
    /// A contact.
    public struct Item: Hashable, Sendable {
        /// The directions in which presence is visible.
        public enum Subscription: String, Hashable, Sendable, CaseIterable {
            /// Neither sees the other.
            case none
            /// The account sees the contact's presence.
            case to
            /// The contact sees the account's presence.
            case from
            /// Both see each other.
            case both
            /// The contact was removed; only in events.
            case remove
        }

        /// The contact's address.
        public var jid: JID
        /// The name that the account gave it.
        public var name: String?
        /// Set by the server.
        public var subscription: Subscription
        /// Whether a request to see the contact's presence is pending; set by the server.
        public var isAsking: Bool
        /// Whether the account approved the contact's request in advance; set by the server.
        public var isApproved: Bool
        /// The groups that the account put it in.
        public var groups: [String]

        /// A contact to add or change; the server sets the rest.
        public init(_ jid: JID, name: String? = nil, groups: [String] = []) {
            self.jid = jid
            self.name = name
            self.subscription = .none
            self.isAsking = false
            self.isApproved = false
            self.groups = groups
        }

        init?(_ element: XMPPElement) {
            guard element.name == "item", let jid = element.jid("jid") else { return nil }
            self.jid = jid
            self.name = element["name"]
            // §2.1.2.5: an unknown value counts as none.
            self.subscription = element["subscription"].flatMap { Subscription(rawValue: $0) } ?? .none
            self.isAsking = element["ask"] == "subscribe"
            self.isApproved = element["approved"] == "true" || element["approved"] == "1"
            self.groups = element.elements.filter { $0.name == "group" }.map(\.text)
        }

        /// Bytes that it takes in memory, or so.
        package var estimatedSize: Int {
            self.groups.reduce(128 + self.jid.estimatedSize + (self.name?.utf8.count ?? 0)) { $0 + 16 + $1.utf8.count }
        }
    }

    /// A change that the server reports.
    public enum Event: Hashable, Sendable {
        /// A contact was added, changed or, with ``Item/Subscription/remove``, removed.
        case changed(Item)
    }

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let source = XMPPEvents<Event> { event in
        switch event {
        case .changed(let item): item.estimatedSize
        }
    }

    /// A roster that is not loaded yet.
    public init() {}

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler { RosterHandler { [source] in source.send(.changed($0)) } }

    /// Ends the streams of events.
    public func clientReleased() { self.source.finish() }

    /// Changes from now on; each stream gets all of them.
    public var events: AsyncStream<Event> { self.source.stream() }

    /// Asks the server for the roster, or for the changes since the last call.
    ///
    /// - Returns: the contacts by their addresses.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func items() async throws(XMPPClientError) -> [JID: Item] {
        try await self.ask { (handler: RosterHandler, context, answer) in handler.get(in: context, answer) }
    }

    /// Adds a contact, or changes its name and groups.
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func set(_ item: Item) async throws(XMPPClientError) {
        try await self.ask { (handler: RosterHandler, context, answer) in
            handler.set(item, in: context) { answer($0.map { _ in }) }
        }
    }

    /// Removes a contact, and both subscriptions to presence with it.
    ///
    /// - Throws: as ``XMPPClient/request(_:)``; `refused` with `item-not-found` for no contact.
    public func remove(_ jid: JID) async throws(XMPPClientError) {
        try await self.ask { (handler: RosterHandler, context, answer) in
            handler.remove(jid, in: context) { answer($0.map { _ in }) }
        }
    }
}
