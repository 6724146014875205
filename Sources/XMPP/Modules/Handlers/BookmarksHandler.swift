package import XMPPCodec

/// Reads the notifications of changed bookmarks.
///
/// Spec: XEP-0402 §3.
package final class BookmarksHandler: XMPPHandler {
    /// Notifications from senders that are not allowed to send them.
    package private(set) var foreign = 0
    private let told: (XMPPBookmarks.Event) -> Void

    package init(_ told: @escaping (XMPPBookmarks.Event) -> Void = { _ in }) { self.told = told }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name == "message", stanza["type"] != "error",
            let event = stanza.child("event", XMPPNamespace.pubsubEvent)?.elements.first,
            event["node"] == XMPPNamespace.bookmarks
        else { return false }
        // Others could lure the client into rooms of theirs (§7).
        guard context.isFromOwnAccount(stanza) else {
            self.foreign += 1
            return false
        }
        switch event.name {
        case "purge", "delete": self.told(.cleared)
        case "items":
            for item in event.elements {
                if item.name == "retract" {
                    if let room = item.bookmarkedRoom { self.told(.removed(room)) }
                } else if let bookmark = XMPPBookmarks.Bookmark(item) {
                    self.told(.changed(bookmark))
                }
            }
        default: break
        }
        return true
    }
}
