import Foundation
import Measurement
import Report
import Testing

@Suite("The load and the outcome of a run in words")
struct ServerOutcomeTests {
    struct Load: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var plan: [String: JSONValue]
        var line: String?
        var server: ServerRecord?
    }

    static let mosquitto = ServerRecord(product: "mosquitto", version: "2.0.11", source: "$SYS/broker/version")
    private static let pubsub: [String: JSONValue] = [
        "command": "pubsub", "targets": ["127.0.0.1:1883"], "clients": 200, "publishers": 100, "subscribers": 100,
        "window": 16, "pacing": "rate", "rate": 1000, "qos": [1], "size_bytes": 256, "duration_seconds": 10,
    ]

    static let loads = [
        Load(
            testDescription: "pubsub",
            plan: pubsub,
            line: "mosquitto 2.0.11 · 100 → 100 clients · 1,000/s · QoS 1 · 256 B · 10 s",
            server: mosquitto
        ),
        Load(
            testDescription: "a server without a name",
            plan: pubsub,
            line: "server 127.0.0.1:1883 · 100 → 100 clients · 1,000/s · QoS 1 · 256 B · 10 s"
        ),
        Load(
            testDescription: "conn",
            plan: ["command": "conn", "clients": 5000, "connect_rate": 500, "duration_seconds": 30],
            line: "5,000 clients · connects at 500/s · 30 s"
        ),
        Load(
            testDescription: "connects are no rate of messages",
            plan: ["command": "pub", "clients": 1, "connect_rate": 500, "window": 16, "limit": 100],
            line: "1 client · at most 100 operations"
        ),
        Load(
            testDescription: "xmpp message",
            plan: ["command": "xmpp-message", "clients": 100, "window": 1, "pacing": "closed", "size_bytes": 512],
            line: "xmpp message · 100 clients · closed loop · 512 B"
        ),
        Load(
            testDescription: "rooms",
            plan: ["command": "xmpp-muc", "clients": 50, "rooms": 10, "pacing": "rate", "rate": 20, "window": 1],
            line: "xmpp muc · 50 clients · 10 rooms · 20/s"
        ),
        Load(
            testDescription: "decode",
            plan: [
                "command": "decode", "protocol": "mqtt", "sizes_bytes": [64, 256], "qos": [0, 1], "duration_seconds": 2,
            ],
            line: "decoder of mqtt · QoS 0, 1 · 64 B, 256 B · 2 s"
        ),
        Load(
            testDescription: "a ramp, and sizes between two",
            plan: [
                "clients": 10, "rate": 1000, "rate_from": 100, "rate_to": 1000, "size_bytes_min": 64,
                "size_bytes_max": 512,
            ],
            line: "10 clients · 100 → 1,000/s · 64 B to 512 B"
        ),
        Load(
            testDescription: "steps",
            plan: ["clients": 10, "rate_steps": [100, 200]],
            line: "10 clients · 100, 200/s"
        ),
        Load(
            testDescription: "an interval",
            plan: ["clients": 10, "pacing": "interval", "interval_seconds": 1, "qos": [2], "message_bytes": 5],
            line: "10 clients · one a client every 1.00 s · QoS 2 · 5 B"
        ),
        Load(
            testDescription: "sub",
            plan: ["command": "sub", "clients": 20, "subscribers": 20, "subscribe_qos": "1"],
            line: "20 clients · QoS 1"
        ),
        Load(
            testDescription: "streams and stages",
            plan: [
                "clients": 5, "window": 16, "streams": [["qos": 0], ["qos": 1]],
                "stages": [["name": "a", "seconds": 5], ["name": "b", "seconds": 10.5]],
            ],
            line: "5 clients · 2 streams · 15.5 s"
        ),
        Load(testDescription: "nothing", plan: [:], line: nil),
    ]

    @Test("The load is one line, without what does not apply", arguments: loads)
    func load(_ sample: Load) {
        var record = Samples.begun(["clamor", "pubsub"])
        record.plan = sample.plan
        record.servers = sample.server.map { [$0] }
        #expect(record.load == sample.line)
    }

    @Test(
        "Groups are named with their clients, three at most",
        arguments: [
            (1, "7 clients · 10 s"), (2, "a: 1 client · b: 2 clients · 10 s"),
            (3, "a: 1 client · b: 2 clients · c: 3 clients · 10 s"),
            (5, "a: 1 client · b: 2 clients · c: 3 clients · and 2 more · 10 s"),
        ]
    )
    func groups(_ count: Int, _ line: String) {
        var record = Samples.begun(["clamor", "run"])
        record.plan = ["command": "run", "duration_seconds": 10, "groups": ["a": ["clients": 7]]]
        record.groups = ["a", "b", "c", "d", "e"].prefix(count).enumerated().map { place, name in
            GroupRecord(name: name, protocolName: "mqtt", clients: place + 1, ledger: LedgerRecord(on: false))
        }
        #expect(record.load == line)
    }

    struct Outcome: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var text: String?
        var record: RunRecord
    }

    /// `sentence`: of the findings, if there are some.
    private static func run(
        _ metrics: [Metric?],
        _ sentence: String? = nil,
        lost: UInt64? = nil,
        clients: (planned: Int, up: Int)? = nil,
        _ change: (inout RunRecord) -> Void = { _ in }
    ) -> RunRecord {
        var record = Samples.begun(["clamor", "pubsub"])
        record.verdict = .valid
        record.metrics = metrics.compactMap(\.self)
        record.findings = sentence.map { FindingsRecord(sentence: $0) }
        record.findings?.steadySecond = lost.map { _ in 1 }
        record.findings?.clientsPlanned = clients?.planned
        record.findings?.clientsUp = clients?.up
        record.ledger = LedgerRecord(on: lost != nil)
        if let lost {
            var books = Books(qos: 1)
            (books.expected, books.received, books.lost) = (1000, 1000 - lost, lost)
            record.books = [books]
        }
        change(&record)
        return record
    }

    private static func acks(_ count: Int64, step: Int64, _ qos: Int = 1) -> Metric? {
        Samples.duration("publish_ack_duration", ["qos": "\(qos)", "leg": "puback"], Samples.ramp(count, step: step))
    }

    private static let thousand = acks(1000, step: 1000)
    private static let figure = "99 % of 1,000 messages answered within 990 µs"

    /// 980 answers, 5 failures and 15 that are outstanding.
    private static var bound: Metric? {
        var values = DurationValues(answered: Samples.ramp(980, step: 1000))
        values.unanswered.record(2_000_000_000, count: 5, as: .failed)
        values.unanswered.record(6_000_000_000, count: 15, as: .outstanding)
        return DurationReading(values).map {
            Metric(duration: "publish_ack_duration", labels: ["qos": "1"], reading: $0)
        }
    }

    static let outcomes = [
        Outcome(
            testDescription: "pubsub at QoS 1",
            text: "\(figure), none lost. No error, no connection lost, no stall, no objective broken.",
            record: run([thousand, Samples.counter("disconnects", ["reason": "reset"], 0)], "nothing broke", lost: 0) {
                $0.thresholds = [ThresholdResult(expression: "errors == 0", ok: true, value: 0)]
            }
        ),
        Outcome(
            testDescription: "without a time line nothing is said of stalls",
            text: "\(figure). No error.",
            record: run([thousand], "nothing broke")
        ),
        Outcome(
            testDescription: "a level that changed",
            text: "\(figure). No error; ack p50 rose at 5 s from 1 ms to 9 ms or more.",
            record: run([thousand], "nothing broke; ack p50 rose at 5 s from 1 ms to 9 ms or more")
        ),
        Outcome(
            testDescription: "losses are counted once",
            text: "\(figure). 10 of 1,000 messages were lost (violated); the first: message 1.",
            record: run([thousand], "10 of 1,000 messages were lost (violated); the first: message 1", lost: 10)
        ),
        Outcome(
            testDescription: "a stall, with losses",
            text: "\(figure), 10 of 1,000 lost. Answers stopped at 5 s for 1 s in stage peak.",
            record: run([thousand], "answers stopped at 5 s for 1 s in stage peak; 10 lost", lost: 10)
        ),
        Outcome(
            testDescription: "followed messages only",
            text: "\(figure), none of 1,000 followed lost.",
            record: run([thousand], lost: 0) { $0.ledger.unfollowed = ["b"] }
        ),
        Outcome(
            testDescription: "deliveries that are outstanding",
            text: "\(figure), 3 of 1,000 deliveries outstanding.",
            record: run([thousand], lost: 0) { $0.books[0].deliveryOutstanding = 3 }
        ),
        Outcome(
            testDescription: "not answered",
            text: "\(figure), 12 not answered, none lost.",
            record: run([thousand, Samples.counter("publish_outstanding", ["qos": "1"], 12)], lost: 0)
        ),
        Outcome(
            testDescription: "not answered, which is said once",
            text: "\(figure). 12 of 1,012 messages were not answered.",
            record: run(
                [thousand, Samples.counter("publish_outstanding", ["qos": "1"], 12)],
                "12 of 1,012 messages were not answered"
            )
        ),
        Outcome(
            testDescription: "a lower bound",
            text: "Ack p99 of 1,000 messages ≥ 6.00 s, 5 failed, 15 not answered.",
            record: run([bound])
        ),
        Outcome(
            testDescription: "too few for a percentile",
            text: "All 20 messages answered within 20.0 ms.",
            record: run([acks(20, step: 1_000_000)])
        ),
        Outcome(
            testDescription: "one message",
            text: "1 message answered within 20.0 ms.",
            record: run([acks(1, step: 20_000_000)])
        ),
        Outcome(
            testDescription: "the slowest of two levels",
            text: "99 % of 1,000 messages answered within 1.98 ms (the slowest of 2: QoS 2).",
            record: run([thousand, acks(1000, step: 2000, 2)])
        ),
        Outcome(
            testDescription: "connects",
            text: "99 % of 5,000 connects within 124 ms, all 5,000 up. No error.",
            record: run(
                [Samples.duration("connect_duration", ["phase": "total"], Samples.ramp(5000, step: 25_000))],
                "nothing broke",
                clients: (5000, 5000)
            )
        ),
        Outcome(
            testDescription: "clients that never came up",
            text: "\(figure), 98 of 100 clients up. 2 errors, most of kind refused.",
            record: run([thousand], "2 errors, most of kind refused", clients: (100, 98))
        ),
        Outcome(
            testDescription: "XMPP messages",
            text: "99 % of 1,000 messages delivered within 2.48 ms.",
            record: run([
                Samples.duration("delivery_duration", ["stanza": "message"], Samples.ramp(1000, step: 2500)),
                Samples.counter("stanza_sent", ["stanza": "message"], 1000),
            ])
        ),
        Outcome(
            testDescription: "pings",
            text: "99 % of 1,000 requests answered within 990 µs.",
            record: run([Samples.duration("iq_duration", ["request": "ping"], Samples.ramp(1000, step: 1000))])
        ),
        Outcome(
            testDescription: "QoS 0, which nothing answers",
            text: "30,000 messages sent.",
            record: run([
                Samples.duration("connect_duration", ["phase": "total"], Samples.ramp(500, step: 1000)),
                Samples.counter("publish_sent", ["qos": "0"], 30_000),
            ])
        ),
        Outcome(
            testDescription: "decode",
            text: "400,000,000 packets/s decoded (memory pipelined, the fastest of 4).",
            record: Samples.decode
        ),
        Outcome(
            testDescription: "groups",
            text: "99 % of 1,000 messages answered within 990 µs (sensors), none lost.",
            record: Samples.mixed
        ),
        Outcome(
            testDescription: "what is wrong with the measurement comes first",
            text: "A signal ended the run at 8 s. \(figure).",
            record: run([thousand], "a signal ended the run at 8 s") {
                $0.verdict?.add(.aborted, Verdict.Reason(code: "interrupted", text: "a signal"))
            }
        ),
        Outcome(
            testDescription: "metrics have their titles",
            text: "\(figure). The objective delivery p99 < 1ms failed: 2 ms.",
            record: run([thousand], "the objective delivery_duration p99 < 1ms failed: 2 ms")
        ),
        Outcome(testDescription: "no metrics", text: nil, record: run([])),
        Outcome(testDescription: "no connection", text: nil, record: Samples.unconnected),
        Outcome(testDescription: "a limit without findings", text: nil, record: Samples.conn),
    ]

    @Test("The outcome says what the server did, and what was checked", arguments: outcomes)
    func outcome(_ sample: Outcome) {
        #expect(ServerOutcome(sample.record).text == sample.text)
        let isShown = Summary(sample.record).text.contains("\nOutcome     ")
        #expect(isShown == (sample.text != nil))
    }

    @Test("Figures of the sentence are those of run.json", arguments: [Samples.pubsub, Samples.mixed, run([thousand])])
    func figures(_ sample: RunRecord) throws {
        let record = try JSONDecoder().decode(RunRecord.self, from: JSONEncoder().encode(sample))
        let worst = try #require(
            record.metrics.filter { $0.name == "publish_ack_duration" && $0.labels["leg"] != "pubrec" }
                .compactMap(\.duration).max { $0.p99 < $1.p99 }
        )
        let text = try #require(ServerOutcome(record).text)
        let found = try #require(text.firstMatch(of: /^99 % of ([0-9,]+) messages answered within ([0-9.]+ .?s)[ ,.]/))
        #expect(found.output.1 == Words.count(worst.count))
        #expect(found.output.2 == Words.duration(worst.p99))
    }

    static let faults: [(name: String, change: @Sendable (inout RunRecord) -> Void)] = [
        ("an error", { $0.errors = [ErrorRecord(kind: "reset", count: 1, firstAt: "", example: "")] }),
        ("a loss", { $0.books[0].lost = 1 }), ("an unknown loss", { $0.books[0].lost = nil }),
        ("deliveries outstanding", { $0.books[0].deliveryOutstanding = 1 }),
        ("an answer outstanding", { $0.metrics.append(Samples.counter("publish_outstanding", ["qos": "1"], 1)) }),
        ("a finding", { $0.findings = FindingsRecord(sentence: "answers stopped at 5 s for 1 s", evidence: 1) }),
        ("no findings", { $0.findings = nil }), ("no metric", { $0.metrics = [] }),
        ("no end", { $0.verdict = nil }),
        (
            "a limited generator",
            { $0.verdict?.add(.generatorLimited, Verdict.Reason(code: "schedule-lag", text: "late")) }
        ),
    ]

    @Test("A run is faultless only where something was measured and nothing is wrong", arguments: faults)
    func faultless(_ fault: (name: String, change: @Sendable (inout RunRecord) -> Void)) {
        var record = Self.run([Self.thousand], "nothing broke", lost: 0)
        #expect(ServerOutcome(record).isFaultless)
        fault.change(&record)
        #expect(!ServerOutcome(record).isFaultless, "\(fault.name)")
    }
}
