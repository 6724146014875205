public import XMPPCodec

/// The archive of messages that a server or a room keeps.
///
/// Spec: XEP-0313, XEP-0059.
public final class XMPPArchive: XMPPModule {
    /// The messages that are asked for.
    public struct Query: Hashable, Sendable {
        /// The archive of this room or node; `nil` is the own account's.
        public var archive: JID?
        /// Only messages to or from this address.
        public var with: JID?
        /// Only messages from this time on.
        public var start: XMPPTimestamp?
        /// Only messages up to this time.
        public var end: XMPPTimestamp?
        /// Messages of a page at most, from 1 on.
        public var max: Int
        /// The id in the archive after which the page begins; `nil` is the oldest message.
        public var after: String?
        /// The id in the archive before which the page ends, an empty text for the newest messages.
        public var before: String?

        /// A query of all messages that these limits leave.
        public init(
            archive: JID? = nil,
            with: JID? = nil,
            start: XMPPTimestamp? = nil,
            end: XMPPTimestamp? = nil,
            max: Int = 50,
            after: String? = nil,
            before: String? = nil
        ) {
            self.archive = archive
            self.with = with
            self.start = start
            self.end = end
            self.max = max
            self.after = after
            self.before = before
        }
    }

    /// A message in an archive.
    public struct Message: Hashable, Sendable {
        /// The id in the archive.
        public let id: String
        /// The message as it was sent.
        public let stanza: XMPPElement
        /// When the archive got it; `nil` without a time that can be read.
        public let stamp: XMPPTimestamp?
    }

    /// A part of the answer to a query.
    public struct Page: Hashable, Sendable {
        /// The messages from the oldest to the newest.
        public internal(set) var messages: [Message] = []
        /// Whether no further page follows in the direction of the query.
        public internal(set) var isComplete = false
        /// The id of the first message, to ask for what is before it.
        public internal(set) var first: String?
        /// The id of the last message, to ask for what is after it.
        public internal(set) var last: String?
        /// Messages that match on all pages, if the archive says so.
        public internal(set) var count: Int?
    }

    /// Messages that an archive keeps or leaves out (§7).
    public struct Preferences: Hashable, Sendable {
        /// Messages of addresses in neither list.
        public enum Default: String, Hashable, Sendable, CaseIterable {
            /// All are kept.
            case always
            /// None is kept.
            case never
            /// Those of contacts are kept.
            case roster
        }

        /// The rule for addresses in neither list.
        public var `default`: Default
        /// Addresses whose messages are kept.
        public var always: [JID]
        /// Addresses whose messages are not kept.
        public var never: [JID]

        /// Preferences as given.
        public init(_ default: Default, always: [JID] = [], never: [JID] = []) {
            self.default = `default`
            self.always = always
            self.never = never
        }
    }

    /// The messages of all pages, each page asked for when it is needed.
    public struct Messages: AsyncSequence, Sendable {
        /// A message of an archive.
        public typealias Element = Message
        /// An answer that did not come, or a refusal.
        public typealias Failure = XMPPClientError

        let archive: XMPPArchive
        let query: Query
        let isNewestFirst: Bool

        /// Starts with the first page.
        public func makeAsyncIterator() -> Iterator {
            Iterator(archive: self.archive, query: self.query, isNewestFirst: self.isNewestFirst)
        }

        /// Goes from message to message, and from page to page.
        public struct Iterator: AsyncIteratorProtocol {
            let archive: XMPPArchive
            var query: Query
            let isNewestFirst: Bool
            private var page: [Message].Iterator = [].makeIterator()
            private var isComplete = false

            init(archive: XMPPArchive, query: Query, isNewestFirst: Bool) {
                self.archive = archive
                self.query = query
                self.isNewestFirst = isNewestFirst
                if isNewestFirst, query.before == nil { self.query.before = "" }
            }

            /// The next message; `nil` after the last.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(XMPPClientError) -> Message? {
                if let message = self.page.next() { return message }
                guard !self.isComplete else { return nil }
                let page = try await self.archive.page(self.query)
                let mark = self.isNewestFirst ? page.first : page.last
                // A page without messages, or one that leads back to itself, would be asked for without end.
                self.isComplete =
                    page.isComplete || page.messages.isEmpty || mark == nil
                    || mark == (self.isNewestFirst ? self.query.before : self.query.after)
                if self.isNewestFirst { self.query.before = mark } else { self.query.after = mark }
                self.page = (self.isNewestFirst ? page.messages.reversed() : page.messages).makeIterator()
                return self.page.next()
            }

            /// The next message; `nil` after the last.
            public mutating func next() async throws(XMPPClientError) -> Message? {
                try await self.next(isolation: nil)
            }
        }
    }

    /// The way to the client.
    public let link = XMPPModuleLink()

    /// An archive that nothing was asked of yet.
    public init() {}

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler { ArchiveHandler() }

    /// Asks for one page.
    ///
    /// Results that another sender made up, and more of them than were asked for, do not count (§4.2).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``; `refused` with `item-not-found` for an unknown id; `invalid` for a page
    ///   of more than 16 MiB.
    public func page(_ query: Query) async throws(XMPPClientError) -> Page {
        guard query.max > 0 else { throw .invalid("a page has one message at least, and 'max' is \(query.max)") }
        return try await self.ask { (handler: ArchiveHandler, context, answer) in
            handler.ask(query, in: context, answer)
        }
    }

    /// All messages that a query matches, page by page.
    ///
    /// - Parameters:
    ///   - query: its `max` is the size of a page.
    ///   - newestFirst: whether to begin at the newest message.
    /// - Returns: a sequence that asks for a page when it is needed.
    public func messages(matching query: Query = Query(), newestFirst: Bool = false) -> Messages {
        Messages(archive: self, query: query, isNewestFirst: newestFirst)
    }

    /// The messages that the own archive keeps (§7).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``; `refused` with `bad-request` for an unreadable answer.
    public func preferences() async throws(XMPPClientError) -> Preferences {
        let prefs = XMPPElement("prefs", namespace: XMPPNamespace.mam)
        return try Self.preferences(try await self.link.request(.iq("get", prefs)))
    }

    /// Changes what the own archive keeps.
    ///
    /// - Returns: what the server made of it; it may keep more or less than was asked for.
    /// - Throws: as ``preferences()``.
    @discardableResult
    public func setPreferences(_ preferences: Preferences) async throws(XMPPClientError) -> Preferences {
        let answer = try await self.link.request(.iq("set", preferences.element))
        // Servers may confirm without repeating what was set.
        guard answer.child("prefs", XMPPNamespace.mam) != nil else { return preferences }
        return try Self.preferences(answer)
    }

    private static func preferences(_ iq: XMPPElement) throws(XMPPClientError) -> Preferences {
        guard let preferences = iq.child("prefs", XMPPNamespace.mam).flatMap({ Preferences($0) }) else {
            throw .refused(StanzaError(.badRequest))
        }
        return preferences
    }
}

extension XMPPArchive.Preferences {
    init?(_ element: XMPPElement) {
        guard let kept = element["default"].flatMap({ Default(rawValue: $0) }) else { return nil }
        self.init(kept, always: Self.jids(element, "always"), never: Self.jids(element, "never"))
    }

    private static func jids(_ element: XMPPElement, _ name: String) -> [JID] {
        (element.child(name)?.elements ?? []).filter { $0.name == "jid" }.compactMap { try? JID(received: $0.text) }
    }

    var element: XMPPElement {
        var prefs = XMPPElement("prefs", namespace: XMPPNamespace.mam, attributes: ["default": self.default.rawValue])
        for (name, jids) in [("always", self.always), ("never", self.never)] {
            var list = XMPPElement(name, namespace: XMPPNamespace.mam)
            for jid in jids { list.add(XMPPElement("jid", namespace: XMPPNamespace.mam, text: jid.description)) }
            prefs.add(list)
        }
        return prefs
    }
}
