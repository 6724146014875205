import NIOCore
import SASL
import XMPPCodec

// A component of a server: a stream that is ready after a handshake by a shared secret (XEP-0114).
//
// Stanzas are in `jabber:component:accept`, which means the same as `jabber:client`: the reader takes it for that, and
// what is written inherits the header's namespace.
extension XMPPStream {
    mutating func openAsComponent(into out: inout ByteBuffer) {
        out.writeStaticString("<stream:stream")
        Self.write("to", self.account.jid.domain, into: &out)
        out.writeStaticString(" xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'>")
    }

    /// The proof is the digest of jabber:iq:auth (§3).
    mutating func beginHandshake(now: NIODeadline, into out: inout ByteBuffer) -> Action {
        self.enter(.sasl, now: now)
        self.state = .auth
        let digits = LegacyDigest.digits(
            streamID: self.negotiation?.streamID ?? "",
            password: self.account.password
        )
        self.append(XMPPElement("handshake", namespace: XMPPNamespace.client, text: digits), into: &out)
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
}
