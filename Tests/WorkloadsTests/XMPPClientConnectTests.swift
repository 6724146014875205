import LoadEngine
import Measurement
import NIOCore
import RunResult
import Testing
import VirtualServers
import Workloads
import XMPPCodec

@Suite("XMPP clients log in")
struct XMPPClientConnectTests {
    private func phase(_ name: String) -> Labels { ["phase": name] }

    @Test(
        "each phase of a login takes its own round trips",
        arguments: [(1, TimeAmount.zero), (1, .milliseconds(1)), (3, .milliseconds(20))]
    )
    func phases(clients: Int, latency: TimeAmount) {
        let run = XMPPVirtualRun(.init(work: .login, clients: clients, latency: latency))
        run.perform()
        run.expect("connect_duration", self.phase("tcp"), clients, times: latency)
        // The header, and the one behind the login.
        run.expect("connect_duration", self.phase("stream"), clients, times: latency * 4)
        run.expect("connect_duration", self.phase("sasl"), clients, times: latency * 2)
        run.expect("connect_duration", self.phase("bind"), clients, times: latency * 2)
        run.expect("connect_duration", self.phase("session"), clients, times: latency * 8)
        run.expect("connect_duration", self.phase("total"), clients, times: latency * 9)
        run.expect("connect_lag", clients, times: .zero)
        #expect(run.errorCounts == [:])
        #expect(run.count("reconnects") == 0)
        #expect(run.account.clients.allSatisfy { $0.tally.connectNanoseconds == max(1, (latency * 9).nanoseconds) })
    }

    @Test("what the server takes for one phase is in that phase alone", arguments: ["stream", "auth", "iq"])
    func slowPhase(element: String) {
        let run = XMPPVirtualRun(.init(work: .login, clients: 1))
        run.server.script = { stream, heard in
            heard.name == element && (element != "stream" || !stream.isAuthenticated) ? .late(.seconds(1)) : .usual
        }
        run.perform()
        let slow = ["stream": "stream", "auth": "sasl", "iq": "bind"][element] ?? ""
        for (name, trips) in [("stream", 4), ("sasl", 2), ("bind", 2)] {
            let own = name == slow ? TimeAmount.seconds(1) : .zero
            run.expect("connect_duration", self.phase(name), 1, times: .milliseconds(Int64(trips)) + own)
        }
        run.expect("connect_duration", self.phase("total"), 1, times: .milliseconds(1_009))
    }

    @Test("clients begin to connect at the rate of the plan, and are not late")
    func rate() {
        let run = XMPPVirtualRun(.init(work: .login, clients: 5, connect: .rate(perSecond: 4)))
        run.perform()
        for client in 0..<5 { #expect(run.connects(client) == [TimeAmount.milliseconds(250) * client]) }
        run.expect("connect_lag", 5, times: .zero)
    }

    @Test("so many clients connect at once, and the next one when one is up")
    func pending() {
        let run = XMPPVirtualRun(.init(work: .login, clients: 4, connect: .pending(2)))
        run.perform()
        #expect((0..<4).map { run.connects($0) } == [[.zero], [.zero], [.milliseconds(9)], [.milliseconds(9)]])
    }

    @Test(
        "a step without an answer is given up at --connect-timeout",
        arguments: [("stream", "timeout-stream"), ("auth", "timeout-sasl"), ("iq", "timeout-bind")]
    )
    func silence(element: String, kind: String) {
        let run = XMPPVirtualRun(.init(work: .login, clients: 2, connectTimeout: .seconds(3)))
        run.server.script = { stream, heard in stream.client == 0 && heard.name == element ? .silent : .usual }
        run.perform()
        #expect(run.errorCounts == [kind: 1])
        #expect(run.connects(0) == [.zero])
        run.expect("connect_duration", self.phase("total"), 1, times: .milliseconds(9))
        // It never was up, so nothing was disconnected.
        #expect(run.count("disconnects", ["reason": "timeout"]) == 0)
        #expect(run.origin - run.began == .milliseconds(3_020))
    }

    @Test(
        "a login that the server refuses is counted by its condition",
        arguments: ["not-authorized", "account-disabled"]
    )
    func refused(condition: String) {
        let run = XMPPVirtualRun(.init(work: .login, clients: 2))
        run.server.script = { stream, heard in
            stream.client == 1 && heard.name == "auth" ? .says(VirtualXMPPServer.failure(condition)) : .usual
        }
        run.perform()
        #expect(run.errorCounts == [condition: 1])
        run.expect("connect_duration", self.phase("total"), 1, times: .milliseconds(9))
        #expect(run.account.clients.map { $0.tally.connectNanoseconds > 0 } == [true, false])
    }

    @Test("a client whose account could not be made does not connect")
    func unregistered() {
        let refusal = AccountRefusal(kind: "register conflict", words: "no account")
        let run = XMPPVirtualRun(.init(work: .login, clients: 3, unregistered: ["user2@localhost": refusal]))
        run.perform()
        #expect((0..<3).map { run.connects($0).count } == [1, 0, 1])
        #expect(run.errorCounts == ["register conflict": 1])
        run.expect("connect_duration", self.phase("total"), 2, times: .milliseconds(9))
    }

    @Test("a JID other than the requested one is an error")
    func boundElsewhere() {
        let run = XMPPVirtualRun(.init(work: .login, clients: 1))
        run.server.script = { _, heard in
            guard heard.name == "iq", heard.child("bind") != nil else { return .usual }
            return .says(
                "<iq type='result' id='\(heard["id"] ?? "")'><bind xmlns='\(XMPPNamespace.bind)'>"
                    + "<jid>user1@localhost/other</jid></bind></iq>"
            )
        }
        run.perform()
        #expect(run.errorCounts == ["bound elsewhere": 1])
    }
}
