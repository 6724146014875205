import NIOCore
import Synchronization
import Testing
import XMPP

@Suite("Filters and answers of applications", .timeLimit(.minutes(10)))
struct FilterTests {
    private static func marking(_ mark: String) -> XMPPFilter {
        let add = { @Sendable (stanza: XMPPElement) -> XMPPElement? in
            var stanza = stanza
            stanza["id"] = (stanza["id"] ?? "") + mark
            return stanza
        }
        return XMPPFilter(sent: add, received: add)
    }

    @Test("[A18] filters change what is sent and received, in the order of the modules")
    func order() throws {
        let rig = try ConnectionRig.ready(modules: [Self.marking("a").makeHandler(), Self.marking("b").makeHandler()])
        try rig.connection.send(XMPPElement("message", namespace: XMPPNamespace.client))
        #expect(try rig.sent() == "<message id='ab'/>")
        try rig.receive("<message id='1'/>")
        let got = XMPPElement("message", namespace: XMPPNamespace.client, attributes: ["id": "1ab"])
        #expect(rig.observer.calls.last == .filtered(got))
    }

    @Test("[A18] a filter drops, and later ones do not see it")
    func drops() throws {
        let seen = Mutex(0)
        let dropper = XMPPFilter(
            sent: { $0.name == "message" ? nil : $0 },
            received: { $0.name == "presence" ? nil : $0 }
        )
        let counter = XMPPFilter(
            sent: { stanza in
                seen.withLock { $0 += 1 }
                return stanza
            },
            received: { stanza in
                seen.withLock { $0 += 1 }
                return stanza
            }
        )
        let rig = try ConnectionRig.ready(modules: [dropper.makeHandler(), counter.makeHandler()])
        try rig.connection.send(XMPPElement("message", namespace: XMPPNamespace.client))
        try rig.receive("<presence/>")
        #expect(try rig.sent() == "")
        #expect(rig.observer.calls.count == 1)
        #expect(seen.withLock { $0 } == 0)
        try rig.connection.send(XMPPElement("presence", namespace: XMPPNamespace.client))
        try rig.receive("<message/>")
        #expect(try rig.sent() == "<presence/>")
        #expect(seen.withLock { $0 } == 2)
    }

    @Test("[A18] a filter that does nothing leaves all as it is, and a request that it drops is refused")
    func requests() throws {
        let rig = try ConnectionRig.ready(modules: [
            XMPPFilter().makeHandler(), XMPPFilter(received: { $0.name == "iq" ? nil : $0 }).makeHandler(),
        ])
        try rig.receive("<iq type='get' id='q' from='a@b'><x xmlns='y'/></iq>")
        #expect(try rig.sent().contains("service-unavailable"))
        try rig.connection.send(XMPPElement("iq", namespace: XMPPNamespace.client, attributes: ["id": "1"]))
        #expect(try rig.sent() == "<iq id='1'/>")
    }

    // MARK: Answers

    private static func request(_ id: String, type: String = "get", payload: String = "query") -> String {
        "<iq type='\(type)' id='\(id)' from='a@b/c'><\(payload) xmlns='urn:example'>?</\(payload)></iq>"
    }

    private static func result(_ id: String) -> String { "<iq type='result' id='\(id)' to='a@b/c'/>" }

    private final class Started {
        var requests: [XMPPElement] = []
    }

    private static func responder(_ maximum: Int = 64) -> (ResponderHandler, Started) {
        let started = Started()
        let handler = ResponderHandler("query", "urn:example", maximum: maximum) { request, number in
            started.requests.append(request)
            #expect(number == started.requests.count)
            return nil
        }
        return (handler, started)
    }

    @Test("[RFC 6120 §8.2.3] requests of one kind are answered, each with what the application says")
    func answers() throws {
        let (handler, started) = Self.responder()
        let rig = try ConnectionRig.ready(modules: [handler])
        try rig.receive(Self.request("1") + Self.request("2", type: "set") + Self.request("3") + Self.request("4"))
        #expect(started.requests.map { $0["id"] } == ["1", "2", "3", "4"])
        #expect(started.requests[0].child("query")?.text == "?")
        #expect(try rig.sent() == "")
        handler.finished(2, .result(XMPPElement("query", namespace: "urn:example", text: "!")), in: rig.module)
        handler.finished(1, .result(nil), in: rig.module)
        handler.finished(3, .error(StanzaError(.forbidden)), in: rig.module)
        // What XML cannot represent is answered all the same.
        handler.finished(4, .result(XMPPElement("query", namespace: "urn:example", text: "\u{1}")), in: rig.module)
        #expect(
            try rig.sent() == """
                <iq type='result' id='2' to='a@b/c'><query xmlns='urn:example'>!</query></iq>\(Self.result("1"))\
                <iq to='a@b/c' id='3' type='error'><error type='auth'>\
                <forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>\
                <iq to='a@b/c' id='4' type='error'><error type='cancel'>\
                <internal-server-error xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>
                """
        )
        #expect(handler.running == 0)
        #expect(rig.end == nil)
    }

    @Test("[RFC 6120 §8.4] requests of other kinds are left to others, and results are never answered")
    func others() throws {
        let (handler, started) = Self.responder()
        let rig = try ConnectionRig.ready(modules: [handler])
        try rig.receive(Self.request("1", payload: "other"))
        #expect(try rig.sent().contains("service-unavailable"))
        try rig.receive(Self.request("1", type: "result") + Self.request("1", type: "error"))
        #expect(try rig.sent() == "")
        #expect(started.requests.isEmpty)
    }

    @Test("[RFC 6120 §8.3.3] too many requests at once are refused for the moment")
    func bounded() throws {
        let (handler, started) = Self.responder(2)
        let rig = try ConnectionRig.ready(modules: [handler])
        for id in ["1", "2", "3"] { try rig.receive(Self.request(id)) }
        let refusal = "<error type='wait'><resource-constraint xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
        #expect(try rig.sent() == "<iq to='a@b/c' id='3' type='error'>\(refusal)</iq>")
        #expect(handler.refused == 1)
        handler.finished(1, .result(nil), in: rig.module)
        try rig.receive(Self.request("4"))
        #expect(try rig.sent() == Self.result("1"))
        #expect(started.requests.map { $0["id"] } == ["1", "2", "4"])
    }

    @Test("[XEP-0198 §5] answers over a loss are sent by a resumption, in order")
    func overLoss() throws {
        let (handler, _) = Self.responder()
        let rig = try ConnectionRig.resumable([handler])
        try rig.receive(Self.request("1") + Self.request("2") + Self.request("3"))
        rig.channel.close(promise: nil)
        handler.finished(2, .result(nil), in: nil)
        handler.finished(1, .result(nil), in: nil)
        let next = try rig.reconnected([handler], resumed: 0)
        #expect(try next.sent() == Self.result("1") + Self.result("2"))
        handler.finished(3, .result(nil), in: next.module)
        #expect(try next.sent() == Self.result("3"))
    }

    @Test("[RFC 6120 §8.2.3] answers to requests of a stream that is gone are dropped, those of the new one are not")
    func dropped() throws {
        let (handler, started) = Self.responder(3)
        let rig = try ConnectionRig.resumable([handler])
        try rig.receive(Self.request("1") + Self.request("2"))
        rig.channel.close(promise: nil)
        handler.finished(1, .result(nil), in: nil)
        let next = try rig.reconnected([handler], resumed: nil, early: Self.request("3"))
        #expect(started.requests.count == 3)
        handler.finished(2, .result(nil), in: next.module)
        handler.finished(3, .result(nil), in: next.module)
        #expect(try next.sent() == Self.result("3"))
        #expect(handler.running == 0)
    }

    @Test("an application answers in tasks of its own, as many at once as it allows")
    func application() async throws {
        let (gate, opener) = AsyncStream.makeStream(of: Void.self)
        let responder = XMPPResponder("query", "urn:example", maximum: 1) { request in
            if request["id"] == "slow" { for await _ in gate { break } }
            return .result(XMPPElement("query", namespace: "urn:example", text: request["from"] ?? "-"))
        }
        #expect(responder.features == ["urn:example"])
        try await FakeServer.with(features: "") { _, _ in
            nil
        } _: { server in
            let client = XMPPClient(server.configuration, modules: [responder])
            try await client.connect()
            try await server.say(Self.request("slow") + Self.request("more"))
            try await server.until("iq", count: 1)
            opener.yield()
            try await server.until("iq", count: 2)
            try await server.say(Self.request("next"))
            try await server.until("iq", count: 3)
            let answers = try await server.heard(0).filter { $0.name == "iq" }
            #expect(answers.map { $0["id"] } == ["more", "slow", "next"])
            #expect(answers.map { $0["type"] } == ["error", "result", "result"])
            #expect(answers.map { $0.child("query")?.text } == [nil, "a@b/c", "a@b/c"])
            await client.disconnect()
        }
    }

    @Test("tasks whose answers can reach no requester are cancelled with their client")
    func cancelled() async throws {
        let (ends, end) = AsyncStream.makeStream(of: Bool.self)
        let (silence, speaker) = AsyncStream.makeStream(of: Void.self)
        defer { speaker.finish() }
        let responder = XMPPResponder("query", "urn:example") { _ in
            // Nothing comes: only the cancellation ends it.
            for await _ in silence {}
            end.yield(Task.isCancelled)
            return .result(nil)
        }
        try await FakeServer.with(features: "") { _, _ in
            nil
        } _: { server in
            var client: XMPPClient? = XMPPClient(server.configuration, modules: [responder])
            try await client?.connect()
            try await server.say(Self.request("1") + "<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>")
            try await server.until("iq")
            client = nil
            var iterator = ends.makeAsyncIterator()
            #expect(await iterator.next() == true)
        }
    }
}
