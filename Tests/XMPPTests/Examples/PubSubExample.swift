import XMPP

/// Publishes at a personal node, hears of it, reads it, and deletes the node.
func publishMood(_ configuration: XMPPClientConfiguration) async throws -> [XMPPPubSub.Item] {
    let mood = XMPPPubSub.Node("http://jabber.org/protocol/mood")
    let pubSub = XMPPPubSub(notifiedNodes: [mood.name])
    let client = XMPPClient(configuration, modules: [pubSub, XMPPDiscovery()])
    try await client.connect()
    try await client.send(XMPPElement("presence", namespace: XMPPNamespace.client))

    let events = pubSub.events
    let happy = XMPPElement("happy", namespace: mood.name)
    let payload = XMPPElement("mood", namespace: mood.name, children: [.element(happy)])
    try await pubSub.publish(payload, id: "current", to: mood, options: ["pubsub#persist_items": "true"])
    for await event in events { if case .published(mood, _) = event { break } }
    let items = try await pubSub.items(of: mood)
    try await pubSub.delete(mood)
    await client.disconnect()
    return items
}
