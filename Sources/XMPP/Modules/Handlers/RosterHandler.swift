package import XMPPCodec

/// The contacts of an account, as the server keeps them.
///
/// Spec: RFC 6121 §2.
package final class RosterHandler: XMPPHandler {
    package private(set) var items: [JID: XMPPRoster.Item] = [:]
    /// The version of the roster that is stored here; `nil` without one.
    package private(set) var version: String?
    private var knowsVersions = false
    /// Whether the roster was asked for, and came.
    private var isLoaded = false
    private let changed: (XMPPRoster.Item) -> Void

    /// - Parameter changed: called for each item that the server pushes, or that is another on a new stream.
    package init(changed: @escaping (XMPPRoster.Item) -> Void = { _ in }) { self.changed = changed }

    /// Requests the roster, or only the changes if the server supports versions.
    ///
    /// `knowsVersions`: whether the server offers `urn:xmpp:features:rosterver` (§2.6); `nil`: as the stream says.
    package func get(
        in context: XMPPModuleContext,
        knowsVersions: Bool? = nil,
        _ answer: @escaping Answer<[JID: XMPPRoster.Item]>
    ) {
        let query = XMPPElement(
            "query",
            namespace: XMPPNamespace.roster,
            attributes: ["ver": knowsVersions ?? self.knowsVersions ? self.version ?? "" : nil]
        )
        context.request(.iq("get", query)) { result in
            switch result {
            case .success(let iq):
                // §2.6.3: without a query the known version is still current.
                if let query = iq.child("query", XMPPNamespace.roster) {
                    let items = query.elements.compactMap { XMPPRoster.Item($0) }
                    self.items = Dictionary(items.map { ($0.jid, $0) }, uniquingKeysWith: { $1 })
                    self.version = query["ver"]
                }
                self.isLoaded = true
                answer(.success(self.items))
            case .failure(let error): answer(.failure(error))
            }
        }
    }

    /// Adds or changes a contact; the server's push brings it into ``items``.
    package func set(_ item: XMPPRoster.Item, in context: XMPPModuleContext, _ answer: @escaping Answer<XMPPElement>) {
        var element = XMPPElement(
            "item",
            namespace: XMPPNamespace.roster,
            attributes: ["jid": item.jid.description, "name": item.name]
        )
        for group in item.groups { element.add(XMPPElement("group", namespace: XMPPNamespace.roster, text: group)) }
        self.send(element, in: context, answer)
    }

    package func remove(_ jid: JID, in context: XMPPModuleContext, _ answer: @escaping Answer<XMPPElement>) {
        let element = XMPPElement(
            "item",
            namespace: XMPPNamespace.roster,
            attributes: ["jid": jid.description, "subscription": "remove"]
        )
        self.send(element, in: context, answer)
    }

    private func send(_ item: XMPPElement, in context: XMPPModuleContext, _ answer: @escaping Answer<XMPPElement>) {
        // §2.1.5: one item at a time.
        var query = XMPPElement("query", namespace: XMPPNamespace.roster)
        query.add(item)
        context.request(.iq("set", query), answer)
    }

    package func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
        self.knowsVersions = session.offers.contains(.rosterVersioning)
        // §2.1.6: pushes go to streams that have asked for the roster.
        guard self.isLoaded, !session.isResumed else { return }
        let before = self.items
        self.get(in: context) { result in
            guard case .success(let items) = result else { return }
            for item in items.values where before[item.jid] != item { self.changed(item) }
            for var item in before.values where items[item.jid] == nil {
                item.subscription = .remove
                self.changed(item)
            }
        }
    }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name == "iq", stanza["type"] == "set",
            let query = stanza.child("query", XMPPNamespace.roster)
        else { return false }
        // §2.1.6: a push from another sender could change the roster. It is refused like an unknown request.
        guard context.isFromOwnAccount(stanza) else { return false }
        guard query.elements.count == 1, let item = XMPPRoster.Item(query.elements[0]) else {
            context.refuse(stanza, StanzaError(.badRequest))
            return true
        }
        self.items[item.jid] = item.subscription == .remove ? nil : item
        if let version = query["ver"] { self.version = version }
        context.answer(stanza)
        self.changed(item)
        return true
    }
}
