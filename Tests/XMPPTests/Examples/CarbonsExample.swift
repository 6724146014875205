import XMPP

/// Sees on one client what another client of the same account sends.
func followAccount(_ configuration: XMPPClientConfiguration, _ message: XMPPElement) async throws -> XMPPElement? {
    let carbons = XMPPCarbons()
    let client = XMPPClient(configuration, modules: [carbons])
    try await client.connect()
    try await client.send(XMPPElement("presence", namespace: XMPPNamespace.client))
    let events = carbons.events

    let other = XMPPClient(configuration)
    try await other.connect()
    try await other.send(message)
    var copy: XMPPElement?
    for await case .sent(let message) in events {
        copy = message
        break
    }
    await other.disconnect()
    await client.disconnect()
    return copy
}
