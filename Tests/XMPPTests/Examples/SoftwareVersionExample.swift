import XMPP

/// Asks a bot for its program and its time, which it tells.
func askBot(_ first: XMPPClientConfiguration, _ second: XMPPClientConfiguration) async throws -> String {
    let own = XMPPSoftwareVersion.Version(name: "Bot", version: "1.0")
    let bot = XMPPClient(first, modules: [XMPPSoftwareVersion(own), XMPPEntityTime()])
    let jid = try await bot.connect()

    let version = XMPPSoftwareVersion()
    let time = XMPPEntityTime(answers: false)
    let client = XMPPClient(second, modules: [version, time])
    try await client.connect()
    let program = try await version.version(of: jid)
    let answer = try await time.time(of: jid)
    let isRight = answer.utc <= .now && answer.offset == 0

    for client in [bot, client] { await client.disconnect() }
    return "\(program.name) \(program.version ?? "-"), \(isRight ? "on time" : "\(answer.utc)")"
}
