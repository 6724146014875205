public import XMPPCodec

/// Nodes that are published to and subscribed to, of a service or of an account.
///
/// A service of `nil` is the own account: there are its personal nodes (PEP), such as its avatar or its mood.
///
/// Spec: XEP-0060, XEP-0163.
public final class XMPPPubSub: XMPPModule {
    /// Something published at a node.
    public struct Item: Hashable, Sendable {
        /// Unique at its node; `nil` where the node keeps none.
        public let id: String?
        /// The publisher, if the service tells.
        public let publisher: JID?
        /// The published element; `nil` for a notice without it.
        public let payload: XMPPElement?
    }

    /// A subscription to a node.
    public struct Subscription: Hashable, Sendable {
        /// Whether events come.
        public enum State: String, Hashable, Sendable, CaseIterable {
            /// There is none.
            case none
            /// An owner has to agree first.
            case pending
            /// Events come.
            case subscribed
            /// It has to be configured first.
            case unconfigured
        }

        /// The node; `nil` is the service's root.
        public let node: String?
        /// The subscriber.
        public let jid: JID
        /// Tells several subscriptions of a subscriber apart, where there may be several.
        public let id: String?
        /// Whether events come.
        public let state: State
    }

    /// A standing at a node.
    public enum Affiliation: String, Hashable, Sendable, CaseIterable {
        /// May do everything.
        case owner
        /// May publish and subscribe.
        case publisher
        /// May publish only.
        case publishOnly = "publish-only"
        /// May subscribe.
        case member
        /// Has none.
        case none
        /// May do nothing.
        case outcast
    }

    /// A node, by its service and its name.
    public struct Node: Hashable, Sendable {
        /// The service; `nil` is the own account.
        public let service: JID?
        /// The name.
        public let name: String

        /// A node of a service.
        public init(_ name: String, at service: JID? = nil) {
            self.service = service
            self.name = name
        }
    }

    /// A change of a node.
    ///
    /// Any sender can say that a node of its own has changed: compare the node's service.
    public enum Event: Hashable, Sendable {
        /// Something was published.
        case published(Node, Item)
        /// An item was deleted.
        case retracted(Node, id: String)
        /// All items were deleted.
        case purged(Node)
        /// The node is gone.
        case deleted(Node)
        /// The node is configured otherwise; the form is there if the service shows it.
        case configured(Node, XMPPDataForm?)
        /// The own subscription has changed.
        case subscription(Node, Subscription)
    }

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let source = XMPPEvents<Event> { event in
        event.estimatedSize
    }
    private let notifiedNodes: [String]

    /// - Parameter notifiedNodes: personal nodes of contacts whose events are wanted without a subscription (XEP-0163
    ///   §4); servers learn them from ``XMPPDiscovery``.
    public init(notifiedNodes: [String] = []) { self.notifiedNodes = notifiedNodes }

    /// The notified nodes, each with `+notify` appended.
    public var features: [String] { self.notifiedNodes.map { "\($0)+notify" } }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler { PubSubHandler { [source] in source.send($0) } }

    /// Ends the streams of events.
    public func clientReleased() { self.source.finish() }

    /// Events from now on; each stream gets all of them.
    public var events: AsyncStream<Event> { self.source.stream() }

    // MARK: Nodes

    /// Creates a node (§8.1).
    ///
    /// - Parameters:
    ///   - name: the node; `nil` lets the service choose.
    ///   - service: where; `nil` is the own account.
    ///   - configuration: fields such as `pubsub#max_items`; others have the service's defaults.
    /// - Returns: the node, with the name that the service gave it.
    /// - Throws: as ``XMPPClient/request(_:)``; `refused` with `conflict` for a node that is there.
    @discardableResult
    public func create(
        _ name: String?,
        at service: JID? = nil,
        configuration: KeyValuePairs<String, String?> = [:]
    ) async throws(XMPPClientError) -> Node {
        let answer = try await self.link.request(PubSubHandler.create(name, at: service, configuration))
        let given = answer.child("pubsub", XMPPNamespace.pubsub)?.child("create")?["node"]
        guard let name = given ?? name else { throw .refused(StanzaError(.badRequest)) }
        return Node(name, at: service)
    }

    /// The configuration of a node as a form to fill in (§8.2).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``; `refused` with `bad-request` for an answer without a form.
    public func configuration(of node: Node) async throws(XMPPClientError) -> XMPPDataForm {
        let answer = try await self.link.request(PubSubHandler.owner("get", "configure", node))
        let x = answer.child("pubsub", XMPPNamespace.pubsubOwner)?.child("configure")?
            .child("x", XMPPNamespace.dataForms)
        guard let form = x.flatMap({ XMPPDataForm($0) }) else { throw .refused(StanzaError(.badRequest)) }
        return form
    }

    /// Configures a node (§8.2).
    ///
    /// - Parameters:
    ///   - node: the node.
    ///   - form: filled in, as by ``XMPPDataForm/filled(_:)``.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func configure(_ node: Node, with form: XMPPDataForm) async throws(XMPPClientError) {
        try await self.link.request(PubSubHandler.owner("set", "configure", node, [form.element]))
    }

    /// Deletes a node (§8.4).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func delete(_ node: Node) async throws(XMPPClientError) {
        try await self.link.request(PubSubHandler.owner("set", "delete", node))
    }

    /// Deletes all items of a node (§8.5).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func purge(_ node: Node) async throws(XMPPClientError) {
        try await self.link.request(PubSubHandler.owner("set", "purge", node))
    }

    // MARK: Subscriptions

    /// Subscribes the account to a node (§6.1).
    ///
    /// - Returns: the subscription; check its ``Subscription/state``.
    /// - Throws: as ``XMPPClient/request(_:)``.
    @discardableResult
    public func subscribe(to node: Node) async throws(XMPPClientError) -> Subscription {
        let jid = try await self.account()
        let answer = try await self.link.request(PubSubHandler.subscribe(jid, to: node))
        let element = answer.child("pubsub", XMPPNamespace.pubsub)?.child("subscription")
        // §6.1.2 (1.0 to 1.12 had none): an empty result is a success.
        return element.flatMap { Subscription($0, node: node.name) }
            ?? Subscription(node: node.name, jid: jid, id: nil, state: .subscribed)
    }

    /// Ends a subscription of the account (§6.2).
    ///
    /// - Parameters:
    ///   - node: the node.
    ///   - id: which one, where the account has several.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func unsubscribe(from node: Node, id: String? = nil) async throws(XMPPClientError) {
        let jid = try await self.account()
        try await self.link.request(PubSubHandler.unsubscribe(jid, from: node, id: id))
    }

    /// The account's subscriptions at a service (§5.6).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func subscriptions(at service: JID? = nil) async throws(XMPPClientError) -> [Subscription] {
        let list = XMPPElement("subscriptions", namespace: XMPPNamespace.pubsub)
        let answer = try await self.link.request(PubSubHandler.iq("get", list, at: service))
        return (answer.child("pubsub", XMPPNamespace.pubsub)?.child("subscriptions")?.elements ?? [])
            .compactMap { Subscription($0, node: nil) }
    }

    /// The account's affiliations at a service, by node (§5.7).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func affiliations(at service: JID? = nil) async throws(XMPPClientError) -> [String: Affiliation] {
        let list = XMPPElement("affiliations", namespace: XMPPNamespace.pubsub)
        let answer = try await self.link.request(PubSubHandler.iq("get", list, at: service))
        return (answer.child("pubsub", XMPPNamespace.pubsub)?.child("affiliations")?.elements ?? [])
            .reduce(into: [:]) { all, element in
                guard element.name == "affiliation", let node = element["node"] else { return }
                all[node] = element["affiliation"].flatMap { Affiliation(rawValue: $0) }
            }
    }

    /// All affiliations at a node, as its owner sees them (§8.9).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func affiliations(of node: Node) async throws(XMPPClientError) -> [JID: Affiliation] {
        let answer = try await self.link.request(PubSubHandler.owner("get", "affiliations", node))
        return (answer.child("pubsub", XMPPNamespace.pubsubOwner)?.child("affiliations")?.elements ?? [])
            .reduce(into: [:]) { all, element in
                guard element.name == "affiliation", let jid = element.jid("jid") else { return }
                all[jid] = element["affiliation"].flatMap { Affiliation(rawValue: $0) }
            }
    }

    /// Changes the affiliation of a person at a node (§8.9.2).
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func setAffiliation(_ affiliation: Affiliation, of jid: JID, at node: Node) async throws(XMPPClientError) {
        let element = XMPPElement(
            "affiliation",
            namespace: XMPPNamespace.pubsubOwner,
            attributes: ["jid": jid.bare.description, "affiliation": affiliation.rawValue]
        )
        try await self.link.request(PubSubHandler.owner("set", "affiliations", node, [element]))
    }

    // MARK: Items

    /// Publishes something (§7.1).
    ///
    /// - Parameters:
    ///   - payload: one element.
    ///   - id: replaces the item with this id; `nil` lets the service choose.
    ///   - node: the node; personal nodes are made where there is none.
    ///   - options: what the node has to be configured as, such as `pubsub#persist_items`; a service refuses the item
    ///     otherwise (§7.1.5).
    /// - Returns: the item's id, if there is one.
    /// - Throws: as ``XMPPClient/request(_:)``; `refused` with `conflict` for unmet options.
    @discardableResult
    public func publish(
        _ payload: XMPPElement,
        id: String? = nil,
        to node: Node,
        options: KeyValuePairs<String, String?> = [:]
    ) async throws(XMPPClientError) -> String? {
        let answer = try await self.link.request(PubSubHandler.publish(payload, id: id, to: node, options))
        return answer.child("pubsub", XMPPNamespace.pubsub)?.child("publish")?.child("item")?["id"] ?? id
    }

    /// Deletes an item (§7.2).
    ///
    /// - Parameters:
    ///   - id: the item's.
    ///   - node: the node.
    ///   - notifies: whether subscribers are to be told, however the node is configured.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func retract(_ id: String, from node: Node, notifies: Bool = false) async throws(XMPPClientError) {
        try await self.link.request(PubSubHandler.retract(id, from: node, notifies: notifies))
    }

    /// Asks for items of a node (§6.5).
    ///
    /// - Parameters:
    ///   - node: the node.
    ///   - max: only the latest, at most this many.
    ///   - ids: only these; empty for all.
    /// - Returns: the items in the order of the service.
    /// - Throws: as ``XMPPClient/request(_:)``; `refused` with `item-not-found` for no node.
    public func items(of node: Node, max: Int? = nil, ids: [String] = []) async throws(XMPPClientError) -> [Item] {
        let answer = try await self.link.request(PubSubHandler.items(of: node, max: max, ids: ids))
        return (answer.child("pubsub", XMPPNamespace.pubsub)?.child("items")?.elements ?? [])
            .compactMap { $0.name == "item" ? Item($0) : nil }
    }

    private func account() async throws(XMPPClientError) -> JID {
        try await self.ask { (_: PubSubHandler, context, answer) in
            answer(context.jid.map { .success($0.bare) } ?? .failure(.notSent))
        }
    }
}

extension XMPPPubSub.Item {
    init(_ element: XMPPElement) {
        self.init(id: element["id"], publisher: element.jid("publisher"), payload: element.elements.first)
    }
}

extension XMPPPubSub.Subscription {
    init?(_ element: XMPPElement, node: String?) {
        guard element.name == "subscription", let jid = element.jid("jid") else { return nil }
        self.init(
            node: element["node"] ?? node,
            jid: jid,
            id: element["subid"],
            state: element["subscription"].flatMap { State(rawValue: $0) } ?? .none
        )
    }
}

extension XMPPPubSub.Event {
    /// Bytes that it takes in memory, or so.
    package var estimatedSize: Int {
        switch self {
        case .published(let node, let item):
            192 + node.estimatedSize + (item.id?.utf8.count ?? 0) + (item.publisher?.estimatedSize ?? 0)
                + (item.payload?.estimatedSize ?? 0)
        case .retracted(let node, let id): 64 + node.estimatedSize + id.utf8.count
        case .purged(let node), .deleted(let node): node.estimatedSize
        case .configured(let node, let form): node.estimatedSize + (form?.estimatedSize ?? 0)
        case .subscription(let node, let subscription):
            128 + node.estimatedSize + (subscription.node?.utf8.count ?? 0) + subscription.jid.estimatedSize
                + (subscription.id?.utf8.count ?? 0)
        }
    }
}

extension XMPPPubSub.Node {
    fileprivate var estimatedSize: Int { 64 + self.name.utf8.count + (self.service?.estimatedSize ?? 0) }
}
