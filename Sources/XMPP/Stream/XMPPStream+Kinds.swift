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
        query.add("username", text: self.account.jid.local ?? "")
        self.ask("get", query, to: self.account.jid.domain, into: &out)
        return .none
    }

    mutating func receivedAboutLegacy(_ element: XMPPElement, now: NIODeadline, into out: inout ByteBuffer) -> Action {
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
        query.add("username", text: self.account.jid.local ?? "")
        if asked.child("digest") != nil {
            query.add("digest", text: self.digest)
        } else if self.facts.contains(.secure) || self.options.allowsPlainWithoutTLS {
            query.add("password", text: self.account.password)
        } else {
            return self.end(.passwordInClear, into: &out)
        }
        query.add("resource", text: self.account.jid.resource ?? Self.resource)
        self.ask("set", query, to: self.account.jid.domain, into: &out)
        return .none
    }

    /// The proof of the password by the stream's id.
    private var digest: String {
        LegacyDigest.digits(streamID: self.negotiation?.streamID ?? "", password: self.account.password)
    }

    // MARK: - A component of a server: a stream that is ready after a handshake by a shared secret (XEP-0114)

    // Stanzas are in `jabber:component:accept`, which means the same as `jabber:client`: the reader takes it for that,
    // and what is written inherits the header's namespace.

    mutating func openAsComponent(into out: inout ByteBuffer) {
        out.writeStaticString("<stream:stream")
        Self.write("to", self.account.jid.domain, into: &out)
        out.writeStaticString(" xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'>")
    }

    /// The proof is the digest of jabber:iq:auth (§3).
    mutating func beginHandshake(now: NIODeadline, into out: inout ByteBuffer) -> Action {
        self.enter(.sasl, now: now)
        self.state = .auth
        self.append(XMPPElement("handshake", namespace: XMPPNamespace.client, text: self.digest), into: &out)
        return .none
    }

    mutating func receivedAboutHandshake(
        _ element: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        guard element.isNamed("handshake", XMPPNamespace.client) else { return self.unexpected(element, into: &out) }
        self.jid = self.account.jid
        self.facts.formUnion([.authenticated, .bound, .session])
        return self.becomeReady(now: now)
    }

    // MARK: - A stream between two clients, without a server: ready after the headers (XEP-0174 §7)

    mutating func awaitPeer(now: NIODeadline) {
        self.state = .opening
        self.enter(.stream, now: now)
    }

    /// The header names both; addresses between clients are bare.
    mutating func openToPeer(id: String?, into out: inout ByteBuffer) {
        out.writeStaticString("<stream:stream")
        Self.write("to", self.account.peer?.bare.description, into: &out)
        Self.write("from", self.account.jid.bare.description, into: &out)
        Self.write("id", id, into: &out)
        out.writeStaticString(" version='1.0' xmlns='jabber:client'")
        out.writeStaticString(" xmlns:stream='http://etherx.jabber.org/streams'>")
    }

    mutating func openedByPeer(
        _ header: StreamHeader,
        _ role: XMPPPeerRole,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        let from = header.from.flatMap { try? JID(received: $0) }
        self.jid = self.account.jid
        self.facts.formUnion([.authenticated, .bound])
        let hasFeatures = (header.majorVersion ?? 0) >= 1
        switch role {
        case .initiator:
            // A peer that was reached by its known address need not name itself.
            guard from != nil || header.from == nil && self.account.peer != nil else {
                return self.end(.header("it does not say who it is from"), into: &out)
            }
            if let from, let peer = self.account.peer, from.bare != peer.bare {
                return self.end(.header("it is from '\(header.from ?? "")', and not from the peer"), into: &out)
            }
            if self.account.peer == nil { self.account.peer = from?.bare }
            // §7: without a version there are no features to wait for.
            return hasFeatures ? .none : self.becomeReady(now: now)
        case .recipient:
            guard let from else {
                // Nothing was opened here that would have to be closed.
                self.state = .disconnected
                return .end(.header("it does not say who it is from"))
            }
            self.account.peer = from.bare
            out.writeStaticString("<?xml version='1.0'?>")
            self.openToPeer(id: self.makeID(), into: &out)
            if hasFeatures { out.writeStaticString("<stream:features/>") }
            return self.becomeReady(now: now)
        }
    }
}
