package import NIOCore
package import XMPPCodec

/// Nodes that are published to and subscribed to.
///
/// Spec: XEP-0060; with `nil` for the service XEP-0163, the account's own.
package final class XMPPPubSub: XMPPModule {
    package enum Event: Hashable, Sendable {
        case item(service: JID?, node: String, id: String?, XMPPElement?)
        case retracted(service: JID?, node: String, id: String)
        case purged(service: JID?, node: String)
        case deleted(service: JID?, node: String)
    }

    package typealias Answer = (Result<XMPPElement, XMPPRequestError>) -> Void

    private let told: (Event) -> Void

    package init(_ told: @escaping (Event) -> Void) { self.told = told }

    /// `configuration`: fields of the form `pubsub#node_config`, such as `pubsub#max_items`.
    package static func create(
        _ node: String,
        at service: JID?,
        configuration: [(String, String)] = [],
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping Answer
    ) {
        var pubsub = XMPPElement("pubsub", namespace: XMPPNamespace.pubsub)
        pubsub.add(self.element("create", node))
        if !configuration.isEmpty {
            var configure = XMPPElement("configure", namespace: XMPPNamespace.pubsub)
            configure.add(self.form(configuration))
            pubsub.add(configure)
        }
        connection.request(.iq("set", to: service, pubsub), timeout: timeout, answer)
    }

    package static func delete(
        _ node: String,
        at service: JID?,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping Answer
    ) {
        let delete = XMPPElement("delete", namespace: XMPPNamespace.pubsubOwner, attributes: ["node": node])
        self.ask("set", delete, at: service, on: connection, timeout, answer)
    }

    package static func subscribe(
        to node: String,
        at service: JID?,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping Answer
    ) {
        self.ask("set", self.element("subscribe", node, connection), at: service, on: connection, timeout, answer)
    }

    /// `subscription`: its `subid`, where there are several.
    package static func unsubscribe(
        from node: String,
        at service: JID?,
        subscription: String? = nil,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping Answer
    ) {
        var element = self.element("unsubscribe", node, connection)
        element["subid"] = subscription
        self.ask("set", element, at: service, on: connection, timeout, answer)
    }

    package static func publish(
        _ payload: XMPPElement,
        id: String? = nil,
        to node: String,
        at service: JID?,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping Answer
    ) {
        var item = XMPPElement("item", namespace: XMPPNamespace.pubsub, attributes: ["id": id])
        item.add(payload)
        var publish = self.element("publish", node)
        publish.add(item)
        self.ask("set", publish, at: service, on: connection, timeout, answer)
    }

    package static func retract(
        _ id: String,
        from node: String,
        at service: JID?,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping Answer
    ) {
        var retract = self.element("retract", node)
        retract.add(XMPPElement("item", namespace: XMPPNamespace.pubsub, attributes: ["id": id]))
        self.ask("set", retract, at: service, on: connection, timeout, answer)
    }

    /// `max`: requests the latest items only, at most this many.
    package static func items(
        of node: String,
        at service: JID?,
        max: Int? = nil,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping Answer
    ) {
        var items = self.element("items", node)
        items["max_items"] = max.map { String($0) }
        self.ask("get", items, at: service, on: connection, timeout, answer)
    }

    package static func purge(
        _ node: String,
        at service: JID?,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping Answer
    ) {
        let purge = XMPPElement("purge", namespace: XMPPNamespace.pubsubOwner, attributes: ["node": node])
        self.ask("set", purge, at: service, on: connection, timeout, answer)
    }

    // MARK: Help

    private static func ask(
        _ type: String,
        _ element: XMPPElement,
        at service: JID?,
        on connection: XMPPConnection,
        _ timeout: TimeAmount,
        _ answer: @escaping Answer
    ) {
        var pubsub = XMPPElement("pubsub", namespace: element.namespace)
        pubsub.add(element)
        connection.request(.iq(type, to: service, pubsub), timeout: timeout, answer)
    }

    private static func element(_ name: String, _ node: String, _ connection: XMPPConnection? = nil) -> XMPPElement {
        XMPPElement(
            name,
            namespace: XMPPNamespace.pubsub,
            attributes: ["node": node, "jid": connection?.jid?.bare.description]
        )
    }

    private static func form(_ fields: [(String, String)]) -> XMPPElement {
        var form = XMPPElement("x", namespace: XMPPNamespace.dataForms, attributes: ["type": "submit"])
        for (name, value) in [("FORM_TYPE", "http://jabber.org/protocol/pubsub#node_config")] + fields {
            var field = XMPPElement("field", namespace: XMPPNamespace.dataForms, attributes: ["var": name])
            field.add(XMPPElement("value", namespace: XMPPNamespace.dataForms, text: value))
            form.add(field)
        }
        return form
    }

    // MARK: Events

    package func handle(_ stanza: XMPPElement, on connection: XMPPConnection, now: NIODeadline) -> Bool {
        guard stanza.name == "message", stanza["type"] != "error",
            let event = stanza.child("event", XMPPNamespace.pubsubEvent)
        else { return false }
        let service = stanza["from"].flatMap { try? JID(received: $0) }
        for element in event.elements {
            let node = element["node"] ?? ""
            switch element.name {
            case "purge": self.told(.purged(service: service, node: node))
            case "delete": self.told(.deleted(service: service, node: node))
            case "items":
                for item in element.elements {
                    let id = item["id"]
                    if item.name == "retract" {
                        self.told(.retracted(service: service, node: node, id: id ?? ""))
                    } else {
                        self.told(.item(service: service, node: node, id: id, item.elements.first))
                    }
                }
            default: break
            }
        }
        return true
    }
}
