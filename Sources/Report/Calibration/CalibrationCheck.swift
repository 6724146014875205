package import Measurement

/// A known property of a run, compared with the run's report of it.
package struct CalibrationCheck: Codable, Hashable, Sendable {
    /// `delay`: what is checked.
    package let name: String
    /// The same in words.
    package let what: String
    /// "seconds"; absent where things are counted.
    package let unit: String?
    /// The true value, from another process or from the plan.
    package let injected: Double
    /// The value that the run reports; absent if it reports none.
    package let reported: Double?
    /// Reported less injected.
    package let difference: Double?
    /// The allowed difference, either way.
    package let tolerance: Double
    /// The reason why the run's figure does not count.
    package let problem: String?
    package let ok: Bool

    /// `reported` is ok within `tolerance` of `injected`, unless something keeps the run from counting.
    package init(
        _ name: String,
        _ what: String,
        unit: String? = nil,
        injected: Double,
        reported: Double?,
        tolerance: Double = 0,
        problem: String? = nil
    ) {
        self.name = name
        self.what = what
        self.unit = unit
        self.injected = injected
        self.reported = reported.flatMap { $0.isFinite ? $0 : nil }
        self.difference = self.reported.map { $0 - injected }
        self.tolerance = tolerance
        self.problem = problem ?? (self.reported == nil ? "the run does not report it" : nil)
        // A fault that was never injected proves nothing.
        self.ok = self.problem == nil && abs(self.difference ?? .infinity) <= tolerance
    }

    // MARK: - Faults injected by the broker, compared with the run's report

    /// One run, and the broker's own figures of it.
    package struct Delayed: Sendable {
        package var record: RunRecord
        /// The seconds for which messages were held, as the broker measured them.
        package var held: Double?
        package var count: UInt64

        package init(record: RunRecord, held: Double?, count: UInt64) {
            self.record = record
            self.held = held
            self.count = count
        }
    }

    /// A delay of some of the messages, over several runs: the medians count.
    ///
    /// The delayed messages are found by their durations alone: those above half of the delay.
    package static func delay(_ runs: [Delayed]) -> [CalibrationCheck] {
        let problem = runs.lazy.compactMap(\.record.unsound).first
        var (held, difference, delayed, counted): ([Double], [Double], [Double], [Double]) = ([], [], [], [])
        for run in runs {
            guard let hold = run.held, let histogram = run.record.histogram(.delivery) else { continue }
            let (low, high) = histogram.split(at: Int64(hold * 1e9 / 2))
            guard let plain = low.percentile(50), let late = high.percentile(50) else { continue }
            held.append(hold)
            difference.append(Double(late - plain) / 1e9)
            delayed.append(Double(run.count))
            counted.append(Double(high.count))
        }
        let injected = median(held) ?? 0
        return [
            CalibrationCheck(
                "delay",
                "delivery_duration p50 of delayed messages less that of the others, against how long the broker held them",
                unit: "seconds",
                injected: injected,
                reported: median(difference),
                tolerance: injected * 0.01,
                problem: problem
            ),
            CalibrationCheck(
                "delayed messages",
                "deliveries above half of the delay, against how many the broker held",
                injected: median(delayed) ?? 0,
                reported: median(counted),
                tolerance: (median(delayed) ?? 0) * 0.01,
                problem: problem
            ),
        ]
    }

    /// A broker that neither reads nor writes for `seconds`, under an open loop of QoS 1.
    ///
    /// How many durations that must have lengthened by how much is arithmetic: what is due in it, but for its last 100 ms,
    /// waits that long; what was in flight, the windows of all clients, has to wait for its answer.
    package static func stall(_ record: RunRecord, seconds: Double?, rate: Double, inFlight: Int) -> [CalibrationCheck]
    {
        let least = 0.1
        let problem = record.unsound ?? (seconds == nil ? "the broker did not stall" : nil)
        let length = seconds ?? 0
        let response = record.histogram(.publishAck).map { $0.split(at: Int64(least * 1e9)).above.count }
        let service = record.histogram(.publishService).map { $0.split(at: Int64(length * 5e8)).above.count }
        return [
            CalibrationCheck(
                "stall, response time",
                "publish_ack_duration above 100 ms, against what was due in the stall and had to wait so long",
                injected: (length - least) * rate,
                reported: response.map { Double($0) },
                // One more message at each end, and the time of the broker's first reads afterwards.
                tolerance: 5,
                problem: problem
            ),
            CalibrationCheck(
                "stall, service time",
                "publish_service_duration above half of the stall, against what was in flight",
                injected: Double(inFlight),
                reported: service.map { Double($0) },
                problem: problem
            ),
        ]
    }

    /// Messages that the broker lost, duplicated or reordered, compared with the run's counter: equal, to the message.
    package static func count(
        _ name: String,
        _ counter: MetricDefinition,
        _ record: RunRecord,
        injected: UInt64
    ) -> CalibrationCheck {
        // A late generator counts as well as any.
        let isUnsound = record.verdict?.state == .aborted || record.verdict?.state == .unreconciled
        return CalibrationCheck(
            name,
            "\(counter.name), against how many the broker made",
            injected: Double(injected),
            reported: record.sum(of: counter),
            problem: isUnsound ? record.unsound : injected == 0 ? "the broker made none" : nil
        )
    }

    // MARK: - The generator against its plan and against the kernel

    /// An open loop of `due` operations; `arrived`: PUBLISH that the broker counted.
    package static func pacing(_ record: RunRecord, due: Double, arrived: UInt64) -> [CalibrationCheck] {
        let lag = record.metrics.first { $0.isOf(.scheduleLag) && $0.labels["stage"] == nil }?.duration
        return [
            CalibrationCheck(
                "offered",
                "publish_offered, against rate × duration",
                injected: due,
                reported: record.sum(of: .publishOffered),
                // The last one may be due at the very end.
                tolerance: 1
            ),
            CalibrationCheck(
                "sent",
                "publish_sent, against what came to the broker",
                injected: Double(arrived),
                reported: record.sum(of: .publishSent),
                problem: arrived == 0 ? "nothing came to the broker" : nil
            ),
            CalibrationCheck(
                "pacing error, p50",
                "schedule_lag p50: how late a write begins",
                unit: "seconds",
                injected: 0,
                reported: lag?.p50,
                tolerance: 0.001
            ),
            CalibrationCheck(
                "pacing error, p99",
                "schedule_lag p99",
                unit: "seconds",
                injected: 0,
                reported: lag?.p99,
                // Beyond it a run calls itself generator-limited.
                tolerance: 0.005
            ),
        ]
    }

    /// `kernel`: CPU seconds of the process from its start to its end, as its parent got them.
    package static func cpu(_ record: RunRecord, kernel: Double, name: String) -> CalibrationCheck {
        CalibrationCheck(
            "own CPU, \(name)",
            "generator.cpu_seconds, compared with the kernel's figure for the process",
            unit: "seconds",
            injected: kernel,
            reported: record.generator.cpuSeconds,
            // Loading the program and writing the last files are not in it.
            tolerance: max(0.2, kernel * 0.1)
        )
    }
}

extension RunRecord {
    /// The reason why its figures do not show the server, if any.
    fileprivate var unsound: String? {
        guard let verdict = self.verdict else { return "the run did not end" }
        guard verdict.state != .valid else { return nil }
        return "the run was \(verdict.state.rawValue): \(verdict.reasons.first?.text ?? "no reason given")"
    }

    /// The sum over its labels; nothing where there is no such counter.
    package func sum(of kind: MetricDefinition) -> Double? {
        self.metrics.counters([kind]) { $0["stage"] == nil }.sum { $0.value }
    }

    fileprivate func histogram(_ metric: MetricDefinition) -> Histogram? {
        self.metrics.first { $0.isOf(metric) && $0.labels["stage"] == nil }?.duration?.decodedHistogram()
    }
}

extension Histogram {
    /// The values below `border` and the others, to the width of a bucket.
    fileprivate func split(at border: Int64) -> (below: Histogram, above: Histogram) {
        var below = Histogram()
        var above = Histogram()
        self.forEachBucket { value, count in
            value < border ? below.record(value, count: count) : above.record(value, count: count)
        }
        return (below, above)
    }
}

/// The middle one; of an even number the upper of the two.
private func median(_ values: [Double]) -> Double? { values.isEmpty ? nil : values.sorted()[values.count / 2] }
