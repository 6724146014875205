import Measurement
import Report

extension ScriptedRun {
    /// QoS 0, 1 and 2 in an open loop: connects, warm-up, a ramp, a stall of the server, errors, reconnects and drain.
    ///
    /// The server is watched where `isWatched`.
    package static func mixed(isWatched: Bool = false) -> ScriptedRun {
        var run = ScriptedRun(
            ["clamor", "pubsub", "-c", "500", "-q", "0,1,2", "--rate", "12000/s"],
            plan: [
                "name": .string("fleet telemetry"), "tags": .array([.string("nightly")]),
                "targets": .array([.string("broker.example:1883")]),
            ],
            course: LiveCourse(
                stages: [
                    LiveCourse.Stage("warmup", seconds: 5, isMeasured: false), LiveCourse.Stage("measure", seconds: 55),
                ],
                stretches: [
                    LiveCourse.Stretch(seconds: 5, from: 3000, to: 3000),
                    LiveCourse.Stretch(seconds: 20, from: 3000, to: 12_000),
                    LiveCourse.Stretch(seconds: 35, from: 12_000, to: 12_000),
                ],
                drainSeconds: 10
            ),
            clients: 1000
        )
        run.first.thresholds = Mixed.objectives.map { ThresholdResult(expression: $0, ok: false, value: nil) }
        var mixed = Mixed(isWatched: isWatched)
        for second in 0..<Mixed.seconds { mixed.addSecond(second, to: &run) }
        run.final = mixed.final(run)
        run.warnings = [
            42: "12 clients come back later than planned",
            43: "the server closed 12 connections; see its log",
            44: "cannot write the time line (no space left on device); the run goes on without it",
            45: "the ledger has 90 % of its memory; later messages may not be tracked",
        ]
        return run
    }
}

private struct Mixed {
    static let seconds = 66
    static let objectives = [
        "publish_ack_duration{qos=1} p99 < 20ms", "delivery_duration p99 < 50ms", "delivery_lost == 0",
    ]
    private static let connects = 0..<3
    private static let warmup = 3..<8
    private static let measured = 8..<63
    private static let stall = 36..<39
    private static let backlog = 39..<42
    private static let outage = 43..<47

    let isWatched: Bool
    private var expected = 0.0
    private var delivered = 0.0
    private var resets = 0.0

    init(isWatched: Bool) { self.isWatched = isWatched }

    mutating func addSecond(_ second: Int, to run: inout ScriptedRun) {
        let (phase, rate) = self.load(second, run.course)
        var metrics: [Metric] = []
        if phase == "connect" {
            metrics += [Scripted.duration("connect_duration", ["phase": "total"], p99: 0.0214, count: 333)].compactMap(
                \.self
            )
        } else {
            for qos in 0...2 { metrics += self.traffic(second, qos, rate / 3) }
        }
        let up = phase == "connect" ? Double(second + 1) * 311 + 40 : Self.outage.contains(second) ? 988 : 1000
        let lost = second == Self.outage.lowerBound ? 12.0 : 0
        self.resets += lost
        metrics += [
            Scripted.gauge("clients", ["state": "connected"], up),
            Scripted.counter("disconnects", ["reason": "reset"], lost * 5 / 6),
            Scripted.counter("disconnects", ["reason": "timeout"], lost / 6),
            Scripted.counter("reconnects", [:], second == Self.outage.upperBound ? 12 : 0),
        ]
        let waited = Self.stall.contains(second) ? Double(second - Self.stall.lowerBound) + 0.9 : 0.004
        if phase != "connect" { metrics.append(Scripted.gauge("oldest_outstanding", [:], waited, unit: "seconds")) }
        let load = rate / 12_000
        metrics += Scripted.generator(
            second,
            loops: [0.06 + load * 0.42, 0.05 + load * 0.39],
            lag: 0.000_12,
            idle: 0.9 - load * 0.55
        )
        if self.isWatched { metrics += self.server(second, load) }
        run.add(phase, metrics, self.standing(second, phase))
    }

    private func load(_ second: Int, _ course: LiveCourse) -> (phase: String, rate: Double) {
        if Self.connects.contains(second) { return ("connect", 0) }
        guard second < Self.measured.upperBound else { return ("drain", 0) }
        let phase = Self.warmup.contains(second) ? "warmup" : "measure"
        let planned = course.rate(at: Double(second - Self.warmup.lowerBound) + 0.5) ?? 0
        return (phase, (planned * (1 + Scripted.noise(second) / 200)).rounded())
    }

    private mutating func traffic(_ second: Int, _ qos: Int, _ rate: Double) -> [Metric] {
        let isStalled = Self.stall.contains(second)
        let level: Labels = ["qos": "\(qos)"]
        // A stalled server takes nothing; afterwards it works the backlog off.
        let served = isStalled ? 0 : Self.backlog.contains(second) ? rate * 2 : rate
        let slow = Self.backlog.contains(second) ? 60.0 * Double(Self.backlog.upperBound - second) : 1
        let p99 =
            (0.000_9 + 0.000_35 * Double(qos) + rate / 4000 * 0.004) * slow * (1.15 + Scripted.noise(second, qos) / 6)
        let lost = second >= Self.outage.lowerBound && qos == 0 && Self.outage.contains(second) ? 3.0 : 0
        self.expected += rate
        self.delivered += served - lost
        var metrics: [Metric?] = [
            Scripted.counter("publish_offered", level, rate.rounded()),
            Scripted.counter("publish_sent", level, (isStalled ? rate / 4 : rate).rounded()),
            Scripted.counter("received", level.adding("retained", "false"), (served - lost).rounded()),
            Scripted.duration("delivery_duration", level, p99: p99 * 1.6, count: served),
            Scripted.counter("delivery_duplicated", level, qos == 1 && second == Self.outage.upperBound ? 4 : 0),
            Scripted.counter("delivery_reordered", level, 0),
        ]
        if qos == 0 {
            metrics.append(
                Scripted.duration("publish_write_duration", level, p99: 0.000_21 * slow.squareRoot(), count: rate)
            )
        } else {
            metrics.append(Scripted.counter("publish_acked", level, served.rounded()))
            let leg = qos == 1 ? "puback" : "pubcomp"
            metrics.append(
                Scripted.duration("publish_ack_duration", level.adding("leg", leg), p99: p99, count: served)
            )
        }
        return metrics.compactMap(\.self)
    }

    private func server(_ second: Int, _ load: Double) -> [Metric] {
        let cpu = Self.stall.contains(second) ? 0.02 : 0.04 + load * 0.88
        return [
            Scripted.gauge("server_cpu", ["process": "mosquitto"], cpu + 0.03, unit: "cores"),
            Scripted.gauge("server_thread_cpu", ["process": "mosquitto", "thread": "mosquitto"], cpu, unit: "cores"),
            Scripted.gauge("server_memory_bytes", ["process": "mosquitto"], 31_000_000 + load * 4e6, unit: "bytes"),
            Scripted.gauge("server_descriptors", ["process": "mosquitto"], 1012),
            Scripted.gauge("server_sys", ["topic": "broker/clients/connected"], 1000),
            Scripted.counter("server_sys", ["topic": "broker/publish/messages/received"], load * 12_000),
        ]
    }

    private mutating func standing(_ second: Int, _ phase: String) -> LiveStanding {
        var errors: [ErrorRecord] = []
        let at = "2026-11-21T01:37:52.123456Z"
        if self.resets > 0 {
            errors = [
                ErrorRecord(
                    kind: "reset",
                    count: 10,
                    firstAt: at,
                    example: "read from 192.0.2.7:1883 as client clamor-17: Connection reset by peer, with 16 in flight"
                ),
                ErrorRecord(kind: "timeout", count: 2, firstAt: at, example: "no CONNACK within 10 s"),
                ErrorRecord(kind: "refused", count: 31, firstAt: at, example: "192.0.2.7:1883 refused the connection"),
                ErrorRecord(kind: "connack 0x88", count: 1, firstAt: at, example: "server unavailable"),
            ]
        }
        // In the drain what is still under way comes in.
        if phase == "drain" { self.delivered = min(self.expected, self.delivered + 40) }
        let hasMeasured = second > Self.measured.lowerBound
        let afterStall = second >= Self.stall.upperBound
        let values: [Double?] = [
            hasMeasured ? (afterStall ? 0.214 : 0.004_3) : nil, hasMeasured ? (afterStall ? 0.048 : 0.007_2) : nil, nil,
        ]
        var verdict = Verdict()
        if second >= Self.outage.upperBound {
            verdict.add(
                .generatorLimited,
                Verdict.Reason(
                    code: "schedule-lag",
                    text: "in 4 of 38 seconds sends began too late: schedule_lag p99 7.20 ms"
                )
            )
        }
        var standing = LiveStanding(
            verdict: verdict,
            thresholds: zip(Self.objectives, values).enumerated().compactMap { number, objective in
                objective.1.map {
                    ThresholdResult(expression: objective.0, ok: !(number == 0 && afterStall), value: $0)
                }
            },
            errors: errors
        )
        if phase != "connect" {
            standing.expected = UInt64(self.expected.rounded())
            standing.delivered = UInt64(min(self.expected, self.delivered).rounded())
        }
        return standing
    }

    func final(_ run: ScriptedRun) -> RunRecord {
        var record = run.after(run.steps.count).record
        record.verdict = run.steps.last?.standing.verdict
        record.thresholds.append(ThresholdResult(expression: Self.objectives[2], ok: false, value: 12))
        let received = record.metrics.filter { $0.name == "received" }.compactMap(\.counter).reduce(0) { $0 + $1.value }
        record.metrics += [
            Scripted.counter("delivery_expected", ["qos": "0"], received + 12),
            Scripted.counter("delivery_lost", ["qos": "0", "cause": "dropped"], 9),
            Scripted.counter("delivery_lost", ["qos": "0", "cause": "session-lost"], 3),
        ]
        var books = Books(qos: 0)
        (books.expected, books.received, books.lost) = (UInt64(received) + 12, UInt64(received), 12)
        record.books = [books]
        return record
    }
}
