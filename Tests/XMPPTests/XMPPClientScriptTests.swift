import NIOCore
import NIOPosix
import Synchronization
import Testing
import XMPP

@Suite("The client beside a server of a few words", .timeLimit(.minutes(10)))
struct XMPPClientScriptTests {
    private static func message(_ text: String) -> XMPPElement {
        XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: ["to": "romeo@localhost"],
            children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: text))]
        )
    }

    private static let question = XMPPElement(
        "iq",
        namespace: XMPPNamespace.client,
        attributes: ["type": "get"],
        children: [.element(XMPPElement("question", namespace: "urn:example:q"))]
    )

    private static func isQuestion(_ element: XMPPElement) -> Bool { element.child("question") != nil }

    /// The next reported state that is not an intermediate one.
    private static func next(_ states: inout AsyncStream<XMPPClientState>.AsyncIterator) async -> XMPPClientState? {
        while let state = await states.next(isolation: #isolation) {
            switch state {
            case .created, .connecting, .disconnecting: continue
            case .connected, .closed: return state
            }
        }
        return nil
    }

    @Test("[XEP-0198 §5] a request under way when the connection is cut is answered behind the resumption")
    func resumesRequests() async throws {
        try await FakeServer.with { connection, element in
            // Answered on the second connection alone, where it comes again.
            guard Self.isQuestion(element) else { return nil }
            return connection == 0 ? "" : "<iq type='result' id='\(element["id"] ?? "")'/>"
        } _: { server in
            let client = XMPPClient(server.configuration)
            var states = client.states.makeAsyncIterator()
            let jid = try await client.connect()
            #expect(
                await Self.next(&states) == .connected(XMPPSession(jid: jid, isResumed: false, lost: 0))
            )
            async let answer = client.request(Self.question)
            try await server.until("iq")
            try await server.cut()
            guard case .closed(let end)? = await Self.next(&states) else {
                Issue.record("\(client.state)")
                return
            }
            #expect(end.kind == "lost")
            #expect(end.mayHeal)
            #expect(try await client.connect() == jid)
            #expect(await Self.next(&states) == .connected(XMPPSession(jid: jid, isResumed: true, lost: 0)))
            #expect(try await answer["type"] == "result")
            await client.disconnect()
        }
    }

    @Test("[XEP-0198 §5] when the resumption fails the request does too, and the session says what is lost")
    func losesRequests() async throws {
        try await FakeServer.with { _, element in
            element.name == "resume" ? "<failed xmlns='urn:xmpp:sm:3'/>" : nil
        } _: { server in
            let client = XMPPClient(server.configuration)
            try await client.connect()
            let question = Task { try await client.request(Self.question) }
            try await server.until("iq")
            try await server.cut()
            for await state in client.states { if case .closed = state { break } }
            let jid = try await client.connect()
            #expect(client.state == .connected(XMPPSession(jid: jid, isResumed: false, lost: 1)))
            await #expect(throws: XMPPClientError.self) { try await question.value }
            await client.disconnect()
        }
    }

    @Test("a request that waits for a resumption times out, and ends on a disconnect")
    func waitsNoLonger() async throws {
        try await FakeServer.with { _, _ in
            nil
        } _: { server in
            var configuration = server.configuration
            configuration.requestTimeout = .milliseconds(300)
            let client = XMPPClient(configuration)
            try await client.connect()
            let question = Task { try await client.request(Self.question) }
            try await server.until("iq")
            try await server.cut()
            await #expect(throws: XMPPClientError.timedOut) { try await question.value }

            let patient = XMPPClient(server.configuration)
            try await patient.connect()
            let other = Task { try await patient.request(Self.question) }
            try await server.until("iq", count: 2)
            try await server.cut()
            for await state in patient.states { if case .closed = state { break } }
            await patient.disconnect()
            await #expect(throws: XMPPClientError.self) { try await other.value }
        }
    }

    @Test("[C6] an unsendable stanza is reported as such, not as a missing connection")
    func invalid() async throws {
        try await FakeServer.with { _, _ in
            nil
        } _: { server in
            let client = XMPPClient(server.configuration)
            try await client.connect()
            var nobody = Self.question
            nobody["to"] = "@"
            await #expect(throws: XMPPClientError.invalid("its 'to' is no JID: @")) { try await client.request(nobody) }
            var unwritable = Self.question
            unwritable["name"] = "\u{1}"
            let error = await #expect(throws: XMPPClientError.self) { try await client.request(unwritable) }
            guard case .invalid? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            await client.disconnect()
        }
    }

    @Test("[C6] a server that asks without end and does not read is left before its answers fill the memory")
    func unreadAnswers() async throws {
        try await FakeServer.with(features: "") { _, _ in
            nil
        } _: { server in
            var configuration = server.configuration
            configuration.resumes = false
            let client = XMPPClient(configuration)
            try await client.connect()
            try await server.setReading(false)
            let id = String(repeating: "i", count: 1_000)
            let requests = String(repeating: "<iq type='get' id='\(id)'><x xmlns='y'/></iq>", count: 100)
            // Until it is gone; a client that answered on would be fed for ever.
            let feeder = Task { while !Task.isCancelled { try await server.say(requests) } }
            for await state in client.states {
                guard case .closed(let end) = state else { continue }
                #expect(end.kind == "protocol")
                #expect(end.words == "the server broke a rule: it sends, and does not read the answers")
                break
            }
            feeder.cancel()
        }
    }

    @Test("[C2] another host that the server names is where the client goes, so often and no more")
    func followsRedirects() async throws {
        try await FakeServer.with { _, _ in
            nil
        } _: { (goal: FakeServer) in
            let place = "127.0.0.1:\(goal.port)"
            try await FakeServer.with { _, element in
                element.name == "auth" ? Self.redirect(to: place) : nil
            } _: { server in
                let client = XMPPClient(server.configuration)
                try await client.connect()
                #expect(try await goal.heard(0).map(\.name).contains("auth"))
                await client.disconnect()
            }
        }
        try await FakeServer.with { _, element in
            element.name == "auth" ? Self.redirect(to: "localhost:1") : nil
        } _: { server in
            var end: XMPPClientError?
            do throws(XMPPClientError) {
                try await XMPPClient(server.configuration).connect()
            } catch {
                end = error
            }
            guard case .noConnection? = end else {
                Issue.record("\(String(describing: end))")
                return
            }
        }
    }

    @Test("[C2] hops without end end")
    func circles() async throws {
        let port = Mutex(UInt16(0))
        try await FakeServer.with { _, element in
            element.name == "auth" ? Self.redirect(to: "127.0.0.1:\(port.withLock { $0 })") : nil
        } _: { server in
            port.withLock { $0 = server.port }
            var kind: String?
            do throws(XMPPClientError) {
                try await XMPPClient(server.configuration).connect()
            } catch {
                if case .ended(let end) = error { kind = end.kind }
            }
            #expect(kind == "see-other-host")
        }
    }

    private static func redirect(to host: String) -> String {
        "<stream:error><see-other-host xmlns='urn:ietf:params:xml:ns:xmpp-streams'>\(host)</see-other-host>"
            + "</stream:error></stream:stream>"
    }

    @Test("stanzas that are not taken are kept up to a number and a size, the newest")
    func inbox() async throws {
        try await FakeServer.with(features: "") { _, _ in
            nil
        } _: { server in
            let client = XMPPClient(server.configuration)
            try await client.connect()
            for number in 0..<5_000 { try await server.say("<message id='\(number)'/>") }
            // The answer follows them.
            try await server.say("<iq type='get' id='last'><ping xmlns='urn:xmpp:ping'/></iq>")
            try await server.until("iq")
            var stanzas = client.stanzas.makeAsyncIterator()
            #expect(await stanzas.next()?["id"] == "904")
            let text = String(repeating: "x", count: 900_000)
            for number in 0..<30 { try await server.say("<message id='big\(number)'>\(text)</message>") }
            try await server.say("<iq type='get' id='last'><ping xmlns='urn:xmpp:ping'/></iq>")
            try await server.until("iq", count: 2)
            let first = try #require(await stanzas.next()?["id"])
            #expect(first == "big12" || first == "big11" || first == "big13", "\(first)")
            await client.disconnect()
        }
    }

    @Test("clients of one event loop share it, and what they shared goes with the last of them")
    func sharedLoop() async throws {
        try await FakeServer.with(features: "") { _, element in
            Self.isQuestion(element) ? "<iq type='result' id='\(element["id"] ?? "")'/>" : nil
        } _: { server in
            let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let configuration = server.configuration
            var clients = (0..<20).map { _ in XMPPClient(configuration, eventLoopGroup: loop) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for client in clients {
                    group.addTask {
                        try await client.connect()
                        #expect(try await client.request(Self.question).name == "iq")
                    }
                }
                try await group.waitForAll()
            }
            #expect(XMPPClient.live(on: loop.any()))
            for client in clients { await client.disconnect() }
            clients.removeLast(clients.count - 1)
            #expect(XMPPClient.live(on: loop.any()))
            clients.removeAll()
            // The end comes in its own time; the time limit ends a wait for good.
            while XMPPClient.live(on: loop.any()) { await Task.yield() }
            try await loop.shutdownGracefully()
        }
    }
}
