import Foundation
import Measurement
import Report
import Testing

@Suite("Rebuilding a run that was cut")
struct RebuildTests {
    let folder: TemporaryFolder
    let run = SimulatedRun()

    init() throws { self.folder = try TemporaryFolder() }

    private var partial: String { "\(self.folder.path)/out.partial" }

    /// Leaves what a killed run leaves after so many intervals.
    private func leave(intervals: Int = 6) throws {
        _ = try self.run.write("\(self.folder.path)/out", intervals: intervals)
    }

    @Test("gives what the run itself would have given, but for the verdict")
    func whole() throws {
        try self.leave()
        let record = try Rebuild.run(partial: self.partial)
        #expect(record.plan == self.run.begun.plan)
        #expect(record.host == self.run.begun.host)
        #expect(record.command == self.run.begun.command)
        #expect(record.durationSeconds == 6)
        #expect(record.verdict?.state == .aborted)
        #expect(record.verdict?.reasons.map(\.code) == ["cut"])
        #expect(record.verdict?.reasons.first?.text.contains("cut after 6.00 s") == true)
        #expect(record.stages.map(\.name) == ["connect", "warm-up", "measure", "drain"])
        #expect(record.stages.map(\.measured) == [false, false, true, false])
        #expect(record.stages.map(\.durationSeconds) == [1, 1, 3, 1])
        #expect(record.errors.map(\.kind) == ["reset"])
        #expect(record.errors.map(\.count) == [2])
        // Error texts are stored in checkpoints; this run was cut before its first.
        #expect(record.errors.map(\.firstAt) == ["2026-11-21T01:37:12.000000Z"])

        #expect(record.metrics.count == self.run.ended.metrics.count)
        for wanted in self.run.ended.metrics {
            let metric = try #require(record.metrics.first { $0.name == wanted.name && $0.labels == wanted.labels })
            switch (metric.reading, wanted.reading) {
            case (.duration(let reading), .duration(let wanted)): self.expect(reading, isLike: wanted)
            default: #expect(metric == wanted)
            }
        }
        let written = try RunJSON.read(directory: self.partial)
        #expect(written == record)
        #expect(try self.folder.read("out.partial/metrics.csv") == MetricsCSV.text(record.metrics))
        #expect(try self.folder.read("out.partial/run.json").contains("\"verdict\""))
    }

    /// The same but for extremes, which a histogram log keeps to three digits.
    private func expect(_ reading: DurationReading, isLike wanted: DurationReading) {
        #expect(reading.count == wanted.count)
        #expect(reading.p50 == wanted.p50 && abs(reading.p9999 - wanted.p9999) <= wanted.p9999 / 1000)
        #expect(reading.mean == wanted.mean && reading.stddev == wanted.stddev)
        #expect(abs(reading.min - wanted.min) <= wanted.min / 1000)
        #expect(abs(reading.max - wanted.max) <= wanted.max / 1000)
    }

    @Test("does so again with the same outcome")
    func twice() throws {
        try self.leave()
        let first = try Rebuild.run(partial: self.partial)
        #expect(try Rebuild.run(partial: self.partial) == first)
    }

    @Test("takes what was written before the kill, at every second", arguments: 0...6)
    func everySecond(_ intervals: Int) throws {
        try self.leave(intervals: intervals)
        try self.expectWhole(try Rebuild.run(partial: self.partial), intervals: intervals)
    }

    /// Counts that belong to the first `count` intervals exactly.
    private func expectWhole(_ record: RunRecord, intervals count: Int) throws {
        #expect(record.durationSeconds == (count > 0 ? Double(count) : nil))
        let intervals = self.run.intervals.prefix(count)
        func total(_ name: String) -> Double? {
            let known = intervals.flatMap(\.metrics).filter { $0.name == name }.compactMap(\.counter?.value)
            return known.isEmpty ? nil : known.reduce(0, +)
        }
        for name in ["publish_sent", "publish_acked", "errors"] {
            #expect(record.metrics.first { $0.name == name }?.counter?.value == total(name))
        }
        for name in ["connect_duration", "publish_ack_duration"] {
            let lanes = intervals.flatMap(\.lanes).filter { $0.name == name && $0.measured }
            let measured = lanes.isEmpty ? nil : lanes.map(\.count).reduce(0, +)
            #expect(record.metrics.first { $0.name == name }?.duration?.count == measured)
        }
    }

    @Test("drops the interval in which the log was cut, at every byte of its last interval")
    func everyCutOfTheLog() throws {
        try self.leave()
        let begun = try RunJSON.text(self.run.begun)
        let whole = Array(try self.folder.read("out.partial/latency.hlog").utf8)
        let lines = self.lineBreaks(whole)
        // All line boundaries, and every byte of the last three lines.
        let cuts = Set(lines).union(lines[lines.count - 4]..<whole.count)
        for cut in cuts.sorted() {
            try self.folder.write(begun, to: "out.partial/run.json")
            try self.folder.write(String(decoding: whole[..<cut], as: UTF8.self), to: "out.partial/latency.hlog")
            let marks = String(decoding: whole[..<cut], as: UTF8.self).components(separatedBy: "]\n")
                .dropLast().count { $0.contains("#[End of interval ") }
            try self.expectWhole(try Rebuild.run(partial: self.partial), intervals: marks)
        }
    }

    @Test("drops a torn row, and keeps the rest, at every byte of the time line's last rows")
    func everyCutOfTheTimeline() throws {
        try self.leave()
        let begun = try RunJSON.text(self.run.begun)
        let whole = Array(try self.folder.read("out.partial/timeline.csv").utf8)
        let lines = self.lineBreaks(whole)
        let cuts = Set(lines).union(lines[lines.count - 3]..<whole.count)
        for cut in cuts.sorted() {
            try self.folder.write(begun, to: "out.partial/run.json")
            try self.folder.write(String(decoding: whole[..<cut], as: UTF8.self), to: "out.partial/timeline.csv")
            let record = try Rebuild.run(partial: self.partial)
            let rows = String(decoding: whole[..<cut], as: UTF8.self).components(separatedBy: "\n").dropLast()
            let sent = rows.filter { $0.contains(",publish_sent,") }
                .compactMap { Double($0.components(separatedBy: ",")[6]) }
            let counter = record.metrics.first { $0.name == "publish_sent" }?.counter
            #expect(counter?.value == (sent.isEmpty ? nil : sent.reduce(0, +)))
            #expect(record.verdict?.state == .aborted)
        }
    }

    private func lineBreaks(_ bytes: [UInt8]) -> [Int] { bytes.indices.filter { bytes[$0] == 0x0A }.map { $0 + 1 } }

    @Test("takes the words of errors from the last checkpoint, and judges the thresholds anew")
    func checkpoint() throws {
        try self.leave()
        var checkpoint = self.run.ended
        checkpoint.durationSeconds = nil
        checkpoint.errors[0].count = 1
        checkpoint.thresholds = [
            ThresholdResult(expression: "publish_sent count > 999", ok: false, value: 1),
            ThresholdResult(expression: "publish_acked count > 10000", ok: true, value: nil),
        ]
        checkpoint.books = [Books(qos: 1)]
        try self.folder.write(RunJSON.text(checkpoint), to: "out.partial/run.json")
        let record = try Rebuild.run(partial: self.partial)
        #expect(record.errors.map(\.example) == ["read from 127.0.0.1: Connection reset by peer"])
        #expect(record.errors.map(\.count) == [2])
        #expect(record.errors.map(\.firstAt) == self.run.ended.errors.map(\.firstAt))
        #expect(record.thresholds.map(\.ok) == [true, false])
        #expect(record.thresholds.map(\.value) == [1000, 750])
        #expect(record.books.isEmpty)
    }

    @Test("of a run that still lives writes nothing, and says so")
    func live() throws {
        let writer = try self.run.write("\(self.folder.path)/out", intervals: 3)
        let record = try Rebuild.run(partial: self.partial)
        #expect(record.verdict?.reasons.map(\.code) == ["still-running"])
        #expect(try self.folder.entries("out.partial") == ["latency.hlog", "run.json", "timeline.csv"])
        #expect(try RunJSON.read(directory: self.partial) == self.run.begun)
        #expect(try writer.finish(self.run.ended) == "\(self.folder.path)/out")
    }

    @Test("needs a run.json")
    func noRecord() {
        let error = #expect(throws: ResultError.self) { try Rebuild.run(partial: self.folder.path) }
        #expect(error?.description == "\(self.folder.path)/run.json: does not exist")
    }
}
