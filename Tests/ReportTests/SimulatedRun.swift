import Measurement
import Report

/// A run of six seconds on one loop, second by second: connect, warm-up, three measured, drain.
struct SimulatedRun {
    static let phases = ["connect", "warm-up", "measure", "measure", "measure", "drain"]

    let begun = Samples.begun(["clamor", "pub", "-q", "1"])
    private(set) var intervals: [TimelineInterval] = []
    /// As the run itself would have ended.
    private(set) var ended: RunRecord

    init() {
        var catalog = MetricCatalog()
        let connect = catalog.duration("connect_duration", ["phase": "total"], wholeRun: true)
        let ack = catalog.duration("publish_ack_duration", ["qos": "1", "leg": "puback"])
        let sent = catalog.counter("publish_sent", ["qos": "1"])
        let acked = catalog.counter("publish_acked", ["qos": "1"])
        let clients = catalog.gauge("clients", ["state": "connected"])
        let meter = LoopMeter(catalog: catalog, loop: 0)
        var accumulator = RunAccumulator(catalog: catalog, realtimeOffset: Samples.startedAt)

        for (second, phase) in Self.phases.enumerated() {
            if second == 2 { meter.beginMeasured() }
            if second == 5 { meter.endMeasured() }
            if phase == "connect" {
                for number in 1...20 { meter.record(connect, Int64(number) * 1_234_567) }
            } else {
                let count = UInt64(second * 100)
                if phase != "drain" { meter.add(sent, count) }
                meter.add(acked, count / 2)
                // In the drain what was due in the measured phase comes in; in the first measured second what was not.
                for number in 1...count {
                    meter.record(ack, Int64(number) * 98_765, measured: second > 2 || (second == 2 && number > 50))
                }
            }
            if second == 3 {
                meter.error("reset", at: 3_400_000_000, count: 2) { "read from 127.0.0.1: Connection reset by peer" }
            }
            meter.set(clients, second < 4 ? 20 : 18)
            self.intervals.append(accumulator.add(second: second, phase: phase, samples: [meter.swap()]))
        }
        self.ended = self.begun
        self.ended.durationSeconds = 6
        self.ended.verdict = .valid
        self.ended.metrics = accumulator.metrics(measuredSeconds: 3)
        self.ended.errors = accumulator.errors
    }

    /// Writes the first `count` intervals to a directory.
    func write(_ path: String, intervals count: Int) throws -> RunWriter {
        let writer = try RunWriter(ResultDirectory.create(path), record: self.begun, startedAt: Samples.startedAt)
        for interval in self.intervals.prefix(count) { try writer.append(interval) { self.ended } }
        return writer
    }
}
