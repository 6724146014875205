import LoadEngine
import Measurement
import NIOCore
import Testing
import VirtualServers
import Workloads
import XMPPCodec

@Suite("XMPP clients try again")
struct XMPPClientRetryTests {
    @Test("a refused connect is tried again every --reconnect-period, so often and no more", arguments: [0, 1, 3])
    func refusedConnects(retries: Int) {
        let run = XMPPVirtualRun(.init(work: .login, clients: 1, connectRetries: retries))
        run.network.answers = { _, _ in .refuses }
        run.perform()
        // The refusal takes a way of the wire.
        #expect(run.connects(0) == (0...retries).map { TimeAmount.milliseconds(301) * $0 })
        #expect(run.errorCounts == ["refused": retries + 1])
        run.expect("connect_lag", 1, times: .zero)
        run.expect("connect_duration", ["phase": "total"], 0, times: .zero)
    }

    @Test("each wait is twice the one before, up to the longest, and the first one again behind a login")
    func growingWaits() {
        let run = XMPPVirtualRun(
            .init(
                work: .login,
                clients: 1,
                duration: .seconds(20),
                reconnects: 100,
                longestPeriod: .seconds(2)
            )
        )
        // Up from 0 to 1 s and from 8 s to 9 s; each refusal and each cut takes a way of the wire.
        run.network.answers = { [unowned run] _, earlier in
            earlier == 0 || run.now > run.origin + .seconds(7) ? .opens(after: .zero) : .refuses
        }
        for second in [1, 9] { run.at(.seconds(Int64(second))) { [unowned run] in run.network.cut(0) } }
        run.perform()
        let waits: [Int64] = [300, 600, 1_200, 2_000, 2_000]
        var due: [TimeAmount] = [.milliseconds(1_000 + waits[0])]
        for wait in waits.dropFirst() { due.append(due[due.count - 1] + .milliseconds(1 + wait)) }
        let returns = run.returns(0)
        #expect(Array(returns.prefix(waits.count)) == due)
        #expect(returns.last == .milliseconds(9_300))
        let downtime = run.values("downtime_duration")
        #expect(downtime.answered.count == 2 && downtime.unanswered.isEmpty)
        #expect(downtime.answered.min ?? 0 < 310_000_000)
    }

    @Test(
        "with fail-over each attempt goes to the next target, and a client stays where it is up",
        arguments: [true, false]
    )
    func failover(isOn: Bool) {
        let run = XMPPVirtualRun(
            .init(work: .login, clients: 1, duration: .seconds(20), reconnects: 100, failsOver: isOn)
        )
        // Two refusals behind the first loss, none behind the second.
        run.network.answers = { _, earlier in [1, 2].contains(earlier) ? .refuses : .opens(after: .zero) }
        for second in [1, 9] { run.at(.seconds(Int64(second))) { [unowned run] in run.network.cut(0) } }
        run.perform()
        #expect(run.network.turns == (isOn ? [0, 1, 2, 3, 4] : [0, 0, 0, 0, 0]))
    }

    @Test("a connect that comes up at the third attempt is measured from its own beginning")
    func thirdAttempt() {
        let run = XMPPVirtualRun(.init(work: .login, clients: 1, connectRetries: 2))
        run.network.answers = { _, earlier in earlier < 2 ? .refuses : .opens(after: .zero) }
        run.perform()
        #expect(run.errorCounts == ["refused": 2])
        run.expect("connect_duration", ["phase": "total"], 1, times: .milliseconds(9))
        #expect(run.count("reconnects") == 0)
    }

    @Test("a connect that is given up at --connect-timeout is tried again")
    func hanging() {
        let run = XMPPVirtualRun(.init(work: .login, clients: 1, connectTimeout: .seconds(2), connectRetries: 1))
        run.network.answers = { _, earlier in earlier < 1 ? .hangs : .opens(after: .zero) }
        run.perform()
        #expect(run.connects(0) == [.zero, .milliseconds(2_300)])
        #expect(run.errorCounts == ["timeout": 1])
    }

    @Test(
        "a refusal for good is not tried again, one that may pass is",
        arguments: [("not-authorized", 1), ("account-disabled", 1), ("temporary-auth-failure", 3)]
    )
    func refusedLogins(condition: String, connects: Int) {
        let run = XMPPVirtualRun(.init(work: .login, clients: 1, connectRetries: 2))
        run.server.script = { _, heard in
            heard.name == "auth" ? .says(VirtualXMPPServer.failure(condition)) : .usual
        }
        run.perform()
        #expect(run.connects(0).count == connects)
        #expect(run.errorCounts == [condition: connects])
    }

    private static let ends: [(String, VirtualXMPPServer.Reaction, reason: String, kind: String, returns: Bool)] = [
        ("FIN", .closes, "closed", "lost", true),
        ("RST", .resets, "reset", "reset", true),
        ("a closing tag", .ends(""), "closed", "closed", true),
        ("shutdown", .ends(VirtualXMPPServer.streamError("system-shutdown")), "server", "system-shutdown", true),
        ("conflict", .ends(VirtualXMPPServer.streamError("conflict")), "server", "conflict", false),
        ("no place", .ends(VirtualXMPPServer.streamError("host-unknown")), "server", "host-unknown", false),
    ]

    /// Two clients that ping every 100 ms; at its 5th ping the first one's connection ends.
    private func ended(_ reaction: VirtualXMPPServer.Reaction, reconnects: Int) -> XMPPVirtualRun {
        let run = XMPPVirtualRun(
            .init(work: .ping, rate: 20, pace: nil, duration: .seconds(2), reconnects: reconnects)
        )
        run.server.script = { [unowned run] stream, heard in
            heard.child("ping") != nil && stream.client == 0 && stream.earlier == 0
                && run.now > run.origin + .milliseconds(400) ? reaction : .usual
        }
        run.perform()
        return run
    }

    @Test("a lost connection is made again behind --reconnect-period, unless it would be lost again", arguments: 0..<6)
    func lostConnections(index: Int) {
        let (name, reaction, reason, kind, returns) = Self.ends[index]
        let run = self.ended(reaction, reconnects: 1)
        // The ping of 400 ms reaches the server a way later, and the end the client after one more.
        #expect(run.returns(0) == (returns ? [.milliseconds(702)] : []), "\(name)")
        #expect(run.errorCounts == [kind: 1], "\(name)")
        #expect(run.count("disconnects", ["reason": reason]) == 1, "\(name)")
        #expect(run.count("reconnects") == (returns ? 1 : 0), "\(name)")
        run.expect("reconnect_duration", ["phase": "total"], returns ? 1 : 0, times: .milliseconds(9))
        run.expect("connect_duration", ["phase": "total"], 2, times: .milliseconds(9))
        if returns { run.expect("downtime_duration", 1, times: .milliseconds(309)) }
        #expect(run.values("downtime_duration").unanswered.failed == (returns ? 0 : 1), "\(name)")
        #expect(run.books.failed == 1, "\(name)")
        #expect(run.books.imbalances == [], "\(name)")
    }

    @Test("who may not come back is gone, and what it still had to send is not sent")
    func noReconnects() {
        let run = self.ended(.closes, reconnects: 0)
        #expect(run.returns(0) == [])
        #expect(run.books.offered == 40)
        // 5 of the first client, one of them lost with its connection.
        #expect(run.books.sent == 25)
        #expect(run.books.acked == 24)
        #expect(run.books.notSent == 15)
        #expect(run.books.failed == 1)
        #expect(run.books.imbalances == [])
    }

    @Test("what became due while a client was away is sent when it is back, and is blocked until then")
    func blocked() {
        let run = self.ended(.closes, reconnects: 1)
        #expect(run.books.offered == 40)
        #expect(run.books.sent == 40)
        // Of the first client 500, 600 and 700 ms waited until 711 ms.
        let waited = [211, 111, 11].map { Int64($0) * 1_000_000 }
        let labels: Labels = ["stanza": "iq"]
        expectSame(
            run.histogram("stanza_blocked_duration", labels),
            Histogram(of: Array(repeating: 0, count: 37) + waited)
        )
        run.expect("schedule_lag", 40, times: .zero)
    }

    @Test("a way back that is refused counts among --reconnects")
    func refusedReturns() {
        let run = XMPPVirtualRun(.init(work: .login, clients: 1, duration: .seconds(3), reconnects: 3))
        run.network.answers = { _, earlier in earlier == 0 ? .opens(after: .zero) : .refuses }
        run.at(.milliseconds(500)) { [unowned run] in run.network.cut(0) }
        run.perform()
        #expect(run.returns(0) == [800, 1_101, 1_402].map { .milliseconds($0) })
        #expect(run.errorCounts == ["reset": 1, "refused": 3])
        #expect(run.count("reconnects") == 0)
    }
}
