import NIOCore
import Testing
import XMPP

extension ConnectionRig {
    private static let feature = "<sm xmlns='urn:xmpp:sm:3'/>"

    /// A stream that is ready, and that can be resumed.
    static func resumable(_ modules: [any XMPPHandler]) throws -> ConnectionRig {
        let options = Self.options {
            $0.management = .resume
            $0.keepAlive = .zero
        }
        let rig = try ConnectionRig.ready(options, features: Self.feature, modules: modules)
        try rig.receive("<enabled xmlns='urn:xmpp:sm:3' id='s1' resume='true'/>")
        _ = try rig.sent()
        return rig
    }

    /// The same as ``login(features:)`` over a WebSocket: each element is a message of its own (RFC 7395 §3.3).
    func loginOverWebSocket(features inner: String) throws {
        let open = { (id: String) in
            "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' from='im.example.com' id='\(id)' version='1.0'/>"
        }
        let features = { (inner: String) in
            "<stream:features xmlns:stream='http://etherx.jabber.org/streams'>\(inner)</stream:features>"
        }
        let mechanisms =
            "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
        try self.receive(open("a"))
        try self.receive(features(mechanisms))
        try self.receive("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        try self.receive(open("b"))
        try self.receive(features("<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>\(inner)"))
        guard self.stream.pointee.state == .binding else { return }
        try self.receive(
            """
            <iq xmlns='jabber:client' type='result' id='00000000000000001'>\
            <bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>juliet@im.example.com/balcony</jid></bind></iq>
            """
        )
    }

    /// The stream on a new connection of the same modules: resumed with this count, or bound anew without one.
    ///
    /// `early`: what the server says before the new stream is ready.
    func reconnected(_ modules: [any XMPPHandler], resumed count: Int?, early: String = "") throws -> ConnectionRig {
        self.channel.close(promise: nil)
        let next = try ConnectionRig(
            self.stream.pointee.options,
            account: self.stream.pointee.account,
            place: self.place,
            modules: modules
        )
        next.start()
        try next.login(features: Self.feature)
        _ = try next.sent()
        if let count {
            try next.receive("<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='\(count)'/>")
        } else {
            try next.receive("<failed xmlns='urn:xmpp:sm:3'/>")
            let id = try #require(try next.sent().split(separator: "id='").last?.split(separator: "'").first)
            let bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>juliet@im.example.com/balcony</jid></bind>"
            try next.receive("<iq type='result' id='\(id)'>\(bind)</iq>")
            _ = try next.sent()
            try next.receive("\(early)<enabled xmlns='urn:xmpp:sm:3' id='s2' resume='true'/>")
        }
        return next
    }
}
