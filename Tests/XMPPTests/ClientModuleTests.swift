import NIOCore
import Synchronization
import Testing
import XMPP

/// Modules and calls of the public client, beside a server of a few words.
@Suite("Modules of a client", .timeLimit(.minutes(10)))
struct ClientModuleTests {
    private static func message(_ id: String) -> XMPPElement {
        XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: ["to": "romeo@localhost", "id": id],
            children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: id))]
        )
    }

    /// Counts messages, and appends its name to the id of each stanza in either direction.
    private final class Counter: XMPPModule {
        let link = XMPPModuleLink()
        let name: String

        init(_ name: String) { self.name = name }

        func makeHandler() -> any XMPPHandler { Handler(self.name) }

        func count() async throws(XMPPClientError) -> Int {
            try await self.withHandler { (handler: Handler) in handler.count }
        }

        final class Handler: XMPPHandler {
            let name: String
            var count = 0

            init(_ name: String) { self.name = name }

            private func marked(_ stanza: XMPPElement) -> XMPPElement? {
                guard stanza.name == "message" else { return stanza }
                if stanza["id"] == "drop" { return nil }
                var stanza = stanza
                stanza["id"] = (stanza["id"] ?? "") + self.name
                return stanza
            }

            func filterSent(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? {
                self.marked(stanza)
            }

            func filterReceived(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? {
                self.marked(stanza)
            }

            func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
                if stanza.name == "message" { self.count += 1 }
                return false
            }
        }
    }

    @Test("[A18] modules filter in their order both ways, count over connections, and take what is injected")
    func modules() async throws {
        try await FakeServer.with { _, element in
            element.name == "message" ? "<message id='\(element["id"] ?? "")'/>" : nil
        } _: { server in
            let (first, second) = (Counter("a"), Counter("b"))
            let client = XMPPClient(server.configuration, modules: [first, second])
            #expect(try await first.count() == 0)
            try await client.connect()
            try await client.send(Self.message("1"))
            var stanzas = client.stanzas.makeAsyncIterator()
            #expect(await stanzas.next()?["id"] == "1abab")
            try await client.inject(Self.message("2"))
            #expect(await stanzas.next()?["id"] == "2ab")
            await #expect(throws: XMPPClientError.dropped) { try await client.send(Self.message("drop")) }
            #expect(try await second.count() == 2)
            await client.disconnect()
            await #expect(throws: XMPPClientError.notConnected) { try await client.inject(Self.message("3")) }
            #expect(try await second.count() == 2)
        }
    }

    @Test("a module outlives its client: its calls fail and its events end")
    func released() async throws {
        let reconnect = XMPPReconnect()
        let counter = Counter("a")
        let events = reconnect.events
        do {
            let client = XMPPClient(XMPPClientConfiguration(jid: "a@b", password: ""), modules: [reconnect, counter])
            #expect(client.state == .created)
        }
        for await _ in events {}
        for await _ in reconnect.events {}
        await #expect(throws: XMPPClientError.notConnected) { try await counter.count() }
        await #expect(throws: XMPPClientError.notConnected) { try await Counter("b").count() }
    }

    @Test("a module is released with its client")
    func noCycle() async throws {
        weak var module: Counter?
        do {
            let counter = Counter("a")
            module = counter
            let client = XMPPClient(XMPPClientConfiguration(jid: "a@b", password: ""), modules: [counter])
            #expect(try await counter.count() == 0)
            #expect(client.state == .created)
        }
        // The end comes in its own time; the time limit ends a wait for good.
        while module != nil { await Task.yield() }
    }

    // MARK: Progress of sends

    @Test("[A18] a send waits for the kernel, or for the server's acknowledgement across an outage")
    func acknowledged() async throws {
        // The first connection acknowledges the first stanza; the second has got none but that.
        try await FakeServer.with { connection, element in
            switch element.name {
            case "r": connection == 0 ? "<a xmlns='urn:xmpp:sm:3' h='1'/>" : "<a xmlns='urn:xmpp:sm:3' h='3'/>"
            case "resume": "<resumed xmlns='urn:xmpp:sm:3' previd='\(element["previd"] ?? "")' h='1'/>"
            default: nil
            }
        } _: { server in
            let client = XMPPClient(server.configuration)
            try await client.connect()
            try await client.send(Self.message("1"), until: .acknowledged)
            try await client.send(Self.message("2"), until: .written)
            let last = Task { try await client.send(Self.message("3"), until: .acknowledged) }
            try await server.until("message", count: 3)
            try await server.cut()
            for await state in client.states { if case .closed = state { break } }
            try await client.connect()
            try await last.value
            #expect(try await server.heard(1).filter { $0.name == "message" }.map { $0["id"] } == ["2", "3"])
            await client.disconnect()
        }
    }

    @Test("[A18] an acknowledgement that cannot come is an error: no resumption, no stream management, a disconnect")
    func unacknowledged() async throws {
        try await FakeServer.with { _, element in
            element.name == "resume" ? "<failed xmlns='urn:xmpp:sm:3'/>" : nil
        } _: { server in
            let client = XMPPClient(server.configuration)
            try await client.connect()
            let lost = Task { try await client.send(Self.message("1"), until: .acknowledged) }
            try await server.until("message")
            try await server.cut()
            for await state in client.states { if case .closed = state { break } }
            try await client.connect()
            let error = await #expect(throws: XMPPClientError.self) { try await lost.value }
            guard case .ended(let end)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(end.kind == "lost")
            let waiting = Task { try await client.send(Self.message("2"), until: .acknowledged) }
            try await server.until("message", count: 2)
            await client.disconnect()
            await #expect(throws: XMPPClientError.disconnected) { try await waiting.value }
        }
        try await FakeServer.with(features: "") { _, _ in
            nil
        } _: { server in
            let client = XMPPClient(server.configuration)
            try await client.connect()
            let words = "the server acknowledges no stanzas: it has no stream management"
            await #expect(throws: XMPPClientError.invalid(words)) {
                try await client.send(Self.message("1"), until: .acknowledged)
            }
            await client.disconnect()
        }
    }

    @Test("[A16] bytes are counted over all connections and for the present one")
    func bytes() async throws {
        try await FakeServer.with(features: "") { _, element in
            element.name == "message" ? "<message id='1'/>" : nil
        } _: { server in
            let client = XMPPClient(server.configuration)
            #expect(await client.byteCounts().sent == 0)
            try await client.connect()
            let first = await client.byteCounts()
            #expect(first.sent == first.sentOnConnection)
            #expect(first.received == first.receivedOnConnection)
            try await client.send(Self.message("1"))
            var stanzas = client.stanzas.makeAsyncIterator()
            _ = await stanzas.next()
            let second = await client.byteCounts()
            #expect(second.sent - first.sent == 61)
            #expect(second.received - first.received == 17)
            await client.disconnect()
            let third = await client.byteCounts()
            try await client.connect()
            let fourth = await client.byteCounts()
            #expect(fourth.sent == third.sent + fourth.sentOnConnection)
            #expect(fourth.received == third.received + fourth.receivedOnConnection)
            #expect(fourth.sentOnConnection == first.sentOnConnection)
            await client.disconnect()
        }
    }

    @Test("[A18] only stanzas are acknowledged, and a request that a filter drops fails at once")
    func cannotBeAnswered() async throws {
        try await FakeServer.with { _, _ in
            nil
        } _: { server in
            let dropper = XMPPFilter(sent: { $0.name == "iq" ? nil : $0 })
            let client = XMPPClient(server.configuration, modules: [dropper])
            try await client.connect()
            let words = "only stanzas are acknowledged (XEP-0198 §4)"
            await #expect(throws: XMPPClientError.invalid(words)) {
                try await client.send(XMPPElement("x", namespace: "urn:x"), until: .acknowledged)
            }
            await #expect(throws: XMPPClientError.dropped) { try await client.ping() }
            await client.disconnect()
        }
    }

    @Test("[XEP-0198 §5] an acknowledgement is not waited for after the server has dropped the session")
    func sessionEnds() async throws {
        try await FakeServer.with { _, element in
            element.name == "enable" ? "<enabled xmlns='urn:xmpp:sm:3' id='s' resume='true' max='0'/>" : nil
        } _: { server in
            let client = XMPPClient(server.configuration)
            try await client.connect()
            let waiting = Task { try await client.send(Self.message("1"), until: .acknowledged) }
            try await server.until("message")
            try await server.cut()
            let error = await #expect(throws: XMPPClientError.self) { try await waiting.value }
            guard case .ended(let end)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(end.kind == "lost")
        }
    }

    @Test("[A18] a disconnect during an outage ends the session: nothing is sent again")
    func disconnectsInOutage() async throws {
        try await FakeServer.with { _, _ in
            nil
        } _: { server in
            let client = XMPPClient(server.configuration)
            try await client.connect()
            let waiting = Task { try await client.send(Self.message("1"), until: .acknowledged) }
            try await server.until("message")
            try await server.cut()
            for await state in client.states { if case .closed = state { break } }
            await client.disconnect()
            await #expect(throws: XMPPClientError.disconnected) { try await waiting.value }
            try await client.connect()
            try await client.send(Self.message("2"))
            try await server.until("message", count: 2)
            #expect(try await server.heard(1).filter { $0.name == "message" }.map { $0["id"] } == ["2"])
            await client.disconnect()
        }
    }

    @Test("stanzas that come after the end of a reading task go to the next reader")
    func nextReader() async throws {
        try await FakeServer.with(features: "") { _, _ in
            nil
        } _: { server in
            let client = XMPPClient(server.configuration)
            try await client.connect()
            let reader = Task {
                var ids: [String] = []
                for await stanza in client.stanzas { ids.append(stanza["id"] ?? "") }
                return ids
            }
            reader.cancel()
            #expect(await reader.value == [])
            try await server.say("<message id='1'/>")
            var stanzas = client.stanzas.makeAsyncIterator()
            #expect(await stanzas.next()?["id"] == "1")
            await client.disconnect()
        }
    }

    /// Sets its deadline from a call of the application.
    private final class Alarm: XMPPModule {
        let link = XMPPModuleLink()
        private let events = XMPPEvents<Int>(size: { _ in 8 })

        var rings: AsyncStream<Int> { self.events.stream() }

        func makeHandler() -> any XMPPHandler { Handler(self.events) }

        func set() async throws(XMPPClientError) {
            try await self.ask { (handler: Handler, context, answer) in
                handler.deadline = context.now + .milliseconds(1)
                answer(.success(()))
            }
        }

        final class Handler: XMPPHandler {
            let events: XMPPEvents<Int>
            var deadline = NIODeadline.distantFuture

            init(_ events: XMPPEvents<Int>) { self.events = events }

            func timerFired(in context: XMPPModuleContext) {
                self.deadline = .distantFuture
                self.events.send(1)
            }
        }
    }

    @Test("[A18] a deadline that a call of the application sets is kept on an idle stream", .timeLimit(.minutes(1)))
    func deadlines() async throws {
        try await FakeServer.with(features: "") { _, _ in
            nil
        } _: { server in
            let alarm = Alarm()
            let client = XMPPClient(server.configuration, modules: [alarm])
            try await client.connect()
            var rings = alarm.rings.makeAsyncIterator()
            try await alarm.set()
            #expect(await rings.next() == 1)
            await client.disconnect()
        }
    }

    // MARK: Settings

    @Test(
        "[A18] a request that no module handles is answered as configured",
        arguments: [
            (XMPPAutomaticReply(), "service-unavailable", false),
            (.notImplemented, "feature-not-implemented", true),
        ]
    )
    func automaticReply(_ reply: XMPPAutomaticReply, _ condition: String, _ echoes: Bool) async throws {
        try await FakeServer.with(features: "") { _, _ in
            nil
        } _: { server in
            var configuration = server.configuration
            configuration.automaticReply = reply
            let client = XMPPClient(configuration)
            try await client.connect()
            try await server.say("<iq type='get' id='q' from='a@b'><question xmlns='urn:q'/></iq>")
            try await server.until("iq")
            let answer = try #require(try await server.heard(0).last)
            #expect(answer["id"] == "q")
            #expect(answer["to"] == "a@b")
            #expect(StanzaError(answer)?.condition.rawValue == condition)
            #expect((answer.elements.first?.name == "question") == echoes)
            await client.disconnect()
        }
    }

    @Test("[A18] top-level elements of a configured namespace reach the application; of others none does")
    func customElements() async throws {
        try await FakeServer.with(features: "") { _, _ in
            nil
        } _: { server in
            var configuration = server.configuration
            configuration.customNamespaces = ["urn:custom"]
            let client = XMPPClient(configuration)
            try await client.connect()
            try await server.say("<login xmlns='urn:other'/><login xmlns='urn:custom'/>")
            var stanzas = client.stanzas.makeAsyncIterator()
            #expect(await stanzas.next() == XMPPElement("login", namespace: "urn:custom"))
            try await client.send(XMPPElement("logout", namespace: "urn:custom"))
            try await server.until("logout")
            await client.disconnect()

            configuration.refusesUnknownElements = true
            let strict = XMPPClient(configuration)
            try await strict.connect()
            try await server.say("<login xmlns='urn:other'/>")
            try await server.until("error")
            #expect(try await server.heard(1).last?.elements.first?.name == "unsupported-stanza-type")
            await strict.disconnect()
        }
    }

    // MARK: Reconnect

    @Test("[A18] a lost stream is connected again and resumed; a disconnect ends that")
    func reconnects() async throws {
        try await FakeServer.with { _, _ in
            nil
        } _: { server in
            let reconnect = XMPPReconnect(
                initialDelay: .milliseconds(10),
                maximumDelay: .milliseconds(20),
                random: { 0 }
            )
            let client = XMPPClient(server.configuration, modules: [reconnect])
            var events = reconnect.events.makeAsyncIterator()
            let states = client.states
            try await client.connect()
            try await server.cut()
            guard case .waits(.milliseconds(5), let end)? = await events.next() else {
                Issue.record("no wait")
                return
            }
            #expect(end.kind == "lost")
            for await state in states {
                if case .connected(let session) = state, session.isResumed { break }
            }
            await client.disconnect()
            guard case .stays(let last)? = await events.next() else {
                Issue.record("goes on")
                return
            }
            #expect(last.kind == "closed")
        }
    }

    @Test("[A18] after a refusal the module rests: the next connect is a first one")
    func rests() async throws {
        let refuses = Mutex(false)
        try await FakeServer.with { _, element in
            guard element.name == "auth", refuses.withLock({ $0 }) else { return nil }
            return "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>"
        } _: { server in
            let reconnect = XMPPReconnect(initialDelay: .milliseconds(1), maximumDelay: .milliseconds(1), random: { 0 })
            let client = XMPPClient(server.configuration, modules: [reconnect])
            var events = reconnect.events.makeAsyncIterator()
            try await client.connect()
            refuses.withLock { $0 = true }
            try await server.cut()
            guard case .waits? = await events.next(), case .stays(let end)? = await events.next() else {
                Issue.record("no decision")
                return
            }
            #expect(end.kind == "not-authorized")
            // A first connect again, which is not repeated.
            await #expect(throws: XMPPClientError.self) { try await client.connect() }
            guard case .stays? = await events.next() else {
                Issue.record("goes on")
                return
            }
        }
    }

    @Test("[A18] a connect during the wait connects at once, and a first connect that fails is not repeated")
    func connectsSooner() async throws {
        try await FakeServer.with { _, _ in
            nil
        } _: { server in
            let reconnect = XMPPReconnect(initialDelay: .seconds(86_400), maximumDelay: .seconds(86_400), random: { 1 })
            let client = XMPPClient(server.configuration, modules: [reconnect])
            var events = reconnect.events.makeAsyncIterator()
            try await client.connect()
            try await server.cut()
            guard case .waits(.seconds(86_400), _)? = await events.next() else {
                Issue.record("no wait")
                return
            }
            try await client.connect()
            #expect(client.state == .connected(XMPPSession(jid: try JID("juliet@localhost/balcony"), isResumed: true)))
            await client.disconnect()

            var configuration = server.configuration
            configuration.mechanisms = ["SCRAM-SHA-1"]
            let other = XMPPReconnect(initialDelay: .milliseconds(1))
            let refused = XMPPClient(configuration, modules: [other])
            var decisions = other.events.makeAsyncIterator()
            await #expect(throws: XMPPClientError.self) { try await refused.connect() }
            guard case .stays(let end)? = await decisions.next() else {
                Issue.record("goes on")
                return
            }
            #expect(end.kind == "sasl")
        }
    }
}

extension XMPPAutomaticReply {
    fileprivate static var notImplemented: XMPPAutomaticReply {
        var reply = XMPPAutomaticReply()
        reply.condition = .featureNotImplemented
        reply.echoesContents = true
        return reply
    }
}
