package import NIOCore
package import XMPPCodec

/// Answers requests for delivery receipts, and reports the receipts of own messages.
///
/// Spec: XEP-0184, XEP-0333.
package final class XMPPReceipts: XMPPModule {
    private let answers: (JID) -> Bool
    private let received: (String, JID?) -> Void
    private let displayed: (String, JID?) -> Void

    /// - Parameters:
    ///   - answers: senders whose receipt requests are answered, which shows them that this client is online; default:
    ///     all.
    ///   - received: called for each receipt with the id of our message and its receiver.
    ///   - displayed: called the same way for each message that was displayed.
    package init(
        answers: @escaping (JID) -> Bool = { _ in true },
        received: @escaping (_ id: String, _ from: JID?) -> Void = { _, _ in },
        displayed: @escaping (_ id: String, _ from: JID?) -> Void = { _, _ in }
    ) {
        self.answers = answers
        self.received = received
        self.displayed = displayed
    }

    /// Requests a receipt, in a message that has an id and may get one.
    package static func ask(in message: inout XMPPElement) {
        guard message["id"] != nil, message["type"] != "groupchat" else { return }
        message.add(XMPPElement("request", namespace: XMPPNamespace.receipts))
    }

    /// Requests a displayed marker for a message that has an id, also in rooms.
    package static func askForMarker(in message: inout XMPPElement) {
        guard message["id"] != nil else { return }
        message.add(XMPPElement("markable", namespace: XMPPNamespace.chatMarkers))
    }

    /// The marker that reports a message as displayed; `nil` if the sender did not ask for one.
    package static func marker(for message: XMPPElement) -> XMPPElement? {
        guard message.name == "message", message.child("markable", XMPPNamespace.chatMarkers) != nil,
            let id = message["id"], let from = message["from"], message["type"] != "error"
        else { return nil }
        let isRoom = message["type"] == "groupchat"
        // XEP-0333 §4: in a room the marker goes to the whole room.
        let to = isRoom ? (try? JID(received: from))?.bare.description ?? from : from
        var marker = XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: ["to": to, "type": message["type"]]
        )
        marker.add(XMPPElement("displayed", namespace: XMPPNamespace.chatMarkers, attributes: ["id": id]))
        return marker
    }

    package func handle(_ stanza: XMPPElement, on connection: XMPPConnection, now: NIODeadline) -> Bool {
        guard stanza.name == "message", stanza["type"] != "error" else { return false }
        if let id = stanza.child("displayed", XMPPNamespace.chatMarkers)?["id"] {
            self.displayed(id, stanza["from"].flatMap { try? JID(received: $0) })
            return true
        }
        // §5.3: never in a room.
        guard stanza["type"] != "groupchat" else { return false }
        if let receipt = stanza.child("received", XMPPNamespace.receipts) {
            if let id = receipt["id"] {
                self.received(id, stanza["from"].flatMap { try? JID(received: $0) })
            }
            return true
        }
        guard stanza.child("request", XMPPNamespace.receipts) != nil, let id = stanza["id"], let from = stanza["from"],
            let sender = try? JID(received: from), self.answers(sender)
        else { return false }
        let receipt = XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: [
                "to": from, "type": stanza["type"], "id": connection.stream.pointee.makeID(),
            ],
            children: [
                .element(
                    XMPPElement("received", namespace: XMPPNamespace.receipts, attributes: ["id": id])
                )
            ]
        )
        // Writing cannot fail: the id was read from XML.
        _ = try? connection.send(receipt)
        return false
    }
}
