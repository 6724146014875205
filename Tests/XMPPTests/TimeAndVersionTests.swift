import Testing
import XMPP

@Suite("Times and software version")
struct TimeAndVersionTests {
    @Test(
        "[XEP-0082 §3.2] moments are read, and written in UTC",
        arguments: [
            ("1969-07-21T02:56:15Z", -14_159_025, 0, "1969-07-21T02:56:15Z"),
            ("1969-07-20T21:56:15-05:00", -14_159_025, 0, "1969-07-21T02:56:15Z"),
            ("1970-01-01T00:00:00Z", 0, 0, "1970-01-01T00:00:00Z"),
            ("1970-01-01T00:00:00.5+00:00", 0, 500_000_000, "1970-01-01T00:00:00.5Z"),
            ("2000-02-29T23:59:60Z", 951_868_800, 0, "2000-03-01T00:00:00Z"),
            ("2026-11-21T01:37:10.123456789999Z", 1_795_225_030, 123_456_789, "2026-11-21T01:37:10.123456789Z"),
            ("0000-01-01T00:00:00Z", -62_167_219_200, 0, "0000-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59Z", 253_402_300_799, 0, "9999-12-31T23:59:59Z"),
        ]
    )
    func timestamps(_ text: String, _ seconds: Int64, _ nanoseconds: Int32, _ written: String) throws {
        let time = try #require(XMPPTimestamp(text))
        #expect(time.seconds == seconds)
        #expect(time.nanoseconds == nanoseconds)
        #expect(time.description == written)
        #expect(XMPPTimestamp(written) == time)
    }

    @Test(
        "[XEP-0082 §3.2] a text that is no moment is none",
        arguments: [
            "", "2026-11-21", "2026-11-21T01:37:10", "2026-11-21 01:37:10Z", "2026-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
            "2026-04-31T00:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21T01:60:10Z", "2026-11-21T01:37:61Z",
            "2026-11-21T01:37:10.Z", "2026-11-21T01:37:10Zx", "2026-11-21T01:37:10+1:00", "2026-11-21T01:37:10+24:00",
            "2026-11-21T01:37:10+00:60", "12026-11-21T01:37:10Z", "-026-11-21T01:37:10Z", "２026-11-21T01:37:10Z",
            "9999-12-31T23:59:59-00:01", "0000-01-01T00:00:00+00:01", "20021021T23:41:07",
        ]
    )
    func noTimestamps(_ text: String) { #expect(XMPPTimestamp(text) == nil) }

    @Test("moments are in order, and outside the years 0 to 9999 there are none")
    func order() throws {
        let first = try #require(XMPPTimestamp(seconds: -1, nanoseconds: 999_999_999))
        let second = try #require(XMPPTimestamp(seconds: 0))
        #expect(first < second)
        #expect(first.description == "1969-12-31T23:59:59.999999999Z")
        #expect(XMPPTimestamp(seconds: 253_402_300_800) == nil)
        #expect(XMPPTimestamp(seconds: -62_167_219_201) == nil)
        #expect(XMPPTimestamp(seconds: 0, nanoseconds: 1_000_000_000) == nil)
        #expect(XMPPTimestamp(seconds: 0, nanoseconds: -1) == nil)
        #expect(XMPPTimestamp.now > second)
    }

    // MARK: Software version

    @Test("[XEP-0092 §3] the version is told as it was given, and the operating system only if it was")
    func tellsVersion() throws {
        let question = "<iq type='get' id='v' from='a@b/c'><query xmlns='jabber:iq:version'/></iq>"
        let told = { (own: XMPPSoftwareVersion.Version?) throws -> String in
            let rig = try ConnectionRig.ready(modules: [XMPPSoftwareVersion(own).makeHandler()])
            try rig.receive(question)
            return try rig.sent()
        }
        let inner = "<name>Bot</name><version>1.0</version>"
        let answer = { (inner: String) in
            "<iq type='result' id='v' to='a@b/c'><query xmlns='jabber:iq:version'>\(inner)</query></iq>"
        }
        #expect(try told(.init(name: "Bot", version: "1.0")) == answer(inner))
        #expect(try told(.init(name: "Bot", version: "1.0", os: "Unix")) == answer(inner + "<os>Unix</os>"))
        #expect(try told(nil).contains("service-unavailable"))
        #expect(XMPPSoftwareVersion().features == [])
        #expect(XMPPSoftwareVersion(.init(name: "Bot", version: "1.0")).features == ["jabber:iq:version"])
    }

    /// Asks a server that answers with this in its IQ.
    private static func ask(answer: String) async throws -> (XMPPSoftwareVersion.Version, XMPPElement?) {
        try await FakeServer.with(features: "") { _, element in
            guard element.name == "iq", element["type"] == "get" else { return nil }
            return "<iq type='result' from='romeo@example.net/x' id='\(element["id"] ?? "")'>\(answer)</iq>"
        } _: { server in
            let module = XMPPSoftwareVersion()
            let client = XMPPClient(server.configuration, modules: [module])
            try await client.connect()
            let version = try await module.version(of: try JID("romeo@example.net/x"))
            let asked = try await server.heard(0).last { $0.name == "iq" }
            await client.disconnect()
            return (version, asked)
        }
    }

    @Test("[XEP-0092 §3] others are asked for their program")
    func asksVersion() async throws {
        let inner = "<query xmlns='jabber:iq:version'><name>Exodus</name><version>0.7</version><os/></query>"
        let (version, asked) = try await Self.ask(answer: inner)
        #expect(version == XMPPSoftwareVersion.Version(name: "Exodus", version: "0.7"))
        #expect(asked?["to"] == "romeo@example.net/x")
        #expect(asked?.child("query", XMPPNamespace.version) != nil)
        for answer in ["", "<query xmlns='jabber:iq:version'/>"] {
            await #expect(throws: XMPPClientError.invalid("the answer names no program")) {
                try await Self.ask(answer: answer)
            }
        }
    }
}
