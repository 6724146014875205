import Testing

import Measurement

@Suite("Loop meter and run accumulator")
struct LoopMeterTests {
    @Test("swapping loses nothing and counts nothing twice", arguments: [1, 7, 100, 2500])
    func swapLosesNothing(every: Int) throws {
        var catalog = MetricCatalog()
        let ids = [catalog.duration("a"), catalog.duration("b", ["qos": "1"])]
        let sent = catalog.counter("sent")
        let meters = (0..<2).map { LoopMeter(catalog: catalog, loop: $0) }
        var accumulator = RunAccumulator(catalog: catalog)
        var whole = [Histogram(), Histogram()]
        var recycled: [LoopSample] = []
        var intervals: [TimelineInterval] = []
        for (number, value) in Distribution.all[2].values(5000).enumerated() {
            let which = value % 3 == 0 ? 1 : 0
            meters[number % 2].record(ids[which], value)
            meters[number % 2].add(sent)
            whole[which].record(value)
            guard (number + 1) % every == 0 else { continue }
            var samples = meters.map { $0.swap(recycled.popLast()) }
            intervals.append(accumulator.add(second: intervals.count, phase: "measure", samples: samples))
            for index in samples.indices { samples[index].clear() }
            recycled = samples
        }
        let last = meters.map { $0.swap(recycled.popLast()) }
        intervals.append(accumulator.add(second: intervals.count, phase: "drain", samples: last))

        for (id, expected) in zip(ids, whole) {
            let total = accumulator.histogram(of: id)
            #expect(total.buckets == expected.buckets)
            #expect(total.min == expected.min)
            #expect(total.max == expected.max)
        }
        #expect(accumulator.value(of: sent) == 5000)
        let gains = intervals.flatMap(\.metrics).filter { $0.name == "sent" }.compactMap { $0.counter?.value }
        #expect(gains.reduce(0, +) == 5000)
        var rebuilt = Histogram()
        for lane in intervals.flatMap(\.lanes) where lane.name == "a" {
            rebuilt.merge(try Histogram(decodingV2: lane.histogram))
        }
        #expect(rebuilt.buckets == whole[0].buckets)
    }

    @Test("swapping hands the counts over: the memory of the sample is the memory that was recorded into")
    func swapCopiesNothing() {
        var catalog = MetricCatalog()
        let id = catalog.duration("a")
        let meter = LoopMeter(catalog: catalog, loop: 0)
        func address(_ histogram: Histogram) -> UnsafeRawPointer? {
            histogram.withCounts { UnsafeRawPointer($0.baseAddress) } ?? nil
        }
        meter.record(id, 5)
        var sample = meter.swap()
        let first = address(sample.histograms[0])
        meter.record(id, 6)
        sample.clear()
        sample = meter.swap(sample)
        let second = address(sample.histograms[0])
        #expect(sample.histograms[0].count == 1)
        #expect(second != first)
        // The cleared histogram is reused for recording.
        meter.record(id, 7)
        sample.clear()
        sample = meter.swap(sample)
        #expect(address(sample.histograms[0]) == first)
    }

    @Test("a sample that was not cleared is not counted again")
    func uncleared() {
        var catalog = MetricCatalog()
        let id = catalog.duration("a")
        let meter = LoopMeter(catalog: catalog, loop: 0)
        meter.record(id, 5)
        let dirty = meter.swap()
        meter.record(id, 6)
        let next = meter.swap(dirty)
        #expect(next.histogram(of: id).count == 1)
        #expect(meter.swap().histogram(of: id).isEmpty)
    }

    @Test("what was not due in the measured phase is in the time line only, except in metrics of the whole run")
    func lanes() throws {
        var catalog = MetricCatalog()
        let ack = catalog.duration("ack")
        let connect = catalog.duration("connect", wholeRun: true)
        let meter = LoopMeter(catalog: catalog, loop: 0)
        for id in [ack, connect] {
            meter.record(id, 1000, measured: false)
            meter.record(id, 3000, count: 2, measured: true)
        }
        var accumulator = RunAccumulator(catalog: catalog)
        let interval = accumulator.add(second: 4, phase: "measure", samples: [meter.swap()])
        #expect(interval.metrics.compactMap(\.duration).map(\.count) == [3, 3])
        #expect(interval.lanes.map(\.count) == [2, 1, 3])
        #expect(interval.lanes.map(\.measured) == [true, false, true])
        #expect(interval.lanes.map(\.max) == [3e-6, 1e-6, 3e-6])
        let totals = accumulator.metrics(measuredSeconds: 1)
        #expect(totals.compactMap(\.duration).map(\.count) == [2, 3])
        #expect(totals.compactMap(\.duration).map(\.min) == [3e-6, 1e-6])
    }

    @Test("a counter's value covers the run, its rate the measured phase")
    func rates() throws {
        var catalog = MetricCatalog()
        let sent = catalog.counter("sent", ["qos": "0"])
        let time = catalog.counter("decode_time")
        let meters = (0..<2).map { LoopMeter(catalog: catalog, loop: $0) }
        var accumulator = RunAccumulator(catalog: catalog)
        func step(_ amount: UInt64, _ phase: String, _ second: Int) -> TimelineInterval {
            for meter in meters {
                meter.add(sent, amount)
                meter.add(time, 250_000_000)
            }
            return accumulator.add(second: second, phase: phase, samples: meters.map { $0.swap() })
        }
        #expect(step(10, "warm-up", 0).metrics[0].counter == CounterReading(value: 20, rate: 20))
        #expect(accumulator.metrics(measuredSeconds: nil)[0].counter == CounterReading(value: 20, rate: nil))
        for meter in meters { meter.beginMeasured() }
        _ = step(100, "measure", 1)
        #expect(accumulator.metrics(measuredSeconds: 1)[0].counter == CounterReading(value: 220, rate: 200))
        #expect(step(200, "measure", 2).metrics[0].counter == CounterReading(value: 400, rate: 400))
        for meter in meters { meter.endMeasured() }
        _ = step(1000, "drain", 3)
        let metrics = accumulator.metrics(measuredSeconds: 2)
        #expect(metrics[0].counter == CounterReading(value: 2620, rate: 300))
        #expect(metrics[1].counter == CounterReading(value: 2, rate: 0.5))
        #expect(metrics[1].unit == "seconds")
    }

    @Test("a rare event is counted without a slot, and absent before the first one")
    func rare() throws {
        let meters = (0..<2).map { LoopMeter(catalog: MetricCatalog(), loop: $0) }
        var accumulator = RunAccumulator(catalog: MetricCatalog())
        func step(_ second: Int) -> [Metric] {
            accumulator.add(second: second, phase: "measure", samples: meters.map { $0.swap() }).metrics
        }
        #expect(step(0).isEmpty)
        for meter in meters { meter.count("delivery_late", ["qos": "1"]) }
        meters[0].count("delivery_late", ["qos": "2"])
        let late = step(1)
        #expect(late.map(\.name) == ["delivery_late", "delivery_late"])
        #expect(late.map(\.labels) == [["qos": "1"], ["qos": "2"]])
        #expect(late.map { $0.counter?.value } == [2, 1])
        #expect(step(2).map { $0.counter?.value } == [0, 0])
        #expect(accumulator.metrics(measuredSeconds: 1).map { $0.counter?.value } == [2, 1])
        #expect(accumulator.errors.isEmpty)

        for (sentence, isMet) in [("delivery_late == 0", false), ("delivery_late{qos=2} < 2", true)] {
            let threshold = try Threshold.parse(sentence)
            var catalog = MetricCatalog()
            #expect(threshold.isAbsent(in: catalog))
            _ = catalog.counter("delivery_received", ["qos": "1"])
            #expect(!threshold.isAbsent(in: catalog) && threshold.problem(in: catalog) == nil)
            #expect(threshold.evaluate(in: accumulator.source(measuredSeconds: 1)).ok == isMet)
        }
        // It is counted after the load, where neither a stage nor the measured phase goes on.
        for sentence in ["delivery_late rate < 1/s", "delivery_late{stage=peak} == 0"] {
            var catalog = MetricCatalog()
            catalog.stages = [MetricStage("peak")]
            #expect(try Threshold.parse(sentence).problem(in: catalog) != nil)
        }
        let none = RunAccumulator(catalog: MetricCatalog()).source(measuredSeconds: 1)
        #expect(try Threshold.parse("delivery_late == 0").evaluate(in: none).ok)
    }

    @Test("gauges of several loops add up or compete, and an unset one is absent")
    func gauges() throws {
        var catalog = MetricCatalog()
        let clients = catalog.gauge("clients", ["state": "connected"])
        let lag = catalog.gauge("lag", merge: .highest)
        _ = catalog.gauge("never")
        let meters = (0..<2).map { LoopMeter(catalog: catalog, loop: $0) }
        var accumulator = RunAccumulator(catalog: catalog)
        for (first, second) in [(1.0, 2.0), (5, 5), (2, 0)] {
            meters[0].set(clients, first)
            meters[1].set(clients, second)
            meters[0].set(lag, first)
            meters[1].set(lag, second)
            _ = accumulator.add(second: 0, phase: "measure", samples: meters.map { $0.swap() })
        }
        let metrics = accumulator.metrics(measuredSeconds: 3)
        #expect(metrics.map(\.name) == ["clients", "lag"])
        #expect(metrics[0].gauge == GaugeReading(value: 2, min: 2, mean: 5, max: 10))
        #expect(metrics[1].gauge == GaugeReading(value: 2, min: 2, mean: 3, max: 5))
    }

    @Test("errors of several loops are counted by kind, with the first one's time and words")
    func errors() {
        let meters = (0..<2).map { LoopMeter(catalog: MetricCatalog(), loop: $0) }
        var accumulator = RunAccumulator(catalog: MetricCatalog(), realtimeOffset: 1_795_225_030_000_000_000)
        meters[0].error("refused", at: 2_000_000_000, count: 3, example: { "later" })
        meters[1].error("refused", at: 1_500_000_000, example: { "127.0.0.1:1883 refused" })
        meters[1].error("refused", at: 3_000_000_000, example: { "last" })
        _ = accumulator.add(second: 0, phase: "connect", samples: meters.map { $0.swap() })
        for meter in meters { meter.beginMeasured() }
        meters[0].error("reset", at: 4_000_000_000, count: 4, example: { "peer" })
        let interval = accumulator.add(second: 1, phase: "measure", samples: meters.map { $0.swap() })
        #expect(interval.metrics.map(\.labels) == [["kind": "refused"], ["kind": "reset"]])
        #expect(interval.metrics.compactMap { $0.counter?.value } == [0, 4])
        #expect(
            accumulator.errors == [
                ErrorRecord(
                    kind: "refused",
                    count: 5,
                    firstAt: "2026-11-21T01:37:11.500000Z",
                    example: "127.0.0.1:1883 refused"
                ),
                ErrorRecord(kind: "reset", count: 4, firstAt: "2026-11-21T01:37:14.000000Z", example: "peer"),
            ]
        )
        let rates = accumulator.metrics(measuredSeconds: 2).map { $0.counter?.rate }
        #expect(rates == [0, 2])
    }

    @Test("a metric asked for again is the same one")
    func catalog() {
        var catalog = MetricCatalog()
        let first = catalog.duration("a", ["x": "1", "y": "2"], wholeRun: true)
        #expect(catalog.duration("a", ["y": "2", "x": "1"]) == first)
        #expect(catalog.duration("a", ["x": "1"]) != first)
        #expect(catalog.counter("a") == catalog.counter("a"))
        #expect(catalog.gauge("a") == catalog.gauge("a"))
    }
}
