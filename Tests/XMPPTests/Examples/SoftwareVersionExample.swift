import XMPP

/// Asks a bot for its program, which it tells.
func askBot(_ first: XMPPClientConfiguration, _ second: XMPPClientConfiguration) async throws -> String {
    let own = XMPPSoftwareVersion.Version(name: "Bot", version: "1.0")
    let bot = XMPPClient(first, modules: [XMPPSoftwareVersion(own)])
    let jid = try await bot.connect()

    let version = XMPPSoftwareVersion()
    let client = XMPPClient(second, modules: [version])
    try await client.connect()
    let program = try await version.version(of: jid)

    for client in [bot, client] { await client.disconnect() }
    return "\(program.name) \(program.version ?? "-")"
}
