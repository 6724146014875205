import Foundation
import Measurement
import Report
import Testing

@Suite("The time line, read back")
struct TimelineTests {
    static let intervals: [TimelineInterval] = [
        interval(0, "connect", 0.25, [counter("bytes_sent", 100, over: 0.25), gauge(3)]),
        interval(
            0,
            "measure",
            0.75,
            [duration([1, 2, 300]), counter("bytes_sent", 0, over: 0.75), counter("publish_offered", 7, over: 0.75)]
        ),
        interval(1, "measure", 1, [counter("bytes_sent", 0, over: 1), gauge(4)]),
        interval(2, "measure", 0.5, [counter("bytes_sent", 0, over: 0.5)]),
        interval(2, "measure", 0.5, [duration([8]), counter("bytes_sent", 5, over: 0.5)]),
        interval(3, "peak, \"2\"", 1, [counter("errors", 1, over: 1)]),
    ]

    static func interval(_ second: Int, _ phase: String, _ seconds: Double, _ metrics: [Metric?]) -> TimelineInterval {
        TimelineInterval(
            second: second,
            phase: phase,
            seconds: seconds,
            metrics: metrics.compactMap(\.self),
            lanes: []
        )
    }

    static func counter(_ name: String, _ value: Double, over seconds: Double) -> Metric {
        Metric(
            name: name,
            labels: name == "errors" ? ["kind": "reset, \"by peer\""] : [:],
            unit: name == "bytes_sent" ? "bytes" : nil,
            reading: .counter(CounterReading(value: value, rate: value / seconds))
        )
    }

    static func gauge(_ value: Double) -> Metric {
        Metric(name: "clients", labels: ["state": "connected"], reading: .gauge(GaugeReading(value: value)))
    }

    /// In milliseconds.
    static func duration(_ values: [Int64]) -> Metric? {
        var histogram = Histogram()
        for value in values { histogram.record(value * 1_000_000) }
        return Samples.duration("delivery_duration", ["qos": "1"], histogram)
    }

    static let text = MetricsCSV.timelineHeader + intervals.map(MetricsCSV.rows).joined()

    /// NaN as nil, since it is not equal to itself.
    private func known(_ values: [Double]) -> [Double?] { values.map { $0.isNaN ? nil : $0 } }

    @Test("has a value of each series for each interval that has a row of it")
    func columns() throws {
        let timeline = Timeline(text: Self.text)
        #expect(timeline.seconds == [0, 0, 1, 2, 2, 3])
        #expect(timeline.phases == ["connect", "measure", "measure", "measure", "measure", "peak, \"2\""])
        #expect(
            timeline.columns.map(\.name) == [
                "bytes_sent", "clients", "delivery_duration", "publish_offered", "errors",
            ]
        )
        #expect(timeline.columns.map(\.kind) == [.counter, .gauge, .duration, .counter, .counter])
        #expect(timeline.columns.map(\.unit) == ["bytes", nil, "seconds", nil, nil])
        #expect(timeline.columns[1].labels == ["state": "connected"])
        #expect(timeline.columns[4].labels == ["kind": "reset, \"by peer\""])
        #expect(known(timeline.columns[0].values) == [100, 0, 0, 0, 5, nil])
        #expect(known(timeline.columns[1].values) == [3, nil, 4, nil, nil, nil])
        #expect(known(timeline.columns[2].values) == [nil, 3, nil, nil, 1, nil])
        #expect(known(timeline.columns[3].values) == [nil, 7, nil, nil, nil, nil])
        #expect(known(timeline.columns[4].values) == [nil, nil, nil, nil, nil, 1])
        let exact = try #require(Self.intervals[1].metrics.first?.duration)
        #expect(timeline.columns[2].p50[1] == exact.p50)
        #expect(timeline.columns[2].p99[1] == exact.p99)
        #expect(timeline.columns[2].max[1] == 0.3)
        #expect(timeline.columns.map(\.p50.count) == [0, 0, 6, 0, 0])
    }

    static let spans: [(name: String, rows: [(second: Int, phase: String, moved: Double?)], [Double])] = [
        (
            "a counter that moved has it", [(0, "connect", 0.129), (0, "measure", 0.871), (1, "measure", 1)],
            [
                0.129, 0.871, 1,
            ]
        ),
        (
            "a second without a move is a second", [(0, "measure", 1), (1, "measure", nil), (2, "measure", 1)],
            [1, 1, 1]
        ),
        ("the rest of a second", [(4, "measure", 0.25), (4, "drain", nil), (5, "drain", 0.1)], [0.25, 0.75, 0.1]),
        ("the last interval", [(4, "measure", 1), (5, "drain", nil)], [1, 1]),
        ("beyond an hour", [(3599, "measure", nil), (3600, "measure", nil), (3610, "measure", 10)], [1, 10, 10]),
        ("a stage's end beyond an hour", [(3600, "a", nil), (3604, "b", nil), (3610, "b", 10)], [4, 6, 10]),
        ("a gap is not an interval", [(0, "measure", nil), (30, "measure", 1)], [1, 1]),
    ]

    @Test("knows the lengths of its intervals", arguments: spans)
    func lengths(_ name: String, _ rows: [(second: Int, phase: String, moved: Double?)], _ lengths: [Double]) {
        let text = rows.map { row in
            let moved = Self.counter("bytes_sent", row.moved == nil ? 0 : 9, over: row.moved ?? 1)
            return MetricsCSV.rows(Self.interval(row.second, row.phase, 1, [moved]))
        }
        #expect(Timeline(text: text.joined()).lengths == lengths, "\(name)")
    }

    @Test("skips a last line that was cut, at every cut")
    func everyCut() {
        let bytes = Array(Self.text.utf8)
        for cut in bytes.indices {
            let part = String(decoding: bytes[..<cut], as: UTF8.self)
            let whole = part.utf8.lastIndex(of: 0x0A).map { part[...$0] } ?? ""
            let rows = Timeline(text: part).columns.reduce(0) { $0 + $1.values.count { !$0.isNaN } }
            #expect(rows == max(0, whole.utf8.count { $0 == 0x0A } - 1))
        }
    }

    static let damaged = [
        "", "\n", "x\n", "1,measure,a,,counter,,1\n", "x,measure,a,,counter,,1,1,,,,,,,,,,,\n",
        "1,measure,a,,counter,,one,1,,,,,,,,,,,\n", "1,measure,a,b,counter,,1,1,,,,,,,,,,,\n",
        "1,measure,a,,level,,1,1,,,,,,,,,,,\n", "1,measure,\"a,,counter,,1,1,,,,,,,,,,,\n",
        "1,measure,a,,duration,seconds,,,1,,,,1,1,1,1,1,1,\n", "-1,measure,a,,counter,,1,1,,,,,,,,,,,\n",
    ]

    @Test("skips lines that are no rows", arguments: damaged)
    func skips(_ line: String) {
        let row = MetricsCSV.rows(Self.interval(1, "measure", 1, [Self.counter("bytes_sent", 9, over: 1)]))
        let timeline = Timeline(text: line + row)
        #expect(timeline.seconds == [1])
        #expect(timeline.columns.map(\.values) == [[9]])
        #expect(timeline.columns.map(\.name) == ["bytes_sent"])
    }

    static let decimals = [
        "0", "7", "0.5", "0.000000001", "1001.2566421676021", "123456789012345678", "0.1234567890123456789", "12.",
        ".5", "-3.25", "1e-7", "99999999999999999999", "0.3", "179769313486231570000000000000000",
    ]

    @Test("reads numbers to the last bit", arguments: decimals)
    func numbers(_ text: String) {
        let timeline = Timeline(text: "1,measure,a,,gauge,,\(text),,,,,,,,,,,,\n")
        #expect(timeline.columns.map(\.values) == [[Double(text) ?? .nan]])
    }

    @Test("has no time line where there is none to read")
    func missing() throws {
        let folder = try TemporaryFolder()
        #expect(throws: ResultError.self) { try Timeline(reading: folder.path) }
    }
}

@Suite("Latencies over time")
struct LatencyMapTests {
    static func lane(
        _ name: String,
        _ labels: Labels,
        _ nanoseconds: [Int64],
        measured: Bool = true
    )
        -> TimelineInterval.Lane
    {
        var histogram = Histogram()
        for value in nanoseconds { histogram.record(value) }
        return TimelineInterval.Lane(
            name: name,
            labels: labels,
            measured: measured,
            count: histogram.count,
            max: Double(histogram.max ?? 0) / 1e9,
            histogram: histogram.encodedV2()
        )
    }

    static func text(_ intervals: [(Int, [TimelineInterval.Lane])]) -> String {
        HistogramLog.header(startedAt: Samples.startedAt)
            + intervals.map { second, lanes in
                HistogramLog.lines(
                    TimelineInterval(second: second, phase: "measure", seconds: 1, metrics: [], lanes: lanes)
                )
            }.joined()
    }

    private func filled(_ counts: ArraySlice<UInt64>) -> [Int: UInt64] {
        counts.enumerated().reduce(into: [:]) { if $1.element > 0 { $0[$1.offset] = $1.element } }
    }

    @Test("has 20 buckets per decade from 1 µs to 10 min")
    func edges() {
        #expect(LatencyMap.edges.first == 1e-6)
        #expect(LatencyMap.edges.count == 177)
        #expect(abs(LatencyMap.edges[20] - 1e-5) < 1e-12)
        #expect((LatencyMap.edges[175], LatencyMap.edges[176]) < (600, 750))
    }

    /// Nanoseconds and the bucket.
    static let places: [(Int64, Int)] = [
        (1, 0), (999, 0), (1_001, 0), (1_300, 2), (1_400, 2), (10_010, 20), (1_001_000, 60), (998_000, 59),
        (600_000_000_000, 175),
    ]

    @Test("counts a duration in its bucket", arguments: places)
    func place(_ nanoseconds: Int64, _ bucket: Int) {
        let map = LatencyMap(
            text: Self.text([(0, [Self.lane("delivery_duration", [:], [nanoseconds])])]),
            metrics: ["delivery_duration"]
        )
        #expect(map.families.map { self.filled($0.counts(interval: 0)) } == [[bucket: 1]])
    }

    @Test("merges the series of a metric, what was not measured too, second by second")
    func merged() {
        let text = Self.text([
            (4, [Self.lane("connect_duration", ["phase": "total"], [2_000]), Self.lane("loop_lag", [:], [1])]),
            (4, [Self.lane("connect_duration", ["phase": "tcp"], [5]), Self.lane("a", ["qos": "1"], [2_000])]),
            (5, []),
            (
                6,
                [
                    Self.lane("a", ["qos": "1"], [2_000, 20_000]),
                    Self.lane("a", ["qos": "1"], [2_000], measured: false),
                    Self.lane("a", ["qos": "2", "leg": "pubrec"], [7]),
                    Self.lane("a", ["qos": "2", "leg": "pubcomp"], [2_000]),
                ]
            ),
        ])
        let map = LatencyMap(text: text, metrics: ["a", "connect_duration", "absent"])
        #expect(map.seconds == [4, 5, 6])
        #expect(map.families.map(\.name) == ["connect_duration", "a"])
        #expect(map.families.map(\.labels) == [[:], [:]])
        #expect(self.filled(map.families[0].counts(interval: 0)) == [6: 1])
        #expect((0..<3).map { self.filled(map.families[1].counts(interval: $0)) } == [[6: 1], [:], [6: 3, 26: 1]])
    }

    @Test("keeps the series apart by the labels that are named")
    func kept() {
        let text = Self.text([
            (
                0,
                [
                    Self.lane("a", ["qos": "1", "group": "x"], [2_000]),
                    Self.lane("a", ["qos": "2", "group": "x"], [2_000]),
                ]
            ),
            (1, [Self.lane("a", ["qos": "1", "group": "y"], [2_000])]),
        ])
        let map = LatencyMap(text: text, metrics: ["a"], keeping: ["group"])
        #expect(map.families.map(\.labels) == [["group": "x"], ["group": "y"]])
        #expect(map.families.map { $0.counts.reduce(0, +) } == [2, 1])
    }

    @Test("has what was whole of a log that was cut")
    func cut() {
        let text = Self.text([(0, [Self.lane("a", [:], [2_000])]), (1, [Self.lane("a", [:], [2_000])])])
        let map = LatencyMap(text: String(text.dropLast(5)), metrics: ["a"])
        #expect(map.seconds == [0])
        #expect(map.families.map { $0.counts.reduce(0, +) } == [1])
    }
}
