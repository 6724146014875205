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
        let logged = HistogramLog.read(log)
        guard logged.isWhole else { throw ResultError(path: logPath, reason: "is cut, or no histogram log") }
        let groups = rows.byInterval
        guard !groups.isEmpty, groups.map({ $0[0].second }) == logged.intervals.map(\.second) else {
            throw ResultError(
                path: timelinePath,
                reason:
                    "has \(groups.count) intervals, and latency.hlog \(logged.intervals.count); "
                    + "they are not those of one run"
            )
        }
        var intervals: [TimelineInterval] = []
        for (rows, (second, entries)) in zip(groups, logged.intervals) {
            guard let interval = self.interval(rows, logged.entries[entries]) else {
                throw ResultError(path: logPath, reason: "has a damaged histogram in second \(second)")
            }
            intervals.append(interval)
        }
        return intervals
    }

    private static func interval(
        _ rows: [TimelineRow],
        _ entries: ArraySlice<HistogramLog.Entry>
    ) -> TimelineInterval? {
        var lanes: [TimelineInterval.Lane] = []
        var histograms: [Series: Histogram] = [:]
        for entry in entries {
            guard let (series, isMeasured) = HistogramLog.parse(tag: entry.tag),
                let histogram = try? Histogram(decodingV2: entry.encoded), let max = histogram.max
            else { return nil }
            lanes.append(
                TimelineInterval.Lane(
                    name: series.name,
                    labels: series.labels,
                    measured: isMeasured,
                    count: histogram.count,
                    max: Double(max) / 1e9,
                    histogram: entry.encoded
                )
            )
            histograms[series, default: Histogram()].merge(histogram)
        }
        var metrics: [Metric] = []
        for row in rows {
            guard case .duration(let min, let max, let unanswered, let bounds) = row.reading else {
                metrics += [row.level].compactMap(\.self)
                continue
            }
            guard let histogram = histograms[row.series], var duration = DurationReading(histogram) else { return nil }
            duration.bound(min: min, max: max)
            (duration.unanswered, duration.bounds) = (unanswered, bounds)
            metrics.append(Metric(duration: row.series.name, labels: row.series.labels, reading: duration))
            for place in lanes.indices where lanes[place].series == row.series {
                lanes[place].max = Swift.min(lanes[place].max, max)
            }
        }
        return TimelineInterval(
            second: rows[0].second,
            phase: rows[0].phase,
            seconds: rows.compactMap(\.length).last ?? entries.first?.length ?? 1,
            metrics: metrics,
            lanes: lanes
        )
    }
}
