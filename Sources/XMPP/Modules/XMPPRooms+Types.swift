public import XMPPCodec

extension XMPPRooms {
    /// A lasting standing in a room (§5.2).
    public enum Affiliation: String, Hashable, Sendable, CaseIterable {
        /// May do everything.
        case owner
        /// May ban, and give memberships and the role of a moderator.
        case admin
        /// May enter a room for members only.
        case member
        /// Is banned.
        case outcast
        /// None of these.
        case none
    }

    /// A standing during one visit (§5.1).
    public enum Role: String, Hashable, Sendable, CaseIterable {
        /// May kick, and give and take away voice.
        case moderator
        /// May talk.
        case participant
        /// May listen.
        case visitor
        /// Is not in the room.
        case none
    }

    /// A person in a room.
    public struct Occupant: Hashable, Sendable {
        /// The name in the room.
        public let nick: String
        /// The lasting standing.
        public let affiliation: Affiliation
        /// The standing during this visit.
        public let role: Role
        /// The address behind the nick; `nil` where the room does not tell.
        public let jid: JID?
    }

    /// A room that this client has joined.
    public struct Joined: Hashable, Sendable {
        /// The room's bare address.
        public let room: JID
        /// The own nick, which the room may have changed.
        public let nick: String
        /// All who are in the room, this client too, by nick.
        public let occupants: [Occupant]
        /// Whether the join made the room, which others cannot enter before it is configured (§10.1).
        public let isNew: Bool
    }

    /// Earlier messages that a room is to send at a join (§7.2.13); all limits hold.
    public struct History: Hashable, Sendable {
        /// Messages at most; 0 is none, `nil` as many as the room wants.
        public var messages: Int?
        /// The age at most; a room gets it as whole seconds, rounded up, and one below 0 as 0.
        public var age: Duration?

        /// No earlier messages.
        public static let none = History(messages: 0)

        /// A history with these limits.
        public init(messages: Int? = nil, age: Duration? = nil) {
            self.messages = messages
            self.age = age
        }

        static func wholeSeconds(_ age: Duration) -> Int64 {
            let (seconds, rest) = age.components
            return max(0, rest > 0 && seconds < .max ? seconds + 1 : seconds)
        }
    }

    /// A message in a room.
    public struct Message: Hashable, Sendable {
        /// The room's bare address.
        public let room: JID
        /// The sender's nick; `nil` for the room itself.
        public let nick: String?
        /// The text; `nil` for a message without one.
        public let body: String?
        /// Whether this client has sent it: the room sends each message to all.
        public let isOwn: Bool
        /// When the room got it, only for earlier messages; `nil` also for a time that cannot be read.
        public let sent: XMPPTimestamp?
        /// The whole stanza.
        public let stanza: XMPPElement
    }

    /// A change in a room.
    public enum Event: Hashable, Sendable {
        /// Joined, also again after a connection was lost.
        case joined(Joined)
        /// The room does not let the client in, at first or again.
        case refused(room: JID, StanzaError)
        /// No longer in the room.
        case left(room: JID, Departure)
        /// A person has entered.
        case entered(room: JID, Occupant)
        /// A person's role, affiliation or presence has changed.
        case changed(room: JID, Occupant)
        /// A person has another nick.
        case renamed(room: JID, from: String, to: String)
        /// A person has left, or was removed.
        case exited(room: JID, nick: String, Departure)
        /// The subject, at the end of a join too; `by` is a nick.
        case subject(room: JID, String, by: String?)
        /// A message to all.
        case message(Message)
        /// A message to this client alone.
        case privateMessage(Message)
    }

    /// Why an occupant is no longer in a room.
    public enum Departure: Hashable, Sendable {
        /// The occupant left by its own will.
        case left
        /// A moderator removed the occupant (307).
        case kicked
        /// Is not allowed back (301).
        case banned
        /// Lost the affiliation that the room requires (321, 322).
        case removed
        /// The service stops (332).
        case shutdown
        /// The room is gone (§10.9).
        case destroyed
        /// The connection of this client was lost, and the rooms are not joined again.
        case connectionLost
    }
}

extension XMPPRooms.Occupant {
    /// The occupant that an available presence describes.
    init(_ nick: String, _ x: XMPPElement?) {
        let item = x?.child("item", XMPPNamespace.mucUser)
        self.nick = nick
        // §7.2.2: unknown values count as the least.
        self.affiliation = item?["affiliation"].flatMap { XMPPRooms.Affiliation(rawValue: $0) } ?? .none
        self.role = item?["role"].flatMap { XMPPRooms.Role(rawValue: $0) } ?? .none
        self.jid = item?.jid("jid")
    }

    fileprivate var estimatedSize: Int { 96 + self.nick.utf8.count + (self.jid?.estimatedSize ?? 0) }
}

extension XMPPRooms.Departure {
    init(_ statuses: Set<Int>, isDestroyed: Bool) {
        self =
            if isDestroyed {
                .destroyed
            } else if statuses.contains(301) {
                .banned
            } else if statuses.contains(307) {
                .kicked
            } else if statuses.contains(321) || statuses.contains(322) {
                .removed
            } else if statuses.contains(332) {
                .shutdown
            } else {
                .left
            }
    }
}

extension XMPPRooms.Event {
    /// Bytes that it takes in memory, or so.
    package var estimatedSize: Int {
        switch self {
        case .message(let message), .privateMessage(let message):
            // The body is in the stanza too, and a text of its own.
            message.room.estimatedSize + message.stanza.estimatedSize + (message.body?.utf8.count ?? 0)
        case .joined(let joined):
            joined.occupants.reduce(128 + joined.room.estimatedSize + joined.nick.utf8.count) { $0 + $1.estimatedSize }
        case .refused(let room, let error): room.estimatedSize + error.estimatedSize
        case .left(let room, _): 64 + room.estimatedSize
        case .entered(let room, let occupant), .changed(let room, let occupant):
            room.estimatedSize + occupant.estimatedSize
        case .renamed(let room, let from, let to): 64 + room.estimatedSize + from.utf8.count + to.utf8.count
        case .exited(let room, let nick, _): 64 + room.estimatedSize + nick.utf8.count
        case .subject(let room, let text, let by): 64 + room.estimatedSize + text.utf8.count + (by?.utf8.count ?? 0)
        }
    }
}
