import Measurement
import Pages
import Report
import RunControl
import RunResult
import Scenario

/// Shows results again, and makes pages of them.
struct ReportSession {
    let options: ReportOptions
    private var screen: ProgressScreen { ProgressScreen(self.options) }

    func perform() -> ExitStatus {
        guard self.screen.attempt({ try self.options.files.check() }) != nil else { return .cannotCreate }
        return self.screen.attempt {
            let directory = self.options.directory
            if self.options.checks { return self.check(try RunLaws(directory: directory)) }
            let record = try self.read(directory)
            try self.show(record)
            return self.writePage { PageFiles.write(record, in: directory, to: $0) }
        } ?? .dataError
    }

    private func check(_ laws: RunLaws) -> ExitStatus {
        for line in laws.broken { self.screen.warn(line) }
        if laws.broken.isEmpty { self.screen.write("All figures agree with each other.\n") }
        return laws.broken.isEmpty ? .success : .dataError
    }

    private func read(_ directory: String) throws(ResultError) -> RunRecord {
        let isPartial = directory.hasSuffix(".partial") || directory.hasSuffix(".partial/")
        var record =
            isPartial
            ? try Rebuild.run(partial: directory) { $0.findings(in: $1) } : try RunJSON.read(directory: directory)
        // Results of earlier versions have none.
        if record.findings == nil, let timeline = try? Timeline(reading: directory) {
            record.take(record.findings(in: timeline))
        }
        return record
    }

    private func show(_ record: RunRecord) throws(ResultError) {
        if self.options.json {
            self.screen.write(try RunJSON.text(record))
        } else {
            self.screen.show(record, files: self.options.directory)
        }
    }

    /// The page was asked for, so without it the command fails.
    private func writePage(_ write: (_ path: String) -> String?) -> ExitStatus {
        guard let path = self.options.files.html, let problem = write(path) else { return .success }
        self.screen.warn(problem)
        return .cannotCreate
    }
}

/// `clamor trend`: the changes of level in a history.
struct TrendSession {
    let options: TrendOptions
    private var screen: ProgressScreen { ProgressScreen(self.options) }

    func perform() -> ExitStatus {
        let files = self.options.files
        guard self.screen.attempt({ try files.check() }) != nil else { return .cannotCreate }
        let trend = self.screen.attempt {
            let (runs, leftOut) = try ComparedRun.readTrend(self.options.directories)
            for line in leftOut { self.screen.warn(line) }
            return try RunTrend(runs, since: self.options.since)
        }
        guard let trend else { return .dataError }
        let written: Void? = self.screen.attempt {
            if self.options.json {
                self.screen.write(try TrendFiles.json(trend))
            } else {
                self.screen.show(TrendText(trend, style: self.screen.style).text)
            }
            try files.write(JUnitXML(trend), markdown: TrendMarkdown.text(trend))
            if let path = self.options.otava { try ReportFile.write(TrendFiles.otava(trend), to: path) }
        }
        guard written != nil else { return .cannotCreate }
        if let path = files.html, let problem = PageFiles.write(to: path, TrendPage(trend).text) {
            self.screen.warn(problem)
            return .cannotCreate
        }
        guard self.options.isGate, trend.hasFailed else { return .success }
        let first = trend.worse[0]
        self.screen.warn("worse: \(trend.title(first.row)), \(trend.words(first.row, first.change))")
        return ExitStatus(hasRegressed: true)
    }
}
