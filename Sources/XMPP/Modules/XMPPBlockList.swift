public import XMPPCodec

/// The addresses that the account has blocked: the server lets nothing through between them and the account.
///
/// Spec: XEP-0191.
public final class XMPPBlockList: XMPPModule {
    /// A change, by any client of the account.
    ///
    /// A server reports changes to the clients that have asked for the list on the same stream. After a first ``list()``
    /// the module asks again by itself on each stream that is not resumed, and reports what has changed in between.
    public enum Event: Hashable, Sendable {
        /// These were blocked.
        case blocked([JID])
        /// These were unblocked.
        case unblocked([JID])
        /// The list is empty.
        case unblockedAll
    }

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let source = XMPPEvents<Event> { event in
        switch event {
        case .blocked(let jids), .unblocked(let jids):
            jids.reduce(64) { $0 + $1.estimatedSize }
        case .unblockedAll: 64
        }
    }

    /// The block list of the account.
    public init() {}

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler { BlockListHandler { [source] in source.send($0) } }

    /// Ends the streams of events.
    public func clientReleased() { self.source.finish() }

    /// Changes from now on; each stream gets all of them.
    public var events: AsyncStream<Event> { self.source.stream() }

    /// The addresses that are blocked; a domain or a bare address stands for all addresses below it.
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func list() async throws(XMPPClientError) -> [JID] {
        try await self.ask { (handler: BlockListHandler, context, answer) in handler.list(in: context, answer) }
    }

    /// Blocks addresses.
    ///
    /// - Parameter jids: at least one.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func block(_ jids: [JID]) async throws(XMPPClientError) {
        guard !jids.isEmpty else { throw .invalid("a list of addresses to block is empty; name one") }
        try await self.link.request(Self.change("block", jids))
    }

    /// Unblocks addresses.
    ///
    /// - Parameter jids: at least one; for all of the list there is ``unblockAll()``.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func unblock(_ jids: [JID]) async throws(XMPPClientError) {
        // §3.4: an empty list would unblock all addresses.
        guard !jids.isEmpty else { throw .invalid("a list of addresses to unblock is empty; name one") }
        try await self.link.request(Self.change("unblock", jids))
    }

    /// Empties the list.
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func unblockAll() async throws(XMPPClientError) { try await self.link.request(Self.change("unblock", [])) }

    /// Whether a stanza came back because its addressee is blocked (§3.5).
    public static func isBlocked(_ error: StanzaError) -> Bool {
        error.application?.isNamed("blocked", XMPPNamespace.blockingErrors) ?? false
    }

    package static let listRequest = XMPPElement.iq(
        "get",
        XMPPElement("blocklist", namespace: XMPPNamespace.blocking)
    )

    /// `name`: `block` or `unblock`.
    package static func change(_ name: String, _ jids: [JID]) -> XMPPElement {
        var element = XMPPElement(name, namespace: XMPPNamespace.blocking)
        for jid in jids {
            element.add(XMPPElement("item", namespace: XMPPNamespace.blocking, attributes: ["jid": jid.description]))
        }
        return .iq("set", element)
    }
}

extension XMPPElement {
    /// The addresses of its items, without those that are none.
    var blockedItems: [JID] {
        self.elements.filter { $0.name == "item" }.compactMap { $0.jid("jid") }
    }
}

/// Reads the server's reports of a changed block list.
///
/// Spec: XEP-0191 §3.3, §3.4.
package final class BlockListHandler: XMPPHandler {
    /// The list as far as it is known; `nil` before it was asked for.
    private var known: Set<JID>?
    private let told: (XMPPBlockList.Event) -> Void

    package init(_ told: @escaping (XMPPBlockList.Event) -> Void = { _ in }) { self.told = told }

    /// Requests the list; changes are reported from then on, as long as the stream lasts.
    package func list(in context: XMPPModuleContext, _ answer: @escaping Answer<[JID]>) {
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
        guard context.isFromOwnAccount(stanza) else { return false }
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
