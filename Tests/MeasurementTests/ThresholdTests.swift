import Testing

import Measurement

@Suite("Thresholds")
struct ThresholdTests {
    /// Metrics written down by hand.
    struct Source: MetricSource {
        var metrics: [(name: String, reading: MetricReading)] = []

        func readings(of name: String, stage: String?) -> [MetricReading] {
            self.metrics.filter { $0.name == name && $0.reading.labels["stage"] == stage }.map(\.reading)
        }

        mutating func duration(_ name: String, _ labels: Labels, milliseconds: [Int64]) {
            let histogram = Histogram(of: milliseconds.map { $0 * 1_000_000 })
            let values = DurationValues(answered: histogram)
            self.metrics.append((name, MetricReading(labels: labels, value: .duration(values))))
        }

        mutating func counter(_ name: String, _ labels: Labels = [:], _ value: Double, rate: Double? = nil) {
            let reading = CounterReading(value: value, rate: rate)
            self.metrics.append((name, MetricReading(labels: labels, value: .counter(reading))))
        }
    }

    static let source: Source = {
        var source = Source()
        source.duration("connect_duration", ["phase": "tcp"], milliseconds: [1, 2, 3])
        source.duration("connect_duration", ["phase": "session"], milliseconds: [10, 20, 30])
        source.duration("connect_duration", ["phase": "total"], milliseconds: [11, 22, 33])
        source.duration("publish_ack_duration", ["qos": "1", "leg": "puback"], milliseconds: [4, 5])
        source.duration("publish_ack_duration", ["qos": "2", "leg": "pubrec"], milliseconds: [100, 200])
        source.duration("publish_ack_duration", ["qos": "2", "leg": "pubcomp"], milliseconds: [8, 9])
        source.duration("connect_lag", [:], milliseconds: [1, 1, 1])
        source.counter("publish_sent", ["qos": "0"], 1000, rate: 60_000)
        source.counter("publish_sent", ["qos": "1"], 500, rate: 20_000)
        source.counter("publish_offered", ["qos": "0"], 1497)
        source.counter("delivery_lost", ["qos": "0"], 0)
        source.counter("publish_failed", ["qos": "1"], 3)
        source.counter("errors", ["kind": "reset"], 9)
        let gauge = GaugeReading(value: 5, min: 1, mean: 3, max: 7)
        source.metrics.append(("clients", MetricReading(labels: ["state": "connected"], value: .gauge(gauge))))
        return source
    }()

    @Test(
        "hold or fail, and say what was measured",
        arguments: [
            // Seconds; percentiles are the highest values of their buckets, hence the tolerance below.
            ("connect_duration p99 < 250ms", true, 0.033),
            ("connect_duration max < 33ms", false, 0.033),
            ("connect_duration max <= 33ms", true, 0.033),
            ("connect_duration{phase=tcp} max < 5ms", true, 0.003),
            ("connect_duration count == 3", true, 3),
            ("publish_ack_duration max < 10ms", true, 0.009),
            ("publish_ack_duration count == 4", true, 4),
            ("publish_ack_duration{leg=pubrec} p50 > 99ms", true, 0.1),
            ("publish_ack_duration{qos=1} p99.9 < 50ms", true, 0.005),
            ("publish_ack_duration{qos=1} mean < 5000us", true, 0.0045),
            ("publish_ack_duration{qos=1,leg=\"puback\"} min >= 4000000ns", true, 0.004),
            ("publish_ack_duration{qos=2} p50 < 8.5 ms", true, 0.008),
            ("publish_sent{qos=0} rate > 50000/s", true, 60_000),
            ("publish_sent rate > 90000", false, 80_000),
            ("publish_sent >= 1500", true, 1500),
            ("publish_sent{ qos = 1 } count != 500", false, 500),
            ("delivery_lost == 0", true, 0),
            ("delivery_lost count == 0", true, 0),
            ("error_rate < 0.1%", false, 0.002),
            ("error_rate < 0.3%", true, 0.002),
            ("error_rate < 0.003", true, 0.002),
            ("clients{state=connected} == 5", true, 5),
            ("clients max < 7", false, 7),
            ("clients min >= 1", true, 1),
            ("errors{kind=refused} count == 0", true, 0),
            ("  delivery_lost==0   abort ", true, 0),
        ] as [(String, Bool, Double)]
    )
    func evaluates(_ expression: String, _ ok: Bool, _ value: Double) throws {
        let result = try Threshold.parse(expression).evaluate(in: Self.source)
        #expect(result.ok == ok)
        let measured = try #require(result.value)
        #expect(abs(measured - value) <= value / 1000)
    }

    @Test(
        "fail without a sample, whatever they ask for",
        arguments: [
            "delivery_duration p99 < 1h".replacing("1h", with: "9999s"), "delivery_duration max >= 0s",
            "delivery_duration{qos=0} mean != 5ms", "received rate < 5/s", "publish_offered rate >= 0/s",
            "publish_ack_duration{qos=0} min >= 0s", "clients{state=lost} max < 5",
        ]
    )
    func noSample(_ expression: String) throws {
        let threshold = try Threshold.parse(expression)
        #expect(threshold.evaluate(in: Self.source) == ThresholdResult(expression: expression, ok: false, value: nil))
        #expect(!threshold.isBroken(in: Self.source))
    }

    @Test("error_rate without an operation is not known")
    func noOperation() throws {
        #expect(try Threshold.parse("error_rate < 1%").evaluate(in: Source()).value == nil)
    }

    @Test(
        "refuse what is not a threshold, in one line that says what would be right",
        arguments: [
            ("", "no metric name"),
            ("< 5", "no metric name"),
            ("9lives < 5", "no metric name"),
            ("connect_duration", "a duration needs a field"),
            ("connect_duration < 5ms", "p99.9"),
            ("connect_duration p101 < 5ms", "'p101' is not a field"),
            ("connect_duration p < 5ms", "'p' is not a field"),
            ("connect_duration p9e1 < 5ms", "'p9e1' is not a field"),
            ("connect_duration p50% < 5ms", "'p50%' is not a field"),
            ("connect_duration median < 5ms", "count, rate, min, mean, max"),
            ("connect_duration p99 5ms", "no comparison"),
            ("connect_duration p99 = 5ms", "'=' is not a comparison; use <, <=, >, >=, == or !="),
            ("connect_duration p99 =< 5ms", "'=<' is not a comparison"),
            ("connect_duration p99 <", "no number"),
            ("connect_duration p99 < fast", "no number"),
            ("connect_duration p99 < -5ms", "no number"),
            ("connect_duration p99 < 1.2.3ms", "no number"),
            ("connect_duration p99 < 5min", "'min' is not a unit; use ns, us, ms, s, %, MiB or /s"),
            ("connect_duration p99 < 5", "a time, such as 50ms"),
            ("connect_duration p99 < 5%", "a duration is not compared with a share"),
            ("connect_duration max < 5/s", "only rate"),
            ("connect_duration max < 5", "a time, such as 50ms"),
            ("connect_duration p99 < 5ms/h", "only slope is compared with a value per hour"),
            ("server_memory_bytes max < 5MiB/h", "only slope"),
            ("server_memory_bytes slope < 5MiB", "a value per hour, such as 1MiB/h"),
            ("server_memory_bytes slope < 5ms/h", "a value per hour, such as 1MiB/h"),
            ("connect_duration slope < 5MiB/h", "a time per hour, such as 1ms/h"),
            ("server_memory_bytes slope < 5min/h", "'min/h' is not a unit"),
            ("server_memory_bytes slope < 5MiB/h abort", "a slope is known when the run has ended; leave abort out"),
            ("connect_duration p99 < 5ms stop", "only 'abort' may follow"),
            ("connect_duration p99 < 5ms abort now", "only 'abort' may follow"),
            ("connect_duration{phase=tcp p99 < 5ms", "no '}'"),
            ("connect_duration{phase} p99 < 5ms", "label 'phase' has no value"),
            ("connect_duration{phase=} p99 < 5ms", "incomplete"),
            ("a{b=1,b=2} count < 5", "'b' is given twice"),
            ("publish_sent count < 5ms", "plain number"),
            ("publish_sent rate < 5ms", "per second"),
            ("error_rate p99 < 5ms", "error_rate has no fields"),
            ("error_rate < 5ms", "a share, such as 0.1%"),
        ]
    )
    func refuses(_ expression: String, _ words: String) {
        let error = #expect(throws: ThresholdError.self) { try Threshold.parse(expression) }
        let description = error?.description ?? ""
        #expect(description.contains(words), "\(description)")
        #expect(!description.contains("\n"))
    }

    @Test(
        "read every unit",
        arguments: [
            ("1ns", 1e-9), ("1us", 1e-6), ("1µs", 1e-6), ("1μs", 1e-6), ("1ms", 1e-3), ("1s", 1), ("2.5 ms", 2.5e-3),
            ("5msabort".replacing("abort", with: " abort"), 5e-3),
        ]
    )
    func units(_ text: String, _ seconds: Double) throws {
        let threshold = try Threshold.parse("connect_duration p99 < \(text)")
        #expect(abs(threshold.limit - seconds) < seconds * 1e-12)
        #expect(threshold.unit == .time)
        #expect(threshold.aborts == text.hasSuffix("abort"))
    }

    @Test(
        "are broken for good only when the run cannot mend it",
        arguments: [
            ("delivery_lost == 0", 0, false), ("delivery_lost == 0", 1, true), ("delivery_lost == 5", 4, false),
            ("delivery_lost < 3", 3, true), ("delivery_lost <= 3", 3, false), ("delivery_lost > 3", 1, false),
            ("delivery_lost count >= 3", 1, false), ("delivery_lost != 3", 3, false),
        ] as [(String, Double, Bool)]
    )
    func broken(_ expression: String, _ value: Double, _ isBroken: Bool) throws {
        var source = Source()
        source.counter("delivery_lost", ["qos": "1"], value)
        #expect(try Threshold.parse(expression).isBroken(in: source) == isBroken)
    }

    @Test(
        "a percentile is decided once more operations were too slow than all of the run may have",
        arguments: [
            // One of 100 was too slow: 1 %, and of the whole run the share of it.
            ("publish_ack_duration p99 < 50ms", 1, 1.0, false), ("publish_ack_duration p99 < 50ms", 2, 1.0, true),
            ("publish_ack_duration p99 < 50ms", 2, 0.4, false), ("publish_ack_duration p99 < 50ms", 3, 0.4, true),
            ("publish_ack_duration p99 < 50ms", 100, 0.01, false), ("publish_ack_duration p99 < 50ms", 100, 0.02, true),
            ("publish_ack_duration p90 < 50ms", 20, 0.4, false), ("publish_ack_duration p90 < 50ms", 26, 0.4, true),
            // A lower percentile than asked for, and a mean, may still change.
            ("publish_ack_duration p99 > 50ms", 0, 0.5, false), ("publish_ack_duration mean < 1us", 50, 0.5, false),
        ] as [(String, Int, Double, Bool)]
    )
    func decided(_ expression: String, _ slow: Int, _ share: Double, _ isDecided: Bool) throws {
        var source = Source()
        let times = (0..<100).map { $0 < slow ? 100 : 1 as Int64 }
        source.duration("publish_ack_duration", ["qos": "1", "leg": "puback"], milliseconds: times)
        #expect(try Threshold.parse(expression).isDecided(in: source, share: share) == isDecided)
    }

    @Test("a percentile that is too high is broken at once")
    func brokenPercentile() throws {
        #expect(try Threshold.parse("connect_duration p99 < 5ms").isBroken(in: Self.source))
        #expect(try !Threshold.parse("connect_duration p99 < 50ms").isBroken(in: Self.source))
    }

    @Test("name a metric, a label or a field that the run does not have")
    func catalog() throws {
        var catalog = MetricCatalog()
        _ = catalog.duration("ack", ["qos": "1"])
        _ = catalog.counter("sent", ["qos": "0"])
        func problem(_ text: String) throws -> String? {
            try Threshold.parse(text).problem(in: catalog)?.description
        }
        #expect(try problem("ack p99 < 1s") == nil)
        #expect(try problem("ack{qos=1} p99 < 1s") == nil)
        #expect(try problem("sent > 5") == nil)
        #expect(try problem("error_rate < 1%") == nil)
        #expect(try problem("errors{kind=reset} == 0") == nil)
        #expect(try problem("akc p99 < 1s")?.hasSuffix("this run has no metric 'akc'; name another") == true)
        #expect(try Threshold.parse("akc p99 < 1s").isAbsent(in: catalog))
        for present in ["ack{qos=2} p99 < 1s", "error_rate < 1%", "errors == 0", "server_memory_bytes < 1"] {
            #expect(try !Threshold.parse(present).isAbsent(in: catalog), "\(present)")
        }
        #expect(try problem("ack{qos=2} p99 < 1s")?.hasSuffix("no such labels; it has {qos=1}") == true)
        #expect(try problem("ack rate < 1/s")?.hasSuffix("a duration has no rate; use count") == true)
        #expect(try problem("ack < 1s")?.hasSuffix("such as p99") == true)
        _ = catalog.counter("delivery_lost", ["qos": "0"])
        #expect(try problem("delivery_lost rate < 1/s")?.hasSuffix("and has no rate; use count") == true)
        #expect(try problem("errors rate < 1/s") == nil)
        _ = catalog.gauge("clients", ["state": "connected"])
        #expect(try problem("clients rate < 1/s")?.hasSuffix("a level has no rate; use max or mean") == true)
    }

    @Test("a run without an error has the rate 0 of errors, and of no other counter")
    func noErrors() throws {
        #expect(try Threshold.parse("errors rate < 1/s").evaluate(in: Source()).state == .met)
        #expect(try Threshold.parse("sent rate < 1/s").evaluate(in: Source()).state == .broken)
    }

    @Test("the clients of a run are those of its load, before they leave")
    func clients() throws {
        var catalog = MetricCatalog()
        let clients = catalog.gauge("clients", ["state": "connected"])
        let other = catalog.gauge("queue", [:])
        let meter = LoopMeter(catalog: catalog, loop: 0)
        var accumulator = RunAccumulator(catalog: catalog)
        for (second, (phase, count)) in [("connect", 4), ("measure", 10), ("measure", 9), ("drain", 0)].enumerated() {
            meter.set(clients, Double(count))
            meter.set(other, Double(count))
            let interval = accumulator.add(second: second, phase: phase, samples: [meter.swap()])
            #expect(interval.metrics.first { $0.name == "clients" }?.gauge?.value == Double(count))
        }
        let source = accumulator.source(measuredSeconds: 2)
        for (condition, state) in [
            ("clients >= 9", ThresholdResult.State.met), ("clients min == 4", .met), ("clients max == 10", .met),
            ("clients < 9", .broken), ("queue == 0", .met),
        ] {
            #expect(try Threshold.parse(condition).evaluate(in: source).state == state, "\(condition)")
        }
    }

    @Test("come out the same from the run and from its record")
    func liveAndRecord() throws {
        var catalog = MetricCatalog()
        let ack = catalog.duration("publish_ack_duration", ["qos": "1", "leg": "puback"])
        let sent = catalog.counter("publish_sent", ["qos": "1"])
        let meter = LoopMeter(catalog: catalog, loop: 0)
        meter.beginMeasured()
        for value in Distribution.all[3].values(10_000) {
            meter.record(ack, value)
            meter.add(sent)
        }
        var accumulator = RunAccumulator(catalog: catalog)
        _ = accumulator.add(second: 0, phase: "measure", samples: [meter.swap()])
        var record = RunRecordTests.record
        record.metrics = accumulator.metrics(measuredSeconds: 2)
        for field in ["count", "min", "mean", "p1", "p50", "p99.99", "max"] {
            let threshold = try Threshold.parse("publish_ack_duration \(field) > \(field == "count" ? "0" : "0s")")
            let live = threshold.evaluate(in: accumulator.source(measuredSeconds: 2))
            #expect(live.value != nil)
            #expect(live == threshold.evaluate(in: record))
        }
        let rate = try Threshold.parse("publish_sent rate == 5000/s")
        #expect(rate.evaluate(in: accumulator.source(measuredSeconds: 2)).ok)
        #expect(rate.evaluate(in: record).ok)
    }
}
