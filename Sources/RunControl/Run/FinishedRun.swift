package import Ledger
public import Measurement
package import Report
import Scenario

/// A run that is over, with all that its places take from it.
public struct FinishedRun: Sendable {
    /// All its results; `Codable`, in the form of `run.json`.
    public package(set) var record: RunRecord
    /// A row for each client, where they are wanted.
    package var rows: [ClientRow]?
    /// A segment's part of the ledger of all segments.
    package var ledger: SegmentLedger?
    /// Lines for people that are no figures.
    public package(set) var remarks: [String] = []
    /// The directory of its results; `nil` if they could not be written.
    public package(set) var directory: String?

    package init(_ record: RunRecord, directory: String?) {
        self.record = record
        self.directory = directory
    }
}

/// A place that takes a finished run, behind its result directory; none of them decides the exit status.
protocol RunSink {
    /// - Returns: why it has not taken the run.
    func take(_ run: FinishedRun) -> SinkProblem?
}

enum SinkProblem {
    /// The results are safe without it.
    case warning(String)
    /// The user asked for it.
    case failure(String)
}

/// The page in the result directory.
struct PageSink: RunSink {
    func take(_ run: FinishedRun) -> SinkProblem? {
        run.directory.flatMap { PageFiles.write(run.record, in: $0) }.map { .warning($0) }
    }
}

/// Standard output, then the lines for standard error.
struct ScreenSink: RunSink {
    let screen: ProgressScreen

    func take(_ run: FinishedRun) -> SinkProblem? {
        if self.screen.isJSON {
            if let text = try? RunJSON.text(run.record) { self.screen.write(text) }
        } else {
            self.screen.show(run.record, files: run.directory)
        }
        for line in run.remarks { self.screen.warn(line) }
        return nil
    }
}

/// The files of `--junit` and `--summary-md`, and the history.
struct ReportSink: RunSink {
    let files: ReportFileOptions
    let isStrict: Bool

    func take(_ run: FinishedRun) -> SinkProblem? {
        do throws(ResultError) {
            let junit = JUnitXML(run.record, isStrict: self.isStrict)
            try self.files.write(junit, markdown: RunMarkdown.text(run.record))
            if let directory = self.files.history { try HistoryFile.add(run.record, to: directory) }
            return nil
        } catch {
            return .failure("\(error)")
        }
    }
}
