package import XMPPCodec

/// Reads the server's reports of a changed block list.
///
/// Spec: XEP-0191 §3.3, §3.4.
package final class BlockListHandler: XMPPHandler {
    /// Reports from senders that are not allowed to send them.
    package private(set) var foreign = 0
    /// The list as far as it is known; `nil` before it was asked for.
    private var known: Set<JID>?
    private let told: (XMPPBlockList.Event) -> Void

    package init(_ told: @escaping (XMPPBlockList.Event) -> Void = { _ in }) { self.told = told }

    /// Requests the list; changes are reported from then on, as long as the stream lasts.
    package func list(
        in context: XMPPModuleContext,
        _ answer: @escaping (Result<[JID], XMPPRequestError>) -> Void
    ) {
        context.request(XMPPBlockList.listRequest) { result in
            let jids = result.map { $0.child("blocklist", XMPPNamespace.blocking)?.blockedItems ?? [] }
            if case .success(let jids) = jids { self.known = Set(jids) }
            answer(jids)
        }
    }

    /// §3.2: a server reports changes to the streams that have asked for the list.
    package func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
        guard !session.isResumed, self.known != nil else { return }
        let before = self.known ?? []
        self.list(in: context) { result in
            guard case .success(let jids) = result else { return }
            let blocked = jids.filter { !before.contains($0) }
            if !blocked.isEmpty { self.told(.blocked(blocked)) }
            let unblocked = before.subtracting(jids)
            if !unblocked.isEmpty { self.told(jids.isEmpty ? .unblockedAll : .unblocked(Array(unblocked))) }
        }
    }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name == "iq", stanza["type"] == "set",
            let change = stanza.elements.first(where: {
                $0.namespace == XMPPNamespace.blocking && ($0.name == "block" || $0.name == "unblock")
            })
        else { return false }
        // Another sender could hide the true list. It is refused like an unknown request.
        guard context.isFromOwnAccount(stanza) else {
            self.foreign += 1
            return false
        }
        let jids = change.blockedItems
        // Items without a readable address must not turn into the whole list.
        guard !jids.isEmpty || change.name == "unblock" && change.elements.isEmpty else {
            context.refuse(stanza, StanzaError(.badRequest))
            return true
        }
        context.answer(stanza)
        if change.name == "block" {
            self.known?.formUnion(jids)
        } else if jids.isEmpty {
            self.known?.removeAll()
        } else {
            self.known?.subtract(jids)
        }
        self.told(change.name == "block" ? .blocked(jids) : jids.isEmpty ? .unblockedAll : .unblocked(jids))
        return true
    }
}
