import Crypto
import DataEncodings
package import NIOCore
package import XMPPCodec

/// Answers queries about this client's identity and features, and queries those of other entities.
///
/// Every available presence carries the hash of this answer, so that servers and contacts need not ask each client.
///
/// Spec: XEP-0030, XEP-0115.
package final class XMPPDiscovery: XMPPModule {
    package struct Identity: Hashable, Sendable {
        package var category: String
        package var type: String
        package var name: String
        package var language: String

        package init(category: String, type: String, name: String = "", language: String = "") {
            self.category = category
            self.type = type
            self.name = name
            self.language = language
        }
    }

    package struct Info: Hashable, Sendable {
        package var identities: [Identity]
        package var features: Set<String>

        package init(identities: [Identity], features: Set<String>) {
            self.identities = identities
            self.features = features
        }

        init(_ query: XMPPElement) {
            self.identities = query.elements.filter { $0.name == "identity" }.map {
                Identity(
                    category: $0["category"] ?? "",
                    type: $0["type"] ?? "",
                    name: $0["name"] ?? "",
                    language: $0.language ?? ""
                )
            }
            self.features = Set(query.elements.filter { $0.name == "feature" }.compactMap { $0["var"] })
        }

        /// The verification string of the identities and features, without forms (§5.1).
        package var verification: String {
            let identities = self.identities.map { "\($0.category)/\($0.type)/\($0.language)/\($0.name)<" }
            // §3.2.3 of RFC 4790: by octets.
            let parts = Self.byOctets(identities) + Self.byOctets(self.features).map { "\($0)<" }
            return Base64.encode(Array(Insecure.SHA1.hash(data: Array(parts.joined().utf8))))
        }

        private static func byOctets(_ texts: some Collection<String>) -> [String] {
            texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        }
    }

    private let info: Info
    private let node: String
    private let verification: String

    /// - Parameters:
    ///   - identity: what the client is.
    ///   - features: namespaces of what it can do; those of this module are added.
    ///   - node: names the program, as a URI.
    package init(
        _ identity: Identity = Identity(category: "client", type: "bot", name: "Clamor"),
        features: Set<String> = [],
        node: String = "urn:clamor"
    ) {
        let own = [XMPPNamespace.discoInfo, XMPPNamespace.discoItems, XMPPNamespace.capabilities]
        self.info = Info(identities: [identity], features: features.union(own))
        self.node = node
        self.verification = self.info.verification
    }

    package func filterSent(_ stanza: XMPPElement, on connection: XMPPConnection) -> XMPPElement? {
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

    package func handle(_ stanza: XMPPElement, on connection: XMPPConnection, now: NIODeadline) -> Bool {
        guard stanza.name == "iq", stanza["type"] == "get" else { return false }
        if let query = stanza.child("query", XMPPNamespace.discoItems) {
            connection.answer(stanza, with: Self.query(XMPPNamespace.discoItems, query["node"]))
            return true
        }
        guard let query = stanza.child("query", XMPPNamespace.discoInfo) else { return false }
        // XEP-0115 §6.2: the query may name the node and hash that were announced.
        guard query["node"] == nil || query["node"] == "\(self.node)#\(self.verification)" else {
            connection.refuse(stanza, StanzaError(.itemNotFound))
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
        connection.answer(stanza, with: answer)
        return true
    }

    /// Asks an entity, or the own server, for its identities and features.
    package static func ask(
        _ to: JID,
        node: String? = nil,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping (Result<Info, XMPPRequestError>) -> Void
    ) {
        connection.request(.iq("get", to: to, self.query(XMPPNamespace.discoInfo, node)), timeout: timeout) { result in
            answer(
                result.map { iq in
                    Info(iq.child("query", XMPPNamespace.discoInfo) ?? Self.query(XMPPNamespace.discoInfo, nil))
                }
            )
        }
    }

    /// Asks an entity for its items: the rooms of a service, the services of a server.
    package static func items(
        of jid: JID,
        node: String? = nil,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping (Result<[JID], XMPPRequestError>) -> Void
    ) {
        let iq = XMPPElement.iq("get", to: jid, self.query(XMPPNamespace.discoItems, node))
        connection.request(iq, timeout: timeout) { result in
            answer(
                result.map { iq in
                    (iq.child("query", XMPPNamespace.discoItems)?.elements ?? [])
                        .compactMap { $0["jid"].flatMap { try? JID(received: $0) } }
                }
            )
        }
    }

    private static func query(_ namespace: String, _ node: String?) -> XMPPElement {
        XMPPElement("query", namespace: namespace, attributes: ["node": node])
    }
}
