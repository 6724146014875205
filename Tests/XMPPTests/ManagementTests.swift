import NIOCore
import Testing
import XMPP

@Suite("Stream management")
struct ManagementTests {
    @Test("[XEP-0198 §4] counts run modulo 2³²", arguments: [UInt32.max, UInt32.max - 1, 0, 5] as [UInt32])
    func wraps(_ start: UInt32) {
        var counts = StreamManagement(limit: 10, keeps: false, sent: start)
        counts.sends(3, ByteBuffer())
        #expect(counts.unacknowledged == 3)
        #expect(counts.receives(start &+ 2) == .acknowledged(2))
        #expect(counts.receives(start &+ 2) == .acknowledged(0))
        #expect(counts.receives(start &+ 4) == .tooHigh(start &+ 4, sent: start &+ 3))
        // A count that goes back is a count that is too high.
        #expect(counts.receives(start &+ 1) == .tooHigh(start &+ 1, sent: start &+ 3))
        #expect(counts.receives(start &+ 3) == .acknowledged(1))
        #expect(counts.unacknowledged == 0)
    }

    @Test("[XEP-0198 §5] what is not acknowledged is kept in order, and what is goes")
    func keeps() {
        var counts = StreamManagement(limit: 3, keeps: true)
        for text in ["a", "b", "c"] { counts.sends(1, ByteBuffer(string: text)) }
        #expect(counts.isFull)
        #expect(counts.receives(1) == .acknowledged(1))
        #expect(!counts.isFull)
        var out = ByteBuffer()
        var ends: [Int] = []
        counts.resend(into: &out) { ends.append($0.writerIndex) }
        #expect(String(buffer: out) == "bc")
        #expect(ends == [1, 2])
    }

    private static func options(_ management: XMPPManagement, every: Int = 0, limit: Int = 100) -> XMPPStreamOptions {
        ConnectionRig.options {
            $0.management = management
            $0.acknowledgesEvery = every
            $0.maximumUnacknowledged = limit
            $0.keepAlive = .zero
        }
    }

    private static let feature = "<sm xmlns='urn:xmpp:sm:3'/>"

    private static func managed(
        _ options: XMPPStreamOptions,
        id: String = "id='s1' resume='true'"
    ) throws -> ConnectionRig {
        let rig = try ConnectionRig.ready(options, features: Self.feature)
        try rig.receive("<enabled xmlns='urn:xmpp:sm:3' \(id)/>")
        _ = try rig.sent()
        #expect(
            rig.observer.calls == [.ready("juliet@im.example.com/balcony", resumed: false, acknowledged: 0, lost: 0)]
        )
        rig.observer.calls = []
        return rig
    }

    private func say(_ text: String, on rig: ConnectionRig) {
        let isTaken = rig.connection.send { $0.writeString("<message><body>\(text)</body></message>") }
        #expect(isTaken)
    }

    @Test("[XEP-0198 §4] an acknowledgement is asked for behind every so many stanzas")
    func every() throws {
        let rig = try Self.managed(Self.options(.acknowledge, every: 2))
        for text in ["1", "2", "3"] { self.say(text, on: rig) }
        let message = { (number: Int) in "<message><body>\(number)</body></message>" }
        #expect(try rig.sent() == "\(message(1))\(message(2))<r xmlns='urn:xmpp:sm:3'/>\(message(3))")
        try rig.receive("<a xmlns='urn:xmpp:sm:3' h='2'/><a xmlns='urn:xmpp:sm:3' h='2'/>")
        #expect(rig.observer.calls == [.acknowledged(2)])
        #expect(rig.unacknowledged == 1)
    }

    @Test("[C9 0198] what may be unacknowledged is bounded, and an acknowledgement makes room")
    func bounded() throws {
        let rig = try Self.managed(Self.options(.acknowledge, limit: 2))
        self.say("1", on: rig)
        #expect(rig.connection.isWritable)
        self.say("2", on: rig)
        #expect(!rig.connection.isWritable)
        try rig.receive("<a xmlns='urn:xmpp:sm:3' h='1'/>")
        #expect(rig.connection.isWritable)
        #expect(rig.observer.calls == [.acknowledged(1), .writable])
    }

    @Test("[XEP-0198 §4] the stanza that makes the stream full asks for an acknowledgement, once")
    func full() throws {
        let rig = try Self.managed(Self.options(.acknowledge, limit: 2))
        for text in ["1", "2", "3"] { self.say(text, on: rig) }
        let message = { (number: Int) in "<message><body>\(number)</body></message>" }
        #expect(try rig.sent() == "\(message(1))\(message(2))<r xmlns='urn:xmpp:sm:3'/>\(message(3))")
        try rig.receive("<a xmlns='urn:xmpp:sm:3' h='2'/>")
        self.say("4", on: rig)
        #expect(try rig.sent() == "\(message(4))<r xmlns='urn:xmpp:sm:3'/>")
    }

    @Test("[C9 0198] a server that asks and never acknowledges costs the resumption, not memory")
    func keptIsBounded() throws {
        let rig = try Self.managed(Self.options(.resume, limit: 4))
        let request = "<iq type='get' id='q' from='a@b'><x xmlns='y'/></iq>"
        for _ in 0..<7 { try rig.receive(request) }
        #expect(rig.canResume)
        try rig.receive(request)
        #expect(!rig.canResume)
        #expect(rig.unacknowledged == 8)
        try rig.receive("<a xmlns='urn:xmpp:sm:3' h='8'/>")
        #expect(rig.observer.calls.contains(.acknowledged(8)))
        #expect(rig.end == nil)

        var counts = StreamManagement(limit: 100, bytes: 10, keeps: true)
        var gaveUp = counts.sends(1, ByteBuffer(string: "123456789"))
        #expect(!gaveUp)
        #expect(!counts.isFull)
        gaveUp = counts.sends(1, ByteBuffer(string: "0"))
        #expect(!gaveUp)
        #expect(counts.isFull)
        #expect(counts.receives(1) == .acknowledged(1))
        #expect(!counts.isFull)
        gaveUp = counts.sends(1, ByteBuffer(string: String(repeating: "x", count: 19)))
        #expect(gaveUp)
        var out = ByteBuffer()
        counts.resend(into: &out) { _ in }
        #expect(out.readableBytes == 0)
    }

    @Test("[XEP-0198 §3] a server that lets itself be resumed unasked is not resumed")
    func unasked() throws {
        let rig = try Self.managed(Self.options(.acknowledge), id: "id='s1' resume='true'")
        rig.channel.close(promise: nil)
        #expect(!rig.canResume)
    }

    @Test("[XEP-0198 §4] answers that the stream gives itself count as well")
    func ownAnswersCount() throws {
        let rig = try Self.managed(Self.options(.acknowledge))
        try rig.receive("<iq type='get' id='q' from='a@b'><x xmlns='y'/></iq>")
        #expect(rig.unacknowledged == 1)
    }

    @Test("[XEP-0198 §5] a cut stream is resumed: nothing lost, nothing twice, in order, before anything new")
    func resumes() throws {
        let rig = try Self.managed(Self.options(.resume))
        for text in ["1", "2", "3"] { self.say(text, on: rig) }
        rig.stream.pointee.isPresent = true
        try rig.receive("<message from='a@b'><body>in</body></message>")
        rig.channel.close(promise: nil)
        #expect(rig.end == .lost)
        #expect(rig.canResume)

        let again = try rig.again()
        let isPresent = again.stream.pointee.isPresent
        #expect(isPresent)
        again.observer.onReady = { self.say("4", on: again) }
        again.start()
        try again.login(features: Self.feature)
        #expect(try again.sent().hasSuffix("<resume xmlns='urn:xmpp:sm:3' previd='s1' h='1'/>"))
        try again.receive("<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='1'/>")
        let message = { (number: Int) in "<message><body>\(number)</body></message>" }
        #expect(try again.sent() == "\(message(2))\(message(3))<r xmlns='urn:xmpp:sm:3'/>\(message(4))")
        #expect(
            again.observer.calls == [
                .acknowledged(1),
                .ready("juliet@im.example.com/balcony", resumed: true, acknowledged: 1, lost: 0),
            ]
        )
        try again.receive("<r xmlns='urn:xmpp:sm:3'/><a xmlns='urn:xmpp:sm:3' h='4'/>")
        #expect(try again.sent() == "<a xmlns='urn:xmpp:sm:3' h='1'/>")
        #expect(again.observer.calls.last == .acknowledged(3))
    }

    @Test("[RFC 7395 §3.3.3] over a WebSocket each stanza that is sent again is a message of its own")
    func resumesInMessages() throws {
        var options = Self.options(.resume)
        options.framing = .webSocket
        let rig = try ConnectionRig(options, account: ConnectionRig.account)
        rig.start()
        try rig.loginOverWebSocket(features: Self.feature)
        try rig.receive("<enabled xmlns='urn:xmpp:sm:3' id='s1' resume='true'/>")
        let messages = (1...3).map { "<message xmlns='jabber:client'><body>\($0)</body></message>" }
        for message in messages { rig.connection.send { $0.writeString(message) } }
        rig.channel.close(promise: nil)

        let again = try rig.again()
        again.start()
        try again.loginOverWebSocket(features: Self.feature)
        _ = try again.writes()
        try again.receive("<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='1'/>")
        #expect(try again.writes() == [messages[1], messages[2], "<r xmlns='urn:xmpp:sm:3'/>"])
    }

    @Test("[XEP-0198 §5] if the session is gone the client binds again, and lost stanzas are reported")
    func resumptionFails() throws {
        let rig = try Self.managed(Self.options(.resume))
        for text in ["1", "2", "3"] { self.say(text, on: rig) }
        rig.channel.close(promise: nil)

        let again = try rig.again()
        again.start()
        try again.login(features: Self.feature)
        _ = try again.sent()
        try again.receive(
            """
            <failed xmlns='urn:xmpp:sm:3' h='1'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>
            """
        )
        #expect(try again.sent().contains("<resource>balcony</resource>"))
        try again.receive(
            """
            <iq type='result' id='00000000000000001'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
            <jid>juliet@im.example.com/balcony</jid></bind></iq>
            """
        )
        #expect(try again.sent() == "<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
        try again.receive("<enabled xmlns='urn:xmpp:sm:3' id='s2' resume='1'/>")
        #expect(
            again.observer.calls == [
                .acknowledged(1),
                .ready("juliet@im.example.com/balcony", resumed: false, acknowledged: 1, lost: 2),
            ]
        )
        #expect(again.unacknowledged == 0)
    }

    @Test("[XEP-0198 §5] findings of an interrupted resumption are reported once the stream is ready")
    func foundOutBefore() throws {
        let rig = try Self.managed(Self.options(.resume))
        for text in ["1", "2", "3"] { self.say(text, on: rig) }
        rig.channel.close(promise: nil)
        let again = try rig.again()
        again.start()
        try again.login(features: Self.feature)
        try again.receive(
            """
            <failed xmlns='urn:xmpp:sm:3' h='1'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>
            """
        )
        again.channel.close(promise: nil)
        #expect(again.end == .lost)
        #expect(!again.canResume)

        let last = try again.again()
        last.start()
        try last.login(features: Self.feature)
        #expect(try last.sent().hasSuffix("<enable xmlns='urn:xmpp:sm:3' resume='true'/>"))
        try last.receive("<enabled xmlns='urn:xmpp:sm:3' id='s2' resume='1'/>")
        let jid = "juliet@im.example.com/balcony"
        #expect(
            last.observer.calls == [.acknowledged(1), .ready(jid, resumed: false, acknowledged: 1, lost: 2)]
        )
        // Once: the next one has nothing to tell.
        last.channel.close(promise: nil)
        let next = try last.again()
        next.start()
        try next.login(features: Self.feature)
        try next.receive("<resumed xmlns='urn:xmpp:sm:3' previd='s2' h='0'/>")
        #expect(next.observer.calls == [.ready(jid, resumed: true, acknowledged: 0, lost: 0)])
    }

    @Test("[XEP-0198 §5] a clean end ends the session too")
    func cleanEnd() throws {
        let rig = try Self.managed(Self.options(.resume))
        rig.connection.finish()
        try rig.receive("</stream:stream>")
        #expect(rig.end == .answered)
        #expect(!rig.canResume)
    }

    @Test("[XEP-0198 §5] another stream than the requested one is not resumed")
    func wrongStream() throws {
        let rig = try Self.managed(Self.options(.resume))
        rig.channel.close(promise: nil)
        let again = try rig.again()
        again.start()
        try again.login(features: Self.feature)
        try again.receive("<resumed xmlns='urn:xmpp:sm:3' previd='other' h='0'/>")
        #expect(again.end == .violation(.undefinedCondition, "it resumed another stream than requested"))
    }

    @Test("[XEP-0198 §5] a resumption with a count that is too high ends the stream")
    func resumedTooHigh() throws {
        let rig = try Self.managed(Self.options(.resume))
        rig.channel.close(promise: nil)
        let again = try rig.again()
        again.start()
        try again.login(features: Self.feature)
        try again.receive("<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='1'/>")
        #expect(again.end == .handledCountTooHigh(1, sent: 0))
        #expect(!again.canResume)
    }
}
