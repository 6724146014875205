import XMPP

/// Finds the services of the own server that have rooms.
func findRooms(_ configuration: XMPPClientConfiguration) async throws -> [JID] {
    let discovery = XMPPDiscovery(
        .init(category: "client", type: "bot", name: "Finder"),
        node: "https://example.com/finder"
    )
    let client = XMPPClient(configuration, modules: [discovery])
    let server = try await client.connect().domainOnly

    var services: [JID] = []
    for item in try await discovery.items(of: server) {
        // A service that is down answers with an error.
        guard let info = try? await discovery.info(of: item.jid) else { continue }
        if info.features.contains(XMPPNamespace.muc) { services.append(item.jid) }
    }
    await client.disconnect()
    return services
}
