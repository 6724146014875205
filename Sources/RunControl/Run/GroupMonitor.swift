import Ledger
import LoadEngine
import Measurement
import NIOCore
import RunResult
import Workloads

/// The monitor's state for one group of a run.
struct GroupMonitor {
    let facts: GroupFacts
    private var watch: (any RunWatch)?
    /// A whole interval of the drain had no message.
    private var isQuiet = false
    /// The parent of all segments has reported that all messages arrived.
    private var hasEverything = false
    private var lastPart: DeliveryBalance?
    /// By shard: take back the memory of a sample.
    private var recyclers: [@Sendable (LoopSample) -> Void] = []
    private var lastOffered: [UInt64] = []
    private var lastLate: [UInt64] = []
    private var decode = (whole: 0.0, measured: 0.0)
    /// The decode time so far, and bytes read before any decode was timed.
    private var walked = (nanoseconds: 0.0, bytes: 0.0)
    private var unscaledBytes: UInt64 = 0
    /// A sample could not be decoded, and a warning was printed.
    private var hasUnreadable = false
    private var connectsBegun = 0
    private var lastConnectBegun = NIODeadline.distantPast
    private var returnShare = 1.0

    init(_ facts: GroupFacts) {
        self.facts = facts
        self.watch = facts.load.makeWatch()
    }

    mutating func watch(_ recyclers: [@Sendable (LoopSample) -> Void]) {
        self.recyclers = recyclers
        self.lastOffered = Array(repeating: 0, count: recyclers.count)
        self.lastLate = self.lastOffered
    }

    /// Records connects and pending messages of an interval, and returns the samples' memory.
    mutating func note(_ sample: GroupSample<LoadSample>, _ interval: TimelineInterval, phase: RunPhase) {
        for (recycle, sample) in zip(self.recyclers, sample.samples) {
            var emptied = sample.metrics
            emptied.clear()
            recycle(emptied)
        }
        if phase == .drain, interval.seconds > 0.5, interval.part(self.facts.name).total(.received) == 0 {
            self.isQuiet = true
        }
        self.connectsBegun = sample.facts.reduce(0) { $0 + $1.connectsBegun }
        self.lastConnectBegun = sample.facts.map(\.lastConnectBegun).max() ?? .distantPast
        self.returnShare = sample.facts.map(\.returnShare).min() ?? 1
    }

    /// Whether receivers of the group have everything, by the balance of all groups that it exchanges messages with.
    ///
    /// Absences may excuse what is missing (`isExcused`): then a second without a message decides. Else a server
    /// that was quiet for so long has nothing more to deliver, by ``DeliveryEnd``.
    func isComplete(_ balance: DeliveryBalance, isExcused: Bool, quiet: TimeAmount) -> Bool {
        switch self.facts.load.completion {
        case .nothing: true
        case .silence: self.isQuiet
        case .balance:
            balance.isComplete || isExcused && self.isQuiet
                || balance.longest.map { quiet.nanoseconds > DeliveryEnd.patience(longest: $0.nanoseconds) } ?? false
        case .joint: self.hasEverything
        }
    }

    /// This segment's part of a joint balance, if it has changed.
    mutating func part(of balance: DeliveryBalance) -> DeliveryBalance? {
        guard case .joint = self.facts.load.completion, balance != self.lastPart else { return nil }
        self.lastPart = balance
        return balance
    }

    mutating func everythingCame() { self.hasEverything = true }

    // MARK: - Values besides the metrics

    mutating func second(_ interval: TimelineInterval) {
        let own = interval.part(self.facts.name)
        self.watch?.second(own)
    }

    // MARK: - Decoding

    /// Measures decode time on the reads of one client of each loop, and scales it to the loop's bytes.
    ///
    /// - Returns: the decode time of the interval, and a warning the first time that no read could be timed.
    mutating func decodeTime(
        _ samples: [LoadSample],
        phase: RunPhase,
        seconds: Double
    ) -> (time: Metric?, warning: String?) {
        var warning: String?
        for sample in samples {
            guard let probe = sample.probe else { continue }
            let (nanoseconds, bytes) = probe.measure()
            // For MQTT these are protocol errors of the server, which are reported as such.
            if bytes == 0, !self.hasUnreadable, self.facts.load.protocolName == "xmpp" {
                self.hasUnreadable = true
                warning =
                    "decode_time leaves out reads that make no sense without the beginning of their connection, such as "
                    + "prefixes that a stream header binds"
            }
            self.walked.nanoseconds += Double(nanoseconds)
            self.walked.bytes += Double(bytes)
        }
        guard self.walked.bytes > 0 else {
            self.unscaledBytes += samples.reduce(0) { $0 + $1.decodeBytes }
            return (nil, warning)
        }
        // Seconds in which the sampled client read nothing use the time per byte measured before.
        let decoded = Double(samples.reduce(0) { $0 + $1.decodeBytes } + self.unscaledBytes)
        self.unscaledBytes = 0
        let gained = self.walked.nanoseconds / self.walked.bytes * decoded / 1e9
        guard gained > 0 else { return (nil, warning) }
        self.decode.whole += gained
        if phase == .measure { self.decode.measured += gained }
        return (self.decodeTime(gained, rate: seconds > 0 ? gained / seconds : nil), warning)
    }

    func decodeTime(measuredSeconds: Double?) -> Metric? {
        guard self.decode.whole > 0 else { return nil }
        return self.decodeTime(self.decode.whole, rate: measuredSeconds.map { self.decode.measured / $0 })
    }

    private func decodeTime(_ value: Double, rate: Double?) -> Metric {
        let labels: Labels = ["protocol": self.facts.load.protocolName]
        return Metric(
            .decodeTime,
            labels: labels.of(group: self.facts.name, metric: MetricDefinition.decodeTime.name),
            reading: .counter(CounterReading(value: value, rate: rate))
        )
    }

    // MARK: - Generator lag

    /// Whether the loops kept up with this group; schedule lag counts only for groups with due times.
    mutating func loopSeconds(
        _ sample: GroupSample<LoadSample>,
        _ interval: TimelineInterval,
        amongOthers: Bool
    ) -> [GeneratorAudit.LoopSecond] {
        let hasDueTimes = self.facts.isOpenLoop || !amongOthers
        let own = interval.part(self.facts.name)
        let lag = hasDueTimes ? own.worst(.scheduleLag) : nil
        let ack = own.worst(self.facts.load.answerMetric)
        var loops: [GeneratorAudit.LoopSecond] = []
        for (index, load) in sample.samples.enumerated()
        where index < sample.facts.count && index < self.recyclers.count {
            let fact = sample.facts[index]
            var second = GeneratorAudit.LoopSecond(
                scheduleLagP99: lag,
                ackP99: ack,
                offered: hasDueTimes ? fact.offered - self.lastOffered[index] : 0,
                unsent: hasDueTimes ? fact.late - self.lastLate[index] : 0,
                cpuShare: load.cpuShare,
                waitingShare: fact.workWaited ? 1 : 0
            )
            second.group = self.facts.name
            loops.append(second)
            self.lastOffered[index] = fact.offered
            self.lastLate[index] = fact.late
        }
        return loops
    }

    var samples: GroupSamples {
        var samples = GroupSamples()
        samples.connects = self.facts.connectRate.map { rate in
            var pace = ConnectPace(rate: rate, begun: UInt64(self.connectsBegun), lastBegun: self.lastConnectBegun)
            pace.returnShare = self.returnShare
            return pace
        }
        samples.watch = self.watch
        return samples
    }
}

extension LoadSample {
    /// The share of a core that the loop's thread used.
    var cpuShare: Double { self.span > .zero ? Double(self.cpu) / Double(self.span.nanoseconds) : 0 }
}
