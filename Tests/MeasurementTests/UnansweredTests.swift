import Foundation
import Measurement
import Testing

@Suite("Operations without an answer")
struct UnansweredTests {
    /// Answered values and ages, in nanoseconds that a histogram keeps exactly.
    private struct Mixture {
        var answered: [Int64] = []
        var ages: [Int64] = []

        init(_ dice: inout SplitMix64) {
            let size = Int64(1 << (dice.next() % 10))
            func values(_ dice: inout SplitMix64, _ most: UInt64) -> [Int64] {
                (0..<dice.next() % most).map { _ in Int64(dice.next() % 1_000) / size * size + 1 }
            }
            self.answered = values(&dice, 120)
            self.ages = values(&dice, 40)
            if self.answered.isEmpty, self.ages.isEmpty { self.answered = [1] }
        }

        func values(_ dice: inout SplitMix64) -> DurationValues {
            var values = DurationValues(answered: Histogram(of: self.answered))
            for age in self.ages { values.unanswered.record(age, as: dice.next() % 2 == 0 ? .failed : .outstanding) }
            return values
        }

        /// The interval of the `rank`-th value: by sorting.
        func interval(_ rank: Int) -> (low: Int64, high: Int64?) {
            let answered = self.answered.sorted()
            return ((self.answered + self.ages).sorted()[rank - 1], rank <= answered.count ? answered[rank - 1] : nil)
        }
    }

    @Test("a percentile lies where sorting says, and a merge changes nothing: 10,000 mixtures")
    func mixtures() throws {
        var dice = SplitMix64(seed: 42)
        let percents: [(percent: Double, of10000: Int)] = [
            (50, 5_000), (90, 9_000), (95, 9_500), (99, 9_900), (99.9, 9_990), (100, 10_000),
        ]
        for number in 0..<5_000 {
            let (one, two) = (Mixture(&dice), Mixture(&dice))
            var both = one
            both.answered += two.answered
            both.ages += two.ages
            var merged = one.values(&dice)
            merged.merge(two.values(&dice))
            for (mixture, values) in [(one, one.values(&dice)), (both, merged)] {
                let count = mixture.answered.count + mixture.ages.count
                let (percent, part) = percents[Int(dice.next() % UInt64(percents.count))]
                let expected = mixture.interval(max(1, (count * part + 9_999) / 10_000))
                let found = try #require(values.percentile(percent))
                #expect(found.low == expected.low && found.high == expected.high, "\(number), p\(percent): \(mixture)")
                #expect(found.isExact == (expected.low == expected.high))
                #expect(values.count == UInt64(count) && values.unanswered.ages.count == UInt64(mixture.ages.count))
            }
        }
    }

    @Test("a reading comes back from its encoding with the same figures and bounds: 200 mixtures")
    func encoded() throws {
        var dice = SplitMix64(seed: 43)
        for _ in 0..<200 {
            let values = Mixture(&dice).values(&dice)
            let reading = try #require(DurationReading(values, isEncoded: true))
            #expect(reading.count == values.count && reading.answered == values.answered.count)
            #expect(reading.bounds.contains("mean") == !values.unanswered.isEmpty)
            let decoded = try #require(reading.decodedValues())
            #expect(decoded.unanswered.failed == values.unanswered.failed)
            #expect(decoded.unanswered.outstanding == values.unanswered.outstanding)
            for percent in [50, 90, 99, 100.0] { #expect(decoded.percentile(percent) == values.percentile(percent)) }
            #expect(DurationReading(decoded, isEncoded: true)?.bounds == reading.bounds)
            let metric = Metric(duration: "publish_ack_duration", labels: ["qos": "1"], reading: reading)
            #expect(try JSONDecoder().decode(Metric.self, from: JSONEncoder().encode(metric)) == metric)
        }
    }

    @Test("without their ages they make an interval wider, and never narrower: 500 mixtures")
    func withoutAges() throws {
        var dice = SplitMix64(seed: 44)
        for _ in 0..<500 {
            let values = Mixture(&dice).values(&dice)
            var reading = try #require(DurationReading(values, isEncoded: true))
            reading.unanswered?.histogram = nil
            let weaker = try #require(reading.decodedValues())
            for percent in [50, 90, 99, 100.0] {
                let (exact, wide) = (try #require(values.percentile(percent)), try #require(weaker.percentile(percent)))
                #expect(wide.low <= exact.low)
                if let high = wide.high { #expect(exact.high.map { $0 <= high } == true) }
            }
        }
    }

    @Test("a reading with more of them than values is damaged")
    func damaged() throws {
        var values = DurationValues(answered: Histogram(of: [1_000, 2_000]))
        values.unanswered.record(3_000, as: .failed)
        var reading = try #require(DurationReading(values, isEncoded: true))
        reading.unanswered?.failed = 4
        #expect(reading.decodedValues() == nil)
        let data = try JSONEncoder().encode(Metric(duration: "d", labels: [:], reading: reading))
        let text = String(decoding: data, as: UTF8.self)
        #expect(text.contains("\"failed\":4"))
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Metric.self, from: data) }
    }

    @Test("one that is recorded late is in the interval, the totals and its stage")
    func recorded() throws {
        var catalog = MetricCatalog()
        catalog.stages = [MetricStage("peak")]
        let ack = catalog.duration("publish_ack_duration", ["qos": "1"])
        let meter = LoopMeter(catalog: catalog, loop: 0)
        var accumulator = RunAccumulator(catalog: catalog)
        meter.begin(stage: 0)
        meter.record(ack, 1_000, lane: MetricLane.stage(0))
        meter.begin(stage: nil)
        _ = accumulator.add(second: 0, phase: "measure", samples: [meter.swap()])
        meter.recordUnanswered(ack, 5_000, count: 2, lane: MetricLane.stage(0), as: .outstanding)
        meter.recordUnanswered(ack, 3_000, lane: MetricLane.unmeasured, as: .failed)
        let interval = accumulator.add(second: 1, phase: "drain", samples: [meter.swap()])
        #expect(interval.lanes.map(\.unanswered?.outstanding) == [2, 0])
        #expect(interval.lanes.map(\.unanswered?.failed) == [0, 1])
        #expect(interval.lanes.map(\.count) == [2, 1])
        let shown = try #require(interval.metrics.first { $0.name == "publish_ack_duration" }?.duration)
        #expect(shown.count == 3 && shown.answered == 0)
        let metrics = accumulator.metrics(measuredSeconds: 1) + accumulator.stageMetrics(seconds: [1])
        let readings = metrics.compactMap(\.duration)
        #expect(readings.map(\.count) == [3, 3] && readings.map(\.answered) == [1, 1])
        #expect(readings.allSatisfy { $0.unanswered?.outstanding == 2 && $0.isBound(\.p50) })
    }
}

@Suite("Objectives that are met, broken or undecided")
struct ThresholdStateTests {
    private struct Source: MetricSource {
        var values: DurationValues
        var counters: [String: Double] = [:]
        var duration = "publish_ack_duration"

        func readings(of name: String, stage: String?) -> [MetricReading] {
            if name == self.duration {
                return [MetricReading(labels: ["qos": "1", "leg": "puback"], value: .duration(self.values))]
            }
            return self.counters[name].map {
                [MetricReading(labels: ["qos": "1"], value: .counter(CounterReading(value: $0, rate: nil)))]
            } ?? []
        }
    }

    /// 98 answers of 1 ms, and two messages without one after 10 s.
    private static let source: Source = {
        var values = DurationValues(answered: Histogram(of: (0..<98).map { _ in 1_000_000 }))
        values.unanswered.record(10_000_000_000, count: 2, as: .outstanding)
        return Source(
            values: values,
            counters: [
                "publish_offered": 100, "publish_failed": 1, "publish_outstanding": 2, "errors": 7,
                "delivery_lost": 3, "delivery_outstanding": 4,
            ]
        )
    }()

    typealias Row = (String, ThresholdResult.State, low: Double?, high: Double?)

    static let rows: [Row] = [
        ("publish_ack_duration p98 < 50ms", .met, 0.001, 0.001),
        ("publish_ack_duration p99 < 50ms", .broken, 10, nil),
        ("publish_ack_duration p99 < 20s", .undecided, 10, nil),
        ("publish_ack_duration p99 > 1s", .met, 10, nil),
        ("publish_ack_duration p99 > 20s", .undecided, 10, nil),
        ("publish_ack_duration max <= 9s", .broken, 10, nil),
        ("publish_ack_duration mean < 1ms", .broken, 0.201, nil),
        ("publish_ack_duration mean < 1s", .undecided, 0.201, nil),
        ("publish_ack_duration min < 2ms", .met, 0.001, 0.001),
        ("publish_ack_duration count == 98", .met, 98, 98),
        ("publish_ack_duration p99 == 20s", .undecided, 10, nil),
        ("publish_ack_duration p99 != 20s", .undecided, 10, nil),
        ("publish_ack_duration p99 != 5s", .met, 10, nil),
        ("delivery_lost == 0", .broken, 3, 7),
        ("delivery_lost == 5", .undecided, 3, 7),
        ("delivery_lost < 8", .met, 3, 7),
        ("delivery_lost < 7", .undecided, 3, 7),
        ("delivery_lost <= 2", .broken, 3, 7),
        ("delivery_outstanding == 4", .met, 4, 4),
        ("publish_outstanding < 3", .met, 2, 2),
        ("error_rate <= 3%", .met, 0.03, 0.03),
        ("error_rate < 3%", .broken, 0.03, 0.03),
        ("ping_duration p99 < 1s", .broken, nil, nil),
    ]

    @Test(
        "error_rate has each kind of operation that has no books",
        arguments: [
            "connect_duration", "reconnect_duration", "subscribe_duration", "subscription_churn_duration",
            "muc_join_duration", "presence_setup_duration",
        ]
    )
    func singleOperations(_ name: String) throws {
        var values = DurationValues()
        values.answered.record(1_000, count: 7)
        values.unanswered.record(1_000, as: .failed)
        values.unanswered.record(1_000, count: 2, as: .outstanding)
        let source = Source(values: values, counters: ["publish_offered": 10, "publish_failed": 1], duration: name)
        #expect(try Threshold.parse("error_rate < 1%").evaluate(in: source).value == 0.2)
    }

    /// Answers to requests; and until a run has ended, the least that is known of messages.
    @Test(
        "error_rate has requests beside their publishes, and while the run goes on what is known to have failed",
        arguments: [
            (["publish_offered": 5, "requests_answered": 3, "requests_lost": 1, "requests_outstanding": 1], 0.2),
            (["stanza_offered": 10, "stanza_refused": 2], 0.2), (["stanza_offered": 10, "stanza_failed": 2], 0.2),
            (["stanza_offered": 10, "stanza_refused": 2, "stanza_failed": 3], 0.3),
        ] as [([String: Double], Double)]
    )
    func books(_ counters: [String: Double], _ rate: Double) throws {
        let source = Source(values: DurationValues(), counters: counters)
        #expect(try Threshold.parse("error_rate < 1%").evaluate(in: source).value == rate)
    }

    @Test("by the whole interval of the figure", arguments: rows)
    func states(_ row: Row) throws {
        let threshold = try Threshold.parse(row.0)
        let result = threshold.evaluate(in: Self.source)
        #expect(result.state == row.1)
        #expect(result.ok == (row.1 == .met))
        #expect((result.value == nil) == (row.low == nil))
        if let value = result.value, let low = row.low { #expect(abs(value - low) <= low / 500) }
        // Without an interval the figure is its own end.
        let high = result.isBound ? result.high : result.value
        #expect((high == nil) == (row.high == nil))
        if let high, let end = row.high { #expect(abs(high - end) <= end / 500) }
        #expect(threshold.isBroken(in: Self.source) == (row.1 == .broken && row.low != nil))
    }

    @Test("a result comes back from JSON, and one of clamor.run/1 has two states")
    func json() throws {
        for row in Self.rows {
            let result = try Threshold.parse(row.0).evaluate(in: Self.source)
            #expect(try JSONDecoder().decode(ThresholdResult.self, from: JSONEncoder().encode(result)) == result)
        }
        for (ok, state) in [("true", ThresholdResult.State.met), ("false", .broken)] {
            let old = Data("{\"expression\":\"errors == 0\",\"ok\":\(ok),\"value\":2}".utf8)
            let result = try JSONDecoder().decode(ThresholdResult.self, from: old)
            #expect(result == ThresholdResult(expression: "errors == 0", state: state, value: 2))
        }
    }

    @Test("a duration of clamor.run/1 has no operation without an answer")
    func old() throws {
        let reading = try #require(DurationReading(Histogram(of: [1_000_000]), encoded: nil))
        let metric = Metric(duration: "publish_ack_duration", labels: [:], reading: reading)
        var object = try #require(
            JSONSerialization.jsonObject(with: JSONEncoder().encode(metric)) as? [String: Any]
        )
        for key in ["answered", "failed", "outstanding"] { #expect(object.removeValue(forKey: key) != nil) }
        let old = try JSONSerialization.data(withJSONObject: object)
        let read = try JSONDecoder().decode(Metric.self, from: old)
        #expect(read.duration?.answered == 1 && read.duration?.unanswered == nil)
        #expect(RunRecord.knownSchemas == ["clamor.run/1", "clamor.run/2"])
        #expect(RunRecord.currentSchema == "clamor.run/2")
    }
}
