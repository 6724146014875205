import Measurement

/// The intervals of a run, read back from its time line and its histogram log.
enum SegmentTimeline {
    /// All of them, in their order.
    ///
    /// - Throws: where one of the files is not there, was cut, or does not have the intervals of the other.
    static func read(_ directory: String) throws(ResultError) -> [TimelineInterval] {
        let (timelinePath, logPath) = (directory + "/timeline.csv", directory + "/latency.hlog")
        let timeline = try TextFile.text(timelinePath)
        let log = try TextFile.text(logPath)
        guard let sizes = HistogramLog.segmentFiles(log) else {
            throw ResultError(path: logPath, reason: "is cut: a segment's log ends with the sizes of its other files")
        }
        for name in sizes.keys.sorted() {
            let path = "\(directory)/\(name)"
            guard let size = OutputFile.size(path) else { throw ResultError(path: path, reason: "does not exist") }
            guard size == sizes[name] else {
                throw ResultError(path: path, reason: "has \(size) bytes and had \(sizes[name] ?? 0); it has lost some")
            }
        }
        guard MetricsCSV.isTimeline(timeline), timeline.utf8.last == 0x0A else {
            throw ResultError(path: timelinePath, reason: "is cut, or no time line")
        }
        let rows = TimelineRow.read(timeline)
        // The header is no row.
        guard rows.count == timeline.wholeLines.count - 1 else {
            throw ResultError(path: timelinePath, reason: "has lines that are no rows of a time line")
        }
        guard let logged = HistogramLog.intervals(log) else {
            throw ResultError(path: logPath, reason: "is cut, or no histogram log")
        }
        let groups = self.groups(rows)
        guard !groups.isEmpty, groups.map({ $0[0].second }) == logged.map(\.second) else {
            throw ResultError(
                path: timelinePath,
                reason: "has \(groups.count) intervals, and latency.hlog \(logged.count); they are not those of one run"
            )
        }
        var intervals: [TimelineInterval] = []
        for (rows, logged) in zip(groups, logged) {
            guard let interval = self.interval(rows, logged.entries) else {
                throw ResultError(path: logPath, reason: "has a damaged histogram in second \(logged.second)")
            }
            intervals.append(interval)
        }
        return intervals
    }

    private static func groups(_ rows: [TimelineRow]) -> [[TimelineRow]] {
        rows.reduce(into: []) { groups, row in
            if row.beginsInterval { groups.append([]) }
            groups[groups.count - 1].append(row)
        }
    }

    private static func interval(_ rows: [TimelineRow], _ entries: [HistogramLog.Entry]) -> TimelineInterval? {
        var lanes: [TimelineInterval.Lane] = []
        var histograms: [Series: Histogram] = [:]
        for entry in entries {
            guard let parts = HistogramLog.parse(tag: entry.tag[...]),
                let histogram = try? Histogram(decodingV2: entry.encoded), let max = histogram.max
            else { return nil }
            var labels = Dictionary(parts.labels.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
            let isUnmeasured = labels.removeValue(forKey: HistogramLog.unmeasured.key) == HistogramLog.unmeasured.value
            let series = Series(name: parts.name, labels: Labels(labels))
            lanes.append(
                TimelineInterval.Lane(
                    name: series.name,
                    labels: series.labels,
                    measured: !isUnmeasured,
                    count: histogram.count,
                    max: Double(max) / 1e9,
                    histogram: entry.encoded
                )
            )
            histograms[series, default: Histogram()].merge(histogram)
        }
        var metrics: [Metric] = []
        var seconds = entries.first?.length ?? 1
        for row in rows {
            if let length = row.length { seconds = length }
            let reading: Metric.Reading
            switch row.reading {
            case .duration(let min, let max, let unanswered, let bounds):
                guard let histogram = histograms[row.series], var duration = DurationReading(histogram) else {
                    return nil
                }
                duration.bound(min: min, max: max)
                (duration.unanswered, duration.bounds) = (unanswered, bounds)
                reading = .duration(duration)
                for place in lanes.indices where lanes[place].isOf(row.series) {
                    lanes[place].max = Swift.min(lanes[place].max, max)
                }
            case .counter(let value, let rate):
                reading = .counter(CounterReading(value: value, rate: rate))
            case .gauge(let value): reading = .gauge(GaugeReading(value: value))
            }
            metrics.append(Metric(name: row.series.name, labels: row.series.labels, unit: row.unit, reading: reading))
        }
        return TimelineInterval(
            second: rows[0].second,
            phase: rows[0].phase,
            seconds: seconds,
            metrics: metrics,
            lanes: lanes
        )
    }
}

extension TimelineInterval.Lane {
    fileprivate func isOf(_ series: Series) -> Bool { self.name == series.name && self.labels == series.labels }
}
