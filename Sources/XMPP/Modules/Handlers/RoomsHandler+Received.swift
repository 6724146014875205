import NIOCore
package import XMPPCodec

// Stanzas of rooms.
extension RoomsHandler {
    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name != "iq", let from = stanza.jid("from") else { return false }
        let room = from.bare
        guard self.rooms[room] != nil else { return false }
        switch (stanza.name, stanza["type"]) {
        case ("presence", _):
            self.received(presence: stanza, from: from, in: context)
            return true
        case ("message", "groupchat"):
            self.received(message: stanza, from: from, now: context.now)
            return true
        case ("message", "error"):
            guard let id = stanza["id"], self.waiting.has(.reflection(room, id: id)) else { return false }
            let error = StanzaError(stanza) ?? StanzaError(.undefinedCondition)
            self.tell(self.waiting.take(.reflection(room, id: id)), .failure(.refused(error)))
            return true
        case ("message", _) where from.resource != nil && stanza.child("body") != nil:
            self.told(.privateMessage(Self.message(stanza, from, isOwn: false)))
            return true
        default: return false
        }
    }

    private static func message(_ stanza: XMPPElement, _ from: JID, isOwn: Bool) -> XMPPRooms.Message {
        XMPPRooms.Message(
            room: from.bare,
            nick: from.resource,
            body: stanza.child("body", XMPPNamespace.client)?.text,
            isOwn: isOwn,
            sent: stanza.child("delay", XMPPNamespace.delay)?["stamp"].flatMap { XMPPTimestamp($0) },
            stanza: stanza
        )
    }

    private func received(message: XMPPElement, from: JID, now: NIODeadline) {
        let room = from.bare
        guard let own = self.rooms[room]?.nick else { return }
        let isOwn = from.resource == own
        if isOwn, message.child("delay", XMPPNamespace.delay) == nil, let id = message["id"] {
            self.tell(self.waiting.take(.reflection(room, id: id)), .success(nil))
        }
        // §7.2.15: a subject and no body; what has both is a message.
        if let subject = message.child("subject", XMPPNamespace.client), message.child("body") == nil {
            if isOwn { self.tell(self.waiting.take(.subject(room, subject.text)), .success(nil)) }
            return self.told(.subject(room: room, subject.text, by: from.resource))
        }
        let isEarlier = message.child("delay", XMPPNamespace.delay) != nil
        if isEarlier, self.rooms[room]?.recent.has(message) ?? false { return }
        self.rooms[room]?.recent.add(message)
        self.rooms[room]?.lastMessage = now
        self.told(.message(Self.message(message, from, isOwn: isOwn)))
    }

    private func received(presence: XMPPElement, from: JID, in context: XMPPModuleContext) {
        let room = from.bare
        guard presence["type"] != "error" else { return self.refused(presence, room, in: context) }
        guard let own = self.rooms[room]?.nick, let nick = from.resource else { return }
        let x = presence.child("x", XMPPNamespace.mucUser)
        let statuses = Set(
            (x?.elements ?? []).filter { $0.name == "status" }.compactMap { $0["code"].flatMap { Int($0) } }
        )
        let isOwn = statuses.contains(110) || nick == own
        switch presence["type"] {
        case nil: self.arrived(room, XMPPRooms.Occupant(nick, x), statuses, isOwn: isOwn, now: context.now)
        case "unavailable": self.departed(room, nick, x, statuses, isOwn: isOwn, in: context)
        default: break
        }
    }

    private func departed(
        _ room: JID,
        _ nick: String,
        _ x: XMPPElement?,
        _ statuses: Set<Int>,
        isOwn: Bool,
        in context: XMPPModuleContext
    ) {
        let known = self.rooms[room]?.occupants.removeValue(forKey: nick)
        // §7.6: a new nick looks like leaving first.
        if statuses.contains(303), let next = x?.child("item")?["nick"], (try? room.with(resource: next)) != nil {
            if isOwn { self.rooms[room]?.nick = next }
            if known != nil { self.told(.renamed(room: room, from: nick, to: next)) }
            // The presence of the new nick is a change, and no arrival.
            if let known {
                self.rooms[room]?.occupants[next] = XMPPRooms.Occupant(
                    nick: next,
                    affiliation: known.affiliation,
                    role: known.role,
                    jid: known.jid
                )
            }
            if isOwn { self.tell(self.waiting.take(.nick(room)), .success(nil)) }
            return
        }
        let departure = XMPPRooms.Departure(statuses, isDestroyed: x?.child("destroy") != nil)
        guard isOwn else {
            if known != nil { self.told(.exited(room: room, nick: nick, departure)) }
            return
        }
        let next = self.rooms.removeValue(forKey: room)?.next
        self.told(.left(room: room, departure))
        self.tell(self.waiting.take(.leave(room)), .success(nil))
        self.tell(self.waiting.take(.nick(room)), .failure(.refused(StanzaError(.notAllowed))))
        if let next {
            self.begin(next, room, in: context)
        } else {
            self.tell(self.waiting.take(.join(room)), .failure(.refused(StanzaError(.notAllowed))))
        }
    }

    private func arrived(
        _ room: JID,
        _ occupant: XMPPRooms.Occupant,
        _ statuses: Set<Int>,
        isOwn: Bool,
        now: NIODeadline
    ) {
        // The occupants are changed in place: a copy of them would be copied again with each arrival.
        guard let count = self.rooms[room]?.occupants.count, let wasJoined = self.rooms[room]?.isJoined else { return }
        let before = self.rooms[room]?.occupants[occupant.nick]
        // A room without end would fill the memory; any presence can say that it is the own one.
        let isKept = before != nil || count < self.maximumOccupants + (isOwn ? 1 : 0)
        if isKept { self.rooms[room]?.occupants[occupant.nick] = occupant }
        if isOwn {
            // §7.2.8: the room may have changed it (210).
            self.rooms[room]?.nick = occupant.nick
            self.rooms[room]?.isJoined = true
            self.rooms[room]?.isRejoining = false
            // A history that is to come fills the time before.
            if self.rooms[room]?.lastMessage == .distantPast { self.rooms[room]?.lastMessage = now }
        }
        if isOwn, !wasJoined, let entry = self.rooms[room] {
            let joined = Self.joined(room, entry, isNew: statuses.contains(201))
            self.told(.joined(joined))
            self.tell(self.waiting.take(.join(room)), .success(joined))
        } else if !wasJoined || !isKept {
            // Those who were there are part of the join.
        } else if before == nil {
            self.told(.entered(room: room, occupant))
        } else if before != occupant {
            self.told(.changed(room: room, occupant))
        }
    }
}
