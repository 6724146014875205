import Measurement
import Report
import RunResult

/// Merges segments into one result: reads, checks, adds, judges, writes and shows them.
struct MergeSession {
    private let options: MergeOptions
    private let screen: ProgressScreen

    init(_ options: MergeOptions) {
        self.options = options
        self.screen = ProgressScreen(options)
    }

    /// `clamor merge`.
    func perform() -> ExitStatus {
        do throws(RunRefusal) {
            try self.options.files.check()
            guard let merged = self.merged() else { return .dataError }
            let path = self.options.outputDirectory
            return self.finish(merged, in: try .open(path, name: "merge", startedAt: merged.startedAt))
        } catch {
            return self.screen.refuse(error)
        }
    }

    /// All segments as one; reports the error if they do not belong together.
    func merged() -> MergedRun? {
        do throws(SegmentSet.Refusal) {
            let set = try SegmentSet(self.options.directories)
            return MergedRun(set, command: self.options.redactedCommand, thresholds: self.options.thresholds)
        } catch {
            for line in error.lines { self.screen.warn(line) }
            return nil
        }
    }

    /// Writes and shows the result.
    func finish(_ merged: MergedRun, in directory: ResultDirectory) -> ExitStatus {
        var record = merged.record
        var files: String?
        do throws(ResultError) {
            let writer = try RunWriter(directory, record: record, startedAt: merged.startedAt)
            for interval in merged.intervals { try writer.append(interval) { merged.record } }
            record.findings = record.findings(in: try writer.wholeTimeline())
            files = try writer.finish(record, clients: merged.clients)
        } catch {
            self.screen.warn("\(error)")
        }
        return self.screen.show(record, files, self.options.files, isStrict: self.options.strict)
    }
}
