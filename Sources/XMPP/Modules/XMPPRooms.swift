package import NIOCore
package import XMPPCodec

/// Rooms that this client is in.
///
/// Spec: XEP-0045.
package final class XMPPRooms: XMPPModule {
    package enum Event: Hashable, Sendable {
        /// The own presence has arrived, after those of all others (§7.2.2).
        case joined(room: JID, nick: String, occupants: Int, isNew: Bool)
        /// The room does not let this client in.
        case refused(room: JID, StanzaError)
        /// Left, kicked (307), banned (301), removed (321, 322), or the service goes down (332).
        case left(room: JID, statuses: Set<Int>)
        case occupant(JID, isPresent: Bool)
        case subject(room: JID, String)
        /// A message in a room; `isOwn` when it is ours that the room sends back.
        case message(XMPPElement, isOwn: Bool)
    }

    private struct Room {
        var nick: String
        var isJoined = false
        var occupants: Set<JID> = []
        var attempts = 1
    }

    /// Nicks that are tried where others have ours.
    private static let attempts = 3

    private var rooms: [JID: Room] = [:]
    private let told: (Event) -> Void

    package init(_ told: @escaping (Event) -> Void) { self.told = told }

    /// The number of occupants of a room, including this client, as reported by the room.
    package func occupants(of room: JID) -> Int { self.rooms[room.bare]?.occupants.count ?? 0 }

    /// Joins a room; ``Event/joined(room:nick:occupants:isNew:)`` or ``Event/refused(room:_:)`` reports the result.
    ///
    /// `history`: the maximum number of earlier messages that the room may send.
    package func join(
        _ room: JID,
        nick: String,
        password: String? = nil,
        history: Int = 0,
        on connection: XMPPConnection
    ) throws(XMPPWriteError) {
        var x = XMPPElement("x", namespace: XMPPNamespace.muc)
        x.add(XMPPElement("history", namespace: XMPPNamespace.muc, attributes: ["maxstanzas": String(history)]))
        if let password { x.add(XMPPElement("password", namespace: XMPPNamespace.muc, text: password)) }
        let presence = XMPPElement(
            "presence",
            namespace: XMPPNamespace.client,
            attributes: ["to": "\(room.bare)/\(nick)"],
            children: [.element(x)]
        )
        try connection.send(presence)
        var entry = self.rooms[room.bare] ?? Room(nick: nick)
        entry.nick = nick
        self.rooms[room.bare] = entry
    }

    package func leave(_ room: JID, on connection: XMPPConnection) throws(XMPPWriteError) {
        guard let entry = self.rooms[room.bare] else { return }
        let presence = XMPPElement(
            "presence",
            namespace: XMPPNamespace.client,
            attributes: ["to": "\(room.bare)/\(entry.nick)", "type": "unavailable"]
        )
        try connection.send(presence)
    }

    /// Sends a message to a room.
    ///
    /// The room returns it with this id, which gives the latency of the room.
    package func say(
        _ body: String,
        in room: JID,
        id: String,
        on connection: XMPPConnection
    ) throws(XMPPWriteError) {
        let message = XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: ["to": room.bare.description, "type": "groupchat", "id": id],
            children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: body))]
        )
        try connection.send(message)
    }

    /// Accepts the default configuration of a newly created room (§10.1.2).
    package func acceptDefaults(
        of room: JID,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping (Result<XMPPElement, XMPPRequestError>) -> Void
    ) {
        var query = XMPPElement("query", namespace: XMPPNamespace.mucOwner)
        query.add(XMPPElement("x", namespace: XMPPNamespace.dataForms, attributes: ["type": "submit"]))
        connection.request(.iq("set", to: room.bare, query), timeout: timeout, answer)
    }

    package func handle(_ stanza: XMPPElement, on connection: XMPPConnection, now: NIODeadline) -> Bool {
        guard let from = stanza["from"].flatMap({ try? JID(received: $0) }), self.rooms[from.bare] != nil else {
            return false
        }
        switch stanza.name {
        case "presence":
            self.received(presence: stanza, from: from, on: connection)
            return true
        case "message" where stanza["type"] == "groupchat":
            self.received(message: stanza, from: from)
            return true
        default: return false
        }
    }

    /// Room membership survives a resumption (XEP-0198 §5).
    package func ready(_ jid: JID, _ readiness: XMPPReadiness, on connection: XMPPConnection, now: NIODeadline) {
        if !readiness.resumed { self.rooms = [:] }
    }

    private func received(message: XMPPElement, from: JID) {
        // §7.2.15: a subject and no body; what has both is a message.
        if let subject = message.child("subject"), message.child("body") == nil {
            return self.told(.subject(room: from.bare, subject.text))
        }
        let isOwn = from.resource == self.rooms[from.bare]?.nick
        self.told(.message(message, isOwn: isOwn))
    }

    private func received(presence: XMPPElement, from: JID, on connection: XMPPConnection) {
        guard var room = self.rooms[from.bare] else { return }
        let x = presence.child("x", XMPPNamespace.mucUser)
        let statuses = Set(
            (x?.elements ?? []).filter { $0.name == "status" }.compactMap { $0["code"].flatMap { Int($0) } }
        )
        let isOwn = statuses.contains(110) || from.resource == room.nick
        switch presence["type"] {
        case "error": self.refused(presence, from, room, on: connection)
        case "unavailable":
            room.occupants.remove(from)
            self.rooms[from.bare] = room
            // §7.6: a new nick looks like leaving first.
            if statuses.contains(303) { return }
            guard isOwn else { return self.told(.occupant(from, isPresent: false)) }
            self.rooms[from.bare] = nil
            self.told(.left(room: from.bare, statuses: statuses))
        case nil:
            let isKnown = !room.occupants.insert(from).inserted
            let joins = isOwn && !room.isJoined
            if isOwn {
                // §7.2.8: the room may have changed it (210).
                room.nick = from.resource ?? room.nick
                room.isJoined = true
            }
            self.rooms[from.bare] = room
            if joins {
                self.told(
                    .joined(
                        room: from.bare,
                        nick: room.nick,
                        occupants: room.occupants.count,
                        isNew: statuses.contains(201)
                    )
                )
            } else if !isKnown {
                self.told(.occupant(from, isPresent: true))
            }
        default: break
        }
    }

    private func refused(_ presence: XMPPElement, _ from: JID, _ room: Room, on connection: XMPPConnection) {
        let error = StanzaError(presence) ?? StanzaError(.undefinedCondition)
        if error.condition == .conflict, !room.isJoined, room.attempts < Self.attempts {
            let nick = "\(room.nick)-\(room.attempts)"
            self.rooms[from.bare]?.attempts += 1
            if (try? self.join(from.bare, nick: nick, on: connection)) != nil { return }
        }
        if !room.isJoined { self.rooms[from.bare] = nil }
        self.told(.refused(room: from.bare, error))
    }
}
