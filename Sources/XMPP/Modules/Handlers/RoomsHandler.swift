import DataEncodings
package import NIOCore
package import XMPPCodec

/// Rooms that this client is in.
///
/// Spec: XEP-0045.
package final class RoomsHandler: XMPPHandler {
    /// How to join a room.
    package struct Wish {
        var nick: String
        var password: String?
        var history: XMPPRooms.History
        /// Whether other nicks are tried where others have this one.
        var takesOtherNick: Bool

        package init(
            nick: String,
            password: String? = nil,
            history: XMPPRooms.History = .none,
            takesOtherNick: Bool = true
        ) {
            self.nick = nick
            self.password = password
            self.history = history
            self.takesOtherNick = takesOtherNick
        }
    }

    struct Room {
        var wish: Wish
        var nick: String
        var isJoined = false
        /// This join follows one that a lost connection ended.
        var isRejoining = false
        var isLeaving = false
        /// The join that follows when the room has confirmed that the client has left.
        var next: Wish?
        /// The id of the presence that joins or asks for another nick.
        var id: String
        var occupants: [String: XMPPRooms.Occupant] = [:]
        var attempts = 1
        /// When the last message came, or the join ended.
        var lastMessage = NIODeadline.distantPast
        var recent = RecentMessages()
    }

    enum Goal: Hashable {
        case join(JID)
        case leave(JID)
        case nick(JID)
        case reflection(JID, id: String)
        case subject(JID, String)

        var room: JID {
            switch self {
            case .join(let room), .leave(let room), .nick(let room), .reflection(let room, _), .subject(let room, _):
                room
            }
        }
    }

    /// Nicks that are tried where others have ours.
    private static let attempts = 3

    let rejoins: Bool
    let maximumOccupants: Int
    let told: (XMPPRooms.Event) -> Void
    var rooms: [JID: Room] = [:]
    var waiting = XMPPWaiting<Goal, XMPPRooms.Joined?>()

    package init(rejoins: Bool = true, maximumOccupants: Int = 10_000, _ told: @escaping (XMPPRooms.Event) -> Void) {
        self.rejoins = rejoins
        self.maximumOccupants = maximumOccupants
        self.told = told
    }

    package var joined: Set<JID> { Set(self.rooms.filter(\.value.isJoined).keys) }

    /// The occupants of a room, including this client, by nick.
    package func occupants(of room: JID) -> [XMPPRooms.Occupant] {
        self.rooms[room.bare].map { Self.sorted($0.occupants) } ?? []
    }

    static func sorted(_ occupants: [String: XMPPRooms.Occupant]) -> [XMPPRooms.Occupant] {
        occupants.values.sorted { $0.nick < $1.nick }
    }

    func tell(_ answers: [Answer<XMPPRooms.Joined?>], _ outcome: Result<XMPPRooms.Joined?, XMPPRequestError>) {
        for answer in answers { answer(outcome) }
    }

    // MARK: Coming and going

    /// Joins a room; the answer comes once.
    package func join(
        _ room: JID,
        _ wish: Wish,
        in context: XMPPModuleContext,
        _ answer: @escaping Answer<XMPPRooms.Joined>
    ) {
        let room = room.bare
        let finish: Answer<XMPPRooms.Joined?> = { result in
            answer(result.flatMap { joined in joined.map { .success($0) } ?? .failure(.connectionLost) })
        }
        if let present = self.rooms[room], !present.isLeaving || self.waiting.has(.leave(room)) {
            guard !present.isLeaving else {
                self.rooms[room]?.next = present.next ?? wish
                self.waiting.add(.join(room), until: context.answerDeadline, finish)
                return context.updateTimer()
            }
            // Rooms that have not answered in time may have let the client in all the same.
            if present.isJoined {
                guard present.nick != wish.nick else { return answer(.success(Self.joined(room, present))) }
                return self.setNick(wish.nick, of: room, in: context) { [self] result in
                    answer(
                        result.flatMap {
                            self.rooms[room].map { .success(Self.joined(room, $0)) } ?? .failure(.connectionLost)
                        }
                    )
                }
            }
            if self.waiting.has(.join(room)) || present.isRejoining {
                self.waiting.add(.join(room), until: context.answerDeadline, finish)
                return context.updateTimer()
            }
        }
        let entry = Room(wish: wish, nick: wish.nick, id: context.makeID())
        if let problem = self.send(entry, to: room, in: context) { return answer(.failure(problem)) }
        self.rooms[room] = entry
        self.waiting.add(.join(room), until: context.answerDeadline, finish)
        context.updateTimer()
    }

    /// Joins a room after a leave, for the calls that wait for that.
    func begin(_ wish: Wish, _ room: JID, in context: XMPPModuleContext) {
        let entry = Room(wish: wish, nick: wish.nick, id: context.makeID())
        if let problem = self.send(entry, to: room, in: context) {
            self.rooms[room] = nil
            return self.tell(self.waiting.take(.join(room)), .failure(problem))
        }
        self.rooms[room] = entry
    }

    static func joined(_ room: JID, _ entry: Room, isNew: Bool = false) -> XMPPRooms.Joined {
        XMPPRooms.Joined(room: room, nick: entry.nick, occupants: Self.sorted(entry.occupants), isNew: isNew)
    }

    func send(_ entry: Room, to room: JID, in context: XMPPModuleContext) -> XMPPRequestError? {
        var history = XMPPElement("history", namespace: XMPPNamespace.muc)
        history["maxstanzas"] = entry.wish.history.messages.map { String($0) }
        history["seconds"] = entry.wish.history.age.map { String(XMPPRooms.History.wholeSeconds($0)) }
        var x = XMPPElement("x", namespace: XMPPNamespace.muc)
        if !history.attributes.isEmpty { x.add(history) }
        x.add("password", text: entry.wish.password)
        return self.send(presence: entry.nick, to: room, id: entry.id, [.element(x)], in: context)
    }

    private func send(
        presence nick: String,
        to room: JID,
        type: String? = nil,
        id: String? = nil,
        _ children: [XMPPElement.Node] = [],
        in context: XMPPModuleContext
    ) -> XMPPRequestError? {
        do {
            let to = try room.with(resource: nick)
            let presence = XMPPElement(
                "presence",
                namespace: XMPPNamespace.client,
                attributes: ["to": to.description, "type": type, "id": id],
                children: children
            )
            return try context.send(presence) ? nil : .notSent
        } catch {
            return .invalid("'\(OneLine.of(nick))' is no nick: \(error)")
        }
    }

    package func leave(_ room: JID, in context: XMPPModuleContext, _ answer: @escaping Answer<Void>) {
        let room = room.bare
        guard let entry = self.rooms[room] else { return answer(.success(())) }
        if entry.next != nil {
            self.rooms[room]?.next = nil
            self.tell(self.waiting.take(.join(room)), .failure(.refused(StanzaError(.notAllowed))))
        }
        if let problem = self.send(presence: entry.nick, to: room, type: "unavailable", in: context) {
            return answer(.failure(problem))
        }
        self.rooms[room]?.isLeaving = true
        self.waiting.add(.leave(room), until: context.answerDeadline) { answer($0.map { _ in }) }
        context.updateTimer()
    }

    package func setNick(
        _ nick: String,
        of room: JID,
        in context: XMPPModuleContext,
        _ answer: @escaping Answer<Void>
    ) {
        let room = room.bare
        guard let entry = self.rooms[room], entry.isJoined else {
            return answer(.failure(.refused(StanzaError(.itemNotFound))))
        }
        // Two at once could not tell whose the answer is.
        guard !self.waiting.has(.nick(room)) else { return answer(.failure(.refused(StanzaError(.unexpectedRequest)))) }
        guard entry.nick != nick else { return answer(.success(())) }
        let id = context.makeID()
        if let problem = self.send(presence: nick, to: room, id: id, in: context) { return answer(.failure(problem)) }
        self.rooms[room]?.id = id
        self.waiting.add(.nick(room), until: context.answerDeadline) { answer($0.map { _ in }) }
        context.updateTimer()
    }

    // MARK: Talking

    package static func message(_ content: XMPPElement, to: JID, id: String) -> XMPPElement {
        XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: ["to": to.description, "type": "groupchat", "id": id],
            children: [.element(content)]
        )
    }

    /// Sends a text or a subject to a room; the answer is its id, when the room has sent it to all.
    package func say(
        _ content: XMPPElement,
        in room: JID,
        in context: XMPPModuleContext,
        _ answer: @escaping Answer<String>
    ) {
        let room = room.bare
        guard self.rooms[room]?.isJoined ?? false else {
            return answer(.failure(.refused(StanzaError(.itemNotFound))))
        }
        let id = context.makeID()
        do throws(XMPPWriteError) {
            guard try context.send(Self.message(content, to: room, id: id)) else { return answer(.failure(.notSent)) }
        } catch {
            return answer(.failure(.invalid(error.description)))
        }
        var isAnswered = false
        let once: Answer<XMPPRooms.Joined?> = { result in
            guard !isAnswered else { return }
            isAnswered = true
            answer(result.map { _ in id })
        }
        self.waiting.add(.reflection(room, id: id), until: context.answerDeadline, once)
        // Some rooms tell a subject without the id of its message.
        if content.name == "subject" {
            self.waiting.add(.subject(room, content.text), until: context.answerDeadline, once)
        }
        context.updateTimer()
    }

    // MARK: Connections

    /// Room membership survives a resumption (XEP-0198 §5).
    package func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
        guard !session.isResumed else { return }
        let before = self.rooms
        self.rooms = [:]
        for (room, entry) in before where entry.isJoined || entry.isRejoining {
            guard self.rejoins, !entry.isLeaving else {
                self.told(.left(room: room, entry.isLeaving ? .left : .connectionLost))
                continue
            }
            var again = Room(wish: entry.wish, nick: entry.nick, id: context.makeID())
            again.isRejoining = true
            again.wish.nick = entry.nick
            again.wish.history = .init(age: Self.age(of: entry.lastMessage, at: context.now))
            again.lastMessage = entry.lastMessage
            again.recent = entry.recent
            guard self.send(again, to: room, in: context) == nil else {
                self.told(.left(room: room, .connectionLost))
                continue
            }
            self.rooms[room] = again
            self.waiting.add(.join(room), until: context.answerDeadline) { _ in }
        }
    }

    /// Whole seconds, rounded up, so that no message falls between.
    private static func age(of last: NIODeadline, at now: NIODeadline) -> Duration {
        .seconds(max(0, (now - last).nanoseconds) / 1_000_000_000 + 1)
    }

    package func ended(_ end: XMPPClientEnd) {
        self.tell(self.waiting.takeAll(), .failure(.connectionLost))
        // A join that a caller waited for has failed; only one that the module began goes on.
        for (room, entry) in self.rooms {
            self.rooms[room]?.next = nil
            if !entry.isJoined, !entry.isRejoining { self.rooms[room] = nil }
        }
    }

    package var deadline: NIODeadline { self.waiting.earliest }

    package func timerFired(in context: XMPPModuleContext) {
        for (goal, answers) in self.waiting.takeOverdue(now: context.now) {
            if case .join(let room) = goal, let entry = self.rooms[room], !entry.isJoined, !self.waiting.has(goal) {
                self.rooms[room] = nil
                if entry.isRejoining { self.told(.refused(room: room, StanzaError(.remoteServerTimeout))) }
            }
            // A room that does not confirm a leave may let the client in all the same.
            if let next = self.rooms[goal.room]?.next, !self.waiting.has(.leave(goal.room)) {
                self.rooms[goal.room]?.next = nil
                if self.waiting.has(.join(goal.room)) { self.begin(next, goal.room, in: context) }
            }
            self.tell(answers, .failure(.timedOut))
        }
    }

    // MARK: Refusals

    func refused(_ presence: XMPPElement, _ room: JID, in context: XMPPModuleContext) {
        guard let entry = self.rooms[room] else { return }
        // Servers that leave the id out mean what is under way.
        guard presence["id"] == nil || presence["id"] == entry.id else { return }
        let error = StanzaError(presence) ?? StanzaError(.undefinedCondition)
        guard !entry.isJoined else { return self.tell(self.waiting.take(.nick(room)), .failure(.refused(error))) }
        if error.condition == .conflict, entry.wish.takesOtherNick, entry.attempts < Self.attempts {
            var next = entry
            next.nick = "\(entry.wish.nick)-\(entry.attempts)"
            next.attempts += 1
            next.id = context.makeID()
            self.rooms[room] = next
            if self.send(next, to: room, in: context) == nil { return }
        }
        self.rooms[room] = nil
        self.told(.refused(room: room, error))
        self.tell(self.waiting.take(.join(room)), .failure(.refused(error)))
        self.tell(self.waiting.take(.leave(room)), .success(nil))
    }
}

/// The last messages of a room, to know them again in a history; of each only a hash is kept.
struct RecentMessages {
    private static let most = 256

    private var hashes: [Int] = []

    /// Whether it is one of them.
    func has(_ message: XMPPElement) -> Bool { self.hashes.contains(Self.hash(message)) }

    mutating func add(_ message: XMPPElement) {
        if self.hashes.count == Self.most { self.hashes.removeFirst() }
        self.hashes.append(Self.hash(message))
    }

    private static func hash(_ message: XMPPElement) -> Int {
        var hasher = Hasher()
        hasher.combine(message["from"])
        hasher.combine(message["id"])
        hasher.combine(message.child("body")?.text)
        return hasher.finalize()
    }
}
