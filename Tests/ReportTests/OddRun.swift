import BoardPlayer
import Measurement
import Report

/// Runs that no server makes, and files may hold.
struct OddRun: Sendable {
    var name: String
    var run: LiveRun

    static let messages = [
        "wide 漢字 and \u{1B}[31mred\u{1B}[0m", "line\nbreak", "last", String(repeating: "long ", count: 60),
    ]

    static let all =
        [OddRun(name: "empty", run: Self.begun()), OddRun(name: "crowded", run: Self.crowded)]
        + [
            ("NaN", Double.nan), ("infinite", .infinity), ("huge", 1e300), ("negative", -1e300),
            ("tiny", .leastNonzeroMagnitude),
        ].map {
            OddRun(name: $0, run: Self.filled(with: $1))
        }
        + [Int.min, -1, Int.max].map { OddRun(name: "second \($0)", run: Self.at($0)) }

    private static func begun(_ course: LiveCourse = LiveCourse(), clients: Int = 0) -> LiveRun {
        LiveRun(ScriptedRun([], plan: [:], course: course, clients: clients).first, course: course, clients: clients)
    }

    /// Every figure is the same value.
    private static func filled(with value: Double) -> LiveRun {
        let course = LiveCourse(
            stages: [LiveCourse.Stage("a", seconds: value), LiveCourse.Stage("b", seconds: value)],
            stretches: [LiveCourse.Stretch(seconds: value, from: value, to: value)],
            drainSeconds: value
        )
        var run = Self.begun(course, clients: .max)
        for (second, phase) in ["connect", "measure", "measure", "drain"].enumerated() {
            var metrics = ScriptedRun.mixed(isWatched: true).steps[20].interval.metrics
            for place in metrics.indices {
                switch metrics[place].reading {
                case .counter: metrics[place].reading = .counter(CounterReading(value: value, rate: value))
                case .gauge: metrics[place].reading = .gauge(GaugeReading(value: value))
                case .duration(var reading):
                    (reading.p50, reading.p99, reading.max, reading.clockError) = (value, value, value, value)
                    metrics[place].reading = .duration(reading)
                }
            }
            var standing = LiveStanding(
                thresholds: [ThresholdResult(expression: "delivery_lost == 0", ok: false, value: value)],
                errors: [ErrorRecord(kind: "reset", count: .max, firstAt: "", example: "")]
            )
            (standing.expected, standing.delivered) = (.max, 0)
            run.add(
                TimelineInterval(
                    second: second,
                    phase: phase,
                    seconds: second == 2 ? value : 1,
                    metrics: metrics,
                    lanes: []
                ),
                standing
            )
        }
        return run
    }

    private static func at(_ second: Int) -> LiveRun {
        var run = Self.begun()
        let metrics = ScriptedRun.mixed().steps[20].interval.metrics
        for second in [0, second] {
            run.add(TimelineInterval(second: second, phase: "measure", seconds: 1, metrics: metrics, lanes: []))
        }
        return run
    }

    /// More of everything than any screen has room for, under names that no terminal should get.
    private static var crowded: LiveRun {
        let wide = "漢字\u{1B}]0;title\u{7}\u{200D}👩‍👧\u{301}"
        var script = ScriptedRun(
            ["/usr/bin/clamor", "run", wide],
            plan: ["name": .string(wide), "targets": .array((0..<9).map { .string("\(wide).example:\($0)") })],
            course: LiveCourse(stages: (0..<200).map { LiveCourse.Stage("\(wide) \($0)", seconds: 1) }),
            clients: 1_000_000_000
        )
        var metrics: [Metric] = []
        for group in 0..<30 {
            let labels: Labels = ["group": "\(wide) \(group)", "qos": "1"]
            metrics += ["publish_offered", "publish_sent", "publish_acked", "received"].map {
                Scripted.counter($0, labels, 1e12)
            }
            metrics += ["publish_ack_duration", "delivery_duration"].compactMap {
                Scripted.duration($0, labels, p99: 123.4, count: 1000)
            }
            metrics.append(Scripted.counter("disconnects", ["reason": "\(wide) \(group)"], 1))
            metrics.append(Scripted.gauge("clients", ["state": "\(wide) \(group)"], 1e9))
            metrics.append(Scripted.gauge("generator_cpu", ["loop": "\(group)"], Double(group) / 50))
            metrics.append(Scripted.gauge("server_cpu", ["process": "\(wide) \(group)"], 99))
            metrics.append(Scripted.gauge("server_sys", ["topic": "\(wide) \(group)"], 1e12))
        }
        var standing = LiveStanding(
            thresholds: (0..<50).map { ThresholdResult(expression: "\(wide) < \($0)", ok: $0 % 2 == 0, value: 1) },
            errors: (0..<50).map { ErrorRecord(kind: "\(wide) \($0)", count: 1, firstAt: "", example: wide) }
        )
        standing.verdict.add(.aborted, (0..<9).map { _ in Verdict.Reason(code: "odd", text: wide) })
        for _ in 0..<70 { script.add("measure", metrics, standing) }
        return script.after(70)
    }
}
