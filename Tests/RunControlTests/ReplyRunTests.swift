import Foundation
import Measurement
import TestSupport
import Testing

@Suite("Clients that reply, and those that sleep, from the words to the files")
struct ReplyRunTests {
    private static func doors(
        _ protocolLevel: Int,
        reply: String,
        subscribes: Bool = true,
        doors: String = ""
    ) -> String {
        let ask = subscribes ? "topic: \"door/%rand_10/open\"" : "p2p: { root: door, to: doors }"
        let hear = subscribes ? "subscribe: [{ filter: \"door/+/state\", qos: 0 }]" : "prefix: phone"
        let listen = subscribes ? "subscribe: [{ filter: \"door/%i/open\", qos: 1 }]" : "prefix: door"
        return """
            seed: 42
            target: embedded
            duration: 5s
            groups:
              phones:
                clients: 20
                connect: { protocol: \(protocolLevel) }
                publish: { \(ask), qos: 1, size: 64, rate: 100/s }
                \(hear)
              doors:
                clients: 10
                connect: { protocol: \(protocolLevel) }
                \(listen)
                reply: { \(reply) }
                \(doors)
            """
    }

    @Test(
        "opened is asked less what was held back, and a reply 200 ms late took 200 ms",
        arguments: [(4, true), (5, true), (4, false), (5, false)],
        [100, 99, 50]
    )
    func books(_ way: (version: Int, subscribes: Bool), probability: Int) throws {
        let target = way.subscribes ? "to: \"door/%i/open\", publish: \"door/%i/state\"" : "publish: p2p"
        let run = try VirtualClamor.of(
            scenario: Self.doors(
                way.version,
                reply: "\(target), after: 200ms, probability: \(probability)%",
                subscribes: way.subscribes
            )
        )
        #expect(run.status == 0, "\(run.errors) \(run.record.reasonCodes)")
        #expect(run.record.isSound, "\(run.record.reasonCodes)")
        let asked = run.record.count("publish_acked")
        #expect(asked == 500)
        let withheld = run.record.count("replies_withheld")
        let sent = run.record.count("replies_sent")
        #expect(sent == asked - withheld)
        // Within five standard deviations of the probability.
        let expected = Double(asked) * Double(100 - probability) / 100
        #expect(abs(Double(withheld) - expected) <= 5 * (expected * Double(probability) / 100).squareRoot())
        #expect(run.record.count("replies_received", ["group": "phones", "for": "asker"]) == sent)
        #expect(
            run.record.count("replies_received", ["group": "phones", "for": "other"])
                == (way.subscribes ? 19 * sent : 0)
        )
        #expect(run.record.count("replies_outstanding", ["group": "phones"]) == 0)
        let duration = try #require(run.record.duration("reply_duration", ["group": "phones"]))
        #expect(duration.count == UInt64(sent) && duration.unanswered == nil)
        #expect(abs(duration.p50 - 0.2) < 0.002 && abs(duration.max - 0.2) < 0.02)
        #expect(run.record.books.allSatisfy { $0.balances && $0.lost == 0 || $0.lost == nil })
    }

    @Test("a delay of 200 ms ± 50 % spreads evenly between 100 ms and 300 ms")
    func spread() throws {
        let reply = "publish: \"door/%i/state\", after: 200ms±50%"
        let run = try VirtualClamor.of(scenario: Self.doors(4, reply: reply))
        let duration = try #require(run.record.duration("reply_duration", ["group": "phones"]))
        #expect(duration.min >= 0.1 && duration.min < 0.105 && duration.max <= 0.31 && duration.max > 0.295)
        #expect(abs(duration.p50 - 0.2) < 0.02)
    }

    @Test("replies that the broker drops are outstanding, and make no run that passes")
    func dropped() throws {
        // Replies are at QoS 0, and so is what the broker drops.
        let scenario =
            Self.doors(4, reply: "publish: \"door/%i/state\"") + "\nthresholds: [\"replies_outstanding == 0\"]"
        let target = "target: mqtt://127.0.0.1:1883\ndrain: 2s"
        let run = try VirtualClamor.of(
            scenario: scenario.replacing("target: embedded", with: target),
            on: VirtualClamor.Host("--drop 20%")
        )
        let missing = run.record.count("replies_outstanding", ["group": "phones"])
        let sent = run.record.count("replies_sent")
        #expect(missing > 0)
        #expect(missing == sent - run.record.count("replies_received", ["group": "phones", "for": "asker"]))
        #expect(run.status == 99)
        let duration = try #require(run.record.duration("reply_duration", ["group": "phones"]))
        #expect(duration.count == UInt64(sent) && duration.unanswered?.outstanding == UInt64(missing))
    }

    @Test("a reply that is due while its client sleeps is not sent, and outstanding for the one that asked")
    func asleep() throws {
        let scenario = Self.doors(
            5,
            reply: "publish: \"door/%i/state\", after: 400ms",
            doors: "cycle: { online: 1s, offline: 500ms }"
        )
        let run = try VirtualClamor.of(scenario: scenario)
        let notSent = run.record.count("replies_not_sent")
        #expect(notSent > 0)
        #expect(run.record.count("replies_outstanding", ["group": "phones"]) == notSent)
    }
}
