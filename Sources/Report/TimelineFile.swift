import FoundationEssentials
package import Measurement

/// One row of `timeline.csv`, read back.
struct TimelineRow {
    enum Reading {
        case duration(min: Double, max: Double, unanswered: UnansweredReading?, bounds: [String])
        case counter(value: Double, rate: Double?)
        case gauge(Double)
    }

    var second: Int
    var phase: String
    var series: Series
    var unit: String?
    var reading: Reading
    /// The length of its interval, to the millisecond; only a counter that moved gives it.
    var length: Double?
    var beginsInterval: Bool

    /// The rows that were written completely; the header and invalid lines are skipped.
    static func read(_ text: String) -> [TimelineRow] {
        var rows: [TimelineRow] = []
        var split = TimelineSplit()
        var text = text
        text.withUTF8 { bytes in
            var scanner = TimelineScanner()
            scanner.scan(bytes) { scanner, row in
                let head = scanner.heads[row.head]
                let reading: Reading =
                    switch head.kind {
                    case .duration:
                        .duration(min: row.min, max: row.max, unanswered: row.unanswered, bounds: row.bounds)
                    case .counter: .counter(value: row.value, rate: row.rate.isNaN ? nil : row.rate)
                    case .gauge: .gauge(row.value)
                    }
                rows.append(
                    TimelineRow(
                        second: row.second,
                        phase: scanner.phases[row.phase],
                        series: head.series,
                        unit: head.unit,
                        reading: reading,
                        length: row.length,
                        beginsInterval: split.begins(row, head.kind)
                    )
                )
            }
        }
        return rows
    }
}

extension TimelineRow {
    /// The counter or the gauge; `nil` of a duration, whose histogram is elsewhere.
    var level: Metric? {
        let reading: Metric.Reading
        switch self.reading {
        case .duration: return nil
        case .counter(let value, let rate): reading = .counter(CounterReading(value: value, rate: rate))
        case .gauge(let value): reading = .gauge(GaugeReading(value: value))
        }
        return Metric(name: self.series.name, labels: self.series.labels, unit: self.unit, reading: reading)
    }
}

extension [TimelineRow] {
    var byInterval: [[TimelineRow]] {
        self.reduce(into: []) { intervals, row in
            if row.beginsInterval { intervals.append([]) }
            intervals[intervals.count - 1].append(row)
        }
    }
}

extension TimelineSplit {
    fileprivate mutating func begins(_ row: TimelineScanner.Row, _ kind: Metric.Kind) -> Bool {
        self.begins(second: row.second, phase: row.phase, head: row.head, isDuration: kind == .duration)
    }
}

extension Timeline {
    /// Reads the time line of a run.
    ///
    /// Lines that were cut or are no rows are skipped.
    ///
    /// - Parameter directory: a finished one, or a partial one for what was written until now.
    /// - Throws: if it has no readable `timeline.csv`.
    package init(reading directory: String) throws(ResultError) {
        let data = try TextFile.data(directory + "/timeline.csv")
        self = data.withUnsafeBytes { Timeline(parsing: $0.bindMemory(to: UInt8.self)) }
    }

    package init(text: String) {
        var text = text
        self = text.withUTF8 { Timeline(parsing: $0) }
    }

    private init(parsing bytes: UnsafeBufferPointer<UInt8>) {
        self.init()
        var scanner = TimelineScanner()
        var split = TimelineSplit()
        var timeline = Timeline()
        // NaN where no counter moved.
        var lengths: [Double] = []
        scanner.scan(bytes) { scanner, row in
            while timeline.columns.count < scanner.heads.count {
                timeline.columns.append(Column(scanner.heads[timeline.columns.count]))
            }
            if split.begins(row, scanner.heads[row.head].kind) {
                timeline.seconds.append(row.second)
                timeline.phases.append(scanner.phases[row.phase])
                lengths.append(.nan)
            }
            if let length = row.length, lengths[lengths.count - 1].isNaN { lengths[lengths.count - 1] = length }
            timeline.columns[row.head].add(row, interval: timeline.seconds.count - 1)
        }
        // Series of invalid rows alone.
        timeline.columns.removeAll { $0.values.isEmpty }
        for place in timeline.columns.indices { timeline.columns[place].fill(upTo: timeline.seconds.count) }
        timeline.lengths = Self.completing(lengths, timeline.seconds)
        self = timeline
    }

    /// An interval in which no counter moved has what the others of its second leave of the time to the next second.
    private static func completing(_ lengths: [Double], _ seconds: [Int]) -> [Double] {
        var complete = lengths
        var next = seconds.count
        while next > 0 {
            let end = next
            let second = seconds[end - 1]
            var begin = end - 1
            while begin > 0, seconds[begin - 1] == second { begin -= 1 }
            next = begin
            let unknown = (begin..<end).filter { lengths[$0].isNaN }
            guard !unknown.isEmpty else { continue }
            let longest = second >= IntervalMerger.fineSeconds ? IntervalMerger.coarseSeconds : 1
            // The first coarse interval, and one that a stage began in, may be shorter.
            let gap = end < seconds.count ? Swift.min(Swift.max(seconds[end] - second, 1), longest) : 1
            let rest = (begin..<end).reduce(Double(gap)) { $0 - (lengths[$1].isNaN ? 0 : lengths[$1]) }
            for place in unknown { complete[place] = Swift.max(0, rest) / Double(unknown.count) }
        }
        return complete
    }
}

extension Timeline.Column {
    fileprivate init(_ head: TimelineScanner.Head) {
        self.init(name: head.series.name, labels: head.series.labels, unit: head.unit, kind: head.kind)
    }

    fileprivate mutating func add(_ row: TimelineScanner.Row, interval: Int) {
        self.fill(upTo: interval)
        guard self.kind == .duration else { return self.values.append(row.value) }
        if row.bounds.contains("p99") { self.bounds.insert(interval) }
        self.values.append(row.count)
        self.p50.append(row.p50)
        self.p99.append(row.p99)
        self.max.append(row.max)
    }

    mutating func fill(upTo count: Int) {
        while self.values.count < count {
            self.values.append(.nan)
            guard self.kind == .duration else { continue }
            self.p50.append(.nan)
            self.p99.append(.nan)
            self.max.append(.nan)
        }
    }
}
