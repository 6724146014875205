package import Measurement

/// Relations between the figures of a result that hold whatever the server did.
///
/// A result that breaks one has a wrong figure: by a fault of the program, or because a file was changed.
package struct RunLaws {
    private let record: RunRecord
    /// The laws that do not hold, a line each.
    package private(set) var broken: [String] = []

    package init(_ record: RunRecord) {
        self.record = record
        for metric in record.metrics { self.check(metric) }
        self.checkBooks()
        self.checkDeliveries()
        self.checkCounts()
        self.checkClients()
        self.checkTimes()
        self.checkGenerator()
        self.checkJudgements()
    }

    /// The first fault of a duration, whose figures are compared with the values of its own histogram.
    static func fault(of metric: Metric, holding values: DurationValues?, in record: RunRecord) -> String? {
        var laws = RunLaws(figuresOf: record)
        if let reading = metric.duration { laws.check(reading, values, Self.name(metric)) }
        return laws.broken.first
    }

    /// The first fault of a record's books, whose counts are compared with each other and with the metrics.
    static func faultOfBooks(in record: RunRecord) -> String? {
        var laws = RunLaws(figuresOf: record)
        laws.checkBooks()
        return laws.broken.first
    }

    private init(figuresOf record: RunRecord) { self.record = record }

    /// Segments, and the lanes of a decoder, have spans of their own, of which rates, means and stages are.
    private var isWhole: Bool { self.record.segment.merged == nil && !self.record.isOfDecoders }

    /// The same for a directory, with the files that are written second by second.
    ///
    /// - Throws: if a file cannot be read, or if the run has not ended.
    package init(directory: String) throws(ResultError) {
        guard !directory.hasSuffix(".partial") else {
            throw ResultError(
                path: directory,
                reason: "is of a run that has not ended; its files differ by some seconds"
            )
        }
        self.init(try RunJSON.read(directory: directory))
        self.checkStreams(
            TimelineRow.read(try TextFile.text(directory + "/timeline.csv")),
            HistogramLog.read(try TextFile.text(directory + "/latency.hlog"))
        )
    }

    private mutating func expect(_ holds: Bool, _ words: @autoclosure () -> String) {
        if !holds { self.broken.append(words()) }
    }

    private static func name(_ metric: Metric) -> String {
        metric.labels.isEmpty ? metric.name : "\(metric.name){\(metric.labels)}"
    }

    // MARK: - Each metric

    private mutating func check(_ metric: Metric) {
        let name = Self.name(metric)
        switch metric.reading {
        case .duration(let reading): self.check(reading, reading.decodedValues(), name)
        case .counter(let reading):
            self.expect(reading.value >= 0 && reading.value.isFinite, "\(name) is \(reading.value)")
            guard self.isWhole, let rate = reading.rate, let seconds = self.seconds(of: metric.labels[Labels.stage])
            else { return }
            // Operations outside the measured phase are in the value, and not in the rate.
            let counted = rate * seconds
            let most = reading.value * 1.000_001 + 1
            self.expect(counted <= most, "\(name): \(rate)/s for \(seconds) s are more than its value \(reading.value)")
        case .gauge(let reading):
            // The mean of the host is over the whole run, and its extremes are of whole seconds.
            guard self.isWhole, !metric.name.hasPrefix("host_"), let least = reading.min, let most = reading.max else {
                return
            }
            let inner = [reading.value, reading.mean, reading.median].compactMap(\.self)
            let slack = Swift.max(abs(least), abs(most)) * 1e-6
            let isInside = inner.allSatisfy { $0 >= least - slack && $0 <= most + slack }
            self.expect(isInside, "\(name) is not between its min and max")
        }
    }

    private mutating func check(_ reading: DurationReading, _ values: DurationValues?, _ name: String) {
        let rising = [reading.min] + DurationReading.percentiles.map { reading[keyPath: $0.field] } + [reading.max]
        self.expect(zip(rising, rising.dropFirst()).allSatisfy { $0 <= $1 }, "\(name): a percentile is above the next")
        // The mean is that of buckets, each in place of values that differ by less than a hundredth.
        let isInside = reading.min * 0.99 <= reading.mean && reading.mean <= reading.max * 1.01
        self.expect(isInside, "\(name): the mean is not between min and max")
        self.expect((reading.unanswered?.count ?? 0) <= reading.count, "\(name): more without an answer than there are")
        guard reading.histogram != nil else { return }
        guard let values, var own = DurationReading(values) else {
            return self.broken.append("\(name): its histogram is damaged, or without the values that have no answer")
        }
        own.bound(min: reading.min, max: reading.max)
        for (figure, _, path) in DurationReading.percentiles
        where abs(own[keyPath: path] - reading[keyPath: path]) > 1e-9 {
            self.broken.append(
                "\(name): \(figure) is \(reading[keyPath: path]), and \(own[keyPath: path]) by its histogram"
            )
        }
        self.expect(own.count == reading.count, "\(name): count is \(reading.count), and \(own.count) by its histogram")
    }

    /// The time that rates are of: the measured phase, or a stage.
    private func seconds(of stage: String?) -> Double? {
        let spans = self.record.stages.filter { own in stage.map { own.name == $0 } ?? own.measured }
        return spans.isEmpty ? nil : spans.reduce(0) { $0 + $1.durationSeconds }
    }

    // MARK: - Between metrics

    /// The sum of a counter over its labels, without stages; `nil` without any.
    private func sum(_ kind: MetricDefinition, _ labels: Labels = [:]) -> Double? {
        self.record.metrics.counters([kind]) { $0.contains(labels) && $0[Labels.stage] == nil }.sum { $0.value }
    }

    /// Durations of whole operations, all of them or those that were answered.
    private func operations(_ metric: MetricDefinition, _ part: (DurationReading) -> UInt64 = \.answered) -> Double? {
        let readings = self.record.metrics.filter {
            $0.isOf(metric) && $0.labels.isWhole() && $0.labels[Labels.stage] == nil
        }.compactMap(\.duration)
        return readings.isEmpty ? nil : readings.reduce(0) { $0 + Double(part($1)) }
    }

    private mutating func checkBooks() {
        for words in self.record.books.flatMap(\.imbalances) { self.broken.append(words) }
        for book in self.record.books {
            var labels: Labels = book.stanza.map { ["stanza": $0] } ?? ["qos": "\(book.qos ?? 0)"]
            if let group = book.group { labels = labels.adding(Labels.group, group) }
            let prefix = book.stanza == nil ? "publish" : "stanza"
            for (column, count) in [("offered", book.offered), ("sent", book.sent), ("not_sent", book.notSent)] {
                guard let count, let counted = self.sum(.named("\(prefix)_\(column)"), labels) else { continue }
                self.expect(
                    Double(count) == counted,
                    "\(book.name): \(column) is \(count), and \(counted) among the metrics"
                )
            }
        }
    }

    private mutating func checkDeliveries() {
        let deliveries: [(String, (Books) -> UInt64?)] = [
            ("expected", \.expected), ("received", \.received), ("lost", \.lost),
            ("outstanding", \.deliveryOutstanding),
        ]
        for (column, count) in deliveries {
            // Stanzas have no such counter of what came.
            let known = self.record.books.filter { $0.stanza == nil || column != "received" }.compactMap(count)
            guard !known.isEmpty, let counted = self.sum(.named("delivery_\(column)")) else { continue }
            let all = known.reduce(0) { $0 + Double($1) }
            self.expect(all == counted, "the books have \(all) \(column), and the metrics \(counted)")
        }
        if let lost = self.record.ledger.lost, let counted = self.sum(.deliveryLost) {
            let all = lost.values.reduce(0) { $0 + Double($1) }
            self.expect(all == counted, "the ledger lost \(all), and the metrics have \(counted)")
        }
    }

    private mutating func checkCounts() {
        let came = self.record.books.contains { $0.stanza != nil } ? nil : self.sum(.deliveryReceived)
        let atMost: [(String, Double?, String, Double?)] = [
            (
                "answered publishes with a duration", self.operations(.publishAck), MetricDefinition.publishAcked.name,
                self.sum(.publishAcked)
            ),
            ("deliveries with a duration", self.operations(.delivery), MetricDefinition.deliveryReceived.name, came),
            (
                "deliveries in delivery_duration", self.operations(.delivery, \.count),
                MetricDefinition.deliveryExpected.name,
                self.sum(.deliveryExpected)
            ),
            ("connects", self.operations(.connect), "planned clients", self.planned),
            (
                "disconnects", self.sum(.disconnects), "connects",
                self.operations(.connect).map { $0 + (self.operations(.reconnect) ?? 0) }
            ),
        ]
        for (name, few, other, many) in atMost {
            guard let few, let many else { continue }
            self.expect(few <= many, "\(few) \(name) are more than \(many) \(other)")
        }
        if let back = self.operations(.reconnect), let counted = self.sum(.reconnects) {
            self.expect(back == counted, "reconnects is \(counted), and \(back) have a duration")
        }
        let errors = self.record.errors.reduce(0) { $0 + Double($1.count) }
        if let counted = self.sum(.errors) {
            self.expect(errors == counted, "the list has \(errors) errors, and the metrics \(counted)")
        }
    }

    // MARK: - Clients, times, the generator

    private var planned: Double? {
        self.record.groups.map { $0.reduce(0) { $0 + Double($1.clients) } }
            ?? self.record.population.map { Double($0.planned) }
    }

    private mutating func checkClients() {
        let groups = (self.record.groups ?? []).map { ($0.name, $0.clients, $0.up) }
        for (name, planned, up) in groups + (self.record.population.map { [("run", $0.planned, $0.up)] } ?? []) {
            self.expect(up ?? 0 <= planned, "\(name): \(up ?? 0) clients up of \(planned)")
        }
        let most = self.record.metrics.filter { $0.isOf(.clients) }.compactMap(\.gauge?.max).reduce(0, +)
        if let planned = self.planned { self.expect(most <= planned, "\(most) clients at once of \(planned)") }
    }

    private mutating func checkTimes() {
        guard let length = self.record.durationSeconds, self.isWhole else { return }
        var end = 0.0
        for stage in self.record.stages {
            self.expect(
                stage.durationSeconds >= 0 && stage.start >= end - 0.001,
                "\(stage.name) begins before the stage in front of it ends"
            )
            end = stage.start + stage.durationSeconds
            self.expect(end <= length + 0.001, "\(stage.name) ends at \(end) s in a run of \(length) s")
        }
        guard let findings = self.record.findings else { return }
        let spans: [(String, Double?)] = [
            ("all clients were up", findings.allUpSeconds), ("the longest silence", findings.longestSilence?.value),
            ("the worst second", findings.worstSecond.map { Double($0.second) }),
        ]
        for (name, seconds) in spans + findings.events.map({ ($0.text, $0.seconds) }) {
            self.expect(seconds ?? 0 <= length + 0.005, "\(name): \(seconds ?? 0) s in a run of \(length) s")
        }
        self.expect(findings.clientsUp ?? 0 <= findings.clientsPlanned ?? .max, "more clients up than planned")
        self.expect((0...1).contains(findings.withinObjective ?? 0), "a share of seconds is above 1")
    }

    private mutating func checkGenerator() {
        let generator = self.record.generator
        for share in generator.loopCPUShares ?? [] {
            self.expect((0...1.05).contains(share), "an event loop used \(share) of a core")
        }
        if self.isWhole, let cpu = generator.cpuSeconds, let cores = self.record.host.cores,
            let length = self.record.durationSeconds
        {
            // Counted in ticks of the kernel, and a little beyond the run.
            let most = Double(cores) * (length + 0.1) * 1.05
            self.expect(cpu <= most, "\(cpu) CPU seconds are more than \(cores) cores have in \(length) s")
        }
        for metric in self.record.metrics where metric.isOf([.hostCPUIdle, .serverThreadCPU]) {
            self.expect(metric.gauge?.max ?? 0 <= 1.1, "\(Self.name(metric)) is above a whole core or host")
        }
    }

    private mutating func checkJudgements() {
        guard let verdict = self.record.verdict else { return }
        // A server that fell silent changes no verdict.
        let reasons = verdict.reasons.count { $0.code != Verdict.Reason.silentCode }
        let (state, isValid) = (verdict.state.rawValue, verdict.state == .valid)
        self.expect(isValid == (reasons == 0), "the verdict is \(state) with \(reasons) reasons")
        guard verdict.state != .aborted, self.record.segment.count == 1 else { return }
        for result in self.record.thresholds {
            guard let threshold = try? Threshold.parse(result.expression) else { continue }
            let own = threshold.evaluate(in: self.record)
            self.expect(
                own.state == result.state,
                "'\(result.expression)' is \(result.state.rawValue), and \(own.state.rawValue) by the metrics"
            )
        }
    }

    // MARK: - The streamed files

    private mutating func checkStreams(_ rows: [TimelineRow], _ log: HistogramLog.Contents) {
        var counters: [Series: Double] = [:]
        for row in rows {
            if case .counter(let value, _) = row.reading { counters[row.series, default: 0] += value }
        }
        var histograms: [Series: Histogram] = [:]
        for entry in log.entries {
            guard let tag = HistogramLog.parse(tag: entry.tag), let own = try? Histogram(decodingV2: entry.encoded)
            else {
                self.broken.append("latency.hlog: the line at \(entry.start) s is damaged")
                continue
            }
            if tag.isMeasured { histograms[tag.series, default: Histogram()].merge(own) }
        }
        for metric in self.record.metrics where metric.labels[Labels.stage] == nil {
            let series = metric.series
            switch metric.reading {
            case .duration(let reading):
                guard let all = reading.decodedHistogram() else { continue }
                let logged = histograms[series] ?? Histogram()
                let isSame = Self.buckets(all) == Self.buckets(logged)
                self.expect(isSame, "latency.hlog has \(logged.count) of \(all.count) \(Self.name(metric)), or others")
            case .counter(let reading) where metric.unit != "seconds" && !metric.name.hasPrefix("server_"):
                guard let counted = counters[series] else { continue }
                self.expect(
                    counted == reading.value,
                    "timeline.csv has \(counted) of \(reading.value) \(Self.name(metric))"
                )
            case .counter, .gauge: continue
            }
        }
    }

    private static func buckets(_ histogram: Histogram) -> [Int64: UInt64] {
        var counts: [Int64: UInt64] = [:]
        histogram.forEachBucket { counts[$0] = $1 }
        return counts
    }
}
