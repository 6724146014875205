import Measurement
import Report

/// Segments that become one result: read, checked, added, judged, written and shown.
struct MergeSession {
    private let options: MergeOptions
    private let screen: ProgressScreen

    init(_ options: MergeOptions) {
        self.options = options
        self.screen = ProgressScreen(quiet: options.quiet, json: options.json, plain: options.isPlain)
    }

    /// `clamor merge`.
    func perform() -> ExitStatus {
        if let problem = self.options.files.problem {
            self.screen.warn(problem)
            return .cannotCreate
        }
        guard let merged = self.merged() else { return .dataError }
        do throws(ResultError) {
            let directory: ResultDirectory
            if let path = self.options.outputDirectory {
                directory = try ResultDirectory.create(path)
            } else {
                directory = try ResultDirectory.createDefault(name: "merge", startedAt: merged.startedAt)
            }
            return self.finish(merged, in: directory)
        } catch {
            self.screen.warn("--out \(error)")
            return .cannotCreate
        }
    }

    /// All segments as one; where they are not, that is told.
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
        let record = merged.record
        var files: String?
        do throws(ResultError) {
            let writer = try RunWriter(directory, record: record, startedAt: merged.startedAt)
            for interval in merged.intervals { try writer.append(interval) { record } }
            files = try writer.finish(record, clients: merged.clients)
        } catch {
            self.screen.warn("\(error)")
        }
        if self.options.json {
            if let text = try? RunJSON.text(record) { self.screen.write(text) }
        } else {
            self.screen.show(Summary(record, files: files, style: self.screen.style).text)
        }
        if let problem = self.options.files.write(record, isStrict: self.options.strict) {
            self.screen.warn(problem)
            files = nil
        }
        guard files != nil else { return .cannotCreate }
        let status = Self.status(record, isStrict: self.options.strict)
        if let line = Self.lastWord(status, record) { self.screen.warn(line) }
        return status
    }

    /// The first status that applies, in the order of the design.
    static func status(_ record: RunRecord, isStrict: Bool) -> ExitStatus {
        let state = record.verdict?.state
        if state == .aborted {
            let codes = Set(record.verdict?.reasons.map(\.code) ?? [])
            if !codes.isDisjoint(with: ["no-connection", "connections-lost"]) { return .unavailable }
            // Whatever else ended a segment before its plan did it is not all that was to be measured.
            return .interrupted
        }
        if isStrict {
            if state == .unreconciled { return .unreconciled }
            if state == .generatorLimited { return .generatorLimited }
        }
        return record.thresholds.allSatisfy(\.ok) ? .success : .thresholdFailed
    }

    private static func lastWord(_ status: ExitStatus, _ record: RunRecord) -> String? {
        switch status {
        case .success, .usage, .dataError, .cannotCreate: return nil
        case .unavailable, .interrupted, .unreconciled, .generatorLimited: return record.verdict?.reasons.first?.text
        case .thresholdFailed:
            let failed = record.thresholds.filter { !$0.ok }.map { "'\($0.expression)'" }
            return "threshold failed: " + failed.joined(separator: ", ")
        }
    }
}
