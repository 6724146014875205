package import XMPPCodec

/// Nodes that are published to and subscribed to.
///
/// Spec: XEP-0060; with `nil` for the service XEP-0163, the account's own.
package final class PubSubHandler: XMPPHandler {
    private let told: (XMPPPubSub.Event) -> Void

    package init(_ told: @escaping (XMPPPubSub.Event) -> Void) { self.told = told }

    // MARK: Requests

    package static func create(
        _ name: String?,
        at service: JID?,
        _ configuration: KeyValuePairs<String, String?>
    ) -> XMPPElement {
        var configure: XMPPElement?
        if !configuration.isEmpty {
            configure = XMPPElement("configure", namespace: XMPPNamespace.pubsub)
            configure?.add(XMPPDataForm.submit("\(XMPPNamespace.pubsub)#node_config", configuration).element)
        }
        return self.iq("set", self.element("create", name), configure, at: service)
    }

    package static func subscribe(_ jid: JID, to node: XMPPPubSub.Node) -> XMPPElement {
        self.iq("set", self.element("subscribe", node.name, ["jid": jid.description]), at: node.service)
    }

    /// `id`: its `subid`, where there are several.
    package static func unsubscribe(_ jid: JID, from node: XMPPPubSub.Node, id: String? = nil) -> XMPPElement {
        let element = self.element("unsubscribe", node.name, ["jid": jid.description, "subid": id])
        return self.iq("set", element, at: node.service)
    }

    package static func publish(
        _ payload: XMPPElement,
        id: String? = nil,
        to node: XMPPPubSub.Node,
        _ options: KeyValuePairs<String, String?> = [:]
    ) -> XMPPElement {
        var item = XMPPElement("item", namespace: XMPPNamespace.pubsub, attributes: ["id": id])
        item.add(payload)
        var publish = self.element("publish", node.name)
        publish.add(item)
        var wanted: XMPPElement?
        if !options.isEmpty {
            wanted = XMPPElement("publish-options", namespace: XMPPNamespace.pubsub)
            wanted?.add(XMPPDataForm.submit("\(XMPPNamespace.pubsub)#publish-options", options).element)
        }
        return self.iq("set", publish, wanted, at: node.service)
    }

    package static func retract(_ id: String, from node: XMPPPubSub.Node, notifies: Bool = false) -> XMPPElement {
        var retract = self.element("retract", node.name, ["notify": notifies ? "true" : nil])
        retract.add(XMPPElement("item", namespace: XMPPNamespace.pubsub, attributes: ["id": id]))
        return self.iq("set", retract, at: node.service)
    }

    package static func items(of node: XMPPPubSub.Node, max: Int? = nil, ids: [String] = []) -> XMPPElement {
        var items = self.element("items", node.name, ["max_items": max.map { String($0) }])
        for id in ids { items.add(XMPPElement("item", namespace: XMPPNamespace.pubsub, attributes: ["id": id])) }
        return self.iq("get", items, at: node.service)
    }

    package static func owner(
        _ type: String,
        _ name: String,
        _ node: XMPPPubSub.Node,
        _ children: [XMPPElement] = []
    ) -> XMPPElement {
        var element = XMPPElement(name, namespace: XMPPNamespace.pubsubOwner, attributes: ["node": node.name])
        for child in children { element.add(child) }
        return self.iq(type, element, at: node.service)
    }

    package static func iq(
        _ type: String,
        _ element: XMPPElement,
        _ more: XMPPElement? = nil,
        at service: JID?
    ) -> XMPPElement {
        var pubsub = XMPPElement("pubsub", namespace: element.namespace)
        pubsub.add(element)
        if let more { pubsub.add(more) }
        return .iq(type, to: service, pubsub)
    }

    private static func element(
        _ name: String,
        _ node: String?,
        _ more: KeyValuePairs<String, String?> = [:]
    ) -> XMPPElement {
        var element = XMPPElement(name, namespace: XMPPNamespace.pubsub, attributes: ["node": node])
        for (name, value) in more { element[name] = value }
        return element
    }

    // MARK: Events

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name == "message", stanza["type"] != "error",
            let event = stanza.child("event", XMPPNamespace.pubsubEvent)
        else { return false }
        let isOwn = context.isFromOwnAccount(stanza)
        let service = isOwn ? nil : stanza.jid("from")
        // A sender that cannot be read is no service.
        guard isOwn || service != nil else { return true }
        for element in event.elements where element.namespace == XMPPNamespace.pubsubEvent {
            self.received(element, of: XMPPPubSub.Node(element["node"] ?? "", at: service))
        }
        return true
    }

    private func received(_ element: XMPPElement, of node: XMPPPubSub.Node) {
        switch element.name {
        case "purge": self.told(.purged(node))
        case "delete": self.told(.deleted(node))
        case "configuration":
            self.told(.configured(node, element.child("x", XMPPNamespace.dataForms).flatMap { XMPPDataForm($0) }))
        case "subscription":
            if let subscription = XMPPPubSub.Subscription(element, node: node.name) {
                self.told(.subscription(node, subscription))
            }
        case "items":
            for item in element.elements {
                if item.name == "retract" {
                    if let id = item["id"] { self.told(.retracted(node, id: id)) }
                } else if item.name == "item" {
                    self.told(.published(node, XMPPPubSub.Item(item)))
                }
            }
        default: break
        }
    }
}
