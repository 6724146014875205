import Foundation
import Measurement
import Report
import Testing

@Suite("The files of a run")
struct RunWriterTests {
    let folder: TemporaryFolder
    let run = SimulatedRun()

    init() throws { self.folder = try TemporaryFolder() }

    @Test("are there from the start, with plan and host and no metrics")
    func start() throws {
        let writer = try self.run.write("\(self.folder.path)/out", intervals: 0)
        #expect(try self.folder.entries("out.partial") == ["latency.hlog", "run.json", "timeline.csv"])
        let record = try RunJSON.read(directory: writer.directory.partial)
        #expect(record == self.run.begun)
    }

    @Test("grow by each interval, at once")
    func streamed() throws {
        let path = "\(self.folder.path)/out"
        for count in 0...self.run.intervals.count {
            let writer = try self.run.write(path, intervals: count)
            let timeline = try self.folder.read("out.partial/timeline.csv").split(separator: "\n")
            let rows = self.run.intervals.prefix(count).map(\.metrics.count).reduce(0, +)
            #expect(timeline.count == 1 + rows)
            let log = HistogramLog.read(try self.folder.read("out.partial/latency.hlog"))
            #expect(log.entries.count == self.run.intervals.prefix(count).map(\.lanes.count).reduce(0, +))
            #expect(log.lastInterval == (count > 0 ? count - 1 : nil))
            _ = consume writer
        }
    }

    @Test("are complete when the run has ended, under the directory's name")
    func finish() throws {
        let writer = try self.run.write("\(self.folder.path)/out", intervals: 6)
        let path = try writer.finish(self.run.ended, clients: [])
        #expect(path == "\(self.folder.path)/out")
        #expect(
            try self.folder.entries("out") == [
                "clients.csv", "latency.hlog", "metrics.csv", "run.json", "timeline.csv",
            ]
        )
        #expect(try self.folder.entries() == ["out"])
        #expect(try RunJSON.read(directory: path) == self.run.ended)
        #expect(try self.folder.read("out/metrics.csv") == MetricsCSV.text(self.run.ended.metrics))
    }

    @Test("hold the run so far every 30 s, without a draft left beside it")
    func checkpoint() throws {
        let writer = try self.run.write("\(self.folder.path)/out", intervals: 0)
        var asked: [Int] = []
        for second in 0..<65 {
            let interval = TimelineInterval(second: second, phase: "measure", seconds: 1, metrics: [], lanes: [])
            try writer.append(interval) {
                asked.append(second)
                return self.run.ended
            }
        }
        #expect(asked == [29, 59])
        #expect(try RunJSON.read(directory: writer.directory.partial) == self.run.ended)
        #expect(try self.folder.entries("out.partial") == ["latency.hlog", "run.json", "timeline.csv"])
    }

    @Test("make ten seconds one beyond an hour, and end one where a phase ends")
    func beyondAnHour() throws {
        let writer = try self.run.write("\(self.folder.path)/out", intervals: 0)
        var histogram = Histogram()
        for second in 3598..<3625 {
            histogram.clear()
            histogram.record(Int64(second) * 1000)
            let counter = CounterReading(value: 3, rate: 3)
            let interval = TimelineInterval(
                second: second,
                phase: second < 3613 ? "measure" : "drain",
                seconds: 1,
                metrics: [
                    try #require(DurationReading(histogram).map { Metric(duration: "d", labels: [:], reading: $0) }),
                    Metric(name: "c", labels: [:], reading: .counter(counter)),
                    Metric(name: "g", labels: [:], reading: .gauge(GaugeReading(value: Double(second)))),
                ],
                lanes: [Samples.lane("d", [:], max: Double(second) / 1e6, histogram.encodedV2())]
            )
            try writer.append(interval) { self.run.ended }
        }
        let path = try writer.finish(self.run.ended)
        let rows = try self.folder.read("out/timeline.csv").split(separator: "\n").map { $0.split(separator: ",") }
        #expect(rows.filter { $0[2] == "c" }.map { $0[0] } == ["3598", "3599", "3600", "3610", "3613", "3620"])
        #expect(rows.filter { $0[2] == "c" }.map { $0[4] } == ["3", "3", "30", "9", "21", "15"])
        #expect(rows.filter { $0[2] == "c" }.allSatisfy { $0[5] == "3" })
        #expect(rows.filter { $0[2] == "g" }.map { $0[4] } == ["3598", "3599", "3609", "3612", "3619", "3624"])
        let durations = rows.filter { $0[2] == "d" }
        #expect(durations.map { $0[5] } == ["1", "1", "10", "3", "7", "5"])
        #expect(durations[2][6] == "0.0036" && durations[2].suffix(4) == ["0.003609", "10", "0", "0"])

        let log = HistogramLog.read(try String(contentsOfFile: path + "/latency.hlog", encoding: .utf8))
        #expect(log.entries.map(\.length) == [1, 1, 10, 3, 7, 5])
        #expect(try Histogram(decodingV2: log.entries[2].encoded).count == 10)
    }

    @Test("give the intervals of the log stamps that follow each other, also where a second has several")
    func stamps() throws {
        let writer = try self.run.write("\(self.folder.path)/out", intervals: 0)
        var histogram = Histogram()
        histogram.record(1_000)
        let lane = Samples.lane("d", [:], max: 1e-6, histogram.encodedV2())
        let intervals = [(0, 0.4), (0, 0.7003), (1, 0.9), (2, 1.0004), (3, 1), (7, 1)]
        for (second, seconds) in intervals {
            let interval = TimelineInterval(
                second: second,
                phase: "measure",
                seconds: seconds,
                metrics: [],
                lanes: [lane]
            )
            try writer.append(interval) { self.run.ended }
        }
        let path = try writer.finish(self.run.ended)
        let log = HistogramLog.read(try String(contentsOfFile: path + "/latency.hlog", encoding: .utf8))
        #expect(log.entries.map { Int($0.start) } == intervals.map(\.0))
        for (entry, next) in zip(log.entries, log.entries.dropFirst()) {
            #expect(entry.start + entry.length < next.start + 1e-9)
        }
    }

    @Test("that cannot be written are named")
    func unwritable() throws {
        let directory = try ResultDirectory.create("\(self.folder.path)/out")
        try FileManager.default.createDirectory(
            atPath: "\(self.folder.path)/out.partial/timeline.csv",
            withIntermediateDirectories: false
        )
        let error = #expect(throws: ResultError.self) {
            try RunWriter(directory, record: self.run.begun, startedAt: Samples.startedAt)
        }
        #expect(error?.description == "\(directory.partial)/timeline.csv: cannot create it: Is a directory")
    }

    @Test("run.json is pretty, sorted, and its slashes are plain")
    func json() throws {
        var record = self.run.begun
        record.errors = [
            ErrorRecord(kind: "tls", count: 1, firstAt: WallClock.rfc3339(Samples.startedAt), example: "a/b")
        ]
        try Golden.check(RunJSON.text(record), "run.json")
    }

    @Test(
        "a run.json that is none is refused with its place",
        arguments: [
            ("{", "not JSON"), ("{}", "schema is missing"), ("{\"schema\": 1}", "schema: "), ("[]", ": "),
        ]
    )
    func badJSON(_ text: String, _ reason: String) throws {
        try self.folder.write(text, to: "run.json")
        let error = #expect(throws: ResultError.self) { try RunJSON.read(directory: self.folder.path) }
        #expect(error?.path == "\(self.folder.path)/run.json")
        #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
    }

    @Test("a directory without run.json is refused")
    func noJSON() {
        let error = #expect(throws: ResultError.self) { try RunJSON.read(directory: self.folder.path) }
        #expect(error?.description == "\(self.folder.path)/run.json: does not exist")
    }
}
