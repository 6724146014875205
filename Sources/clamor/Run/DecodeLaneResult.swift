import Measurement
import Workloads

/// The measurements of one decode lane so far.
struct DecodeLaneResult {
    let lane: DecodeLane
    private var accumulator: RunAccumulator
    private var picoseconds = Histogram()
    private var last: Int64?
    /// Allocations in measured rounds, if the allocator counts them.
    private var allocated: (bytes: UInt64, packets: UInt64)?
    /// Bytes per packet measured by a process with another allocator.
    var allocatedElsewhere: Double?
    /// Nanoseconds of the measured rounds.
    private(set) var measured: Int64 = 0
    /// Seconds from the start of the run to the first measured round.
    private(set) var start: Double?

    init(_ lane: DecodeLane) {
        self.lane = lane
        self.accumulator = RunAccumulator(catalog: DecodeMetrics(lane).catalog)
    }

    /// The timeline phase of an interval.
    private func phase(of interval: DecodeInterval) -> String {
        if interval.measured > 0 { return self.lane.name }
        return self.measured > 0 ? "drain" : "warmup"
    }

    /// Adds an interval; `began` is its start in seconds from the start of the run.
    mutating func add(_ interval: DecodeInterval, began: Double) -> TimelineInterval {
        let phase = self.phase(of: interval)
        if interval.measured > 0, self.start == nil { self.start = began }
        self.measured += interval.measured
        self.picoseconds.merge(interval.picoseconds)
        self.last = interval.lastPicoseconds ?? self.last
        if let more = interval.allocated {
            let before = self.allocated ?? (0, 0)
            self.allocated = (before.bytes + more.bytes, before.packets + more.packets)
        }
        var row = self.accumulator.add(
            second: Int(began),
            phase: phase,
            seconds: Double(interval.wall) / 1e9,
            samples: [interval.sample]
        )
        if let median = interval.picoseconds.percentile(50) {
            row.metrics.append(self.packetTime(GaugeReading(value: Self.seconds(Double(median)))))
        }
        return row
    }

    /// Bytes allocated per packet, if known.
    var allocation: Double? {
        self.allocated.flatMap { $0.packets > 0 ? Double($0.bytes) / Double($0.packets) : nil }
            ?? self.allocatedElsewhere
    }

    /// CPU time of the thread as a share of the measured time.
    var cpuShare: Double? {
        self.metrics.first { $0.name == "decode_time" }?.counter?.rate
    }

    var metrics: [Metric] {
        let seconds = Double(self.measured) / 1e9
        var metrics = self.accumulator.metrics(measuredSeconds: seconds > 0 ? seconds : nil)
        if let last = self.last, let min = self.picoseconds.min, let max = self.picoseconds.max,
            let mean = self.picoseconds.mean, let median = self.picoseconds.percentile(50)
        {
            let reading = GaugeReading(
                value: Self.seconds(Double(last)),
                min: Self.seconds(Double(min)),
                mean: Self.seconds(mean),
                median: Self.seconds(Double(median)),
                max: Self.seconds(Double(max))
            )
            metrics.append(self.packetTime(reading))
        }
        if let bytes = self.allocation {
            metrics.append(
                Metric(
                    name: DecodeMetrics.packetAllocation,
                    labels: self.lane.labels,
                    unit: "bytes",
                    reading: .gauge(GaugeReading(value: bytes, min: bytes, mean: bytes, median: bytes, max: bytes))
                )
            )
        }
        return metrics
    }

    private func packetTime(_ reading: GaugeReading) -> Metric {
        Metric(name: DecodeMetrics.packetTime, labels: self.lane.labels, unit: "seconds", reading: .gauge(reading))
    }

    private static func seconds(_ picoseconds: Double) -> Double { picoseconds / 1e12 }
}
