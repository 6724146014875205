import Crypto
import DataEncodings
public import XMPPCodec

/// The identity and the features of this client, and of other entities.
///
/// The module answers queries with the features of all modules. Each available presence carries the hash of that
/// answer, so that servers and contacts need not ask each client. The answers of others are kept by their hashes.
///
/// Spec: XEP-0030, XEP-0115.
public final class XMPPDiscovery: XMPPModule {
    /// The kind of an entity, such as `client` and `bot`, of the registry of identities.
    public struct Identity: Hashable, Sendable {
        /// The general kind.
        public var category: String
        /// The special kind.
        public var type: String
        /// The name that people see; empty for none.
        public var name: String
        /// The language of the name; empty for none.
        public var language: String

        /// An identity as given.
        public init(category: String, type: String, name: String = "", language: String = "") {
            self.category = category
            self.type = type
            self.name = name
            self.language = language
        }
    }

    /// The identities and features of an entity.
    public struct Info: Hashable, Sendable {
        /// The identities: at least one, unless the entity breaks the rules.
        public var identities: [Identity]
        /// Namespaces of features.
        public var features: Set<String>
        /// More about the entity (XEP-0128).
        public var forms: [XMPPDataForm]

        /// Information as given.
        public init(identities: [Identity], features: Set<String>, forms: [XMPPDataForm] = []) {
            self.identities = identities
            self.features = features
            self.forms = forms
        }
    }

    /// A part of an entity: a room of a service, a service of a server.
    public struct Item: Hashable, Sendable {
        /// Its address.
        public let jid: JID
        /// Its node at the address.
        public let node: String?
        /// The name that people see.
        public let name: String?
    }

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let identity: Identity
    private let node: String

    /// - Parameters:
    ///   - identity: what the client is.
    ///   - node: names the program in presences, as a URI.
    public init(
        _ identity: Identity = Identity(category: "client", type: "bot", name: "Clamor"),
        node: String = "urn:clamor"
    ) {
        self.identity = identity
        self.node = node
    }

    /// Queries and hashes.
    public var features: [String] { [XMPPNamespace.discoInfo, XMPPNamespace.discoItems, XMPPNamespace.capabilities] }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler {
        DiscoveryHandler(self.identity, features: self.link.features, node: self.node)
    }

    /// Asks an entity what it is and can do.
    ///
    /// - Parameters:
    ///   - jid: the entity.
    ///   - node: a part of it.
    /// - Returns: the entity's own answer.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func info(of jid: JID, node: String? = nil) async throws(XMPPClientError) -> Info {
        let answer = try await self.link.request(DiscoveryHandler.question(XMPPNamespace.discoInfo, of: jid, node))
        return Info(answer.child("query", XMPPNamespace.discoInfo))
    }

    /// Asks an entity for its parts.
    ///
    /// - Parameters:
    ///   - jid: the entity.
    ///   - node: a part of it.
    /// - Returns: the parts of a first answer; a service with many of them may leave some out.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func items(of jid: JID, node: String? = nil) async throws(XMPPClientError) -> [Item] {
        let answer = try await self.link.request(DiscoveryHandler.question(XMPPNamespace.discoItems, of: jid, node))
        return (answer.child("query", XMPPNamespace.discoItems)?.elements ?? []).compactMap { element in
            guard element.name == "item", let jid = element.jid("jid") else { return nil }
            return Item(jid: jid, node: element["node"], name: element["name"])
        }
    }

    /// The capabilities of a contact, from its presence: asked for once for all clients with the same hash.
    ///
    /// An answer that does not have its hash is returned, and not kept for others (XEP-0115 §5.4).
    ///
    /// - Parameter jid: a client, with its resource.
    /// - Returns: the kept answer, or the client's own.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func capabilities(of jid: JID) async throws(XMPPClientError) -> Info {
        try await self.ask { (handler: DiscoveryHandler, context, answer) in
            handler.capabilities(of: jid, in: context, answer)
        }
    }
}

extension XMPPDiscovery.Info {
    /// The information in an answer; `nil` is an answer without any content.
    init(_ query: XMPPElement?) {
        let elements = query?.elements ?? []
        self.init(
            identities: elements.filter { $0.name == "identity" }.map {
                XMPPDiscovery.Identity(
                    category: $0["category"] ?? "",
                    type: $0["type"] ?? "",
                    name: $0["name"] ?? "",
                    language: $0.language ?? ""
                )
            },
            features: Set(elements.filter { $0.name == "feature" }.compactMap { $0["var"] }),
            forms: elements.compactMap { XMPPDataForm($0) }
        )
    }

    /// The verification string (XEP-0115 §5.1).
    package var verification: String {
        let identities = self.identities.map { "\($0.category)/\($0.type)/\($0.language)/\($0.name)<" }
        var parts = Self.byOctets(identities) + Self.byOctets(self.features).map { "\($0)<" }
        let forms = self.forms.filter { $0["FORM_TYPE"]?.kind == .hidden }
        let order = Self.byOctets(Set(forms.compactMap(\.type)))
        for type in order {
            parts.append("\(type)<")
            let fields = forms.first { $0.type == type }?.fields.filter { $0.name != "FORM_TYPE" } ?? []
            for name in Self.byOctets(Set(fields.compactMap(\.name))) {
                parts.append("\(name)<")
                let values = fields.filter { $0.name == name }.flatMap(\.values)
                parts += Self.byOctets(values).map { "\($0)<" }
            }
        }
        return Base64.encode(Array(Insecure.SHA1.hash(data: Array(parts.joined().utf8))))
    }

    /// Whether an answer may be kept by its hash (XEP-0115 §5.4).
    ///
    /// Duplicates are not allowed. A `<` in a value could give two different answers the same hash.
    static func isWellFormed(_ query: XMPPElement) -> Bool {
        let info = XMPPDiscovery.Info(query)
        let types = info.forms.compactMap(\.type)
        let texts =
            info.features + info.identities.flatMap { [$0.category, $0.type, $0.language, $0.name] }
            + info.forms.flatMap { $0.fields.flatMap { $0.values + [$0.name ?? ""] } }
        return Set(info.identities).count == info.identities.count
            && info.features.count == query.elements.count { $0.name == "feature" }
            && Set(types).count == types.count
            && info.forms.allSatisfy { Set($0["FORM_TYPE"]?.values ?? []).count <= 1 }
            && !texts.contains { $0.utf8.contains(UInt8(ascii: "<")) }
    }

    /// §3.2.3 of RFC 4790: by octets.
    private static func byOctets(_ texts: some Collection<String>) -> [String] {
        texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}
