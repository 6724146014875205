package import Ledger
package import LoadEngine
package import Measurement
package import NIOCore

/// The measurements of a run's monitor, after all clients have stopped.
package struct RunSamples: Sendable {
    package var metrics: [Metric] = []
    /// Metrics of stages.
    package var stageMetrics: [Metric] = []
    package var errors: [ErrorRecord] = []
    package var slowest: [SlowMessage]?
    package var tlsVersions: [String: UInt64]?
    package var generator = GeneratorRecord()
    /// Receives every second of the load.
    package var audit = GeneratorAudit(isOpenLoop: false)
    /// One entry for each group of the run.
    package var groups: [GroupSamples] = []
    package var brokenThreshold: String?
    /// The messages received by the share groups of all groups.
    package var shares = ShareGroupLedger().export()
    /// Their longest delivery, in nanoseconds.
    package var longestShared: Int64 = 0
    /// The absences of receivers.
    package var presence = PresenceLedger()

    package init() {}
}

package struct GroupSamples: Sendable {
    /// The rate of connects compared with `-R`; `nil` without `-R`.
    package var connects: ConnectPace?
    package var watch: (any RunWatch)?

    package init() {}
}

/// The rate of connects compared with `-R`.
package struct ConnectPace: Sendable {
    /// Per second.
    package var rate: Double
    package var begun: UInt64
    package var lastBegun: NIODeadline
    /// The lowest share of the rate at which clients reconnected.
    package var returnShare = 1.0

    package init(rate: Double, begun: UInt64, lastBegun: NIODeadline) {
        self.rate = rate
        self.begun = begun
        self.lastBegun = lastBegun
    }
}

/// The settings that a run's verdict depends on.
package struct RunTerms: Sendable {
    package struct Stage: Sendable {
        package var name: String
        package var isWarmup: Bool

        package init(name: String, isWarmup: Bool) {
            self.name = name
            self.isWarmup = isWarmup
        }
    }

    package var thresholds: [Threshold]
    package var stages: [Stage]

    package init(thresholds: [Threshold], stages: [Stage] = []) {
        self.thresholds = thresholds
        self.stages = stages
    }

    /// The length of each stage in seconds; 0 for a stage that never began.
    package func stageSeconds(_ outcome: RunOutcome) -> [Double] {
        self.stages.indices.map { $0 < outcome.stages.count ? outcome.stages[$0].seconds : 0 }
    }

    /// The length of the measured phase in seconds; `nil` if it never began.
    package func measuredSeconds(_ outcome: RunOutcome) -> Double? {
        guard !self.stages.isEmpty else { return outcome.measured?.seconds }
        let measured = zip(self.stages, self.stageSeconds(outcome)).filter { !$0.0.isWarmup }.reduce(0) { $0 + $1.1 }
        return measured > 0 ? measured : nil
    }

    func stageRecords(_ outcome: RunOutcome) -> [StageRecord] {
        // The load was to begin a little later, in a run that ended before.
        let load = min(outcome.loadBegan ?? outcome.ended, outcome.ended)
        var spans: [(name: String, from: NIODeadline, to: NIODeadline, isMeasured: Bool)] = []
        spans.append(("connect", outcome.began, load, false))
        spans += zip(self.stages, outcome.stages).map { ($0.name, $1.lowerBound, $1.upperBound, !$0.isWarmup) }
        if let last = outcome.stages.last { spans.append(("drain", last.upperBound, outcome.ended, false)) }
        if let measured = outcome.measured, self.stages.isEmpty {
            spans.append(("warmup", load, measured.lowerBound, false))
            spans.append(("measure", measured.lowerBound, measured.upperBound, true))
            spans.append(("drain", measured.upperBound, outcome.ended, false))
        }
        return spans.filter { $0.to > $0.from }.map { span in
            StageRecord(
                name: span.name,
                start: (span.from - outcome.began).seconds,
                durationSeconds: (span.to - span.from).seconds,
                measured: span.isMeasured
            )
        }
    }
}

extension TimeAmount {
    var seconds: Double { Double(self.nanoseconds) / 1e9 }
}

extension Range<NIODeadline> {
    fileprivate var seconds: Double { (self.upperBound - self.lowerBound).seconds }
}
