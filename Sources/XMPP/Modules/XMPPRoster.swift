package import NIOCore
package import XMPPCodec

/// The contacts of an account, as the server keeps them.
///
/// Spec: RFC 6121 §2.
package final class XMPPRoster: XMPPModule {
    package struct Item: Hashable, Sendable {
        package enum Subscription: String, Hashable, Sendable {
            case none, to, from, both, remove
        }

        package var jid: JID
        package var name: String?
        package var subscription: Subscription
        /// A subscription request is pending.
        package var isAsking: Bool
        package var isApproved: Bool
        package var groups: [String]

        package init(_ jid: JID, name: String? = nil, groups: [String] = []) {
            self.jid = jid
            self.name = name
            self.subscription = .none
            self.isAsking = false
            self.isApproved = false
            self.groups = groups
        }

        init?(_ element: XMPPElement) {
            guard element.name == "item", let jid = element["jid"].flatMap({ try? JID(received: $0) }) else {
                return nil
            }
            self.jid = jid
            self.name = element["name"]
            // §2.1.2.5: an unknown value counts as none.
            self.subscription = element["subscription"].flatMap { Subscription(rawValue: $0) } ?? .none
            self.isAsking = element["ask"] == "subscribe"
            self.isApproved = element["approved"] == "true" || element["approved"] == "1"
            self.groups = element.elements.filter { $0.name == "group" }.map(\.text)
        }
    }

    package private(set) var items: [JID: Item] = [:]
    /// The version of the roster that is stored here; `nil` without one.
    package private(set) var version: String?
    /// Roster pushes from senders that are not allowed to send them.
    package private(set) var foreignPushes = 0
    private let changed: (Item) -> Void

    /// - Parameter changed: called for each item that the server pushes.
    package init(changed: @escaping (Item) -> Void = { _ in }) { self.changed = changed }

    /// Requests the roster, or only the changes if the server supports versions.
    ///
    /// `knowsVersions`: the server offers `urn:xmpp:features:rosterver` (§2.6).
    package func get(
        on connection: XMPPConnection,
        knowsVersions: Bool = false,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping (Result<[JID: Item], XMPPRequestError>) -> Void
    ) {
        let query = XMPPElement(
            "query",
            namespace: XMPPNamespace.roster,
            attributes: ["ver": knowsVersions ? self.version ?? "" : nil]
        )
        connection.request(.iq("get", query), timeout: timeout) { result in
            switch result {
            case .success(let iq):
                // §2.6.3: without a query the known version is still current.
                if let query = iq.child("query", XMPPNamespace.roster) {
                    let items = query.elements.compactMap { Item($0) }
                    self.items = Dictionary(items.map { ($0.jid, $0) }, uniquingKeysWith: { $1 })
                    self.version = query["ver"]
                }
                answer(.success(self.items))
            case .failure(let error): answer(.failure(error))
            }
        }
    }

    /// Adds or changes a contact; the server's push brings it into ``items``.
    package func set(
        _ item: Item,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping (Result<XMPPElement, XMPPRequestError>) -> Void
    ) {
        var element = XMPPElement(
            "item",
            namespace: XMPPNamespace.roster,
            attributes: ["jid": item.jid.description, "name": item.name]
        )
        for group in item.groups { element.add(XMPPElement("group", namespace: XMPPNamespace.roster, text: group)) }
        self.send(element, on: connection, timeout, answer)
    }

    package func remove(
        _ jid: JID,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping (Result<XMPPElement, XMPPRequestError>) -> Void
    ) {
        let element = XMPPElement(
            "item",
            namespace: XMPPNamespace.roster,
            attributes: ["jid": jid.description, "subscription": "remove"]
        )
        self.send(element, on: connection, timeout, answer)
    }

    private func send(
        _ item: XMPPElement,
        on connection: XMPPConnection,
        _ timeout: TimeAmount,
        _ answer: @escaping (Result<XMPPElement, XMPPRequestError>) -> Void
    ) {
        // §2.1.5: one item at a time.
        var query = XMPPElement("query", namespace: XMPPNamespace.roster)
        query.add(item)
        connection.request(.iq("set", query), timeout: timeout, answer)
    }

    package func handle(_ stanza: XMPPElement, on connection: XMPPConnection, now: NIODeadline) -> Bool {
        guard stanza.name == "iq", stanza["type"] == "set",
            let query = stanza.child("query", XMPPNamespace.roster)
        else { return false }
        // §2.1.6: a push from another sender could change the roster. It is refused like an unknown request.
        guard connection.isFromOwnAccount(stanza) else {
            self.foreignPushes += 1
            return false
        }
        guard query.elements.count == 1, let item = Item(query.elements[0]) else {
            connection.refuse(stanza, StanzaError(.badRequest))
            return true
        }
        self.items[item.jid] = item.subscription == .remove ? nil : item
        if let version = query["ver"] { self.version = version }
        connection.answer(stanza)
        self.changed(item)
        return true
    }
}
