import CPosix
import LoadEngine
import Measurement
import NIOCore
import Report
import RunResult

extension ReportFileOptions {
    /// The reason why a file cannot be written at the end; checked before the start.
    func check() throws(RunRefusal) {
        for (flag, path) in [("--junit", self.junit), ("--summary-md", self.markdown), ("--html", self.html)] {
            guard let path, let reason = ReportFile.problem(path) else { continue }
            throw RunRefusal("\(flag) \(path): \(reason)", .cannotCreate)
        }
    }

    /// Writes the requested files; returns an error as text.
    func write(_ record: RunRecord, isStrict: Bool) -> String? {
        self.write(JUnitXML(record, isStrict: isStrict), markdown: RunMarkdown.text(record))
    }

    func write(_ junit: @autoclosure () -> JUnitXML, markdown: @autoclosure () -> String) -> String? {
        do throws(ResultError) {
            if let path = self.junit { try ReportFile.write(junit().text, to: path) }
            if let path = self.markdown { try ReportFile.append(markdown(), to: path) }
            // The file may belong to another user or container; the run does not fail for that.
            if let path = self.inherited { try? ReportFile.append(markdown(), to: path) }
            return nil
        } catch {
            return "\(error)"
        }
    }
}

extension ProgressScreen {
    /// Shows a finished run, and writes the reports besides its results.
    ///
    /// - Parameters:
    ///   - record: the finished record.
    ///   - files: the directory of its results; `nil` if they could not be written.
    ///   - reports: other reports to write.
    ///   - isStrict: `--strict`.
    ///   - remarks: lines for standard error after the summary.
    /// - Returns: the exit status.
    func show(
        _ record: RunRecord,
        _ files: String?,
        _ reports: ReportFileOptions,
        isStrict: Bool,
        remarks: [String] = []
    ) -> ExitStatus {
        // The summary names the page, so it comes after it.
        let pageProblem = files.flatMap { reports.writesPage ? PageFiles.write(record, in: $0) : nil }
        if self.isJSON {
            if let text = try? RunJSON.text(record) { self.write(text) }
        } else {
            self.show(record, files: files)
        }
        for line in remarks { self.warn(line) }
        if let pageProblem { self.warn(pageProblem) }
        let problem = reports.write(record, isStrict: isStrict)
        if let problem { self.warn(problem) }
        let status = ExitStatus(of: record, isStrict: isStrict, isWritten: files != nil && problem == nil)
        if let line = status.lastWord(of: record) {
            // Without a summary its hint would be lost.
            let isUnseen = (self.isQuiet || self.isJSON) && status == .unavailable && record.hasNeverConnected
            self.warn(isUnseen ? "\(line); \(record.connectionHint)" : line)
        }
        return status
    }

    /// Says why nothing was done.
    ///
    /// - Returns: how the program ends.
    func refuse(_ refusal: RunRefusal) -> ExitStatus {
        self.warn(refusal.line)
        return refusal.status
    }
}

extension ResultDirectory {
    /// `--out`, or a new directory with the name of what is run.
    static func open(
        _ path: String?,
        name: String,
        startedAt: Int64 = clamor_realtime_nanoseconds()
    ) throws(RunRefusal) -> ResultDirectory {
        do throws(ResultError) {
            guard let path else { return try .createDefault(name: name, startedAt: startedAt) }
            return try .create(path)
        } catch {
            throw RunRefusal("--out \(error)", .cannotCreate)
        }
    }
}

extension RunWriter {
    /// Begins the results of a run.
    static func open(
        _ path: String?,
        name: String,
        _ record: RunRecord,
        startedAt: Int64
    ) throws(RunRefusal) -> RunWriter {
        let directory = try ResultDirectory.open(path, name: name, startedAt: startedAt)
        do throws(ResultError) {
            return try RunWriter(directory, record: record, startedAt: startedAt)
        } catch {
            throw RunRefusal("--out \(error)", .cannotCreate)
        }
    }
}

extension GroupResult {
    /// A row per client, for `clients.csv`.
    func rows(_ outcome: RunOutcome, _ record: RunRecord) -> [ClientRow] {
        let record = record.part(self.name)
        let decodeTime = record.metrics.first { $0.name == "decode_time" }?.counter?.value
        let bytes = record.metrics.first { $0.name == "decode_bytes" }?.counter?.value
        return self.account.clients.map { client in
            var decodeSeconds: Double?
            if let decodeTime, let bytes, bytes > 0 { decodeSeconds = decodeTime * Double(client.tally.bytes) / bytes }
            var row = ClientRow(
                id: self.clientID(client.number),
                qos: client.qos,
                tally: client.tally,
                publishes: client.sends,
                acknowledged: client.acknowledged,
                subscribes: client.receives,
                seconds: outcome.loadBegan.map { Double((outcome.ended - $0).nanoseconds) / 1e9 },
                decodeSeconds: decodeSeconds
            )
            row.group = self.name
            return row
        }
    }
}
