import Measurement
import Testing

@Suite("Metrics of a run with stages")
struct StageMetricsTests {
    /// Two loops, a warm-up and two stages that count.
    private struct Rig {
        var catalog = MetricCatalog()
        let timed: DurationID
        let connect: DurationID
        let sent: CounterID
        let meters: [LoopMeter]
        var accumulator: RunAccumulator

        init() {
            self.catalog.stages = [MetricStage("settle", measured: false), MetricStage("peak"), MetricStage("calm")]
            self.timed = self.catalog.duration("ack_duration", ["qos": "1"])
            self.connect = self.catalog.duration("connect_duration", wholeRun: true)
            self.sent = self.catalog.counter("sent", ["qos": "1"])
            let catalog = self.catalog
            self.meters = (0..<2).map { LoopMeter(catalog: catalog, loop: $0) }
            self.accumulator = RunAccumulator(catalog: catalog)
        }

        mutating func takeSecond(_ phase: String = "measure") -> TimelineInterval {
            let samples = self.meters.map { $0.swap() }
            return self.accumulator.add(second: 0, phase: phase, samples: samples)
        }

        /// Connects 2, then of each loop 1, 2 and 3 operations stage by stage, the last of each answered in the next.
        mutating func run() {
            for meter in self.meters {
                meter.record(self.connect, 1_000)
                for stage in 0..<3 {
                    meter.begin(stage: stage)
                    if stage > 0 { meter.record(self.timed, Int64(stage) * 1_000, lane: MetricLane.stage(stage - 1)) }
                    for _ in 0..<stage { meter.record(self.timed, 7_000, lane: MetricLane.stage(stage)) }
                    meter.add(self.sent, UInt64(stage + 1))
                    if stage == 1 {
                        meter.error("refused", at: 5) { "no" }
                        meter.record(self.connect, 2_000)
                    }
                }
                meter.begin(stage: nil)
                meter.add(self.sent, 100)
                meter.error("refused", at: 9) { "no" }
            }
            _ = self.takeSecond()
        }
    }

    private func value(_ metrics: [Metric], _ name: String, _ labels: Labels) -> Metric.Reading? {
        metrics.first { $0.name == name && $0.labels == labels }?.reading
    }

    @Test("each stage has what was due in it, however late it was answered; counters what happened in it")
    func stages() throws {
        var rig = Rig()
        rig.run()
        let metrics = rig.accumulator.stageMetrics(seconds: [1, 2, 4])
        #expect(metrics.allSatisfy { $0.labels["stage"] != nil })
        for (index, name) in ["settle", "peak", "calm"].enumerated() {
            let labels: Labels = ["qos": "1", "stage": name]
            let ack = metrics.first { $0.name == "ack_duration" && $0.labels == labels }?.duration
            #expect(ack?.count == [2, 4, 4][index], "\(name)")
            #expect(ack?.min == [1e-6, 2e-6, 7e-6][index], "\(name)")
            let sent = metrics.first { $0.name == "sent" && $0.labels == labels }?.counter
            #expect(sent?.value == [2, 4, 6][index])
            #expect(sent?.rate == [2, 2, 1.5][index])
        }
        let connects = metrics.filter { $0.name == "connect_duration" }
        #expect(connects.map { $0.labels["stage"] } == ["peak"])
        #expect(connects.map { $0.duration?.count } == [2])
        let errors = metrics.filter { $0.name == "errors" }
        #expect(errors.map(\.labels) == [["kind": "refused", "stage": "peak"]])
        #expect(errors.first?.counter == CounterReading(value: 2, rate: 1))
    }

    @Test("the run as a whole has all that counts: warm-ups are left out of durations and rates, of nothing else")
    func whole() throws {
        var rig = Rig()
        rig.run()
        let metrics = rig.accumulator.metrics(measuredSeconds: 6)
        #expect(metrics.allSatisfy { $0.labels["stage"] == nil })
        #expect(metrics.first { $0.name == "ack_duration" }?.duration?.count == 8)
        #expect(metrics.first { $0.name == "connect_duration" }?.duration?.count == 4)
        #expect(metrics.first { $0.name == "sent" }?.counter == CounterReading(value: 212, rate: 10.0 / 6))
        #expect(metrics.first { $0.name == "errors" }?.counter == CounterReading(value: 4, rate: 2.0 / 6))
    }

    @Test("a load that ends in a stage leaves the next one without anything, and its drain in no stage")
    func endsEarly() {
        var rig = Rig()
        for meter in rig.meters {
            meter.begin(stage: 0)
            meter.begin(stage: 1)
            meter.add(rig.sent, 3)
            meter.begin(stage: nil)
            meter.add(rig.sent, 50)
        }
        _ = rig.takeSecond("drain")
        let metrics = rig.accumulator.stageMetrics(seconds: [1, 2, 0]).filter { $0.name == "sent" }
        #expect(metrics.map { $0.labels["stage"] } == ["settle", "peak"])
        #expect(metrics.map { $0.counter?.value } == [0, 6])
        let whole = rig.accumulator.metrics(measuredSeconds: 2).first { $0.name == "sent" }
        #expect(whole?.counter == CounterReading(value: 106, rate: 3))
    }

    @Test("a stage that has ended is kept encoded, with the same figures, and what comes late is added to them")
    func closed() throws {
        var rig = Rig()
        var whole = Histogram()
        var samples: [LoopSample] = []
        func second(_ rig: inout Rig) {
            samples = rig.meters.enumerated().map { $1.swap(samples.isEmpty ? nil : samples[$0]) }
            _ = rig.accumulator.add(second: 0, phase: "measure", samples: samples)
            for index in samples.indices { samples[index].clear() }
        }
        for stage in 0..<3 {
            for (loop, meter) in rig.meters.enumerated() {
                meter.begin(stage: stage)
                for value in 1...50 {
                    let nanoseconds = Int64(value * value * value + loop) * 1_000_003
                    meter.record(rig.timed, nanoseconds, lane: MetricLane.stage(stage))
                    if stage == 1 { whole.record(nanoseconds) }
                }
            }
            second(&rig)
            // Only the one that goes on.
            #expect(rig.accumulator.heldStageDurations == 1)
        }
        #expect(try self.peak(rig) == Content(whole))
        // Late twice, once after the end of everything.
        for isOver in [false, true] {
            if isOver { for meter in rig.meters { meter.begin(stage: nil) } }
            rig.meters[1].record(rig.timed, 700_000_000_000, lane: MetricLane.stage(1))
            whole.record(700_000_000_000)
            second(&rig)
            #expect(rig.accumulator.heldStageDurations == (isOver ? 0 : 1))
            #expect(try self.peak(rig) == Content(whole))
        }
        second(&rig)
        // Nor does what goes back to the loops hold anything for what is over.
        #expect(samples.allSatisfy { $0.histograms.allSatisfy(\.buckets.isEmpty) })
        let live = rig.accumulator.source(measuredSeconds: 1)
        #expect(try Threshold.parse("ack_duration{stage=peak} count == 102").evaluate(in: live).ok)
        #expect(try Threshold.parse("ack_duration{stage=peak} max == 600s").evaluate(in: live).ok)
    }

    /// All that a histogram is.
    private struct Content: Equatable {
        let buckets: [UInt64]
        let figures: [Int64?]

        init(_ histogram: Histogram) {
            self.buckets = histogram.buckets
            self.figures = [histogram.min, histogram.max, Int64(histogram.count), Int64(histogram.clamped)]
        }
    }

    /// Of the second stage, as it is written.
    private func peak(_ rig: Rig) throws -> Content {
        let metrics = rig.accumulator.stageMetrics(seconds: nil)
        let metric = metrics.first { $0.name == "ack_duration" && $0.labels["stage"] == "peak" }
        return Content(try #require(metric?.duration?.decodedHistogram()))
    }

    @Test("the time line has the warm-up's durations beside those that count")
    func timeline() {
        var rig = Rig()
        for meter in rig.meters {
            meter.begin(stage: 0)
            meter.record(rig.timed, 1_000, lane: MetricLane.stage(0))
            meter.begin(stage: 1)
            meter.record(rig.timed, 2_000, lane: MetricLane.stage(1))
        }
        let lanes = rig.takeSecond().lanes.filter { $0.name == "ack_duration" }
        #expect(lanes.map(\.measured) == [true, false])
        #expect(lanes.map(\.count) == [2, 2])
        #expect(lanes.map(\.labels) == [["qos": "1"], ["qos": "1"]])
    }

    @Test("a threshold is about the whole run, or about the stage that it names")
    func thresholds() throws {
        var rig = Rig()
        rig.run()
        var record = RunRecord(
            command: [],
            tool: ToolRecord(name: "clamor", version: "0"),
            host: HostFacts(),
            plan: [:],
            startedAt: ""
        )
        record.metrics =
            rig.accumulator.metrics(measuredSeconds: 6) + rig.accumulator.stageMetrics(seconds: [1, 2, 4])
        let live = rig.accumulator.source(measuredSeconds: 6)
        for (sentence, value) in [
            ("ack_duration count == 8", 8.0), ("ack_duration{stage=settle} count == 2", 2),
            ("ack_duration{qos=1,stage=peak} count == 4", 4), ("sent count == 212", 212),
            ("sent{stage=calm} == 6", 6), ("errors{stage=peak} == 2", 2), ("errors == 4", 4),
        ] {
            let threshold = try Threshold.parse(sentence)
            #expect(threshold.evaluate(in: record) == ThresholdResult(expression: sentence, ok: true, value: value))
            #expect(threshold.evaluate(in: live) == ThresholdResult(expression: sentence, ok: true, value: value))
        }
        #expect(try Threshold.parse("sent{stage=peak} rate == 2/s").evaluate(in: record).ok)
        // Its length is not yet known.
        #expect(try Threshold.parse("sent{stage=peak} rate > 0/s").evaluate(in: live).value == nil)
    }

    @Test(
        "a stage that is none, or of something that has none, is refused",
        arguments: [
            ("sent{stage=top} < 1", "there is no stage 'top'; the stages are settle, peak, calm"),
            ("delivery_lost{stage=peak} == 0", "delivery_lost exists only for the whole run; omit stage="),
            ("clients{stage=peak} > 0", "clients exists only for the whole run; omit stage="),
            ("sent{stage=peak,qos=2} < 1", "sent has no such labels; it has {qos=1}"),
        ]
    )
    func refusals(sentence: String, problem: String) throws {
        var catalog = Rig().catalog
        _ = catalog.counter("delivery_lost")
        _ = catalog.gauge("clients")
        let threshold = try Threshold.parse(sentence)
        #expect(threshold.problem(in: catalog)?.problem == problem)
        #expect(try Threshold.parse("sent{stage=peak} < 1").problem(in: catalog) == nil)
        let rate = try Threshold.parse("error_rate{stage=peak} < 1%")
        #expect(rate.problem(in: catalog)?.problem == "error_rate exists only for the whole run; omit stage=")
    }

    @Test(
        "what is settled at the end belongs to no stage",
        arguments: [
            "publish_failed", "publish_outstanding", "stanza_failed", "stanza_outstanding",
            "delivery_expected", "delivery_received", "delivery_lost",
            "delivery_outstanding", "delivery_missing", "delivery_gaps", "delivery_duplicated", "delivery_overlap",
            "delivery_reordered",
        ]
    )
    func settled(name: String) throws {
        var catalog = Rig().catalog
        _ = catalog.counter(.named(name))
        let problem = try Threshold.parse("\(name){stage=peak} == 0").problem(in: catalog)?.problem
        #expect(problem == "\(name) exists only for the whole run; omit stage=")
        #expect(try Threshold.parse("\(name) == 0").problem(in: catalog) == nil)
    }

    @Test("without stages none can be named")
    func noStages() throws {
        var catalog = MetricCatalog()
        _ = catalog.counter("sent")
        let problem = try Threshold.parse("sent{stage=peak} < 1").problem(in: catalog)?.problem
        #expect(problem == "there is no stage 'peak'; this run has no stages")
    }
}
