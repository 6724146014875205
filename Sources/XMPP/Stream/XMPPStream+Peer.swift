import NIOCore
import XMPPCodec

// A stream between two clients, without a server: ready after the headers (XEP-0174 §7).
extension XMPPStream {
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
