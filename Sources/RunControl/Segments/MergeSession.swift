import LoadEngine
import Measurement
import Report
package import RunResult
package import Scenario

/// Merges segments into one result: reads, checks, adds, judges, writes and shows them.
package struct MergeSession {
    let options: MergeOptions
    private var screen: ProgressScreen { ProgressScreen(self.options) }

    package init(_ options: MergeOptions) { self.options = options }

    package func perform() -> ExitStatus {
        do throws(RunRefusal) {
            try self.options.files.check()
            guard let merged = self.merged() else { return .dataError }
            try Self.check(self.options.thresholds, merged.record)
            let path = self.options.outputDirectory
            return self.finish(merged, in: try .open(path, name: "merge", startedAt: merged.startedAt))
        } catch {
            return self.screen.refuse(error)
        }
    }

    /// Refuses thresholds on metrics that the merged segments do not have, as a run does.
    private static func check(_ thresholds: [String], _ record: RunRecord) throws(RunRefusal) {
        for sentence in thresholds {
            guard let name = (try? Threshold.parse(sentence))?.name,
                let problem = AbsentMetric(name).problem(in: record)
            else { continue }
            throw RunRefusal("--threshold: '\(sentence)': \(problem.text(isFile: false))")
        }
    }

    /// All segments as one; reports the error if they do not belong together.
    ///
    /// - Parameters:
    ///   - lost: the segments without results.
    ///   - part: the segment that they share; `nil`: they are the whole run.
    ///   - broken: the threshold that ended the run.
    ///   - watched: by server watches beside the segments.
    /// - Returns: `nil` if they do not belong together.
    func merged(
        without lost: [LostSegment] = [],
        as part: PlanSegment? = nil,
        broken: String? = nil,
        watched: WatchedServers = WatchedServers()
    ) -> MergedRun? {
        do throws(SegmentSet.Refusal) {
            let directories = self.options.directories
            let set =
                if let part {
                    try SegmentSet(directories, as: SegmentRecord(index: part.index + 1, count: part.count))
                } else {
                    try SegmentSet(directories, without: lost)
                }
            return MergedRun(
                set,
                command: self.options.redactedCommand,
                thresholds: self.options.thresholds,
                broken: broken,
                watched: watched
            )
        } catch {
            for line in error.lines { self.screen.warn(line) }
            return nil
        }
    }

    /// Writes and shows the result.
    ///
    /// `clock`: of a segment whose clock was corrected.
    func finish(_ merged: MergedRun, in directory: ResultDirectory, clock: ClockRecord? = nil) -> ExitStatus {
        var record = merged.record
        if record.segment.isPart {
            record.segment.thresholds = self.options.thresholds
            for place in record.segment.processes?.indices ?? 0..<0 where clock != nil {
                guard record.segment.processes?[place].clock != nil else { continue }
                record.segment.processes?[place].clock = clock
            }
        }
        let files = self.screen.attempt {
            let writer = try RunWriter(directory, record: record, startedAt: merged.startedAt)
            for interval in merged.intervals { try writer.append(interval) { merged.record } }
            record.take(record.findings(in: try writer.wholeTimeline()))
            return try writer.finish(record, clients: merged.clients, ledger: merged.ledger)
        }
        return self.screen.end(FinishedRun(record, directory: files), self.options.results)
    }
}
