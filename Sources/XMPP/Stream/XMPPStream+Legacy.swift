import NIOCore
import SASL
import XMPPCodec

// jabber:iq:auth, for streams without a version (XEP-0078, obsolete). Only on request.
extension XMPPStream {
    private static let namespace = XMPPNamespace.auth

    mutating func beginLegacyAuthentication(now: NIODeadline, into out: inout ByteBuffer) -> Action {
        // A stream without features has no STARTTLS either.
        if self.options.tlsPolicy == .required || self.options.tlsPolicy == .direct, !self.facts.contains(.secure) {
            return self.end(.tlsNotOffered, into: &out)
        }
        self.enter(.sasl, now: now)
        self.state = .auth
        self.negotiation?.mechanism = nil
        var query = XMPPElement("query", namespace: Self.namespace)
        query.add(self.field("username", self.account.jid.local ?? ""))
        self.ask("get", query, to: self.account.jid.domain, into: &out)
        return .none
    }

    private func field(_ name: String, _ text: String) -> XMPPElement {
        var element = XMPPElement(name, namespace: Self.namespace)
        element.add(text: text)
        return element
    }

    mutating func receivedAboutLegacy(
        _ element: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        switch self.answer(in: element) {
        case .result(let answer):
            if let query = answer.child("query", Self.namespace), !query.elements.isEmpty {
                // Asked once: a server that answers the proof by asking again would never end.
                if self.negotiation?.hasProven ?? true { return self.unexpected(element, into: &out) }
                self.negotiation?.hasProven = true
                return self.proveLegacy(query, into: &out)
            }
            let resource = self.account.jid.resource ?? Self.resource
            let bare = self.account.jid.bare.description
            guard let jid = try? JID("\(bare)/\(resource)") else { return self.end(.bindUnreadable, into: &out) }
            // The resource came with it, and there are no features to wait for.
            self.jid = jid
            self.facts.formUnion([.authenticated, .bound, .session])
            self.negotiation?.awaitedID = ""
            return self.negotiate(now: now, into: &out)
        case .error(let error): return self.end(.legacyRefused(error), into: &out)
        case .foreign: return .none
        case .unexpected: return self.unexpected(element, into: &out)
        }
    }

    /// The resource where none is given: this protocol cannot do without (§3.1).
    private static let resource = "clamor"

    private mutating func proveLegacy(_ asked: XMPPElement, into out: inout ByteBuffer) -> Action {
        var query = XMPPElement("query", namespace: Self.namespace)
        query.add(self.field("username", self.account.jid.local ?? ""))
        if asked.child("digest") != nil {
            let digest = LegacyDigest.digits(
                streamID: self.negotiation?.streamID ?? "",
                password: self.account.password
            )
            query.add(self.field("digest", digest))
        } else if self.facts.contains(.secure) || self.options.allowsPlainWithoutTLS {
            query.add(self.field("password", self.account.password))
        } else {
            return self.end(.passwordInClear, into: &out)
        }
        query.add(self.field("resource", self.account.jid.resource ?? Self.resource))
        self.ask("set", query, to: self.account.jid.domain, into: &out)
        return .none
    }
}
