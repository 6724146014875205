package import XMPPCodec

/// Answers queries about this client's identity and features, and keeps the answers of others by their hashes.
///
/// Spec: XEP-0030, XEP-0115.
package final class DiscoveryHandler: XMPPHandler {
    /// The hash that a presence carries.
    private struct Caps: Hashable {
        let node: String
        let hash: String
        let version: String
    }

    /// Clients whose hashes are known.
    private static let mostContacts = 4_096
    private static let mostAnswers = 512
    /// Bytes in memory of an answer that is kept.
    private static let mostBytes = 64 << 10

    private let info: XMPPDiscovery.Info
    private let node: String
    private let verification: String
    private var contacts = Bounded<JID, Caps>(DiscoveryHandler.mostContacts)
    private var answers = Bounded<String, XMPPDiscovery.Info>(DiscoveryHandler.mostAnswers)

    /// - Parameters:
    ///   - identity: what the client is.
    ///   - features: namespaces of what it can do; those of this module are added.
    ///   - node: names the program, as a URI.
    package init(_ identity: XMPPDiscovery.Identity, features: Set<String> = [], node: String) {
        let own = [XMPPNamespace.discoInfo, XMPPNamespace.discoItems, XMPPNamespace.capabilities]
        self.info = XMPPDiscovery.Info(identities: [identity], features: features.union(own))
        self.node = node
        self.verification = self.info.verification
    }

    package func filterSent(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? {
        guard stanza.name == "presence", stanza["type"] == nil, stanza.child("c", XMPPNamespace.capabilities) == nil
        else { return stanza }
        var stanza = stanza
        stanza.add(
            XMPPElement(
                "c",
                namespace: XMPPNamespace.capabilities,
                attributes: ["hash": "sha-1", "node": self.node, "ver": self.verification]
            )
        )
        return stanza
    }

    /// Presences of others begin anew on a new stream.
    package func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
        if !session.isResumed { self.contacts.clear() }
    }

    package func filterReceived(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? {
        guard stanza.name == "presence", let from = stanza.jid("from") else { return stanza }
        switch stanza["type"] {
        case nil:
            let c = stanza.child("c", XMPPNamespace.capabilities)
            if let c, let node = c["node"], let hash = c["hash"], let version = c["ver"],
                node.utf8.count + version.utf8.count <= 1_024
            {
                self.contacts[from] = Caps(node: node, hash: hash, version: version)
            } else {
                self.contacts[from] = nil
            }
        case "unavailable": self.contacts[from] = nil
        default: break
        }
        return stanza
    }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name == "iq", stanza["type"] == "get" else { return false }
        if let query = stanza.child("query", XMPPNamespace.discoItems) {
            context.answer(stanza, with: Self.query(XMPPNamespace.discoItems, query["node"]))
            return true
        }
        guard let query = stanza.child("query", XMPPNamespace.discoInfo) else { return false }
        // XEP-0115 §6.2: the query may name the node and hash that were announced.
        guard query["node"] == nil || query["node"] == "\(self.node)#\(self.verification)" else {
            context.refuse(stanza, StanzaError(.itemNotFound))
            return true
        }
        var answer = Self.query(XMPPNamespace.discoInfo, query["node"])
        for identity in self.info.identities {
            var element = XMPPElement(
                "identity",
                namespace: XMPPNamespace.discoInfo,
                attributes: ["category": identity.category, "type": identity.type, "name": identity.name]
            )
            // Of what the hash is made (XEP-0115 §5.1).
            if !identity.language.isEmpty { element.language = identity.language }
            answer.add(element)
        }
        for feature in self.info.features.sorted() {
            answer.add(XMPPElement("feature", namespace: XMPPNamespace.discoInfo, attributes: ["var": feature]))
        }
        context.answer(stanza, with: answer)
        return true
    }

    /// The capabilities of a client, kept or asked for.
    package func capabilities(
        of jid: JID,
        in context: XMPPModuleContext,
        _ answer: @escaping Answer<XMPPDiscovery.Info>
    ) {
        let caps = self.contacts[jid]
        if let caps, let known = self.answers[caps.version], caps.hash == "sha-1" { return answer(.success(known)) }
        let node = caps.map { "\($0.node)#\($0.version)" }
        context.request(Self.question(XMPPNamespace.discoInfo, of: jid, node)) { [weak self] result in
            answer(
                result.map { iq in
                    let query = iq.child("query", XMPPNamespace.discoInfo)
                    let info = XMPPDiscovery.Info(query)
                    if let caps, caps.hash == "sha-1", let query { self?.keep(info, of: query, as: caps.version) }
                    return info
                }
            )
        }
    }

    private func keep(_ info: XMPPDiscovery.Info, of query: XMPPElement, as version: String) {
        guard info.verification == version, XMPPDiscovery.Info.isWellFormed(query),
            query.estimatedSize <= Self.mostBytes
        else { return }
        self.answers[version] = info
    }

    package static func question(_ namespace: String, of jid: JID, _ node: String? = nil) -> XMPPElement {
        .iq("get", to: jid, self.query(namespace, node))
    }

    private static func query(_ namespace: String, _ node: String?) -> XMPPElement {
        XMPPElement("query", namespace: namespace, attributes: ["node": node])
    }
}

/// A dictionary of so many entries at most: the oldest goes first.
private struct Bounded<Key: Hashable, Value> {
    private let most: Int
    private var entries: [Key: (value: Value, number: UInt64)] = [:]
    private var order: [(key: Key, number: UInt64)] = []
    private var head = 0
    private var next: UInt64 = 0

    init(_ most: Int) { self.most = most }

    subscript(key: Key) -> Value? {
        get { self.entries[key]?.value }
        set {
            guard let newValue else {
                self.entries[key] = nil
                return
            }
            self.next += 1
            self.entries[key] = (newValue, self.next)
            self.order.append((key, self.next))
            while self.entries.count > self.most { self.dropFirst() }
            // Places of entries that were replaced or removed.
            if self.order.count - self.head > 2 * self.most || self.head > self.most { self.compact() }
        }
    }

    mutating func clear() { self = Self(self.most) }

    private mutating func dropFirst() {
        let (key, number) = self.order[self.head]
        self.head += 1
        if self.entries[key]?.number == number { self.entries[key] = nil }
    }

    private mutating func compact() {
        let entries = self.entries
        self.order = self.order[self.head...].filter { entries[$0.key]?.number == $0.number }
        self.head = 0
    }
}
