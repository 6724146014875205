package import Measurement
package import Report

/// A run whose every figure is made up: the same in each process.
package struct ScriptedRun: Sendable {
    package struct Step: Sendable {
        package var interval: TimelineInterval
        package var standing: LiveStanding
    }

    package var first: RunRecord
    package var course: LiveCourse
    package var clients: Int
    package var steps: [Step]
    package var final: RunRecord?
    /// Warnings that come before a step.
    package var warnings: [Int: String] = [:]

    package init(_ command: [String], plan: [String: JSONValue], course: LiveCourse, clients: Int) {
        self.first = RunRecord(
            command: command,
            tool: ToolRecord(name: "clamor", version: "0.1.0"),
            host: HostFacts(),
            plan: plan,
            // 2026-11-21, a Saturday.
            startedAt: "2026-11-21T01:37:09Z"
        )
        self.course = course
        self.clients = clients
        self.steps = []
    }

    /// The run after its first steps; final behind the last of them.
    package func after(_ count: Int) -> LiveRun {
        var run = LiveRun(self.first, course: self.course, clients: self.clients)
        for step in self.steps.prefix(count) { run.add(step.interval, step.standing) }
        if count > self.steps.count, let final = self.final { run.finish(final) }
        return run
    }

    /// Adds an interval of one second.
    package mutating func add(
        _ phase: String,
        _ metrics: [Metric],
        seconds: Double = 1,
        _ standing: LiveStanding = LiveStanding()
    ) {
        self.steps.append(
            Step(
                interval: TimelineInterval(
                    second: self.steps.count,
                    phase: phase,
                    seconds: seconds,
                    metrics: metrics,
                    lanes: []
                ),
                standing: standing
            )
        )
    }
}

/// Metrics of one interval.
package enum Scripted {
    /// A latency whose p99 is `p99` seconds; nothing without samples.
    package static func duration(_ name: String, _ labels: Labels = [:], p99: Double, count: Double) -> Metric? {
        var histogram = Histogram()
        histogram.record(1)
        guard count >= 1, var reading = DurationReading(histogram) else { return nil }
        reading.count = UInt64(count)
        (reading.p50, reading.p99, reading.max) = (p99 / 2.3, p99, p99 * 2.25)
        return Metric(name: name, labels: labels, unit: "seconds", reading: .duration(reading))
    }

    package static func counter(_ name: String, _ labels: Labels = [:], _ rate: Double, seconds: Double = 1) -> Metric {
        Metric(name: name, labels: labels, reading: .counter(CounterReading(value: rate * seconds, rate: rate)))
    }

    package static func gauge(_ name: String, _ labels: Labels = [:], _ value: Double, unit: String? = nil) -> Metric {
        Metric(name: name, labels: labels, unit: unit, reading: .gauge(GaugeReading(value: value)))
    }

    /// -1...1, the same for the same numbers.
    package static func noise(_ number: Int, _ seed: Int = 0) -> Double {
        var generator = SplitMix64(seed: UInt64(number * 1000 + seed))
        return Double(generator.next() % 2001) / 1000 - 1
    }

    /// The generator's figures of one second.
    package static func generator(_ second: Int, loops: [Double], lag: Double, idle: Double) -> [Metric] {
        loops.enumerated().map { loop, cores in
            Self.gauge(
                "generator_cpu",
                ["loop": "\(loop)"],
                max(0, cores + self.noise(second, loop) / 40),
                unit: "cores"
            )
        } + [
            Self.gauge("generator_memory_bytes", [:], 73_600_000 + Double(second) * 120_000, unit: "bytes"),
            Self.gauge("host_cpu_idle", [:], idle),
        ] + [Self.duration("schedule_lag", p99: lag, count: 1000)].compactMap(\.self)
    }
}
