import FoundationEssentials
package import Measurement

/// Rebuilds the results of a run that was cut by SIGKILL or a power cut, from its files.
///
/// Plan and host come from its first `run.json`, histograms from `latency.hlog`, counters and gauges from
/// `timeline.csv`. Books, ledger and the spread over clients are absent: they are settled only at the end of a run.
package enum Rebuild {
    /// Rebuilds the record of a partial directory, and writes `run.json` and `metrics.csv` into it.
    ///
    /// While the run is still in progress no file is written: the record is then a view of the running run.
    ///
    /// - Parameters:
    ///   - partial: `DIR.partial`.
    ///   - findings: what the record and the time line show.
    /// - Returns: the record, its verdict `aborted`.
    /// - Throws: when there is no readable `run.json`, or when the results cannot be written.
    package static func run(
        partial: String,
        findings: (RunRecord, Timeline) -> FindingsRecord? = { _, _ in nil }
    ) throws(ResultError) -> RunRecord {
        let isLive = ResultDirectory.isLive(partial)
        var record = try self.record(partial: partial, isLive: isLive)
        if let timeline = try? Timeline(reading: partial) { record.findings = findings(record, timeline) }
        if !isLive { try RunWriter.writeResults(record, in: partial) }
        return record
    }

    private static func record(partial: String, isLive: Bool) throws(ResultError) -> RunRecord {
        var record = try RunJSON.read(directory: partial)
        let logText = try self.textIfThere(partial + "/latency.hlog")
        var log = HistogramLog.read(logText)
        if log.lastInterval == nil { log.entries = [] }
        var rows = TimelineRow.read(try self.textIfThere(partial + "/timeline.csv"))
        // The time line is written first; what it has beyond the log's last end mark was cut inside an interval.
        if !logText.isEmpty { rows.removeAll { $0.second > log.lastInterval ?? -1 } }

        let history = RunHistory(rows: rows, log: log)
        record.schema = RunRecord.currentSchema
        record.durationSeconds = history.end
        record.stages = history.stages
        record.metrics = history.metrics
        record.errors = history.errors(startedAt: record.startedAt, known: record.errors)
        record.books = []
        record.clients = [:]
        record.thresholds = record.thresholds.map { result in
            // Which stage a figure was of is not in the time line.
            guard let threshold = try? Threshold.parse(result.expression), threshold.labels[Labels.stage] == nil else {
                return result
            }
            return threshold.evaluate(in: record)
        }
        record.verdict = self.verdict(after: history.end, isLive: isLive)
        return record
    }

    private static func verdict(after seconds: Double?, isLive: Bool) -> Verdict {
        let length = seconds.map { "after \(Words.duration($0))" } ?? "before its first second was over"
        var verdict = Verdict()
        verdict.add(
            .aborted,
            isLive
                ? Verdict.Reason(
                    code: "still-running",
                    text: "the run is still in progress; these are its results \(length)"
                )
                : Verdict.Reason(
                    code: "cut",
                    text:
                        "the run was cut \(length), without a drain; these results were rebuilt from what it had written"
                )
        )
        return verdict
    }

    private static func textIfThere(_ path: String) throws(ResultError) -> String {
        FileManager.default.fileExists(atPath: path) ? try TextFile.text(path) : ""
    }
}
