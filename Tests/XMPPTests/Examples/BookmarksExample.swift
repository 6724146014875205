import XMPP

/// Remembers a room, and forgets it again.
func rememberRoom(_ configuration: XMPPClientConfiguration) async throws -> [XMPPBookmarks.Bookmark] {
    let bookmarks = XMPPBookmarks()
    let client = XMPPClient(configuration, modules: [bookmarks])
    try await client.connect()
    let room = try JID("hall@conference.localhost")
    try await bookmarks.set(XMPPBookmarks.Bookmark(room, name: "The hall", joins: true, nick: "jul"))
    let kept = try await bookmarks.items()
    try await bookmarks.remove(room)
    let left = try await bookmarks.items()
    await client.disconnect()
    return kept + left
}
