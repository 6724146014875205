import Foundation
import TestSupport
import Testing

import Measurement

@Suite("Run record")
struct RunRecordTests {
    /// The record of a run that has just begun.
    static let record = RunRecord(
        command: ["clamor", "pub", "-q", "1"],
        tool: ToolRecord(name: "clamor", version: "0.1.0"),
        host: HostFacts.read(),
        plan: ["clients": 90, "rate": 2000.5, "topics": ["clamor/%i"], "retain": false, "qos": [0, 1, 2]],
        startedAt: WallClock.rfc3339(1_795_225_030_000_000_000)
    )

    /// A record with every field there is.
    static var full: RunRecord {
        var record = Self.record
        record.segment = SegmentRecord(index: 2, count: 4)
        record.segment.run = "0123456789abcdef"
        record.segment.plan = "fedcba9876543210"
        record.segment.thresholds = ["errors count == 0"]
        record.segment.merged = 4
        var clock = ClockRecord(host: "0123456789abcdef", realtimeOffset: 5)
        (clock.correctionSeconds, clock.errorSeconds, clock.exchanges) = (0.5, 0.001, 16)
        clock.reference = "fedcba9876543210"
        record.segment.processes = [
            ProcessRecord(clock: clock, measured: ProcessRecord.Span(start: 0.5, end: 10)),
            ProcessRecord(clock: nil, measured: nil),
        ]
        record.segment.levels = [
            HeldLevel(name: "clients", labels: ["state": "connected"], second: 3, value: 7),
            HeldLevel(name: "clients", labels: [:], second: 4, value: nil),
        ]
        record.segment.lost = [LostSegment(index: 3, words: "host3: its connection was lost")]
        record.durationSeconds = 12.5
        record.verdict = Verdict()
        let reason = Verdict.Reason(code: "schedule-lag", text: "late", measured: 0.2, limit: 0.005)
        record.verdict?.add(.generatorLimited, reason)
        record.stages = [StageRecord(name: "measure", start: 1, durationSeconds: 10, measured: true)]
        record.thresholds = [
            ThresholdResult(expression: "error_rate < 1%", ok: true, value: 0),
            ThresholdResult(expression: "delivery_duration p99 < 1s", ok: false, value: nil),
            Self.undecided,
        ]
        var accumulator = RunAccumulator(catalog: Self.catalog.catalog)
        _ = accumulator.add(second: 0, phase: "measure", samples: [Self.meter().swap()])
        record.metrics = accumulator.metrics(measuredSeconds: 10)
        record.errors = accumulator.errors
        record.books = (0...2).map { qos in
            var books = Books(qos: qos)
            books.offered = 10
            books.sent = 9
            books.notSent = 1
            books.acked = qos == 0 ? nil : 9
            books.inFlight = qos == 0 ? nil : 0
            books.timedOut = qos == 0 ? nil : 0
            books.failed = qos == 0 ? nil : 0
            books.confirmed = qos == 0 ? 9 : nil
            books.unconfirmed = qos == 0 ? 0 : nil
            books.outstanding = 1
            books.expected = 11
            books.received = 8
            books.lost = 1
            books.deliveryOutstanding = 2
            books.duplicated = 2
            return books
        }
        record.clients = ["publishers": Self.group]
        record.generator.eventLoops = 2
        record.generator.cpuSeconds = 3.25
        record.generator.loopCPUShares = [0.5, 0.25]
        record.generator.peakMemoryBytes = 30_000_000
        record.generator.hostSteal = 0.01
        record.ledger = LedgerRecord(on: true, reason: "one stream overflowed")
        record.ledger.publishers = 90
        record.ledger.subscriptions = 4
        record.ledger.streams = 90
        record.ledger.overflowed = 1
        record.ledger.lost = ["violated": 2, "session-lost": 1]
        record.ledger.missing = 5
        var example = LedgerExample(finding: .lost, cause: "violated", qos: 1)
        (example.topic, example.publisher, example.subscriber) = ("fleet/7/command", "ops-3", "device-7")
        (example.sequence, example.sent, example.acknowledged, example.expected) = (42, 2, true, true)
        record.ledger.examples = [example, LedgerExample(finding: .reordered, qos: 2)]
        record.population = ClientCounts(planned: 97, up: 96)
        record.groups = [GroupRecord(name: "sensors", protocolName: "mqtt", clients: 97, ledger: record.ledger)]
        record.groups?[0].up = 97
        record.notes = [Verdict.Reason(code: "accounts", text: "97 accounts created")]
        var slow = SlowMessage(metric: "delivery_duration", seconds: 1.5, due: 2, client: "ops-3")
        (slow.written, slow.acknowledged, slow.received, slow.receiver) = (2.5, 3, 3.5, "device-7")
        (slow.group, slow.stream, slow.qos, slow.loopLag) = ("sensors", "telemetry", 1, 0.001)
        record.slowest = [slow, SlowMessage(metric: "iq_duration", seconds: 1, due: 3, client: nil)]
        record.tlsVersions = ["TLSv1.2": 3, "TLSv1.3": 94]
        record.servers = [ServerRecord(product: "mosquitto", version: "2.0.11", source: "$SYS/broker/version")]
        var point = FindingPoint(second: 12, value: 0.5, metric: "publish_ack_duration qos=1", stage: "peak")
        point.bound = true
        let event = FindingEvent(number: 1, kind: .stall, second: 12, seconds: 1.5, stage: "peak", text: "acks stopped")
        var findings = FindingsRecord(sentence: "acks stopped at 12 s", evidence: 1, events: [event])
        (findings.steadySecond, findings.clientsPlanned, findings.clientsUp) = (3, 100, 97)
        (findings.allUpSeconds, findings.backlogSlope, findings.withinObjective) = (2.5, 0.1, 0.99)
        findings.backlogGrowth = 0.1
        (findings.peakInFlight, findings.worstSecond, findings.longestSilence) = (point, point, point)
        (findings.topError, findings.headroom, findings.clockErrorSeconds) = ("reset", 9.5, 0.0001)
        record.findings = findings
        return record
    }

    private static let catalog: (catalog: MetricCatalog, ack: DurationID, sent: CounterID, clients: GaugeID) = {
        var catalog = MetricCatalog()
        let ack = catalog.duration("publish_ack_duration", ["qos": "1", "leg": "puback"])
        let sent = catalog.counter("bytes_sent")
        let clients = catalog.gauge("clients", ["state": "connected"])
        return (catalog, ack, sent, clients)
    }()

    private static var undecided: ThresholdResult {
        var result = ThresholdResult(expression: "delivery_lost == 0", state: .undecided, value: 1)
        (result.isBound, result.high) = (true, 3)
        return result
    }

    private static func meter() -> LoopMeter {
        let meter = LoopMeter(catalog: Self.catalog.catalog, loop: 0)
        meter.beginMeasured()
        for value in Distribution.all[3].values(1000) { meter.record(Self.catalog.ack, value) }
        meter.record(Self.catalog.ack, .max)
        meter.recordUnanswered(Self.catalog.ack, 5_000_000_000, lane: MetricLane.measured, as: .failed)
        meter.recordUnanswered(Self.catalog.ack, 9_000_000_000, count: 3, lane: MetricLane.measured, as: .outstanding)
        meter.add(Self.catalog.sent, 9_007_199_254_740_992)
        meter.set(Self.catalog.clients, 90)
        meter.error("reset", at: 5, example: { "Connection reset by peer" })
        return meter
    }

    private static var group: ClientGroup {
        var tally = ClientTally()
        tally.connectNanoseconds = 1_000_000
        tally.longestAckNanoseconds = 2_000_000
        tally.sent = 9
        return ClientGroup(
            Array(repeating: tally, count: 7),
            publishes: true,
            acknowledged: true,
            subscribes: true,
            id: { "clamor-pub-\($0 + 1)" }
        )
    }

    @Test("comes back from JSON as it was", arguments: [Self.record, Self.full])
    func roundTrip(_ record: RunRecord) throws {
        let data = try JSONEncoder().encode(record)
        #expect(try JSONDecoder().decode(RunRecord.self, from: data) == record)
    }

    @Test("counters are whole numbers in JSON, and unknown figures are not there at all")
    func numbers() throws {
        let text = String(decoding: try JSONEncoder().encode(Self.full), as: UTF8.self)
        #expect(text.contains("\"value\":9007199254740992"))
        #expect(!text.contains("null"))
        let begun = try JSONSerialization.jsonObject(with: JSONEncoder().encode(Self.record)) as? [String: Any]
        #expect(begun?["verdict"] == nil && begun?["duration_seconds"] == nil)
    }

    @Test("its keys are those of its schema, on every level")
    func keys() throws {
        let schema = try Self.object(Data(contentsOf: Self.schemaFile))
        let record = try Self.object(JSONEncoder().encode(Self.full))
        #expect(Set(try #require(schema["properties"] as? [String: Any]).keys) == Set(record.keys))
        try Self.check(record, schema, root: schema, path: "run")
        try Self.check(Self.object(JSONEncoder().encode(Self.record)), schema, root: schema, path: "begun")
    }

    @Test("an example in JSON has the keys of what is known, and no others")
    func example() throws {
        let examples = try #require(Self.full.ledger.examples)
        let known = try Self.object(JSONEncoder().encode(examples[0]))
        let keys = "finding cause topic publisher subscriber sequence qos sent acknowledged expected"
        #expect(Set(known.keys) == Set(keys.split(separator: " ").map(String.init)))
        #expect(known["finding"] as? String == "lost" && known["cause"] as? String == "violated")
        #expect(try Set(Self.object(JSONEncoder().encode(examples[1])).keys) == ["finding", "qos"])
    }

    @Test("validates against its schema, where Python can tell", arguments: [Self.record, Self.full])
    func validates(_ record: RunRecord) throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "clamor-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        try JSONEncoder().encode(record).write(to: file)
        let program = """
            import json, sys
            try: import jsonschema
            except ImportError: sys.exit(0)
            schema, run = (json.load(open(name)) for name in sys.argv[1:])
            validator = jsonschema.validators.validator_for(schema)
            validator.check_schema(schema)
            problems = [f"{list(e.absolute_path)}: {e.message[:300]}" for e in validator(schema).iter_errors(run)]
            sys.exit("\\n".join(problems) or 0)
            """
        let python = try RunningProgram.run(
            "/usr/bin/env",
            ["python3", "-c", program, Self.schemaFile.path, file.path]
        )
        // 127: no python3 here.
        #expect([0, 127].contains(python.status), "\(python.errors)")
    }

    private static let schemaFile = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "results/schema/run.schema.json")

    private static func object(_ data: Data) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    /// Keys only: every one the schema names as required is there, and no other than it names.
    private static func check(_ value: Any, _ schema: [String: Any], root: [String: Any], path: String) throws {
        var schema = schema
        if let reference = schema["$ref"] as? String, let name = reference.split(separator: "/").last {
            let definitions = try #require(root["$defs"] as? [String: [String: Any]])
            schema = try #require(definitions[String(name)])
        }
        if let choices = schema["oneOf"] as? [[String: Any]], let type = (value as? [String: Any])?["type"] as? String {
            let choice = try #require(choices.first { ($0["$ref"] as? String)?.hasSuffix("/\(type)") == true })
            return try Self.check(value, choice, root: root, path: path)
        }
        if let elements = value as? [Any], let items = schema["items"] as? [String: Any] {
            for (index, element) in elements.enumerated() {
                try Self.check(element, items, root: root, path: "\(path)[\(index)]")
            }
        }
        guard let object = value as? [String: Any] else { return }
        let properties = schema["properties"] as? [String: [String: Any]] ?? [:]
        for required in schema["required"] as? [String] ?? [] {
            #expect(object[required] != nil, "\(path).\(required)")
        }
        for (key, member) in object {
            let others = schema["additionalProperties"]
            let rule = properties[key] ?? others as? [String: Any]
            #expect(rule != nil || others == nil, "\(path).\(key) is not in the schema")
            if let rule { try Self.check(member, rule, root: root, path: "\(path).\(key)") }
        }
    }
}
