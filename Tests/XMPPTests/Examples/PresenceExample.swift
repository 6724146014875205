import XMPP

/// Lets another account see a presence, and waits until it does.
func watchPresence(_ first: XMPPClientConfiguration, _ second: XMPPClientConfiguration) async throws -> String? {
    let presence = XMPPPresence(accepts: { $0.domain == "localhost" })
    let juliet = XMPPClient(first, modules: [presence])
    let jid = try await juliet.connect()
    try await presence.set(show: .dnd, status: "on the balcony")

    let watching = XMPPPresence()
    let romeo = XMPPClient(second, modules: [watching])
    try await romeo.connect()
    let events = watching.events
    try await watching.set()
    try await watching.request(jid)
    for await case .available(let resource) in events where resource.jid == jid { break }
    let status = try await watching.resources(of: jid).first?.status

    for client in [juliet, romeo] { await client.disconnect() }
    return status
}
