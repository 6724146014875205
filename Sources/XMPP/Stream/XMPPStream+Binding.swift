import NIOCore
import XMPPCodec

// Resource and session (RFC 6120 §7, RFC 3921 §3).
extension XMPPStream {
    /// The requested resource, an alternative, and then the server's choice.
    private static let bindingAttempts = 3

    mutating func beginBinding(now: NIODeadline, into out: inout ByteBuffer) -> Action? {
        guard self.offered("bind", XMPPNamespace.bind) != nil else {
            return self.end(.featureMissing("resource binding"), into: &out)
        }
        self.enter(.bind, now: now)
        self.negotiation?.resource = self.account.jid.resource
        return self.bind(into: &out)
    }

    private mutating func bind(into out: inout ByteBuffer) -> Action {
        self.state = .binding
        self.negotiation?.bindings += 1
        var bind = XMPPElement("bind", namespace: XMPPNamespace.bind)
        if let resource = self.negotiation?.resource {
            var element = XMPPElement("resource", namespace: XMPPNamespace.bind)
            element.add(text: resource)
            bind.add(element)
        }
        self.ask("set", bind, into: &out)
        return .none
    }

    mutating func receivedAboutBinding(
        _ element: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        switch self.answer(in: element) {
        case .result(let answer):
            // §7.6: a full JID.
            guard let text = answer.child("bind", XMPPNamespace.bind)?.child("jid")?.text,
                let jid = try? JID(received: text),
                jid.resource != nil
            else { return self.end(.bindUnreadable, into: &out) }
            self.jid = jid
            self.facts.insert(.bound)
            self.negotiation?.awaitedID = ""
            return self.negotiate(now: now, into: &out)
        case .error(let error):
            guard let negotiation = self.negotiation, negotiation.bindings < Self.bindingAttempts,
                let resource = negotiation.resource
            else { return self.end(.bindRefused(error), into: &out) }
            switch error.condition {
            // §7.7.2.2: another session has the resource, and the server lets it keep the resource.
            case .conflict where negotiation.bindings == 1:
                negotiation.resource = "\(resource)-\(self.makeID().prefix(8))"
            case .conflict, .badRequest: negotiation.resource = nil
            // §7.6.2.1, §7.6.2.2: another resource changes nothing.
            default: return self.end(.bindRefused(error), into: &out)
            }
            return self.bind(into: &out)
        case .foreign: return .none
        case .unexpected:
            return element.name == "presence" || element.name == "message"
                ? .none : self.unexpected(element, into: &out)
        }
    }

    mutating func beginSession(into out: inout ByteBuffer) -> Action? {
        guard self.options.startsSession, let offer = self.offered("session", XMPPNamespace.session),
            offer.child("optional") == nil
        else { return nil }
        self.state = .startSession
        self.ask("set", XMPPElement("session", namespace: XMPPNamespace.session), into: &out)
        return Action.none
    }

    mutating func receivedAboutSession(
        _ element: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        switch self.answer(in: element) {
        case .result:
            self.facts.insert(.session)
            self.negotiation?.awaitedID = ""
            return self.negotiate(now: now, into: &out)
        case .error(let error): return self.end(.sessionRefused(error), into: &out)
        case .foreign: return .none
        case .unexpected: return self.unexpected(element, into: &out)
        }
    }
}
