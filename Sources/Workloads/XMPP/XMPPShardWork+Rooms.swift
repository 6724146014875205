import LoopContext
import NIOCore
import XMPP
import XMPPCodec

// Rooms (XEP-0045): one occupant opens each, and the others follow.
extension XMPPShardWork {
    func room(of place: Int) -> String {
        self.groups.map { self.load.room($0.number(ofGroup: $0.membership(place).group)) } ?? ""
    }

    func enterRoom(_ place: Int, _ groups: XMPPGroups) {
        let group = groups.membership(place).group
        if groups.groups[group].isOpen { return self.askForRoom(place, groups) }
        // A new room is locked until its first occupant has configured it (§10.1.2), so no other client can enter
        // before.
        if groups.groups[group].opener < 0 {
            groups.groups[group].opener = Int32(place)
            return self.askForRoom(place, groups)
        }
        groups.members[place].step = .waiting
        groups.groups[group].waiting.append(Int32(place))
    }

    private func askForRoom(_ place: Int, _ groups: XMPPGroups) {
        groups.members[place].asked = self.context.now
        groups.members[place].again = .distantFuture
        self.setDeadline(place, groups, self.context.now + self.load.ackTimeout)
        self.sayHello(place, groups)
    }

    private func sayHello(_ place: Int, _ groups: XMPPGroups) {
        groups.members[place].step = .asked
        var x = XMPPElement("x", namespace: XMPPNamespace.muc)
        // §7.2.15: earlier messages of the room are not wanted.
        x.add(XMPPElement("history", namespace: XMPPNamespace.muc, attributes: ["maxstanzas": "0"]))
        self.tell(place, .presence(to: self.load.occupant(self.number(place)), children: [.element(x)]))
    }

    /// The client's nick is held (§7.2.8), perhaps by its old connection, whose loss the room has not noticed.
    ///
    /// Another login would meet the same conflict, so this client waits until the room releases the nick or
    /// `--ack-timeout` ends.
    private func nickIsHeld(_ place: Int, _ groups: XMPPGroups) {
        if groups.members[place].again == .distantFuture {
            self.error(
                "nick held",
                "the room \(self.room(of: place)) holds the nick of a client that came back: conflict; the client retries after each "
                    + "reconnect period, until the acknowledgement timeout"
            )
        }
        groups.members[place].step = .held
        groups.members[place].again = self.context.now + .nanoseconds(self.load.backoff.from)
        self.wantsTimer(place, at: groups.members[place].again)
    }

    /// The timer of a client that waits for its nick.
    func askAgain(_ place: Int, _ groups: XMPPGroups, now: NIODeadline) {
        guard groups.members[place].step == .held else { return }
        guard now >= groups.members[place].again else {
            return self.wantsTimer(place, at: groups.members[place].again)
        }
        self.sayHello(place, groups)
    }

    /// Another client tries, since the first one could not open the room.
    func letNextOpen(_ groups: XMPPGroups, _ group: Int) {
        guard !groups.groups[group].isOpen, let next = groups.groups[group].waiting.first else { return }
        groups.groups[group].waiting.removeFirst()
        groups.groups[group].opener = next
        self.askForRoom(Int(next), groups)
    }

    func roomPresence(_ place: Int, _ groups: XMPPGroups, _ element: borrowing ElementView, now: NIODeadline) {
        let step = groups.members[place].step
        guard let type = element.attribute("type") else {
            // §7.2.2: the client's own presence comes after all others.
            guard step == .asked, Self.hasStatus(element, "110"), self.isOfRoom(place, element) else { return }
            // §10.1.1: the room is new.
            guard Self.hasStatus(element, "201") else { return self.roomOpens(place, groups, now: now) }
            groups.members[place].step = .opening
            return self.configure(place)
        }
        switch type {
        case "error" where step == .asked && self.isOfRoom(place, element):
            self.roomRefused(place, element, "a client")
        case "error": self.countError(element)
        case "unavailable" where step == .within && self.clients[place].stage == .up && self.isOwn(place, element):
            self.thrownOut(place, element)
        default: break
        }
    }

    /// Whether the stanza is from the client's room or its service; any other sender may write to a client too.
    private func isOfRoom(_ place: Int, _ element: borrowing ElementView) -> Bool {
        guard let from = element.attribute("from").flatMap({ try? JID($0) }) else { return false }
        let room = try? JID(self.room(of: place))
        return from.bare == room || from.isBare && from.domain == room?.domain
    }

    /// Whether a presence is the client's own; not every room sends 110 when it is destroyed (§10.9).
    private func isOwn(_ place: Int, _ element: borrowing ElementView) -> Bool {
        // Most presences are of other occupants that leave; without a code the address need not be parsed.
        let codes: [StaticString] = ["110", "301", "307", "321", "322", "332"]
        let x = element.firstChild("x", "http://jabber.org/protocol/muc#user")
        let isDestroyed = x?.firstChild("destroy") != nil
        guard isDestroyed || codes.contains(where: { Self.hasStatus(element, $0) }) else { return false }
        guard let from = element.attribute("from").flatMap({ try? JID($0) }) else { return false }
        return from == (try? JID(self.load.occupant(self.number(place))))
    }

    /// Accepts the room's default configuration (§10.1.2).
    private func configure(_ place: Int) {
        self.ask(
            place,
            Request.configuration,
            "set",
            to: try? JID(self.room(of: place)),
            "<query xmlns='\(XMPPNamespace.mucOwner)'><x xmlns='\(XMPPNamespace.dataForms)' type='submit'/></query>"
        )
    }

    /// The client is in, and the room is open to all.
    func roomOpens(_ place: Int, _ groups: XMPPGroups, now: NIODeadline) {
        let group = groups.membership(place).group
        groups.groups[group].isOpen = true
        if groups.groups[group].opener == Int32(place) { groups.groups[group].opener = -1 }
        self.markWithin(place, groups, now: now)
        let waiting = groups.groups[group].waiting
        groups.groups[group].waiting = []
        for next in waiting { self.askForRoom(Int(next), groups) }
    }

    func roomRefused(_ place: Int, _ element: borrowing ElementView, _ what: String) {
        let error = StanzaError(element.element())
        let condition = error?.condition ?? .undefinedCondition
        if condition == .conflict, let groups = self.groups, groups.members[place].wasWithin,
            groups.members[place].step == .asked
        {
            return self.nickIsHeld(place, groups)
        }
        // A client that is banned, or whose nick another occupant has, will be rejected again.
        let mayRetry: Bool
        let hint: String
        switch condition {
        case .conflict: (mayRetry, hint) = (false, "its nick belongs to another occupant; use another nick")
        case .forbidden: (mayRetry, hint) = (false, "it is banned")
        case .registrationRequired: (mayRetry, hint) = (false, "the room is for members")
        case .notAuthorized: (mayRetry, hint) = (false, "the room wants a password")
        case .notAllowed:
            (mayRetry, hint) = (
                false, "the client may not create rooms, or the service is elsewhere; check the service's address"
            )
        case .serviceUnavailable:
            (mayRetry, hint) = (true, "the room is full, or there is no such service; check the service's address")
        case .itemNotFound, .remoteServerNotFound, .remoteServerTimeout:
            (mayRetry, hint) = (true, "there is no such room, or no such service; check the service's address")
        default: (mayRetry, hint) = (true, "")
        }
        let said = error?.text.map { " (\($0))" } ?? ""
        self.joinFailed(
            place,
            "join \(condition.rawValue)",
            "the room \(self.room(of: place)) refused \(what): \(condition.rawValue)\(said)"
                + (hint.isEmpty ? "" : ": \(hint)"),
            mayRetry: mayRetry
        )
    }

    /// The room has removed the client (§8.2, §9.1), or the room itself is gone.
    private func thrownOut(_ place: Int, _ element: borrowing ElementView) {
        let reasons: [(StaticString, String)] = [
            ("307", "kicked"), ("301", "banned"), ("321", "affiliation"), ("322", "members-only"), ("332", "shutdown"),
        ]
        let reason = reasons.first { Self.hasStatus(element, $0.0) }?.1 ?? "removed"
        self.error("room \(reason)", "a client was put out of the room \(self.room(of: place)): \(reason)")
        self.clients[place].connection?.abort()
    }

    private static func hasStatus(_ element: borrowing ElementView, _ code: StaticString) -> Bool {
        guard let x = element.firstChild("x", "http://jabber.org/protocol/muc#user"),
            let status = x.firstChild("status")
        else { return false }
        return self.has(status, code, left: 16)
    }

    /// `left`: limits the search, since a room sends only a few codes.
    private static func has(_ status: borrowing ElementView, _ code: StaticString, left: Int) -> Bool {
        if status.attribute("code", is: code) { return true }
        guard left > 0, let next = status.nextSibling("status") else { return false }
        return self.has(next, code, left: left - 1)
    }
}
