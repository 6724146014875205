import FoundationEssentials
package import Measurement

/// The text of `run.json`.
package enum RunJSON {
    /// The first count that a sum with others of its kind could overflow.
    private static func impossibleCount(in record: RunRecord) -> String? {
        let parts: [(String, Any)] = [
            ("books", record.books), ("ledger", record.ledger), ("generator", record.generator),
            ("errors", record.errors), ("groups", record.groups as Any), ("population", record.population as Any),
        ]
        return parts.lazy.compactMap { self.impossibleCount($1, $0) }.first
    }

    private static func impossibleCount(_ value: Any, _ place: String) -> String? {
        switch value {
        case let count as UInt64: return count > 1 << 53 ? place : nil
        case let count as Int: return count.magnitude > 1 << 53 ? place : nil
        default:
            return Mirror(reflecting: value).children.enumerated().lazy.compactMap { index, child in
                let name = child.label == "some" ? place : "\(place).\(child.label ?? "\(index)")"
                return self.impossibleCount(child.value, name)
            }.first
        }
    }

    /// Pretty, with sorted keys, so that two runs can be compared line by line.
    package static func text(_ record: RunRecord) throws(ResultError) -> String {
        try PrettyJSON.text(record, path: "run.json")
    }

    /// Reads the record in a result directory.
    ///
    /// - Parameter directory: a finished one, or a partial one for what was known at its last checkpoint.
    /// - Returns: the record.
    /// - Throws: if there is no run record, or one of a schema that is not known.
    package static func read(directory: String) throws(ResultError) -> RunRecord {
        let path = directory + "/run.json"
        let data = try TextFile.data(path)
        let schema: String
        do {
            let record = try JSONDecoder().decode(RunRecord.self, from: data)
            if let place = self.impossibleCount(in: record) {
                throw ResultError(path: path, reason: "\(place) is a count that no run reaches")
            }
            if RunRecord.knownSchemas.contains(record.schema) { return record }
            schema = record.schema
        } catch let error as ResultError {
            throw error
        } catch let DecodingError.keyNotFound(key, context) {
            throw ResultError(path: path, reason: "\(self.place(context.codingPath, key)) is missing")
        } catch let DecodingError.typeMismatch(_, context), let DecodingError.valueNotFound(_, context) {
            throw ResultError(path: path, reason: "\(self.place(context.codingPath)): \(context.debugDescription)")
        } catch let DecodingError.dataCorrupted(context) {
            let place = context.codingPath.isEmpty ? "not JSON" : self.place(context.codingPath)
            throw ResultError(path: path, reason: "\(place): \(context.debugDescription)")
        } catch {
            throw ResultError(path: path, reason: "not a run record: \(error)")
        }
        let known = RunRecord.knownSchemas.joined(separator: " or ")
        throw ResultError(path: path, reason: "its schema is '\(schema)', not \(known)")
    }

    private static func place(_ path: [any CodingKey], _ last: (any CodingKey)? = nil) -> String {
        (path + (last.map { [$0] } ?? [])).map(\.stringValue).joined(separator: ".")
    }
}

/// JSON that people read too: pretty, with sorted keys.
package enum PrettyJSON {
    /// `path`: of the file, for the error.
    package static func text(_ value: some Encodable, path: String) throws(ResultError) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            return String(decoding: try encoder.encode(value), as: UTF8.self) + "\n"
        } catch {
            throw ResultError(path: path, reason: "cannot be encoded: \(error)")
        }
    }
}

/// Files that are read whole.
enum TextFile {
    static func data(_ path: String) throws(ResultError) -> Data {
        do {
            return try Data(contentsOf: URL(filePath: path))
        } catch {
            let isMissing = !FileManager.default.fileExists(atPath: path)
            throw ResultError(path: path, reason: isMissing ? "does not exist" : "cannot be read: \(error)")
        }
    }

    /// Bytes that are no UTF-8 become replacement characters: a file may have been cut anywhere.
    static func text(_ path: String) throws(ResultError) -> String {
        String(decoding: try self.data(path), as: UTF8.self)
    }
}

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
        let length = seconds.map { "after \(Human.duration($0))" } ?? "before its first second was over"
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
