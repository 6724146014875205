import XMPPCodec

/// A room's occupants, in the order of their coming.
struct VirtualXMPPRoom {
    var occupants: [(nick: String, stream: VirtualXMPPStream)] = []
}

// Rooms (XEP-0045) and contacts (RFC 6121 §3, §4).
extension VirtualXMPPServer {
    func route(_ stream: VirtualXMPPStream, presence: XMPPElement) {
        guard let to = presence["to"] else { return self.says(stream, presence["type"] == nil ? presence : nil) }
        let (address, nick) = Self.parts(to)
        if address.hasSuffix("@\(Self.service)") {
            return presence["type"] == "unavailable"
                ? self.leaves(stream, room: address) : self.enters(stream, presence, room: address, nick: nick)
        }
        let user = String(address.prefix { $0 != "@" })
        var presence = presence
        presence["from"] = stream.bare
        for receiver in self.streams(of: user) where receiver.presence != nil { receiver.say(presence) }
        guard presence["type"] == "subscribed" else { return }
        self.subscribes(user, to: stream.user)
    }

    /// The bare JID, and what is behind the slash.
    private static func parts(_ address: String) -> (bare: String, resource: String) {
        let parts = address.split(separator: "/", maxSplits: 1).map(String.init)
        return (parts.first ?? "", parts.count > 1 ? parts[1] : "")
    }

    private func streams(of user: String) -> [VirtualXMPPStream] {
        self.bound.filter { $0.key.hasPrefix("\(user)@") }.sorted { $0.key < $1.key }.map(\.value)
    }

    // MARK: - Contacts

    static func item(_ contact: String, _ subscription: String) -> String {
        "<item jid='\(contact)@\(Self.domain)' subscription='\(subscription)'/>"
    }

    /// A presence to all contacts; `nil`: it is unavailable.
    func says(_ stream: VirtualXMPPStream, _ presence: XMPPElement?) {
        guard presence != nil || stream.presence != nil else { return }
        let wasPresent = stream.presence != nil
        stream.presence = presence
        var said =
            presence
            ?? XMPPElement("presence", namespace: XMPPNamespace.client, attributes: ["type": "unavailable"])
        said["from"] = stream.jid
        for (contact, subscription) in (self.rosters[stream.user] ?? [:]).sorted(by: { $0.key < $1.key }) {
            for receiver in self.streams(of: contact) where receiver.presence != nil && subscription != "to" {
                self.deliver(said, to: receiver)
            }
            guard !wasPresent, presence != nil, subscription != "from" else { continue }
            for other in self.streams(of: contact) {
                guard var last = other.presence else { continue }
                // XEP-0203: what was said before says so.
                last.add(
                    XMPPElement(
                        "delay",
                        namespace: XMPPNamespace.delay,
                        attributes: ["stamp": "2023-11-14T22:13:20Z"]
                    )
                )
                last["from"] = other.jid
                stream.say(last)
            }
        }
    }

    private func subscribes(_ user: String, to contact: String) {
        self.add("to", to: user, contact)
        self.add("from", to: contact, user)
    }

    private func add(_ half: String, to user: String, _ contact: String) {
        let before = self.rosters[user]?[contact]
        let after = before == nil || before == half ? half : "both"
        self.rosters[user, default: [:]][contact] = after
        let push = Self.push(contact, after)
        for stream in self.streams(of: user) where stream.wantsRoster { self.deliver(push, to: stream) }
    }

    private static func push(_ contact: String, _ subscription: String) -> XMPPElement {
        let item = XMPPElement(
            "item",
            namespace: XMPPNamespace.roster,
            attributes: ["jid": "\(contact)@\(Self.domain)", "subscription": subscription]
        )
        return XMPPElement(
            "iq",
            namespace: XMPPNamespace.client,
            attributes: ["type": "set", "id": "push\(contact)"],
            children: [.element(XMPPElement("query", namespace: XMPPNamespace.roster, children: [.element(item)]))]
        )
    }

    // MARK: - Rooms

    private static func presence(_ from: String, _ type: String?, _ codes: [Int]) -> String {
        let statuses = codes.map { "<status code='\($0)'/>" }.joined()
        return "<presence from='\(from)'\(type.map { " type='\($0)'" } ?? "")><x xmlns='\(XMPPNamespace.mucUser)'>"
            + "<item affiliation='none' role='participant'/>\(statuses)</x></presence>"
    }

    private func enters(_ stream: VirtualXMPPStream, _ presence: XMPPElement, room: String, nick: String) {
        var entered = self.rooms[room] ?? VirtualXMPPRoom()
        if entered.occupants.contains(where: { $0.nick == nick && $0.stream !== stream }) {
            return stream.say(Self.error(to: presence, "cancel", "conflict"))
        }
        let isNew = entered.occupants.isEmpty
        for other in entered.occupants {
            stream.say(Self.presence("\(room)/\(other.nick)", nil, []))
            other.stream.say(Self.presence("\(room)/\(nick)", nil, []))
        }
        entered.occupants.append((nick, stream))
        self.rooms[room] = entered
        stream.say(Self.presence("\(room)/\(nick)", nil, isNew ? [110, 201] : [110]))
        stream.say("<message type='groupchat' from='\(room)'><subject/></message>")
    }

    package func leaves(_ stream: VirtualXMPPStream, room: String, codes: [Int] = []) {
        guard let index = self.rooms[room]?.occupants.firstIndex(where: { $0.stream === stream }),
            let left = self.rooms[room]?.occupants.remove(at: index)
        else { return }
        stream.say(Self.presence("\(room)/\(left.nick)", "unavailable", [110] + codes))
        for other in self.rooms[room]?.occupants ?? [] {
            other.stream.say(Self.presence("\(room)/\(left.nick)", "unavailable", codes))
        }
        if self.rooms[room]?.occupants.isEmpty ?? false { self.rooms[room] = nil }
    }

    func leavesRooms(_ stream: VirtualXMPPStream) {
        for room in self.rooms.keys.sorted() { self.leaves(stream, room: room) }
    }

    func speaks(_ stream: VirtualXMPPStream, _ message: XMPPElement) {
        var message = message
        let room = message["to"] ?? ""
        guard let occupants = self.rooms[room]?.occupants,
            let nick = occupants.first(where: { $0.stream === stream })?.nick
        else { return stream.say(Self.error(to: message, "modify", "not-acceptable")) }
        message["from"] = "\(room)/\(nick)"
        for occupant in occupants {
            message["to"] = occupant.stream.jid
            self.deliver(message, to: occupant.stream)
        }
    }
}
