import XMPP

/// Joins a room, opens it if it is new, says something, and returns who else is there.
func visitRoom(_ configuration: XMPPClientConfiguration, _ room: JID, as nick: String) async throws -> [String] {
    let rooms = XMPPRooms()
    let client = XMPPClient(configuration, modules: [rooms])
    try await client.connect()
    let events = rooms.events

    let joined = try await rooms.join(room, as: nick, history: .init(messages: 10))
    if joined.isNew { try await rooms.acceptDefaults(of: room) }
    let id = try await rooms.say("Good evening", in: room)
    for await case .message(let message) in events {
        print(message.nick ?? "-", message.body ?? "")
        if message.isOwn, message.stanza["id"] == id { break }
    }
    let others = try await rooms.occupants(of: room).map(\.nick).filter { $0 != joined.nick }
    try await rooms.leave(room)
    await client.disconnect()
    return others
}
