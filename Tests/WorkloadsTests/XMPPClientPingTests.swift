import LoadEngine
import Measurement
import NIOCore
import RunResult
import Testing
import VirtualServers
import Workloads
import XMPPCodec

@Suite("XMPP clients ping the server")
struct XMPPClientPingTests {
    private let ping: Labels = ["request": "ping"]
    private let iq: Labels = ["stanza": "iq"]

    private func run(
        _ setup: XMPPVirtualRun.Setup,
        _ script: @escaping (VirtualXMPPStream, Int, XMPPElement) -> VirtualXMPPServer.Reaction = { _, _, _ in .usual }
    ) -> XMPPVirtualRun {
        var setup = setup
        setup.work = .ping
        let run = XMPPVirtualRun(setup)
        var pings = 0
        run.server.script = { stream, heard in
            guard heard.child("ping") != nil else { return .usual }
            pings += 1
            return script(stream, pings, heard)
        }
        return run
    }

    @Test("a ping takes there and back", arguments: [TimeAmount.zero, .milliseconds(30)])
    func answered(latency: TimeAmount) {
        let run = self.run(.init(rate: 20, latency: latency))
        run.perform()
        run.expect("iq_duration", self.ping, 40, times: latency * 2)
        run.expect("iq_service_duration", self.ping, 40, times: latency * 2)
        let books = run.books
        #expect(books.offered == 40 && books.sent == 40 && books.acked == 40)
        #expect(books.failed == 0 && books.timedOut == 0 && books.inFlight == 0 && books.notSent == 0)
        #expect(run.errorCounts == [:])
        #expect(run.account.clients.map(\.tally.acked) == [20, 20])
        #expect(
            run.account.clients.map(\.tally.longestAckNanoseconds)
                == Array(repeating: latency.nanoseconds * 2, count: 2)
        )
    }

    @Test("a client answers pings of the server (XEP-0199)")
    func answers() {
        var answers: [XMPPElement] = []
        var hasAsked = false
        let run = self.run(.init(rate: 20)) { stream, _, _ in
            guard !hasAsked else { return .usual }
            hasAsked = true
            stream.say(
                "<iq type='get' id='from-server' from='\(VirtualXMPPServer.domain)'><ping xmlns='urn:xmpp:ping'/></iq>"
            )
            return .usual
        }
        let usual = run.server.script
        run.server.script = { stream, heard in
            if heard["id"] == "from-server" { answers.append(heard) }
            return usual(stream, heard)
        }
        run.perform()
        #expect(answers.map { $0["type"] } == ["result"])
    }

    @Test("an error is an answer, and a failed ping")
    func refused() {
        let run = self.run(.init(rate: 20)) { _, number, heard in
            number % 4 == 0 ? .says(VirtualXMPPServer.error(to: heard, "cancel", "service-unavailable")) : .usual
        }
        run.perform()
        run.expect("iq_duration", self.ping, 40, times: .milliseconds(2))
        #expect(run.books.acked == 30 && run.books.failed == 10)
        #expect(run.count("stanza_refused", self.iq) == 10)
        #expect(run.errorCounts == ["stanza service-unavailable": 10])
        #expect(run.books.imbalances == [])
    }

    @Test("a ping without an answer is given up after --ack-timeout, and its place is free again")
    func timedOut() {
        let run = self.run(
            .init(clients: 1, rate: 10, window: 1, duration: .seconds(3), ackTimeout: .seconds(1))
        ) { _, number, _ in number == 1 ? .silent : .usual }
        run.perform()
        #expect(run.errorCounts == ["timeout": 1])
        let books = run.books
        #expect(books.offered == 30 && books.sent == 30 && books.timedOut == 1 && books.acked == 29)
        #expect(books.imbalances == [])
        let values = run.values("iq_duration", self.ping)
        #expect(values.count == 30 && values.unanswered.failed == 1 && values.unanswered.outstanding == 0)
        // A histogram has the lower end of a bucket of at most 0.1 %.
        #expect(values.unanswered.ages.min ?? 0 >= 999_000_000)
        // The nine that became due after it left when it was given up, one after the other.
        let second = run.server.heard("iq") { $0.element.child("ping") != nil }.dropFirst().first
        #expect((second?.at ?? .distantPast) - run.origin == .milliseconds(1_001))
    }

    @Test("an answer behind --ack-timeout is none")
    func lateAnswer() {
        let run = self.run(.init(clients: 1, rate: 1, duration: .seconds(3), ackTimeout: .milliseconds(500))) {
            _,
            number,
            _ in number == 1 ? .late(.milliseconds(600)) : .usual
        }
        run.perform()
        #expect(run.books.sent == 3 && run.books.timedOut == 1 && run.books.acked == 2)
        run.expect("iq_duration", self.ping, 2, times: .milliseconds(2))
        #expect(run.books.imbalances == [])
    }

    @Test("pings that are open at the end of the drain are in flight")
    func inFlight() {
        let run = self.run(.init(rate: 20, window: 100, drain: .seconds(1))) { _, number, _ in
            number > 36 ? .silent : .usual
        }
        run.perform()
        #expect(run.books.acked == 36 && run.books.inFlight == 4)
        let values = run.values("iq_duration", self.ping)
        #expect(values.count == 40 && values.unanswered.failed == 0 && values.unanswered.outstanding == 4)
        #expect(run.books.imbalances == [])
        #expect(run.errorCounts == [:])
    }

    @Test("a full window holds pings back until an answer comes")
    func window() {
        // Answers take 100 ms, pings become due every 50 ms, and one may be open.
        let run = self.run(.init(clients: 1, rate: 20, window: 1, duration: .seconds(1), drain: .seconds(30))) {
            _,
            _,
            _ in .late(.milliseconds(98))
        }
        run.perform()
        #expect(run.books.acked == 20)
        run.expect("iq_service_duration", self.ping, 20, times: .milliseconds(100))
        let waits = (0..<20).map { Int64($0) * 50_000_000 }
        expectSame(run.histogram("stanza_blocked_duration", self.iq), Histogram(of: waits))
        expectSame(run.histogram("iq_duration", self.ping), Histogram(of: waits.map { $0 + 100_000_000 }))
    }

    @Test("in closed loop each answer lets a ping go", arguments: [1, 5])
    func closedLoop(window: Int) {
        let run = self.run(.init(clients: 1, pace: .closed, window: window, duration: .seconds(1)))
        run.perform()
        // One window every two milliseconds, the first at the load's beginning.
        #expect(run.books.sent == UInt64(500 * window))
        #expect(run.books.acked == run.books.sent)
        run.expect("iq_duration", self.ping, 500 * window, times: .milliseconds(2))
        #expect(run.books.imbalances == [])
    }

    @Test("in closed loop each ping has one end and one sample", arguments: [nil, 41] as [UInt64?], [0, 7])
    func closedEnds(limit: UInt64?, silent: Int) {
        let run = self.run(
            .init(pace: .closed, limit: limit, duration: .milliseconds(200), ackTimeout: .milliseconds(50))
        ) { _, number, _ in silent > 0 && number.isMultiple(of: silent) ? .silent : .usual }
        // The last ping under a limit begins at the moment at which the run orders the end.
        run.perform(step: .milliseconds(2))
        let books = run.books
        let values = run.values("iq_duration", self.ping)
        #expect(books.imbalances == [] && books.offered ?? 0 > 0)
        #expect(limit == nil || books.offered == limit)
        #expect(values.count == books.offered)
        #expect(values.answered.count == books.acked)
        #expect(values.unanswered.failed == books.failures && values.unanswered.outstanding == books.outstanding)
        #expect(run.histogram("schedule_lag").count == books.offered)
    }
}
