import Testing
import XMPP
import XMPPCodec

/// As in a load: what the server offers each of a loop's streams is looked up by its bytes.
@Suite("Streams that share what their server offers")
struct SharedFeaturesTests {
    private static func rig(_ shared: XMPPStreamShared) throws -> ConnectionRig {
        let place = StreamPlace(XMPPStream(ConnectionRig.account, shared: shared))
        let rig = try ConnectionRig(shared.options, account: ConnectionRig.account, place: place)
        rig.start()
        _ = try rig.sent()
        return rig
    }

    @Test("each logs in, the second by what the first was offered")
    func logins() throws {
        let shared = XMPPStreamShared(ConnectionRig.options(), features: FeatureTrees())
        for _ in 0..<3 {
            let rig = try Self.rig(shared)
            try rig.login()
            #expect(
                rig.observer.calls == [
                    .ready("juliet@im.example.com/balcony", resumed: false, acknowledged: 0, lost: 0)
                ]
            )
        }
    }

    @Test("[XML-NAMES §6.1] the same bytes are another offer where the header binds their prefix to something else")
    func prefixes() throws {
        let shared = XMPPStreamShared(ConnectionRig.options(), features: FeatureTrees())
        let offer = "<stream:features><o:mechanisms><o:mechanism>PLAIN</o:mechanism></o:mechanisms></stream:features>"
        for (namespace, isOffered) in [("urn:other", false), (XMPPNamespace.sasl, true), ("urn:other", false)] {
            let rig = try Self.rig(shared)
            try rig.receive(ConnectionRig.header.replacing(" id=", with: " xmlns:o='\(namespace)' id=") + "a'>" + offer)
            #expect(try rig.sent().contains("<auth ") == isOffered, "\(namespace)")
            #expect((rig.end == nil) == isOffered, "\(namespace)")
        }
    }

    @Test("[RFC 6120 §4.8.2] a header with another default namespace ends its stream, whatever others were offered")
    func defaults() throws {
        let shared = XMPPStreamShared(ConnectionRig.options(), features: FeatureTrees())
        try Self.rig(shared).login()
        let rig = try Self.rig(shared)
        let mechanisms =
            "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
        try rig.receive(
            ConnectionRig.header.replacing("jabber:client", with: "jabber:server")
                + "a'><stream:features>\(mechanisms)</stream:features>"
        )
        #expect(rig.end == .header("its default namespace is 'jabber:server' and not jabber:client"))
    }

    @Test("[RFC 6120 §4.8.3] the default namespace may be that of streams; an offer is then one without a prefix")
    func streamsByDefault() throws {
        let shared = XMPPStreamShared(ConnectionRig.options(), features: FeatureTrees())
        let offer = "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
        // The same bytes are stanzas of no meaning where the default namespace is jabber:client.
        for (namespace, isOffered) in [(XMPPNamespace.client, false), (XMPPNamespace.stream, true)] {
            let rig = try Self.rig(shared)
            try rig.receive(
                ConnectionRig.header.replacing("jabber:client", with: namespace) + "a'><features>\(offer)</features>"
            )
            #expect(try rig.sent().contains("<auth ") == isOffered, "\(namespace)")
        }
        let rig = try Self.rig(shared)
        try rig.receive(
            ConnectionRig.header.replacing("jabber:client", with: XMPPNamespace.stream)
                + "a'><features>\(offer)</features>"
        )
        _ = try rig.sent()
        try rig.receive("<error><conflict xmlns='\(XMPPNamespace.streams)'/></error>")
        guard case .streamError = rig.end else { return #expect(Bool(false), "\(String(describing: rig.end))") }
    }
}
