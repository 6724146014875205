public import XMPPCodec

/// The rooms that the account remembers, on its server and for all of its clients.
///
/// Events need the service discovery of the client, which announces ``features``.
///
/// Spec: XEP-0402.
public final class XMPPBookmarks: XMPPModule {
    /// A room.
    public struct Bookmark: Hashable, Sendable {
        /// The address of the room, without a nick.
        public var room: JID
        /// The name that people see.
        public var name: String?
        /// Whether clients join the room when they connect.
        public var joins: Bool
        /// The nick in the room.
        public var nick: String?
        /// The password of the room; every client of the account can read it.
        public var password: String?
        /// Further elements of clients that know more; they are kept as they are.
        public var extensions: [XMPPElement]

        /// A room to remember; of an address with a nick the nick is left out.
        public init(
            _ room: JID,
            name: String? = nil,
            joins: Bool = false,
            nick: String? = nil,
            password: String? = nil,
            extensions: [XMPPElement] = []
        ) {
            self.room = room.bare
            self.name = name
            self.joins = joins
            self.nick = nick
            self.password = password
            self.extensions = extensions
        }

        /// Reads an item of the node; `nil` for one that is no bookmark.
        init?(_ item: XMPPElement) {
            guard item.name == "item", let room = item.bookmarkedRoom,
                let conference = item.child("conference", XMPPNamespace.bookmarks)
            else { return nil }
            self.init(
                room,
                name: conference["name"],
                joins: conference["autojoin"] == "true" || conference["autojoin"] == "1",
                nick: conference.nonEmptyText(of: "nick"),
                password: conference.nonEmptyText(of: "password"),
                extensions: conference.child("extensions", XMPPNamespace.bookmarks)?.elements ?? []
            )
        }

        var conference: XMPPElement {
            let namespace = XMPPNamespace.bookmarks
            var element = XMPPElement(
                "conference",
                namespace: namespace,
                attributes: ["name": self.name, "autojoin": self.joins ? "true" : nil]
            )
            element.add("nick", text: self.nick)
            element.add("password", text: self.password)
            if !self.extensions.isEmpty {
                let nodes = self.extensions.map { XMPPElement.Node.element($0) }
                element.add(XMPPElement("extensions", namespace: namespace, children: nodes))
            }
            return element
        }
    }

    /// A change, by any client of the account; some servers tell each twice.
    public enum Event: Hashable, Sendable {
        /// A bookmark was added or changed.
        case changed(Bookmark)
        /// The bookmark of a room was removed.
        case removed(JID)
        /// All bookmarks were removed.
        case cleared
    }

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let source = XMPPEvents<Event> { event in
        switch event {
        case .changed(let bookmark): 128 + bookmark.conference.estimatedSize
        case .removed(let room): 64 + room.estimatedSize
        case .cleared: 64
        }
    }

    /// The bookmarks of the account.
    public init() {}

    /// Asks the server for events: the bookmarks' node, with `+notify`.
    public var features: [String] { [XMPPNamespace.bookmarks + "+notify"] }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler { BookmarksHandler { [source] in source.send($0) } }

    /// Ends the streams of events.
    public func clientReleased() { self.source.finish() }

    /// Changes from now on; each stream gets all of them.
    public var events: AsyncStream<Event> { self.source.stream() }

    /// All bookmarks; items that are none are left out.
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func items() async throws(XMPPClientError) -> [Bookmark] {
        let answer: XMPPElement
        do throws(XMPPClientError) {
            answer = try await self.link.request(Self.itemsRequest)
        } catch {
            // The node is made with the first bookmark.
            if case .refused(let refusal) = error, refusal.condition == .itemNotFound { return [] }
            throw error
        }
        return Self.bookmarks(in: answer)
    }

    /// Adds a bookmark, or changes that of the same room.
    ///
    /// The server keeps it for the account alone. One whose node is open to others refuses with `conflict`.
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func set(_ bookmark: Bookmark) async throws(XMPPClientError) {
        do throws(XMPPClientError) {
            try await self.link.request(Self.publication(of: bookmark))
        } catch {
            guard case .refused(let refusal) = error, Self.unknownOption.contains(refusal.condition) else {
                throw error
            }
            // Some servers know some of the options for the node alone. Without them they may keep one item only.
            try await self.prepareNode()
            try await self.link.request(Self.publication(of: bookmark, isBasic: true))
        }
    }

    private func prepareNode() async throws(XMPPClientError) {
        do throws(XMPPClientError) {
            try await self.link.request(Self.configuration)
        } catch {
            guard case .refused(let refusal) = error, refusal.condition == .itemNotFound else { throw error }
            try await self.link.request(Self.creation)
        }
    }

    /// The conditions with which servers refuse a field of the options that they do not know.
    private static let unknownOption: Set<StanzaErrorCondition> = [
        .badRequest, .featureNotImplemented, .notAcceptable, .resourceConstraint,
    ]

    /// Removes the bookmark of a room.
    ///
    /// - Throws: as ``XMPPClient/request(_:)``; `refused` with `item-not-found` for no bookmark, by some servers.
    public func remove(_ room: JID) async throws(XMPPClientError) {
        try await self.link.request(Self.retraction(of: room))
    }

    // MARK: Stanzas

    /// The account's own node.
    private static let node = XMPPPubSub.Node(XMPPNamespace.bookmarks)

    package static let itemsRequest = PubSubHandler.items(of: node)

    package static func bookmarks(in answer: XMPPElement) -> [Bookmark] {
        let items = answer.child("pubsub", XMPPNamespace.pubsub)?.child("items", XMPPNamespace.pubsub)
        guard let items, items["node"] == XMPPNamespace.bookmarks else { return [] }
        return items.elements.compactMap { Bookmark($0) }
    }

    /// `isBasic`: with the options alone that every server knows.
    package static func publication(of bookmark: Bookmark, isBasic: Bool = false) -> XMPPElement {
        let options = self.options(isBasic: isBasic)
        return PubSubHandler.publish(bookmark.conference, id: bookmark.room.bare.description, to: self.node, options)
    }

    /// Configures a node that is there.
    package static let configuration = PubSubHandler.owner(
        "set",
        "configure",
        node,
        [PubSubHandler.configuration(options()).element]
    )

    /// Makes the node.
    package static let creation = PubSubHandler.create(node.name, at: nil, options())

    package static func retraction(of room: JID) -> XMPPElement {
        PubSubHandler.retract(room.bare.description, from: self.node, notifies: true)
    }

    /// XEP-0402 §4.1.
    private static func options(isBasic: Bool = false) -> KeyValuePairs<String, String?> {
        [
            "pubsub#persist_items": "true", "pubsub#access_model": "whitelist",
            "pubsub#max_items": isBasic ? nil : "max",
            "pubsub#send_last_published_item": isBasic ? nil : "never",
        ]
    }
}

extension XMPPElement {
    /// The room that the id of an item names.
    var bookmarkedRoom: JID? {
        guard let room = self.jid("id"), room.isBare else { return nil }
        return room
    }
}

/// Reads the notifications of changed bookmarks.
///
/// Spec: XEP-0402 §3.
package final class BookmarksHandler: XMPPHandler {
    private let told: (XMPPBookmarks.Event) -> Void

    package init(_ told: @escaping (XMPPBookmarks.Event) -> Void = { _ in }) { self.told = told }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name == "message", stanza["type"] != "error",
            let event = stanza.child("event", XMPPNamespace.pubsubEvent)?.elements.first,
            event["node"] == XMPPNamespace.bookmarks
        else { return false }
        // Others could lure the client into rooms of theirs (§7).
        guard context.isFromOwnAccount(stanza) else { return false }
        switch event.name {
        case "purge", "delete": self.told(.cleared)
        case "items":
            for item in event.elements {
                if item.name == "retract" {
                    if let room = item.bookmarkedRoom { self.told(.removed(room)) }
                } else if let bookmark = XMPPBookmarks.Bookmark(item) {
                    self.told(.changed(bookmark))
                }
            }
        default: break
        }
        return true
    }
}
