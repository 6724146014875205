package import Ledger
package import Measurement

/// Writes the files of one run: what happened second by second as it happens, the rest at the end.
///
/// After each call all of it is with the kernel: a SIGKILL of this process loses what came since.
package final class RunWriter {
    package let directory: ResultDirectory

    /// Seconds between two writes of `run.json`.
    private static let checkpointSeconds = 30

    private let timeline: OutputFile
    private let log: OutputFile
    private var merger = IntervalMerger()
    private var nextCheckpoint = RunWriter.checkpointSeconds
    /// Seconds from the start of the run to the end of the last interval in the log.
    private var logged = 0.0

    /// Writes `run.json` for the first time and begins the files that grow.
    ///
    /// - Parameters:
    ///   - directory: just made.
    ///   - record: plan and host, no metrics yet.
    ///   - startedAt: CLOCK_REALTIME nanoseconds at second 0 of the run.
    /// - Throws: when a file cannot be written.
    package init(_ directory: ResultDirectory, record: RunRecord, startedAt: Int64) throws(ResultError) {
        self.directory = directory
        try OutputFile.replace(directory.file("run.json"), with: RunJSON.text(record))
        self.timeline = try OutputFile(path: directory.file("timeline.csv"))
        self.log = try OutputFile(path: directory.file("latency.hlog"))
        try self.timeline.write(MetricsCSV.timelineHeader)
        try self.log.write(HistogramLog.header(startedAt: startedAt))
    }

    /// Writes what came in one interval, and every 30 s `run.json`.
    ///
    /// - Parameters:
    ///   - interval: the next one; beyond an hour ten of them are written as one.
    ///   - record: the run so far, called only when it is written.
    /// - Throws: when a file cannot be written.
    package func append(_ interval: TimelineInterval, record: () -> RunRecord) throws(ResultError) {
        for complete in self.merger.add(interval) { try self.write(complete) }
        guard interval.second + 1 >= self.nextCheckpoint else { return }
        self.nextCheckpoint = interval.second + 1 + Self.checkpointSeconds
        try OutputFile.replace(self.directory.file("run.json"), with: RunJSON.text(record()))
    }

    /// Writes the last interval, and reads the time line of the whole run.
    package func wholeTimeline() throws(ResultError) -> Timeline {
        for interval in self.merger.flush() { try self.write(interval) }
        return try Timeline(reading: self.directory.partial)
    }

    /// Writes the results and gives the directory its final name.
    ///
    /// - Parameters:
    ///   - record: the whole run.
    ///   - clients: for `clients.csv`; `nil` if it was not requested.
    ///   - ledger: for a segment's `ledger.csv`; `nil` if the segment's own ledger suffices.
    /// - Returns: the directory that holds them.
    /// - Throws: when a file cannot be written; the directory then keeps its partial name.
    package func finish(
        _ record: RunRecord,
        clients: [ClientRow]? = nil,
        ledger: SegmentLedger? = nil
    ) throws(ResultError) -> String {
        for interval in self.merger.flush() { try self.write(interval) }
        if let clients { try OutputFile.replace(self.directory.file("clients.csv"), with: ClientsCSV.text(clients)) }
        if let ledger { try LedgerCSV.write(ledger, to: self.directory.file(LedgerCSV.fileName)) }
        if record.segment.isPart {
            let names = HistogramLog.segmentFiles + (ledger == nil ? [] : [LedgerCSV.fileName])
            let sizes = names.map { ($0, OutputFile.size(self.directory.file($0)) ?? 0) }
            try self.log.write(HistogramLog.end(ofSegment: sizes))
        }
        try Self.writeResults(record, in: self.directory.partial)
        try self.directory.finish()
        return self.directory.path
    }

    private func write(_ interval: TimelineInterval) throws(ResultError) {
        try self.timeline.write(MetricsCSV.rows(interval))
        // The log comes second: its end mark confirms that the time line has the interval too.
        // Intervals of one second follow each other, and readers find each in its second.
        let second = Double(interval.second)
        let start = min(max(second, self.logged), second + 0.999)
        self.logged = start + interval.seconds
        try self.log.write(HistogramLog.lines(interval, from: start))
    }

    /// The files that follow from the record alone.
    static func writeResults(_ record: RunRecord, in directory: String) throws(ResultError) {
        try OutputFile.replace(directory + "/metrics.csv", with: MetricsCSV.text(record.metrics))
        // Last: if the final run.json exists, so do the other files.
        try OutputFile.replace(directory + "/run.json", with: RunJSON.text(record))
    }
}
