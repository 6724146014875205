import XMPP

/// Reads the latest messages with a contact from the archive, the newest first.
func readArchive(_ configuration: XMPPClientConfiguration, with contact: JID) async throws -> [String] {
    let archive = XMPPArchive()
    let client = XMPPClient(configuration, modules: [archive])
    try await client.connect()

    var bodies: [String] = []
    let query = XMPPArchive.Query(with: contact, max: 2)
    for try await message in archive.messages(matching: query, newestFirst: true) {
        guard let body = message.stanza.child("body")?.text else { continue }
        bodies.append(body)
        if bodies.count == 5 { break }
    }
    await client.disconnect()
    return bodies
}
