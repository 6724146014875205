import FoundationEssentials
package import Measurement

package struct ComparedRun: Sendable {
    package let path: String
    package let record: RunRecord

    package init(path: String, record: RunRecord) {
        self.path = path
        self.record = record
    }

    /// Reads the runs of one side.
    ///
    /// - Parameter paths: result directories, or directories that hold several of them, or histories.
    /// - Returns: at least one run.
    /// - Throws: where one is missing, unreadable, or not a finished run.
    package static func read(_ paths: [String]) throws(ResultError) -> [ComparedRun] {
        var runs: [ComparedRun] = []
        for path in paths {
            for directory in try self.directories(path) { runs.append(try self.read(directory: directory)) }
        }
        return runs
    }

    /// Reads the runs of a trend, without the directories that can have none.
    ///
    /// - Parameter paths: result directories, or directories that hold several of them, or histories.
    /// - Returns: at least one run, and a line about each directory that was left out.
    /// - Throws: where one is missing or unreadable, or none has a run.
    package static func readTrend(_ paths: [String]) throws(ResultError) -> (runs: [ComparedRun], leftOut: [String]) {
        var (runs, leftOut): ([ComparedRun], [String]) = ([], [])
        for path in paths {
            if let reason = self.reasonAgainst(path) {
                leftOut.append("\(path) is left out: \(reason)")
                continue
            }
            for place in try self.directories(path) {
                do throws(ResultError) {
                    runs.append(try self.read(directory: place))
                } catch {
                    // One damaged file does not take the others of a history with it.
                    guard place.hasSuffix(HistoryFile.suffix) else { throw error }
                    leftOut.append("\(place) is left out: \(error.reason)")
                }
            }
        }
        guard !runs.isEmpty else {
            throw ResultError(path: paths[0], reason: "has no finished run, nor has another of the directories")
        }
        return (runs, leftOut)
    }

    /// The reason why a directory of results has no run for a trend, if that is known.
    private static func reasonAgainst(_ path: String) -> String? {
        let name = path.split(separator: "/").last ?? ""
        if self.isUnfinished(name) { return "its run did not end" }
        let isSearch = FileManager.default.fileExists(atPath: path + "/capacity.json")
        return isSearch ? "a search for capacity has no trend" : nil
    }

    /// Whether a directory has the name of an interrupted run, or of one that was moved aside.
    private static func isUnfinished(_ name: some StringProtocol) -> Bool {
        String(name).firstMatch(of: /\.partial(\.[0-9]+)?$/) != nil
    }

    private static func read(directory: String) throws(ResultError) -> ComparedRun {
        let isKept = directory.hasSuffix(HistoryFile.suffix)
        let record = try isKept ? RunJSON.read(file: directory) : RunJSON.read(directory: directory)
        guard record.verdict != nil else {
            throw ResultError(path: directory, reason: "the run is not finished; clamor report shows how far it came")
        }
        return ComparedRun(path: directory, record: record)
    }

    private static func directories(_ path: String) throws(ResultError) -> [String] {
        if FileManager.default.fileExists(atPath: path + "/run.json") { return [path] }
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: path) else {
            throw ResultError(path: path, reason: "is no directory of results")
        }
        // Interrupted runs are in the same folder as finished ones.
        let runs = names.sorted().filter { !self.isUnfinished($0) }.map { "\(path)/\($0)" }.filter {
            $0.hasSuffix(HistoryFile.suffix) || FileManager.default.fileExists(atPath: $0 + "/run.json")
        }
        guard !runs.isEmpty else {
            throw ResultError(path: path, reason: "holds no run.json, nor does a directory in it, and no history")
        }
        return runs
    }

    /// Every metric by its series; errors in all and by their kind, which no other list of metrics has.
    ///
    /// Lost messages are one series whatever their cause: a run that loses some has causes that another one lacks.
    var series: [Series: Metric] {
        var all: [Series: Metric] = [:]
        for metric in self.record.metrics where !metric.isOf(.errors) {
            let labels = metric.labels.removing(Labels.cause).removing(Labels.permitted)
            let series = Series(name: metric.name, labels: labels)
            if labels != metric.labels, let known = all[series] {
                all[series] = JoinedInterval.metric([known, metric])
            } else {
                all[series] = metric
            }
            all[series]?.labels = labels
        }
        return all
    }

    /// Errors by kind, and the total without a label.
    var errors: [Labels: Double] {
        var counts: [Labels: Double] = [[:]: 0]
        for error in self.record.errors {
            var labels: Labels = ["kind": error.kind]
            if let group = error.group { labels = labels.adding(Labels.group, group) }
            counts[labels, default: 0] += Double(error.count)
            counts[[:], default: 0] += Double(error.count)
        }
        return counts
    }
}

extension Metric {
    /// A figure of it; durations in seconds.
    func value(of field: Threshold.Field?) -> Double? {
        switch (self.reading, field) {
        case (.duration(let reading), .percentile(let percent)): reading.percentile(percent)
        case (.duration(let reading), .mean): reading.mean
        case (.duration(let reading), .min): reading.min
        case (.duration(let reading), .max): reading.max
        case (.duration(let reading), .count): Double(reading.count)
        case (.counter(let reading), nil), (.counter(let reading), .count): reading.value
        case (.counter(let reading), .rate): reading.rate
        case (.gauge(let reading), nil): reading.value
        case (.gauge(let reading), .mean): reading.mean ?? reading.value
        case (.gauge(let reading), .min): reading.min
        case (.gauge(let reading), .max): reading.max
        case (.gauge(let reading), .percentile(50)): reading.median
        default: nil
        }
    }

    /// Whether that figure is only known to be at least so much.
    func isBound(_ field: Threshold.Field) -> Bool {
        guard let reading = self.duration, !reading.bounds.isEmpty else { return false }
        return switch field {
        case .mean: reading.isBound(\.mean)
        case .max: reading.isBound(\.max)
        case .percentile(let percent):
            DurationReading.percentiles.first { $0.percent == percent }.map { reading.isBound($0.field) }
                ?? (reading.decodedValues()?.percentile(percent)?.isExact == false)
        case .count, .rate, .min, .slope: false
        }
    }
}

extension DurationReading {
    fileprivate func percentile(_ percent: Double) -> Double? {
        guard let known = Self.percentiles.first(where: { $0.percent == percent }) else {
            return self.decodedHistogram()?.percentile(percent).map { Double($0) / 1e9 }
        }
        return self[keyPath: known.field]
    }
}
