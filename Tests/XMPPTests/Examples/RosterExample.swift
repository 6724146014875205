import XMPP

/// Adds a contact, hears of it, and removes it again.
func keepRoster(_ configuration: XMPPClientConfiguration) async throws -> [XMPPRoster.Item] {
    let roster = XMPPRoster()
    let client = XMPPClient(configuration, modules: [roster])
    try await client.connect()
    let events = roster.events
    for item in try await roster.items().values { print(item.jid, item.name ?? "-") }

    let romeo = try JID("romeo@localhost")
    try await roster.set(XMPPRoster.Item(romeo, name: "Romeo", groups: ["Friends"]))
    try await roster.remove(romeo)
    var changes: [XMPPRoster.Item] = []
    for await case .changed(let item) in events {
        changes.append(item)
        if item.subscription == .remove { break }
    }
    await client.disconnect()
    return changes
}
