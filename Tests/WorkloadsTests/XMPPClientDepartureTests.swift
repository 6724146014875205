import LoadEngine
import Measurement
import NIOCore
import Testing
import VirtualServers
import Workloads
import XMPPCodec

@Suite("XMPP clients leave by plan and come back")
struct XMPPClientDepartureTests {
    private func storm(_ share: Double, at time: TimeAmount, over: TimeAmount = .zero, cuts: Bool) -> DeparturePlan {
        DeparturePlan(storms: [.init(share: share, at: time, over: over, cuts: cuts)])
    }

    private func returns(_ run: XMPPVirtualRun) -> [TimeAmount] {
        (0..<run.setup.clients).flatMap { run.returns($0) }.sorted()
    }

    @Test("a storm takes its share at once, and all of them come back", arguments: [(true, 0), (false, 2)])
    func storm(cuts: Bool, goodbye: Int) {
        let run = XMPPVirtualRun(
            .init(work: .login, clients: 8, departures: self.storm(0.5, at: .seconds(1), cuts: cuts))
        )
        run.perform()
        // A client that closes its stream waits for the server's closing tag.
        #expect(self.returns(run) == Array(repeating: .milliseconds(1_000 + Int64(goodbye)), count: 4))
        #expect(run.count("disconnects", ["reason": "storm"]) == 4)
        #expect(run.count("departures_missed", ["reason": "storm"]) == 0)
        #expect(run.count("reconnects") == 4)
        run.expect("reconnect_duration", ["phase": "total"], 4, times: .milliseconds(9))
        run.expect("reconnect_lag", 4, times: .zero)
        run.expect("connect_duration", ["phase": "total"], 8, times: .milliseconds(9))
        #expect(run.server.heard("/stream") { $0.earlier == 0 }.count == (cuts ? 4 : 8))
        #expect(run.errorCounts == [:])
    }

    @Test("those of a storm come back at the rate of connects")
    func stormRate() {
        let run = XMPPVirtualRun(
            .init(
                work: .login,
                clients: 4,
                connect: .rate(perSecond: 20),
                departures: self.storm(1, at: .seconds(1), cuts: true)
            )
        )
        run.perform()
        #expect(self.returns(run) == [1_000, 1_050, 1_100, 1_150].map { .milliseconds($0) })
    }

    @Test("a storm over a time takes one after the other")
    func slowStorm() {
        let run = XMPPVirtualRun(
            .init(
                work: .login,
                clients: 4,
                departures: self.storm(1, at: .milliseconds(500), over: .milliseconds(400), cuts: true)
            )
        )
        run.perform()
        #expect(self.returns(run) == [500, 600, 700, 800].map { .milliseconds($0) })
    }

    @Test("a client waits at most two seconds for the server's closing tag")
    func leaveGrace() {
        let run = XMPPVirtualRun(
            .init(
                work: .login,
                clients: 1,
                duration: .seconds(5),
                departures: self.storm(1, at: .seconds(1), cuts: false)
            )
        )
        run.server.script = { stream, heard in heard.name == "/stream" && stream.earlier == 0 ? .silent : .usual }
        run.perform()
        #expect(run.returns(0) == [.seconds(3)])
        #expect(run.count("disconnects", ["reason": "storm"]) == 1)
        #expect(run.count("disconnects", ["reason": "timeout"]) == 0)
        #expect(run.errorCounts == [:])
    }

    @Test("each client in turn leaves at the rate of the churn")
    func churn() {
        let run = XMPPVirtualRun(
            .init(work: .login, clients: 3, departures: DeparturePlan(churn: .init(perSecond: 5, cuts: true)))
        )
        run.perform()
        let all = (0..<3).flatMap { client in run.returns(client).map { (client, $0) } }.sorted { $0.1 < $1.1 }
        #expect(all.map(\.0) == (0..<all.count).map { $0 % 3 })
        #expect(zip(all, all.dropFirst()).allSatisfy { $1.1 - $0.1 == .milliseconds(200) })
        #expect(all.count == 10)
        #expect(run.count("disconnects", ["reason": "churn"]) == 10)
        #expect(run.count("reconnects") == 10)
    }

    @Test("a client that is not connected when its turn comes is passed over")
    func missed() {
        let run = XMPPVirtualRun(
            .init(work: .login, clients: 4, departures: self.storm(1, at: .seconds(1), cuts: true))
        )
        run.network.answers = { client, _ in client == 2 ? .refuses : .opens(after: .zero) }
        run.perform()
        #expect(run.count("disconnects", ["reason": "storm"]) == 3)
        #expect(run.count("departures_missed", ["reason": "storm"]) == 1)
        #expect(run.returns(2) == [])
    }

    @Test("a storm after the end of the load disconnects no client, and counts those it missed")
    func missedStorm() {
        let run = XMPPVirtualRun(
            .init(work: .login, clients: 4, departures: self.storm(0.5, at: .seconds(10), cuts: true))
        )
        run.perform()
        #expect(run.count("disconnects", ["reason": "storm"]) == 0)
        #expect(run.count("departures_missed", ["reason": "storm"]) == 2)
    }

    @Test("a way back that is refused is tried again while --reconnects last", arguments: [0, 2])
    func refusedReturn(reconnects: Int) {
        let run = XMPPVirtualRun(
            .init(
                work: .login,
                clients: 1,
                reconnects: reconnects,
                departures: self.storm(1, at: .milliseconds(500), cuts: true)
            )
        )
        run.network.answers = { _, earlier in earlier == 0 ? .opens(after: .zero) : .refuses }
        run.perform()
        #expect(
            run.returns(0) == (0...reconnects).map { TimeAmount.milliseconds(500) + TimeAmount.milliseconds(301) * $0 }
        )
        #expect(run.errorCounts == ["refused": reconnects + 1])
        #expect(run.count("disconnects", ["reason": "closed"]) == 0)
    }

    @Test(
        "messages of a connection that was cut by plan are of unknown fate, those before a goodbye are known",
        arguments: [true, false]
    )
    func messages(cuts: Bool) {
        let run = XMPPVirtualRun(.init(departures: self.storm(1, at: .milliseconds(1_050), cuts: cuts)))
        run.perform()
        let books = run.books
        #expect(books.offered == 20 && books.sent == 20)
        // Both had sent: one 0, 200 ... 1,000 ms, the other 100, 300 ... 900 ms.
        #expect(books.unconfirmed == (cuts ? 11 : 0))
        #expect(books.confirmed == (cuts ? 9 : 20))
        #expect(books.lost == 0)
        #expect(books.imbalances == [])
    }
}
