import FoundationEssentials
package import Measurement

/// A run as a history keeps it: a file of its own, which later runs and other hosts leave alone.
package enum HistoryFile {
    /// The end of its name.
    static let suffix = ".run.json"

    /// Makes the directory of a history, if need be.
    package static func prepare(_ directory: String) throws(ResultError) {
        do {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        } catch {
            throw ResultError(path: directory, reason: "cannot be made: \(error)")
        }
        if let problem = ReportFile.problem("\(directory)/draft") {
            throw ResultError(path: directory, reason: problem)
        }
    }

    /// Adds a run to the history in a directory.
    ///
    /// - Returns: the path of the file, whose name begins with the start of the run.
    @discardableResult
    package static func add(_ record: RunRecord, to directory: String) throws(ResultError) -> String {
        try self.prepare(directory)
        let start = record.startedAt.filter { $0.isASCII && ($0.isNumber || $0 == "T" || $0 == "Z") }
        let path = "\(directory)/\(start)-\(PlanIdentity(record).hash.prefix(8))\(self.suffix)"
        try OutputFile.replace(path, with: try RunJSON.text(self.kept(record)))
        return path
    }

    /// The parts that a trend needs: plan, titles, hosts, verdict, errors, and the metrics that are followed.
    private static func kept(_ record: RunRecord) -> RunRecord {
        var kept = record
        kept.metrics = record.metrics.filter {
            MetricDefinition.of($0.name)?.limit != nil && $0.labels[Labels.stage] == nil
        }
        kept.errors = record.errors.map { error in
            var error = error
            error.example = ""
            return error
        }
        (kept.stages, kept.thresholds, kept.books, kept.clients) = ([], [], [], [:])
        (kept.notes, kept.findings, kept.slowest) = (nil, nil, nil)
        return kept
    }
}
