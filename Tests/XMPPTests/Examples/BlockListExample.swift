import XMPP

/// Blocks an address, and unblocks it again.
func blockForAWhile(_ configuration: XMPPClientConfiguration) async throws -> [XMPPBlockList.Event] {
    let blockList = XMPPBlockList()
    let client = XMPPClient(configuration, modules: [blockList])
    try await client.connect()
    let events = blockList.events
    // A server reports changes to clients that have asked for the list.
    print(try await blockList.list())

    let tybalt = try JID("tybalt@localhost")
    try await blockList.block([tybalt])
    try await blockList.unblock([tybalt])
    var changes: [XMPPBlockList.Event] = []
    for await event in events.prefix(2) { changes.append(event) }
    await client.disconnect()
    return changes
}
