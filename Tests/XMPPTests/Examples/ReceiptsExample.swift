import XMPP

/// Sends a message, and returns when a client of the receiver has it.
func deliver(_ configuration: XMPPClientConfiguration, _ text: String, to receiver: JID) async throws -> JID {
    let receipts = XMPPReceipts(answers: { $0.domain == "localhost" })
    let client = XMPPClient(configuration, modules: [receipts])
    try await client.connect()

    let message = XMPPElement(
        "message",
        namespace: XMPPNamespace.client,
        attributes: ["to": receiver.description, "type": "chat"],
        children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: text))]
    )
    let device = try await receipts.deliver(message, timeout: .seconds(20))
    await client.disconnect()
    return device
}
