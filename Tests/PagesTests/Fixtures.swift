import Measurement
import RunResult

extension Fixture {
    /// Twelve runs and two more: the shortest, the longest, the widest, and those that went wrong.
    static let all: [Fixture] = Self.runs.map { fixture in
        var fixture = fixture
        // The record of a run that has not ended has none.
        guard fixture.record.durationSeconds != nil else { return fixture }
        fixture.record.findings = Findings.record(of: fixture.record, fixture.timeline)
        return fixture
    }

    private static let runs: [Fixture] = [
        .second, .day, .stalledHour, .oneClient, .sixtySeries, .longNames, .aborted, .silent, .generatorLimited,
        .unreconciled, .mixed, .decode, .merged, .begun,
    ]

    static let second = Fixture("1 s", .made(seconds: 1, loads: (0...1).map { FixtureRun.Load(qos: $0) }))

    static let day = Fixture("24 h", .made(seconds: 86_400, loads: [FixtureRun.Load(rate: 40)], interval: 10))

    static let stallSecond = 2471

    /// An hour of 54 streams, with one second in which nothing was answered.
    static let stalledHour: Fixture = {
        let loads = (1...54).map { number in
            let labels = ["group": "fleet-\((number + 5) / 6)", "stream": "telemetry-\(number)"]
            return FixtureRun.Load(labels: labels, rate: 20 + Double(number), median: 0.0008 + 0.0001 * Double(number))
        }
        var run = FixtureRun(seconds: 3600, loads: loads, clients: 60)
        run.stall = Self.stallSecond
        run.run()
        var fixture = Fixture("1 h with a stall", run, command: ["clamor", "run", "fleets.yaml"])
        fixture.addGroups(of: run.clients)
        fixture.record.thresholds = [
            ThresholdResult(expression: "publish_ack_duration p99 < 50ms", ok: true, value: 0.0152),
            ThresholdResult(expression: "delivery_lost count == 0", ok: true, value: 0),
        ]
        fixture.addSlowest(100, around: Double(Self.stallSecond), of: ["fleet-1-pub-7", "fleet-9-pub-1"])
        return fixture
    }()

    static let oneClient = Fixture("one client", .made(seconds: 30, loads: [FixtureRun.Load(rate: 1)], clients: 1))

    static let sixtySeries: Fixture = {
        let loads = (1...60).map { FixtureRun.Load(labels: ["stream": "s\($0)"], qos: $0 % 2, rate: 50) }
        return Fixture("60 series", .made(seconds: 60, loads: loads))
    }()

    /// With all that means something in HTML, in SVG and in a script.
    static let longName = String(
        ("</title><script>alert(\"x\")</script>&amp;'\u{2028}" + String(repeating: "Straße-", count: 30)).prefix(200)
    )

    static let longNames: Fixture = {
        let loads = (1...2).map { number in
            FixtureRun.Load(
                labels: ["group": "\(number)\(Self.longName)".prefixed(200), "stream": Self.longName],
                rate: 50
            )
        }
        let run = FixtureRun.made(seconds: 20, loads: loads)
        var fixture = Fixture("long names", run, command: ["clamor", "run", Self.longName])
        fixture.addGroups(of: run.clients)
        fixture.record.plan["name"] = .string(Self.longName)
        fixture.record.plan["topic"] = .string(Self.longName)
        fixture.record.plan["targets"] = .array([.string("mqtt://" + Self.longName)])
        fixture.record.plan["tags"] = .object(["build": .string(Self.longName)])
        let error = ErrorRecord(
            kind: "not-authorized",
            count: 12_345,
            firstAt: "2026-11-21T01:37:14Z",
            example: Self.longName + Self.longName,
            group: loads[0].labels["group"]
        )
        fixture.record.errors = [error]
        fixture.addSlowest(100, around: 7, of: [Self.longName])
        var example = LedgerExample(finding: .duplicated, qos: 1)
        (example.topic, example.publisher, example.subscriber) = (Self.longName, Self.longName, Self.longName)
        fixture.record.ledger.examples = [example]
        return fixture
    }()

    /// No connection: no figures at all.
    static let aborted: Fixture = {
        var fixture = Fixture("aborted")
        var verdict = Verdict()
        verdict.add(
            .aborted,
            Verdict.Reason(
                code: "no-connection",
                text: "every connect attempt failed: 127.0.0.1:1 refused the connection"
            )
        )
        fixture.record.verdict = verdict
        fixture.record.durationSeconds = 0.037
        fixture.record.stages = [StageRecord(name: "connect", start: 0, durationSeconds: 0.037, measured: false)]
        let example = "127.0.0.1:1 refused the connection"
        let error = ErrorRecord(kind: "refused", count: 2, firstAt: "2026-11-21T01:37:09.1Z", example: example)
        fixture.record.errors = [error]
        return fixture
    }()

    /// Subscribers to whom nobody sent anything.
    static let silent: Fixture = {
        var run = FixtureRun.made(seconds: 10, loads: [])
        let zeros = run.timeline.seconds.map { _ in 0.0 }
        run.addCounter("received", ["qos": "0", "retained": "false"], zeros)
        var fixture = Fixture("nothing received", run, command: ["clamor", "sub"])
        fixture.record.clients = [:]
        fixture.record.ledger = LedgerRecord(on: false, reason: "publishers are not in this run")
        return fixture
    }()

    static let generatorLimited: Fixture = {
        var run = FixtureRun(seconds: 60, loads: [FixtureRun.Load(rate: 40_000)])
        run.sentShare = 0.21
        run.run()
        var fixture = Fixture("generator-limited", run)
        var verdict = Verdict()
        let reason =
            "in 55 of 60 seconds an event loop used over 90 % of a core (up to 95 %) while work waited; half of "
            + "them are allowed"
        let cpu = Verdict.Reason(code: "generator-cpu", text: reason, measured: 0.917, limit: 0.5)
        verdict.add(.generatorLimited, cpu)
        fixture.record.verdict = verdict
        return fixture
    }()

    static let unreconciled: Fixture = {
        var run = FixtureRun(seconds: 60, loads: [FixtureRun.Load(qos: 1, rate: 500)])
        run.lostPerThousand = 4
        run.run()
        var fixture = Fixture("unreconciled", run)
        var verdict = Verdict()
        verdict.add(
            .unreconciled,
            Verdict.Reason(code: "ledger-overflow", text: "3 of 100 streams exceeded the ledger's limit")
        )
        fixture.record.verdict = verdict
        let lost = run.books[0].lost ?? 0
        fixture.record.ledger.lost = ["violated": lost - 20, "session-lost": 17, "unknown": 3]
        fixture.record.ledger.missing = lost
        fixture.record.ledger.overflowed = 3
        fixture.record.ledger.examples = ["violated", "session-lost", "unknown"].map { cause in
            var example = LedgerExample(finding: .lost, cause: cause, qos: 1)
            (example.topic, example.publisher, example.subscriber) = ("clamor/17", "pub-17", "sub-17")
            (example.sequence, example.sent, example.acknowledged, example.expected) = (41, 1, true, true)
            return example
        }
        fixture.record.thresholds = [
            ThresholdResult(expression: "delivery_lost count == 0", ok: false, value: Double(lost)),
            ThresholdResult(expression: "iq_duration p99 < 1s", ok: false, value: nil),
        ]
        fixture.record.errors = [
            ErrorRecord(kind: "reset", count: 7, firstAt: "2026-11-21T01:37:29Z", example: "Connection reset by peer")
        ]
        return fixture
    }()

    /// MQTT and XMPP side by side, with stages and a storm.
    static let mixed: Fixture = {
        let loads = [
            FixtureRun.Load(labels: ["group": "sensors"], qos: 1, rate: 400),
            FixtureRun.Load(labels: ["group": "sensors"], qos: 0, rate: 100),
            FixtureRun.Load(labels: ["group": "chat"], stanza: "message", rate: 50),
            FixtureRun.Load(labels: ["group": "chat"], stanza: "iq", rate: 10, arrives: false),
        ]
        var run = FixtureRun(seconds: 90, loads: loads, clients: 200)
        run.storm = 61..<66
        run.run()
        var fixture = Fixture("mixed", run, command: ["clamor", "run", "mixed.yaml"])
        fixture.addGroups(of: run.clients)
        fixture.record.groups?[1].protocolName = "xmpp"
        let connect = run.stages[0], drain = run.stages[2]
        let parts = [("settle", 1.0, 20.0, false), ("peak", 21, 40, true), ("storm", 61, 30, true)]
        fixture.record.stages =
            [connect]
            + parts.map { name, start, length, measured in
                StageRecord(name: name, start: start, durationSeconds: length, measured: measured)
            } + [drain]
        for index in fixture.timeline.seconds.indices {
            let second = fixture.timeline.seconds[index]
            fixture.timeline.phases[index] =
                second < 1
                ? "connect"
                : second < 21
                    ? "settle"
                    : second < 61
                        ? "peak"
                        : second < 91 ? "storm" : "drain"
        }
        return fixture
    }()

    /// The decoder alone: stages of forms and paths, no time line of messages.
    static let decode: Fixture = {
        var fixture = Fixture("decode", command: ["clamor", "decode"])
        fixture.record.verdict = .valid
        fixture.record.durationSeconds = 16.2
        for (index, form) in ["pipelined", "segments", "fragments", "cuts"].enumerated() {
            for (place, path) in ["memory", "socket"].enumerated() {
                let start = Double(index * 4 + place * 2)
                let name = "\(path)-\(form)"
                fixture.record.stages.append(StageRecord(name: name, start: start, durationSeconds: 2, measured: true))
                let labels: Labels = ["form": form, "path": path, "protocol": "mqtt"]
                let rate = 40_000_000 / Double(1 + index * 3 + place * 20)
                for (metric, factor, unit) in [("decode_packets", 1.0, nil), ("decode_bytes", 271, "bytes")] {
                    let reading = CounterReading(value: rate * factor * 2, rate: rate * factor)
                    let metric = Metric(name: metric, labels: labels, unit: unit, reading: .counter(reading))
                    fixture.record.metrics.append(metric)
                }
                let time = GaugeReading(
                    value: 1 / rate,
                    min: 0.9 / rate,
                    mean: 1 / rate,
                    median: 1 / rate,
                    max: 2 / rate
                )
                fixture.record.metrics.append(
                    Metric(name: "decode_packet_time", labels: labels, unit: "seconds", reading: .gauge(time))
                )
            }
        }
        return fixture
    }()

    /// Three segments as one run.
    static let merged: Fixture = {
        var run = FixtureRun(seconds: 120, loads: [FixtureRun.Load(rate: 3000)], clients: 300)
        run.loops = 6
        run.run()
        var fixture = Fixture("merged", run)
        fixture.record.segment.merged = 3
        fixture.record.segment.run = "5f3a"
        fixture.record.tlsVersions = ["TLSv1.3": 300]
        return fixture
    }()

    /// The first record of a run that was killed at once.
    static let begun = Fixture("killed at the start")

    private mutating func addGroups(of clients: Int) {
        var names: [String] = []
        for books in self.record.books where !names.contains(books.group ?? "") { names.append(books.group ?? "") }
        let spread = self.record.clients.removeValue(forKey: "publishers")
        self.record.plan["clients"] = .integer(Int64(names.count * clients))
        self.record.groups = names.map { name in
            var group = GroupRecord(name: name, protocolName: "mqtt", clients: clients, ledger: LedgerRecord(on: true))
            group.up = clients
            self.record.clients["\(name) publishers"] = spread
            return group
        }
    }
}

extension FixtureRun {
    fileprivate static func made(seconds: Int, loads: [Load], interval: Int = 1, clients: Int = 100) -> FixtureRun {
        var run = FixtureRun(seconds: seconds, loads: loads, interval: interval, clients: clients)
        run.run()
        return run
    }
}

extension String {
    /// Its first characters.
    fileprivate func prefixed(_ count: Int) -> String { String(self.prefix(count)) }
}
