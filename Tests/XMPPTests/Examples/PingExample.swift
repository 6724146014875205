import XMPP

/// Measures the round trip to the server, which is asked on its own too once it is silent for half a minute.
func measureRoundTrip(_ configuration: XMPPClientConfiguration) async throws -> Duration {
    let ping = XMPPPing(interval: .seconds(30), timeout: .seconds(5))
    let client = XMPPClient(configuration, modules: [ping])
    try await client.connect()
    let time = try await ping.ping()
    await client.disconnect()
    return time
}
