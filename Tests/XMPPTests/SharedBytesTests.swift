import LoopContext
import NIOCore
import NIOEmbedded
import Testing
import XMPP

/// All connections of a loop write into one buffer: what one leaves there must not leave on another.
@Suite("Connections that share a loop's buffer")
struct SharedBytesTests {
    private static let request = "<iq type='get' id='q'><x xmlns='y'/></iq>"

    private static func two(
        _ options: XMPPStreamOptions = ConnectionRig.options()
    ) throws -> (ConnectionRig, ConnectionRig) {
        let context = LoopContext(eventLoop: EmbeddedEventLoop())
        let rig = try ConnectionRig(options, account: ConnectionRig.account, sharing: context)
        return (try ConnectionRig.ready(sharing: context), rig)
    }

    private static func say(_ text: String, on rig: ConnectionRig) { rig.connection.send { $0.writeString(text) } }

    @Test("[RFC 6120 §5.4.2] a server that proceeds before it is asked gets the request, and no other connection does")
    func earlyProceed() throws {
        let (other, rig) = try Self.two(ConnectionRig.options { $0.tlsPolicy = .required })
        rig.start()
        _ = try rig.sent()
        let offer = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
        let proceed = "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
        try rig.receive("\(ConnectionRig.header)a'><stream:features>\(offer)</stream:features>\(proceed)")
        Self.say("<message/>", on: other)
        #expect(try other.sent() == "<message/>")
        #expect(try rig.sent() == offer)
        #expect(rig.observer.tls != nil)
    }

    @Test("what was appended and not written goes with its connection")
    func appended() throws {
        let (other, _) = try Self.two()
        let rig = try ConnectionRig.ready(sharing: other.context)
        rig.connection.append { $0.writeString("<presence/>") }
        rig.connection.abort()
        Self.say("<message/>", on: other)
        #expect(try other.sent() == "<message/>")
        let third = try ConnectionRig.ready(sharing: other.context)
        third.connection.append { $0.writeString("<presence/>") }
        Self.say("<message/>", on: other)
        #expect(try third.sent() == "<presence/>")
        #expect(try other.sent() == "<message/>")
    }

    @Test("what is sent on one connection while another is read leaves on its own")
    func inAnothersRead() throws {
        let (other, _) = try Self.two()
        let rig = try ConnectionRig.ready(sharing: other.context)
        var asked = 0
        rig.observer.onRequest = { _ in
            asked += 1
            if asked == 2 { Self.say("<message/>", on: other) }
            return false
        }
        try rig.receive(Self.request + Self.request + Self.request)
        #expect(try other.sent() == "<message/>")
        #expect(try rig.sent().split(separator: "<iq ").count == 3)
    }

    @Test("a connection that never started leaves the stream alone, which is another's by then")
    func neverStarted() throws {
        let rig = try ConnectionRig.ready()
        let late = try rig.again()
        late.channel.close(promise: nil)
        #expect(late.end == .lost)
        Self.say("<message/>", on: rig)
        #expect(try rig.sent() == "<message/>")
    }
}
