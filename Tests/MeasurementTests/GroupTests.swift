import Foundation
import Measurement
import TestSupport
import Testing

@Suite("Several groups in one run")
struct GroupTests {
    /// The metrics of a group, on one loop.
    private struct Group {
        let catalog: MetricCatalog
        let ack: DurationID
        let lag: DurationID
        let sent: CounterID
        let clients: GaugeID
        let cpu: GaugeID
        let meter: LoopMeter

        init(loop: Int = 0) {
            var catalog = MetricCatalog()
            self.ack = catalog.duration("publish_ack_duration", ["qos": "1", "leg": "puback"])
            self.lag = catalog.duration("loop_lag", ["loop": "0"], wholeRun: true)
            self.sent = catalog.counter("bytes_sent")
            self.clients = catalog.gauge("clients", ["state": "connected"])
            self.cpu = catalog.gauge("generator_cpu", ["loop": "0"], merge: .highest)
            self.catalog = catalog
            self.meter = LoopMeter(catalog: catalog, loop: loop)
        }
    }

    private static func accumulated() -> (RunAccumulator, TimelineInterval) {
        let sensors = Group()
        let chat = Group()
        var accumulator = RunAccumulator(groups: [
            GroupCatalog("sensors", sensors.catalog), GroupCatalog("chat", chat.catalog),
        ])
        for (group, number) in [(sensors, Int64(1)), (chat, 2)] {
            group.meter.beginMeasured()
            group.meter.record(group.ack, number * 1_000_000)
            group.meter.record(group.lag, number * 1_000)
            group.meter.add(group.sent, UInt64(number) * 100)
            group.meter.set(group.clients, Double(number) * 10)
            group.meter.set(group.cpu, Double(number) / 4)
            group.meter.error("reset", at: number) { "of \(number)" }
        }
        let interval = accumulator.add(
            second: 0,
            phase: "measure",
            seconds: 1,
            groups: [[sensors.meter.swap()], [chat.meter.swap()]]
        )
        return (accumulator, interval)
    }

    @Test("what a group records carries its name, in the time line, in the log and in the whole")
    func labels() throws {
        let (accumulator, interval) = Self.accumulated()
        for metrics in [interval.metrics, accumulator.metrics(measuredSeconds: 1)] {
            for (group, number) in [("sensors", 1.0), ("chat", 2)] {
                let ack = metrics.first {
                    $0.name == "publish_ack_duration"
                        && $0.labels == ["group": group, "leg": "puback", "qos": "1"]
                }
                #expect(ack?.duration?.count == 1)
                #expect(ack?.duration?.max == number / 1000)
                let sent = metrics.first { $0.name == "bytes_sent" && $0.labels == ["group": group] }
                #expect(sent?.counter?.value == number * 100)
                #expect(sent?.counter?.rate == number * 100)
                let up = metrics.first { $0.labels == ["group": group, "state": "connected"] }
                #expect(up?.gauge?.value == number * 10)
                let errors = metrics.first { $0.name == "errors" && $0.labels == ["group": group, "kind": "reset"] }
                #expect(errors?.counter?.value == 1)
            }
        }
        #expect(Set(interval.lanes.filter { $0.name == "publish_ack_duration" }.map { $0.labels["group"] }).count == 2)
        #expect(accumulator.errors.map(\.group) == ["sensors", "chat"])
        #expect(accumulator.errors.map(\.example) == ["of 1", "of 2"])
    }

    @Test("what is of the process is one, however many groups it runs")
    func process() {
        let (accumulator, _) = Self.accumulated()
        let metrics = accumulator.metrics(measuredSeconds: 1)
        let lag = metrics.filter { $0.name == "loop_lag" }
        #expect(lag.map(\.labels) == [["loop": "0"]])
        #expect(lag.first?.duration?.count == 2)
        let cpu = metrics.filter { $0.name == "generator_cpu" }
        #expect(cpu.map(\.labels) == [["loop": "0"]])
        // One thread: not the sum of what each group saw of it.
        #expect(cpu.first?.gauge?.value == 0.5)
    }

    @Test("a threshold chooses a group by its label, and takes all without it")
    func thresholds() throws {
        let source = Self.accumulated().0.source(measuredSeconds: 1)
        func value(_ text: String) throws -> Double? { try Threshold.parse(text).evaluate(in: source).value }
        #expect(try value("publish_ack_duration{group=sensors} max < 50ms") == 0.001)
        #expect(try value("publish_ack_duration{group=chat} max < 50ms") == 0.002)
        #expect(try value("publish_ack_duration count == 2") == 2)
        let known = MetricCatalog.joined([GroupCatalog("sensors", Group().catalog)])
        #expect(try Threshold.parse("bytes_sent{group=sensors} > 0").problem(in: known) == nil)
        #expect(try Threshold.parse("bytes_sent{group=cellar} > 0").problem(in: known) != nil)
    }

    @Test("error_rate is of a group where named; stanzas are operations; wrong labels are refused")
    func errorRates() throws {
        var record = Self.record()
        func counter(_ name: String, _ labels: Labels, _ value: Double) -> Metric {
            Metric(name: name, labels: labels, reading: .counter(CounterReading(value: value, rate: nil)))
        }
        record.metrics = [
            counter("publish_offered", ["group": "sensors", "qos": "1"], 1_000),
            counter("publish_excused", ["group": "sensors", "qos": "1"], 10),
            counter("stanza_offered", ["group": "chat", "stanza": "message"], 15),
            counter("stanza_excused", ["group": "chat", "stanza": "message"], 5),
            counter("stanza_failed", ["group": "chat", "stanza": "message"], 5),
            counter("errors", ["group": "chat", "kind": "reset"], 10),
        ]
        func value(_ text: String) throws -> Double? { try Threshold.parse(text).evaluate(in: record).value }
        #expect(try value("error_rate{group=sensors} < 0.1%") == 0)
        #expect(try value("error_rate{group=chat} < 0.1%") == 0.5)
        #expect(try value("error_rate < 0.1%") == 0.005)
        let known = MetricCatalog.joined([GroupCatalog("sensors", Group().catalog)])
        func problem(_ text: String, _ catalog: MetricCatalog) throws -> String? {
            try Threshold.parse(text).problem(in: catalog)?.problem
        }
        #expect(try problem("error_rate{group=sensors} < 1%", known) == nil)
        #expect(try problem("error_rate{group=typo} < 1%", known) == "there is no group 'typo'; there are sensors")
        #expect(try problem("error_rate{qos=1} < 1%", known) == "error_rate has no label 'qos'; it has group")
        #expect(try problem("errors{kind=reset,group=sensors} count == 0", known) == nil)
        #expect(try problem("errors{group=typo} count == 0", known) == "there is no group 'typo'; there are sensors")
        #expect(
            try problem("errors{grupo=chat} count == 0", known) == "errors has no label 'grupo'; it has kind, group"
        )
        let alone = Group().catalog
        #expect(try problem("errors{kind=reset} count == 0", alone) == nil)
        #expect(try problem("errors{group=a} count == 0", alone) == "errors has no label 'group'; it has kind")
        #expect(try problem("error_rate{group=a} < 1%", alone) == "error_rate has no label 'group'; it has none here")
    }

    @Test("a small group that does not keep its plan is not lost in a large one that does")
    func unsent() {
        var audit = GeneratorAudit(isOpenLoop: true)
        var sensors = GeneratorAudit.LoopSecond(offered: 50_000)
        sensors.group = "sensors"
        var chat = GeneratorAudit.LoopSecond(offered: 20, unsent: 20)
        chat.group = "chat"
        audit.second([sensors, chat], stealShare: nil)
        #expect(audit.reasons.map(\.code) == ["unsent"])
        #expect(
            audit.reasons.first?.text.hasPrefix("chat: 100 % of what was offered (20 of 20) was still unsent") == true
        )
    }

    private static func record() -> RunRecord {
        var record = RunRecord(
            command: ["clamor", "run", "mixed.yaml"],
            tool: ToolRecord(name: "clamor", version: "0"),
            host: HostFacts(),
            plan: [:],
            startedAt: "2026-11-21T01:37:09Z"
        )
        var ledger = LedgerRecord(on: true)
        ledger.streams = 3
        record.groups = [
            GroupRecord(name: "sensors", protocolName: "mqtt", clients: 3, ledger: ledger),
            GroupRecord(
                name: "chat",
                protocolName: "xmpp",
                clients: 2,
                ledger: LedgerRecord(on: false, reason: "messages carry no header")
            ),
        ]
        record.groups?[0].up = 3
        let accumulator = Self.accumulated().0
        record.metrics = accumulator.metrics(measuredSeconds: 1)
        record.errors = accumulator.errors
        var books = Books(qos: 1)
        books.group = "sensors"
        record.books = [books]
        record.clients = [
            "sensors publishers": ClientGroup(
                [ClientTally()],
                publishes: true,
                acknowledged: true,
                subscribes: false,
                id: { "\($0)" }
            )
        ]
        record.ledger = .joined(record.groups ?? [])
        return record
    }

    @Test("a group's part of a record is as if it had been alone")
    func part() {
        let part = Self.record().part("sensors")
        #expect(part.groups == nil)
        let names = part.metrics.map { "\($0.name){\($0.labels)}" }
        #expect(
            names.sorted() == [
                "bytes_sent{}", "clients{state=connected}", "errors{kind=reset}", "generator_cpu{loop=0}",
                "loop_lag{loop=0}", "publish_ack_duration{leg=puback;qos=1}",
            ]
        )
        #expect(part.errors.map(\.group) == [nil])
        #expect(part.errors.map(\.example) == ["of 1"])
        #expect(part.books.map(\.name) == ["QoS 1"])
        #expect(Array(part.clients.keys) == ["publishers"])
        #expect(part.ledger.streams == 3)
        #expect(Self.record().part("chat").books.isEmpty)
    }

    @Test("the ledgers of groups make one: on where any is, with the reason of those that are not")
    func ledgers() {
        let ledger = Self.record().ledger
        #expect(ledger.on)
        #expect(ledger.reason == "chat: messages carry no header")
        #expect(ledger.streams == 3)
    }

    @Test("what ledgers of groups found is added up by cause, and unknown where no group knows it")
    func findings() {
        func group(_ lost: [String: UInt64]?, _ missing: UInt64?, _ examples: [LedgerExample]?) -> GroupRecord {
            var ledger = LedgerRecord(on: true)
            (ledger.lost, ledger.missing, ledger.examples) = (lost, missing, examples)
            return GroupRecord(name: "any", protocolName: "mqtt", clients: 1, ledger: ledger)
        }
        let (one, two) = (
            LedgerExample(finding: .lost, cause: "violated", qos: 1), LedgerExample(finding: .duplicated, qos: 2)
        )
        let all = LedgerRecord.joined([
            group(["violated": 2], 3, [one]), group(nil, nil, nil), group(["violated": 1, "dropped": 4], 6, [two]),
        ])
        #expect(all.lost == ["violated": 3, "dropped": 4] && all.missing == 9 && all.examples == [one, two])
        #expect(LedgerRecord.joined([group([:], 0, nil)]).lost == [:])
        let unknown = LedgerRecord.joined([group(nil, nil, nil)])
        #expect(unknown.lost == nil && unknown.missing == nil && unknown.examples == nil)
    }

    @Test(
        "metrics of a share group with members in several groups are in the part of the first one",
        arguments: [("sensors", 3), ("chat", 0), ("sensors+chat", 0)]
    )
    func shareGroup(_ group: String, _ count: Int) {
        var record = Self.record()
        record.metrics = ["sensors", "sensors+chat", "sensors+cellar", "cellar+sensors"].map { name in
            Metric(
                name: "delivery_lost",
                labels: ["group": name, "qos": "1"],
                reading: .counter(CounterReading(value: 1, rate: nil))
            )
        }
        #expect(record.part(group).metrics.map(\.labels) == Array(repeating: ["qos": "1"], count: count))
    }

    @Test("a record of groups comes back from JSON, and has the keys of its schema")
    func json() throws {
        let record = Self.record()
        let data = try JSONEncoder().encode(record)
        #expect(try JSONDecoder().decode(RunRecord.self, from: data) == record)
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "results/schema/run.schema.json")
        let schema = try #require(JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
        let properties = try #require(schema["properties"] as? [String: [String: Any]])
        let items = try #require(properties["groups"]?["items"] as? [String: Any])
        let known = try #require(items["properties"] as? [String: Any])
        let object = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
        let groups = try #require(object["groups"] as? [[String: Any]])
        for group in groups { #expect(Set(group.keys).isSubset(of: known.keys)) }
        #expect(Set(items["required"] as? [String] ?? []).isSubset(of: groups[1].keys))
    }

    @Test("connects that began too late are reported per group, by name")
    func connects() {
        var audit = GeneratorAudit(isOpenLoop: false)
        audit.connects(rate: 1_000, begun: 100, elapsed: 1_000_000_000, of: "sensors")
        audit.connects(rate: 1_000, begun: 1_000, elapsed: 1_000_000_000, of: "chat")
        audit.returns(rate: 1_000, share: 0.5, of: "sensors")
        audit.returns(rate: 1_000, share: 0.5, of: "chat")
        #expect(
            audit.reasons.map(\.text) == [
                "sensors: connects were begun at 99 per second, under 95 % of the planned 1,000",
                "chat: reconnects were begun at 500 per second, under 95 % of the planned 1,000",
            ]
        )
    }
}
