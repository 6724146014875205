import Measurement
import RunResult

/// A synthetic run: a record, and a time line of whole seconds.
///
/// The first second connects all clients; then comes the load, and a second of drain.
struct FindingRun: Sendable {
    var record: RunRecord
    private(set) var timeline = Timeline()
    private var noise = SplitMix64(seed: 7)
    let load: Range<Int>

    init(load seconds: Int = 30, clients: Int = 10, warmup: Int = 0, stages: [(String, Int, load: Double)] = []) {
        let length = stages.isEmpty ? warmup + seconds : stages.reduce(0) { $0 + $1.1 }
        self.load = 1..<1 + length
        self.record = RunRecord(
            command: ["clamor", "pubsub"],
            tool: ToolRecord(name: "clamor", version: "1"),
            host: HostFacts(),
            plan: [:],
            startedAt: "2026-11-21T01:37:09Z"
        )
        self.record.durationSeconds = Double(length + 2)
        self.record.population = ClientCounts(planned: clients)
        self.record.verdict = .valid
        self.record.ledger = LedgerRecord(on: true)
        self.record.ledger.lost = [:]
        self.addStage("connect", 1, measured: false)
        if warmup > 0 { self.addStage("warmup", Double(warmup), measured: false) }
        for stage in stages { self.addStage(stage.0, Double(stage.1), measured: true) }
        if stages.isEmpty { self.addStage("measure", Double(seconds), measured: true) }
        self.addStage("drain", 1, measured: false)
        if !stages.isEmpty {
            self.record.plan["stages"] = .array(
                stages.map { .object(["name": .string($0.0), "load": .number($0.load)]) }
            )
        }
        self.timeline.seconds = Array(0..<(length + 2))
        self.timeline.lengths = self.timeline.seconds.map { _ in 1 }
        self.timeline.phases = self.timeline.seconds.map { second in
            second == 0 ? "connect" : second > length ? "drain" : second <= warmup ? "warmup" : "measure"
        }
        self.set("clients", ["state": "connected"], .gauge) { _ in Double(clients) }
        self.connected(clients)
    }

    private mutating func addStage(_ name: String, _ seconds: Double, measured: Bool) {
        let start = self.record.stages.reduce(0) { $0 + $1.durationSeconds }
        self.record.stages.append(
            StageRecord(name: name, start: start, durationSeconds: seconds, measured: measured)
        )
    }

    /// First connects of the run, all of which came up.
    mutating func connected(_ clients: Int) {
        self.record.population?.up = clients
        self.record.metrics.removeAll { $0.name == "connect_duration" }
        if clients > 0 { self.duration("connect_duration", ["phase": "total"], 0.001, count: UInt64(clients)) }
    }

    /// A duration of the whole run, each value so many seconds.
    mutating func duration(_ name: String, _ labels: Labels, _ seconds: Double, count: UInt64 = 10) {
        var histogram = Histogram()
        histogram.record(Int64(seconds * 1e9), count: count)
        guard let reading = DurationReading(histogram) else { return }
        self.record.metrics.append(Metric(duration: name, labels: labels, reading: reading))
    }

    /// Sets a counter or a level in every second; `nil`: it has no row there.
    mutating func set(_ name: String, _ labels: Labels, _ kind: Metric.Kind, _ value: (Int) -> Double?) {
        self.timeline.columns.removeAll { $0.name == name && $0.labels == labels }
        var column = Timeline.Column(name: name, labels: labels, kind: kind)
        column.values = self.timeline.seconds.map { value($0) ?? .nan }
        self.timeline.columns.append(column)
    }

    /// Marks the p99 of a duration as a lower bound in one second.
    mutating func bound(_ name: String, at second: Int) {
        for place in self.timeline.columns.indices where self.timeline.columns[place].name == name {
            self.timeline.columns[place].bounds.insert(second)
        }
    }

    struct Latency {
        var count: Double
        var p50: Double
        var p99: Double
        var max: Double
    }

    /// Sets a duration in every second.
    mutating func set(_ name: String, _ labels: Labels, _ latency: (Int) -> Latency?) {
        self.timeline.columns.removeAll { $0.name == name && $0.labels == labels }
        var column = Timeline.Column(name: name, labels: labels, unit: "seconds", kind: .duration)
        for second in self.timeline.seconds {
            let value = latency(second)
            column.values.append(value?.count ?? .nan)
            column.p50.append(value?.p50 ?? .nan)
            column.p99.append(value?.p99 ?? .nan)
            column.max.append(value?.max ?? .nan)
        }
        self.timeline.columns.append(column)
    }

    /// Leaves series out.
    mutating func remove(_ names: String...) { self.timeline.columns.removeAll { names.contains($0.name) } }

    /// Changes the values of a series in some seconds.
    mutating func change(_ name: String, _ labels: Labels? = nil, at seconds: Range<Int>, to value: (Double) -> Double)
    {
        for place in self.timeline.columns.indices where self.timeline.columns[place].name == name {
            guard labels == nil || self.timeline.columns[place].labels == labels else { continue }
            for second in seconds {
                self.timeline.columns[place].values[second] = value(self.timeline.columns[place].values[second])
            }
        }
    }

    /// Changes p50, p99 and maximum of a duration in some seconds.
    mutating func latency(_ name: String, at seconds: Range<Int>, p50: Double, p99: Double, max: Double) {
        for place in self.timeline.columns.indices where self.timeline.columns[place].name == name {
            for second in seconds {
                self.timeline.columns[place].p50[second] = p50
                self.timeline.columns[place].p99[second] = p99
                self.timeline.columns[place].max[second] = max
            }
        }
    }

    // MARK: - Loads

    /// Messages at QoS 1 that are acknowledged and delivered within the second, with 30 % of noise in latencies.
    mutating func messages(
        _ rate: @escaping (Int) -> Double,
        group: String? = nil,
        p50: Double = 0.001,
        stages: Bool = false
    ) {
        let own: Labels = group.map { ["group": $0] } ?? [:]
        let load = self.load
        let count: (Int) -> Double? = { load.contains($0) ? rate($0) : 0 }
        let qos = own.adding("qos", "1")
        self.set("publish_offered", qos, .counter, count)
        self.set("publish_sent", qos, .counter, count)
        self.set("publish_acked", qos, .counter, count)
        self.set("received", qos.adding("retained", "false"), .counter, count)
        self.latencies("publish_ack_duration", qos.adding("leg", "puback"), p50, count)
        self.latencies("delivery_duration", qos, p50 * 1.5, count)
        var books = Books(qos: 1)
        books.group = group
        let sent = UInt64(load.reduce(0) { $0 + rate($1) })
        (books.offered, books.sent, books.acked, books.expected) = (sent, sent, sent, sent)
        (books.failed, books.timedOut, books.inFlight) = (0, 0, 0)
        self.record.books.append(books)
    }

    mutating func latencies(_ name: String, _ labels: Labels, _ p50: Double, _ count: (Int) -> Double?) {
        var noise = self.noise
        self.set(name, labels) { second in
            guard let count = count(second), count > 0 else { return nil }
            let factor = 0.7 + 0.6 * Double(noise.next() % 1000) / 1000
            return Latency(count: count, p50: p50 * factor, p99: p50 * 4 * factor, max: p50 * 30 * factor)
        }
        self.noise = noise
    }

    /// Nothing is answered or delivered from `start` on; all of it is in the second in which the stall ends.
    mutating func stall(at start: Double, for seconds: Double, isOpenLoop: Bool = true) {
        let end = start + seconds
        for name in ["publish_acked", "received", "stanza_answered"] {
            var owed = 0.0
            for second in Int(start)...Int(end) {
                let span = Swift.min(end, Double(second + 1)) - Swift.max(start, Double(second))
                self.change(name, at: second..<second + 1) { value in
                    owed += value * span
                    return value * (1 - span) + (end < Double(second + 1) ? owed : 0)
                }
            }
        }
        for name in ["publish_ack_duration", "delivery_duration", "iq_duration"] {
            for second in Int(start)...Int(end) {
                if end < Double(second + 1) {
                    self.latency(name, at: second..<second + 1, p50: seconds / 3, p99: seconds * 0.98, max: seconds)
                } else if start <= Double(second) {
                    self.latency(name, at: second..<second + 1, p50: .nan, p99: .nan, max: .nan)
                    for place in self.timeline.columns.indices where self.timeline.columns[place].name == name {
                        self.timeline.columns[place].values[second] = .nan
                    }
                }
            }
        }
    }

    /// A counter of the whole run.
    mutating func count(_ name: String, _ labels: Labels, _ value: Double) {
        let reading = CounterReading(value: value, rate: nil)
        self.record.metrics.append(Metric(name: name, labels: labels, reading: .counter(reading)))
    }

    mutating func threshold(_ expression: String, ok: Bool, value: Double?) {
        self.record.thresholds.append(ThresholdResult(expression: expression, ok: ok, value: value))
    }

    mutating func error(_ kind: String, _ count: UInt64, at second: Int, example: String) {
        self.record.errors.append(
            ErrorRecord(kind: kind, count: count, firstAt: "2026-11-21T01:37:19Z", example: example)
        )
        self.set("errors", ["kind": kind], .counter) { $0 < second ? nil : $0 == second ? Double(count) : 0 }
    }

    var findings: FindingsRecord { Findings.record(of: self.record, self.timeline) }
}

extension FindingRun {
    /// One message in each `every` seconds.
    mutating func rare(every: Int, answeredAfter delay: Int = 0) {
        let load = self.load
        let isDue: (Int) -> Bool = { load.contains($0) && $0 % every == 0 }
        let qos: Labels = ["qos": "1"]
        for name in ["publish_offered", "publish_sent"] { self.set(name, qos, .counter) { isDue($0) ? 1 : 0 } }
        let isDone: (Int) -> Bool = { isDue($0 - delay) }
        self.set("publish_acked", qos, .counter) { isDone($0) ? 1 : 0 }
        self.set("received", qos.adding("retained", "false"), .counter) { isDone($0) ? 1 : 0 }
        let latency = 0.002 + 0.03 * Double(delay)
        self.latencies("publish_ack_duration", qos.adding("leg", "puback"), latency) { isDone($0) ? 1 : 0 }
        self.latencies("delivery_duration", qos, latency) { isDone($0) ? 1 : 0 }
    }
}
