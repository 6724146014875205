package import NIOCore
package import XMPPCodec

/// Answers requests for delivery receipts, and reports the receipts of own messages.
///
/// Spec: XEP-0184, XEP-0333.
package final class ReceiptsHandler: XMPPHandler {
    private struct Key: Hashable {
        let id: String
        /// The bare address that the message went to.
        let to: JID
        let stage: XMPPReceipts.Stage
    }

    private let answers: (JID) -> Bool
    private let told: (XMPPReceipts.Event) -> Void
    private var waiting = XMPPWaiting<Key, JID>()

    /// - Parameters:
    ///   - answers: senders whose receipt requests are answered, which shows them that this client is online; default:
    ///     all.
    ///   - told: called for each receipt and marker.
    package init(
        answers: @escaping (JID) -> Bool = { _ in true },
        told: @escaping (XMPPReceipts.Event) -> Void = { _ in }
    ) {
        self.answers = answers
        self.told = told
    }

    /// Sends a message that asks for a confirmation; the answer comes once.
    ///
    /// A confirmation counts from any client of the addressee.
    package func deliver(
        _ message: XMPPElement,
        to: JID,
        until stage: XMPPReceipts.Stage,
        timeout: TimeAmount?,
        in context: XMPPModuleContext,
        _ answer: @escaping Answer<JID>
    ) {
        do throws(XMPPWriteError) {
            guard try context.send(message) else { return answer(.failure(.notSent)) }
        } catch {
            return answer(.failure(.invalid(error.description)))
        }
        let key = Key(id: message["id"] ?? "", to: to.bare, stage: stage)
        self.waiting.add(key, until: timeout.map { context.now + $0 } ?? .distantFuture, answer)
        context.updateTimer()
    }

    package var deadline: NIODeadline { self.waiting.earliest }

    package func timerFired(in context: XMPPModuleContext) {
        for (_, answers) in self.waiting.takeOverdue(now: context.now) {
            for answer in answers { answer(.failure(.timedOut)) }
        }
    }

    package func ended(_ end: XMPPClientEnd) {
        for answer in self.waiting.takeAll() { answer(.failure(.connectionLost)) }
    }

    private func confirmed(_ id: String, _ stage: XMPPReceipts.Stage, by stanza: XMPPElement, _ own: JID?) {
        let from = stanza.jid("from")
        self.told(XMPPReceipts.Event(stage: stage, id: id, from: from))
        guard let sender = from ?? own?.bare else { return }
        var answers = self.waiting.take(Key(id: id, to: sender.bare, stage: stage))
        // A message that was displayed has been received.
        if stage == .displayed { answers += self.waiting.take(Key(id: id, to: sender.bare, stage: .received)) }
        for answer in answers { answer(.success(sender)) }
    }

    private func bounced(_ stanza: XMPPElement, _ own: JID?) {
        guard let id = stanza["id"], let error = StanzaError(stanza),
            let sender = stanza.jid("from") ?? own?.bare
        else { return }
        for stage in XMPPReceipts.Stage.allCases {
            for answer in self.waiting.take(Key(id: id, to: sender.bare, stage: stage)) {
                answer(.failure(.refused(error)))
            }
        }
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

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name == "message" else { return false }
        guard stanza["type"] != "error" else {
            self.bounced(stanza, context.jid)
            return false
        }
        // A message with a text is for the application, also one that confirms another.
        let isConsumed = stanza.child("body", XMPPNamespace.client) == nil
        if let id = stanza.child("displayed", XMPPNamespace.chatMarkers)?["id"] {
            self.confirmed(id, .displayed, by: stanza, context.jid)
            return isConsumed
        }
        // §5.3: never in a room.
        guard stanza["type"] != "groupchat" else { return false }
        if let receipt = stanza.child("received", XMPPNamespace.receipts) {
            if let id = receipt["id"] { self.confirmed(id, .received, by: stanza, context.jid) }
            return isConsumed
        }
        guard stanza.child("request", XMPPNamespace.receipts) != nil, let id = stanza["id"], let from = stanza["from"],
            let sender = try? JID(received: from), self.answers(sender)
        else { return false }
        let receipt = XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: ["to": from, "type": stanza["type"], "id": context.makeID()],
            children: [.element(XMPPElement("received", namespace: XMPPNamespace.receipts, attributes: ["id": id]))]
        )
        // Writing cannot fail: the id was read from XML.
        _ = try? context.send(receipt)
        return false
    }
}
