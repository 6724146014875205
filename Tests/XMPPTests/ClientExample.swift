import XMPP

/// The example of the library's front page, unchanged: it has to build.
func clientExample() async throws {
    let client = XMPPClient(XMPPClientConfiguration(jid: "juliet@example.com", password: "secret"))
    let jid = try await client.connect()
    print("connected as \(jid)")

    try await client.send(XMPPElement("presence", namespace: XMPPNamespace.client))
    let greeting = XMPPElement(
        "message",
        namespace: XMPPNamespace.client,
        attributes: ["to": "romeo@example.net", "type": "chat"],
        children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: "Good evening"))]
    )
    try await client.send(greeting)

    for await stanza in client.stanzas where stanza.name == "message" {
        print(stanza["from"] ?? "-", stanza.child("body")?.text ?? "")
    }
    await client.disconnect()
}
