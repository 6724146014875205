import CPosix
import LoadEngine
package import Measurement
import NIOCore
package import Report
package import RunResult
package import Scenario

extension ReportFileOptions {
    /// The reason why a file cannot be written at the end; checked before the start.
    package func check() throws(RunRefusal) {
        for (flag, path) in [("--junit", self.junit), ("--summary-md", self.markdown), ("--html", self.html)] {
            guard let path, let reason = ReportFile.problem(path) else { continue }
            throw RunRefusal("\(flag) \(path): \(reason)", .cannotCreate)
        }
        if let path = self.history {
            try RunRefusal.unless("--history ", .cannotCreate) { try HistoryFile.prepare(path) }
        }
    }

    /// Writes the requested files.
    package func write(_ junit: @autoclosure () -> JUnitXML, markdown: @autoclosure () -> String) throws(ResultError) {
        if let path = self.junit { try ReportFile.write(junit().text, to: path) }
        if let path = self.markdown { try ReportFile.append(markdown(), to: path) }
        // The file may belong to another user or container; the run does not fail for that.
        if let path = self.inherited { try? ReportFile.append(markdown(), to: path) }
    }
}

extension ProgressScreen {
    /// Gives a finished run to its places, the summary behind the page that it names; then its exit status is known.
    package func end(_ run: FinishedRun, _ options: ResultOptions) -> ExitStatus {
        let page: [any RunSink] = options.files.writesPage ? [PageSink()] : []
        let sinks = page + [ScreenSink(screen: self), ReportSink(files: options.files, isStrict: options.strict)]
        var isWritten = run.directory != nil
        for problem in sinks.compactMap({ $0.take(run) }) {
            switch problem {
            case .warning(let line): self.warn(line)
            case .failure(let line):
                self.warn(line)
                isWritten = false
            }
        }
        let status = ExitStatus(of: run.record, isStrict: options.strict, isWritten: isWritten)
        if let line = status.lastWord(of: run.record) {
            // Without a summary its hint would be lost.
            let isUnseen = (self.isQuiet || self.isJSON) && status == .unavailable && run.record.hasNeverConnected
            self.warn(isUnseen ? "\(line); \(run.record.connectionHint)" : line)
        }
        return status
    }

    /// Says why nothing was done.
    package func refuse(_ refusal: RunRefusal) -> ExitStatus {
        self.warn(refusal.line)
        return refusal.status
    }

    /// The value that `body` returns; an error is a line for standard error, and `nil`.
    package func attempt<Value>(_ body: () throws -> Value) -> Value? {
        do {
            return try body()
        } catch {
            self.warn("\(error)")
            return nil
        }
    }
}

extension ResultDirectory {
    /// `--out`, or a new directory with the name of what is run.
    package static func open(
        _ path: String?,
        name: String,
        startedAt: Int64 = clamor_realtime_nanoseconds()
    ) throws(RunRefusal) -> ResultDirectory {
        try RunRefusal.unless("--out ", .cannotCreate) {
            try path.map { try .create($0) } ?? .createDefault(name: name, startedAt: startedAt)
        }
    }
}

extension RunWriter {
    /// Begins the results of a run.
    package static func open(
        _ path: String?,
        name: String,
        _ record: RunRecord,
        startedAt: Int64
    ) throws(RunRefusal) -> RunWriter {
        let directory = try ResultDirectory.open(path, name: name, startedAt: startedAt)
        return try RunRefusal.unless("--out ", .cannotCreate) {
            try RunWriter(directory, record: record, startedAt: startedAt)
        }
    }
}

extension GroupResult {
    /// A row per client, for `clients.csv`.
    func rows(_ outcome: RunOutcome, _ record: RunRecord) -> [ClientRow] {
        let record = record.part(self.name)
        let decodeTime = record.metrics.first { $0.isOf(.decodeTime) }?.counter?.value
        let bytes = record.metrics.first { $0.isOf(.decodeBytes) }?.counter?.value
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
