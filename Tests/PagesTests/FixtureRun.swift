import Glibc
import Measurement
import Report

/// A run of a server that does not exist: its books balance, and its time line adds up to its totals.
///
/// One second of connects, the load, and a short drain.
struct FixtureRun {
    /// Messages of one group, stream and quality of service; at QoS 0 and 1, and each with one receiver.
    struct Load {
        var labels: [String: String] = [:]
        /// For XMPP, instead of a QoS.
        var stanza: String?
        var qos = 1
        var rate = 100.0
        /// Seconds from due to acknowledged.
        var median = 0.0012
        /// Whether anything receives them.
        var arrives = true

        var kind: Labels {
            Labels(self.labels.merging(self.stanza.map { ["stanza": $0] } ?? ["qos": "\(self.qos)"]) { $1 })
        }

        var prefix: String { self.stanza == nil ? "publish" : "stanza" }
    }

    var seconds: Int
    var interval = 1
    var loads: [Load]
    var clients = 100
    /// The second of the run in which nothing was answered.
    var stall: Int?
    /// The seconds in which three clients of ten leave, and come back.
    var storm: Range<Int>?
    /// Of 1,000 messages, those that do not arrive.
    var lostPerThousand = 0
    /// The share of what is due that is sent.
    var sentShare = 1.0
    var loops = 2

    private(set) var timeline = Timeline()
    private(set) var metrics: [Metric] = []
    private(set) var books: [Books] = []
    /// The text of `latency.hlog`, with the loads of a metric in one lane.
    private(set) var log = ""
    /// By metric and interval.
    private var latencies: [String: [[(nanoseconds: Int64, count: UInt64)]]] = [:]

    init(seconds: Int, loads: [Load], interval: Int = 1, clients: Int = 100) {
        self.seconds = seconds
        self.loads = loads
        self.interval = interval
        self.clients = clients
    }

    static let drainSeconds = 0.4

    var stages: [StageRecord] {
        [
            StageRecord(name: "connect", start: 0, durationSeconds: 1, measured: false),
            StageRecord(name: "measure", start: 1, durationSeconds: Double(self.seconds), measured: true),
            StageRecord(
                name: "drain",
                start: Double(self.seconds + 1),
                durationSeconds: Self.drainSeconds,
                measured: false
            ),
        ]
    }

    /// Makes the time line, metrics and books.
    mutating func run() {
        self.addIntervals()
        self.addConnects()
        for load in self.loads { self.addLoad(load) }
        self.addProcess()
        self.writeLog()
        self.books = Books.sums(self.books)
    }

    private var isLoad: Range<Int> { 1..<(self.timeline.seconds.count - 1) }

    private mutating func addIntervals() {
        self.timeline.seconds = [0]
        self.timeline.lengths = [1]
        self.timeline.phases = ["connect"]
        var second = 1
        while second <= self.seconds {
            self.timeline.seconds.append(second)
            self.timeline.lengths.append(Double(min(self.interval, self.seconds + 1 - second)))
            self.timeline.phases.append("measure")
            second += self.interval
        }
        self.timeline.seconds.append(self.seconds + 1)
        self.timeline.lengths.append(Self.drainSeconds)
        self.timeline.phases.append("drain")
    }

    /// From 0.85 to 1.15, the same in every run.
    private func wobble(_ index: Int, _ load: String) -> Double {
        var random = SplitMix64(seed: UInt64(index) &* 0x9E37 &+ load.stableHash)
        return 1 + 0.1 * sin(Double(index) / 9) + 0.1 * (Double(random.next() % 1000) / 1000 - 0.5)
    }

    private mutating func addLoad(_ load: Load) {
        let intervals = self.timeline.seconds.count
        let isAnswered = load.stanza == nil ? load.qos > 0 : load.stanza == "iq"
        var offered = [Double](repeating: .nan, count: intervals)
        var (sent, acked, received) = (offered, offered, offered)
        var owed = 0.0
        for index in self.isLoad {
            let start = Double(self.timeline.seconds[index] - 1)
            let due = (load.rate * (start + self.timeline.lengths[index])).rounded() - (load.rate * start).rounded()
            offered[index] = due
            sent[index] = (due * self.sentShare).rounded()
            let isStalled = self.isStalled(index)
            acked[index] = isStalled ? 0 : sent[index] + owed
            owed = isStalled ? sent[index] : 0
            received[index] = acked[index] - (acked[index] * Double(self.lostPerThousand) / 1000).rounded()
        }
        // What was stalled at the end of the load comes in the drain.
        (sent[intervals - 1], acked[intervals - 1], received[intervals - 1]) = (0, owed, owed)

        let prefix = load.prefix
        self.addCounter("\(prefix)_offered", load.kind, offered)
        self.addCounter("\(prefix)_sent", load.kind, sent)
        self.addCounter("\(prefix)_not_sent", load.kind, zip(offered, sent).map { $0 - $1 })
        self.addCounter("\(prefix)_\(isAnswered ? "acked" : "confirmed")", load.kind, acked)
        if isAnswered {
            let name = load.stanza == nil ? "publish_ack_duration" : "iq_duration"
            self.addDuration(name, load.stanza == nil ? load.kind.adding("leg", "puback") : load.kind, acked, load)
            let service = load.stanza == nil ? "publish_service_duration" : "iq_service_duration"
            var fast = load
            fast.median *= 0.8
            self.addDuration(service, load.stanza == nil ? load.kind.adding("leg", "puback") : load.kind, acked, fast)
        }
        if load.arrives {
            self.addCounter("received", load.kind.adding("retained", "false"), received)
            var slow = load
            slow.median *= 1.3
            self.addDuration("delivery_duration", load.kind, received, slow)
        }
        func sum(_ values: [Double]) -> UInt64 { UInt64(values.filter { !$0.isNaN }.reduce(0, +)) }
        var books = load.stanza.map { Books(stanza: $0) } ?? Books(qos: load.qos)
        books.group = load.labels["group"]
        (books.offered, books.sent) = (sum(offered), sum(sent))
        books.notSent = sum(offered) - sum(sent)
        if isAnswered {
            (books.acked, books.inFlight, books.timedOut, books.failed) = (sum(acked), 0, 0, 0)
        } else {
            (books.confirmed, books.unconfirmed) = (sum(acked), 0)
        }
        if load.arrives {
            (books.expected, books.received, books.duplicated) = (sum(acked), sum(received), 0)
            books.lost = sum(acked) - sum(received)
            for (name, value) in [
                ("expected", sum(acked)), ("received", sum(received)), ("lost", sum(acked) - sum(received)),
            ] {
                let reading = CounterReading(value: Double(value), rate: nil)
                self.metrics.append(Metric(name: "delivery_\(name)", labels: load.kind, reading: .counter(reading)))
            }
        }
        self.books.append(books)
    }

    private func isStalled(_ index: Int) -> Bool {
        self.stall.map { self.timeline.seconds[index] <= $0 && $0 < self.timeline.seconds[index] + self.interval }
            ?? false
    }

    /// Latencies of as many operations as there were in each interval.
    private mutating func addDuration(_ name: String, _ labels: Labels, _ counts: [Double], _ load: Load) {
        var column = Timeline.Column(name: name, labels: labels, unit: "seconds", kind: .duration)
        var total = Histogram()
        if self.latencies[name] == nil {
            self.latencies[name] = [[(nanoseconds: Int64, count: UInt64)]](repeating: [], count: counts.count)
        }
        let parts: [(share: Double, factor: Double)] = [
            (0.1, 0.7), (0.5, 0.95), (0.85, 1.2), (0.96, 1.8), (0.99, 2.5), (0.999, 3.2), (1, 5),
        ]
        for (index, count) in counts.enumerated() {
            guard count > 0 else {
                column.values.append(.nan)
                column.p50.append(.nan)
                column.p99.append(.nan)
                column.max.append(.nan)
                continue
            }
            let median = load.median * self.wobble(index, labels.description)
            // Half of what comes after a stall was due in it.
            let isAfter = index > 0 && self.isStalled(index - 1)
            var done = 0.0
            var figures: [Double] = []
            for part in parts {
                let late = isAfter && part.share > 0.5 ? part.share : 0
                let seconds = median * part.factor + late
                figures.append(seconds)
                let until = (count * part.share).rounded()
                guard until > done else { continue }
                let counted = (nanoseconds: Int64(seconds * 1e9), count: UInt64(until - done))
                total.record(counted.nanoseconds, count: counted.count)
                self.latencies[name, default: [[]]][index].append(counted)
                done = until
            }
            column.values.append(count)
            column.p50.append(figures[1])
            column.p99.append(count < 100 ? figures[6] : figures[4])
            column.max.append(figures[6])
        }
        self.timeline.columns.append(column)
        if let reading = DurationReading(total, encoded: total.encodedV2()) {
            self.metrics.append(Metric(duration: name, labels: labels, reading: reading))
        }
    }

    private mutating func writeLog() {
        self.log = HistogramLog.header(startedAt: 1_795_225_029_123_000_000)
        for (index, second) in self.timeline.seconds.enumerated() {
            for (name, counted) in self.latencies.sorted(by: { $0.key < $1.key }) where !counted[index].isEmpty {
                var histogram = Histogram()
                for (nanoseconds, count) in counted[index] { histogram.record(nanoseconds, count: count) }
                let entry = HistogramLog.Entry(
                    tag: HistogramLog.tag(Series(name: name, labels: [:])),
                    start: Double(second),
                    length: self.timeline.lengths[index],
                    encoded: histogram.encodedV2()
                )
                self.log += HistogramLog.line(entry, maximum: histogram.max ?? 0)
            }
            self.log += HistogramLog.end(ofInterval: second)
        }
        self.latencies = [:]
    }

    /// A counter whose rate covers the load alone.
    mutating func addCounter(_ name: String, _ labels: Labels, unit: String? = nil, _ values: [Double]) {
        var column = Timeline.Column(name: name, labels: labels, unit: unit, kind: .counter)
        column.values = values
        self.timeline.columns.append(column)
        let rate = self.isLoad.reduce(0) { $0 + (values[$1].isNaN ? 0 : values[$1]) } / Double(self.seconds)
        let reading = CounterReading(value: values.filter { !$0.isNaN }.reduce(0, +), rate: rate)
        self.metrics.append(Metric(name: name, labels: labels, unit: unit, reading: .counter(reading)))
    }

    mutating func addGauge(_ name: String, _ labels: Labels, unit: String? = nil, _ values: [Double]) {
        var column = Timeline.Column(name: name, labels: labels, unit: unit, kind: .gauge)
        column.values = values
        self.timeline.columns.append(column)
        let known = values.filter { !$0.isNaN }
        guard let last = known.last else { return }
        let mean = known.reduce(0, +) / Double(known.count)
        let reading = GaugeReading(value: last, min: known.min(), mean: mean, max: known.max())
        self.metrics.append(Metric(name: name, labels: labels, unit: unit, reading: .gauge(reading)))
    }

    private var groups: [String?] {
        self.loads.reduce(into: []) { groups, load in
            if !groups.contains(load.labels["group"]) { groups.append(load.labels["group"]) }
        }
    }

    private mutating func addConnects() {
        for group in self.groups {
            let labels = Labels(group.map { ["group": $0] } ?? [:])
            let isXMPP = self.loads.contains { $0.labels["group"] == group && $0.stanza != nil }
            let phases: [(String, Double)] =
                isXMPP
                ? [("tcp", 0.0002), ("stream", 0.0006), ("sasl", 0.004), ("bind", 0.001), ("total", 0.006)]
                : [("tcp", 0.0002), ("session", 0.001), ("total", 0.0012)]
            for (phase, median) in phases {
                var counts = [Double](repeating: 0, count: self.timeline.seconds.count)
                counts[0] = Double(self.clients)
                let load = Load(median: median)
                self.addDuration("connect_duration", labels.adding("phase", phase), counts, load)
            }
            let storm = self.storm ?? 0..<0
            let away = self.timeline.seconds.map { storm.contains($0) ? Double(self.clients * 3 / 10) : 0 }
            var connected = away.map { Double(self.clients) - $0 }
            connected[connected.count - 1] = 0
            self.addGauge("clients", labels.adding("state", "connected"), connected)
            let left = self.timeline.seconds.map { $0 == storm.first ? Double(self.clients * 3 / 10) : 0 }
            self.addCounter("disconnects", labels.adding("reason", "storm"), left)
            self.addCounter("disconnects", labels.adding("reason", "reset"), left.map { _ in 0 })
            let back = self.timeline.seconds.map { $0 == storm.last ? Double(self.clients * 3 / 10) : 0 }
            self.addCounter("reconnects", labels, back)
        }
    }

    private mutating func addProcess() {
        let indices = Array(self.timeline.seconds.indices)
        for loop in 0..<self.loops {
            let shares = indices.map { 0.2 * self.wobble($0, "loop \(loop)") / self.sentShare }
            self.addGauge("generator_cpu", ["loop": "\(loop)"], unit: "cores", shares.map { min($0, 0.99) })
        }
        self.addGauge("generator_memory_bytes", [:], unit: "bytes", indices.map { 5e7 + Double($0 % 600) * 1e4 })
        self.addGauge("host_cpu_idle", [:], indices.map { 0.6 * self.wobble($0, "idle") })
        let sent = self.loads.reduce(0) { $0 + $1.rate } * Double(self.interval)
        for name in ["bytes_sent", "bytes_received"] {
            let bytes = indices.map { self.isLoad.contains($0) ? (sent * 120 * self.wobble($0, name)).rounded() : 0 }
            self.addCounter(name, [:], unit: "bytes", bytes)
        }
    }
}
