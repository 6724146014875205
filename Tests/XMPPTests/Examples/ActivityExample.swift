import XMPP

/// Tells the server for a while that the client is not in use.
func rest(_ configuration: XMPPClientConfiguration) async throws -> Bool {
    let activity = XMPPActivity()
    let client = XMPPClient(configuration, modules: [activity])
    try await client.connect()
    let isTold = try await activity.set(.inactive)
    try await activity.set(.active)
    await client.disconnect()
    return isTold
}
