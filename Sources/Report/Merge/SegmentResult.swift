import Ledger
package import Measurement

/// One segment of a run, read back whole from its result directory.
package struct SegmentResult: Sendable {
    package let path: String
    package private(set) var record: RunRecord
    /// CLOCK_REALTIME nanoseconds at second 0.
    let startedAt: Int64
    private(set) var intervals: [TimelineInterval]
    let clients: [ClientRow]
    var ledger: SegmentLedger?

    /// The segment's own number, from 1.
    var index: Int { self.record.segment.index }
    var count: Int { self.record.segment.count }

    /// CLOCK_REALTIME nanoseconds at its end.
    var endedAt: Int64 { self.startedAt + Int64(bounded: (self.record.durationSeconds ?? 0) * 1e9) }

    /// Reads a segment and checks that it is complete.
    ///
    /// - Throws: if the run has not ended, if it is not a segment, or if its files lack measurements that `run.json`
    ///   counts.
    package static func read(_ path: String) throws(ResultError) -> SegmentResult {
        guard !path.hasSuffix(".partial"), !path.hasSuffix(".partial/") else {
            throw ResultError(
                path: path,
                reason: "is of a run in progress or an interrupted run; merge needs complete segments"
            )
        }
        let record = try RunJSON.read(directory: path)
        let file = path + "/run.json"
        guard record.segment.merged == nil || record.segment.isPart else {
            throw ResultError(path: path, reason: "is merged already; give the directories of the segments")
        }
        guard record.segment.run != nil, record.segment.plan != nil else {
            throw ResultError(path: path, reason: "is no segment of a run; give the directories of the segments")
        }
        guard record.verdict != nil, record.durationSeconds != nil else {
            throw ResultError(path: path, reason: "has not ended; merge needs complete segments")
        }
        guard let startedAt = WallClock.nanoseconds(record.startedAt) else {
            throw ResultError(path: file, reason: "started_at is '\(record.startedAt)', and no moment")
        }
        for sentence in record.segment.thresholds ?? [] where (try? Threshold.parse(sentence)) == nil {
            throw ResultError(path: file, reason: "its threshold '\(sentence)' is invalid")
        }
        let timeline = try SegmentTimeline.read(path)
        let clients = ClientsCSV.read(try TextFile.text(path + "/clients.csv"))
        let segment = SegmentResult(
            path: path,
            record: record,
            startedAt: startedAt,
            intervals: timeline,
            clients: clients ?? [],
            ledger: try self.ledger(record, path)
        )
        if clients == nil { throw ResultError(path: path + "/clients.csv", reason: "is cut, or no list of clients") }
        try segment.checkWhole()
        return segment
    }

    private static func ledger(_ record: RunRecord, _ path: String) throws(ResultError) -> SegmentLedger? {
        guard !record.pendingGroups.isEmpty else { return nil }
        let file = "\(path)/\(LedgerCSV.fileName)"
        guard let ledger = LedgerCSV.read(try TextFile.text(file)) else {
            throw ResultError(path: file, reason: "is cut, or not the ledger of its segment")
        }
        return ledger
    }

    /// Whether the streamed files add up to the record's totals.
    private func checkWhole() throws(ResultError) {
        let listed = self.record.clients.values.reduce(0) { $0 &+ $1.count }
        guard listed == self.clients.count else {
            throw ResultError(
                path: self.path + "/clients.csv",
                reason: "lists \(self.clients.count) clients of \(listed); it has lost some"
            )
        }
        var counters: [Series: Double] = [:]
        var counts: [Series: UInt64] = [:]
        for interval in self.intervals {
            for metric in interval.metrics {
                guard let value = metric.counter?.value else { continue }
                counters[metric.series, default: 0] += value
            }
            for lane in interval.lanes where lane.measured { counts[lane.series, default: 0] &+= lane.count }
        }
        for metric in self.record.metrics {
            if let reading = metric.duration {
                let values = reading.decodedValues()
                guard values?.count == reading.count else {
                    let found = reading.decodedHistogram()?.count ?? 0
                    throw self.lost("run.json", metric, "\(found)", of: "\(reading.count)")
                }
                if let wrong = RunLaws.fault(of: metric, holding: values, in: self.record) {
                    throw ResultError(path: self.path + "/run.json", reason: "has figures that do not agree: \(wrong)")
                }
            }
            // Which stage a figure was of is not in the streamed files.
            guard metric.labels[Labels.stage] == nil else { continue }
            let series = metric.series
            switch metric.reading {
            case .duration(let reading):
                let found = counts[series] ?? 0
                guard found != reading.count else { continue }
                throw self.lost("latency.hlog", metric, "\(found)", of: "\(reading.count)")
            // Time is counted in parts of a second.
            case .counter(let reading) where metric.unit != "seconds":
                guard let found = counters[series] ?? (Self.isSettled(metric) ? nil : 0), found != reading.value else {
                    continue
                }
                throw self.lost("timeline.csv", metric, Words.plain(found), of: Words.plain(reading.value))
            case .counter, .gauge: continue
            }
        }
    }

    /// Whether it is known only at the end, and not in the time line.
    private static func isSettled(_ metric: Metric) -> Bool {
        metric.name.hasPrefix("delivery_") || metric.name.hasSuffix("_unfinished")
            || Threshold.settled.contains(metric.name)
    }

    private func lost(_ file: String, _ metric: Metric, _ found: String, of all: String) -> ResultError {
        let labels = metric.labels.isEmpty ? "" : "{\(metric.labels)}"
        return ResultError(
            path: "\(self.path)/\(file)",
            reason: "holds \(found) of \(all) \(metric.name)\(labels); it has lost some"
        )
    }

    /// Event loops of different processes are different ones: `loop=2/0` is the first of segment 2, `loop=2/3/0` that
    /// of its process 3.
    func naming(loopsOf number: Int) -> SegmentResult {
        func named(_ labels: Labels) -> Labels {
            labels["loop"].map { labels.adding("loop", "\(number)/\($0)") } ?? labels
        }
        func named(_ metrics: [Metric]) -> [Metric] {
            metrics.map { metric in
                var metric = metric
                metric.labels = named(metric.labels)
                return metric
            }
        }
        var segment = self
        segment.record.metrics = named(self.record.metrics)
        segment.intervals = self.intervals.map { interval in
            var interval = interval
            interval.metrics = named(interval.metrics)
            for place in interval.lanes.indices { interval.lanes[place].labels = named(interval.lanes[place].labels) }
            return interval
        }
        return segment
    }
}

extension RunRecord {
    /// The groups whose ledgers wait for a merge; `nil` stands for the single group of a run without groups.
    var pendingGroups: [String?] {
        guard let groups = self.groups else { return self.ledger.pending == true ? [nil] : [] }
        return groups.filter { $0.ledger.pending == true }.map(\.name)
    }
}
