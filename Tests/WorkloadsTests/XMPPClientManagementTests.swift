import LoadEngine
import Measurement
import NIOCore
import RunResult
import Testing
import VirtualServers
import Workloads
import XMPPCodec

@Suite("XMPP clients with stream management")
struct XMPPClientManagementTests {
    private func run(_ setup: XMPPVirtualRun.Setup) -> XMPPVirtualRun {
        var setup = setup
        setup.streamManagement = true
        return XMPPVirtualRun(setup)
    }

    @Test(
        "every message is acknowledged a round trip behind its write",
        arguments: [TimeAmount.zero, .milliseconds(7)]
    )
    func acknowledged(latency: TimeAmount) {
        let run = self.run(.init(latency: latency))
        run.perform()
        run.expect("sm_ack_duration", 20, times: latency * 2)
        run.expect("sm_response_duration", 20, times: latency * 2)
        #expect(run.count("stanza_acked") == 20)
        #expect(run.books.confirmed == 20 && run.books.unconfirmed == 0)
        #expect(run.books.imbalances == [])
        run.expect("connect_duration", ["phase": "bind"], 2, times: latency * 4)
    }

    @Test("what was acknowledged before a connection broke is known")
    func cut() {
        let run = self.run(.init(reconnects: 1))
        run.at(.milliseconds(1_050)) { [unowned run] in run.network.cut(0) }
        run.perform()
        // Messages for the client that was away came back.
        let returned = run.count("stanza_refused", ["stanza": "message"])
        #expect(returned == 2 && run.books.sent == 20)
        #expect(run.books.confirmed == 18 && run.books.unconfirmed == 2 && run.books.failed == 2)
        #expect(run.count("stanza_acked") == 20)
        #expect(run.books.imbalances == [])
        // The message that was due at 1,200 ms waited for the new connection, from 1,350 ms on.
        run.expect("sm_ack_duration", 20, times: .milliseconds(2))
        let response = run.histogram("sm_response_duration")
        #expect(response.count == 20 && response.percentile(95) ?? 0 < 2_100_000)
        #expect((150_000_000..<170_000_000).contains(response.max ?? 0))
    }

    @Test("what was not acknowledged before a connection broke is of unknown fate")
    func unacknowledged() {
        let run = self.run(.init())
        run.server.script = { [unowned run] stream, heard in
            heard.name == "r" && stream.client == 0 && run.now > run.origin + .milliseconds(700) ? .silent : .usual
        }
        run.at(.milliseconds(1_050)) { [unowned run] in run.network.cut(0) }
        run.perform()
        // Of the first client 0, 200, 400 and 600 ms are acknowledged, 800 and 1,000 ms are not, and 4 never leave.
        #expect(run.books.sent == 16 && run.books.notSent == 4)
        // Of the second client the messages from 1,100 ms on come back.
        #expect(run.books.confirmed == 9)
        #expect(run.books.unconfirmed == 7)
        #expect(run.account.clients.map(\.tally.acked) == [4, 5])
        #expect(run.count("stanza_acked") == 14)
        #expect(run.books.imbalances == [])
        for name in ["sm_response_duration", "sm_ack_duration"] {
            let values = run.values(name)
            #expect(values.answered.count == 14)
            // The cut came 250 ms after the one and 50 ms after the other.
            #expect(values.unanswered.failed == 2 && values.unanswered.outstanding == 0)
            #expect(values.unanswered.ages.min == 50_000_000)
        }
    }

    @Test("an acknowledgement is of all that left before it")
    func cumulative() {
        let run = self.run(.init(clients: 1, rate: 10, duration: .seconds(1)))
        var asked = 0
        run.server.script = { _, heard in
            guard heard.name == "r" else { return .usual }
            asked += 1
            return asked % 5 == 0 ? .usual : .silent
        }
        run.perform()
        #expect(run.count("stanza_acked") == 10)
        let times = (0..<10).map { Int64(4 - $0 % 5) * 100_000_000 + 2_000_000 }
        expectSame(run.histogram("sm_ack_duration"), Histogram(of: times))
    }

    @Test("a stanza without an acknowledgement counts at its age when the run ends")
    func silent() {
        let run = self.run(.init(clients: 1, rate: 10, duration: .seconds(1), drain: .seconds(1)))
        run.server.script = { [unowned run] _, heard in
            switch heard.name {
            case "r": run.now > run.origin + .milliseconds(450) ? .silent : .usual
            case "/stream": .silent
            default: .usual
            }
        }
        run.perform()
        let values = run.values("sm_response_duration")
        #expect(values.answered.count == 5 && values.unanswered.outstanding == 5)
        #expect(run.count("stanza_acked") == 5)
        // Half of the messages have no answer, so that nothing above the median is known.
        let p90 = values.percentile(90)
        #expect(p90?.low ?? 0 > 1_000_000_000 && p90?.high == nil)
    }

    @Test("a count that is too high ends the connection")
    func tooHigh() {
        let run = self.run(.init(clients: 1, reconnects: 0))
        run.server.script = { _, heard in
            heard.name == "r" ? .says("<a xmlns='\(XMPPNamespace.streamManagement)' h='99'/>") : .usual
        }
        run.perform()
        #expect(run.errorCounts == ["handled-count-too-high": 1])
        #expect(run.count("disconnects", ["reason": "protocol"]) == 1)
        #expect(run.books.sent == 1 && run.books.unconfirmed == 1)
        #expect(run.books.imbalances == [])
    }

    @Test("a server that refuses stream management gets messages all the same")
    func refused() {
        let run = self.run(.init())
        run.server.script = { _, heard in
            heard.name == "enable"
                ? .says(
                    "<failed xmlns='\(XMPPNamespace.streamManagement)'>"
                        + "<unexpected-request xmlns='\(XMPPNamespace.stanzas)'/></failed>"
                ) : .usual
        }
        run.perform()
        #expect(run.books.sent == 20 && run.books.confirmed == 20 && run.books.received == 20)
        #expect(run.count("stanza_acked") == 0)
        #expect(run.server.heard("r").isEmpty)
    }
}
