import CPosix
package import Measurement

/// The measurement of one round: a fixed amount of work, long enough to make clock reads negligible.
struct DecodeRound {
    var packets: UInt64
    var bytes: UInt64
    var reads: UInt64
    /// Nanoseconds of CPU time of the thread, and of wall-clock time.
    var cpu: Int64
    var wall: Int64
}

/// The measurements of a lane since the last call.
package struct DecodeInterval: Sendable {
    package var sample: LoopSample
    /// Wall-clock nanoseconds: of all rounds, and of the counted rounds.
    package var wall: Int64 = 0
    package var measured: Int64 = 0
    /// Picoseconds of CPU time per packet, one value per counted round.
    ///
    /// Histograms accept any integer unit.
    package var picoseconds = Histogram()
    /// The value of the last counted round.
    package var lastPicoseconds: Int64?
}

/// The recorder of one lane; confined to its thread.
final class DecodeMeter {
    private let metrics: DecodeMetrics
    private let meter: LoopMeter
    private var interval: DecodeInterval
    private var isMeasuring = false

    init(_ metrics: DecodeMetrics) {
        self.metrics = metrics
        self.meter = LoopMeter(catalog: metrics.catalog, loop: 0)
        self.interval = DecodeInterval(sample: self.meter.swap())
    }

    func add(_ round: DecodeRound, measured: Bool) {
        if measured, !self.isMeasuring { self.meter.beginMeasured() }
        if !measured, self.isMeasuring { self.meter.endMeasured() }
        self.isMeasuring = measured
        self.meter.add(self.metrics.packets, round.packets)
        self.meter.add(self.metrics.bytes, round.bytes)
        self.meter.add(self.metrics.reads, round.reads)
        self.meter.add(self.metrics.time, UInt64(max(0, round.cpu)))
        self.interval.wall += round.wall
        guard measured, round.packets > 0 else { return }
        self.interval.measured += round.wall
        let packets = Double(round.packets)
        self.meter.record(self.metrics.thousand, Int64((Double(round.wall) * 1_000 / packets).rounded()))
        let picoseconds = Int64((Double(round.cpu) * 1_000 / packets).rounded())
        self.interval.picoseconds.record(picoseconds)
        self.interval.lastPicoseconds = picoseconds
    }

    /// Returns the measurements since the last call.
    func take() -> DecodeInterval {
        self.interval.sample = self.meter.swap()
        let interval = self.interval
        self.interval = DecodeInterval(sample: interval.sample, lastPicoseconds: interval.lastPicoseconds)
        return interval
    }
}

/// The clocks at one moment, read on the decoding thread.
struct DecodeClock {
    let wall = clamor_monotonic_nanoseconds()
    let cpu = clamor_thread_cpu_nanoseconds()

    func round(since start: DecodeClock, packets: UInt64, bytes: UInt64, reads: UInt64) -> DecodeRound {
        DecodeRound(
            packets: packets,
            bytes: bytes,
            reads: reads,
            cpu: self.cpu - start.cpu,
            wall: self.wall - start.wall
        )
    }
}

/// The metrics of one lane of the decoder benchmark.
package struct DecodeMetrics: Sendable {
    package let lane: DecodeLane
    package let catalog: MetricCatalog
    let packets: CounterID
    let bytes: CounterID
    let reads: CounterID
    /// CPU time of the decoding thread, in nanoseconds; over a socket this includes reading.
    let time: CounterID
    /// Monotonic time per 1,000 packets, one value per round.
    ///
    /// A packet takes a few nanoseconds, and histograms hold whole nanoseconds.
    let thousand: DurationID

    package init(_ lane: DecodeLane) {
        var catalog = MetricCatalog()
        let labels = lane.labels
        self.lane = lane
        self.packets = catalog.counter(.decodePackets, labels, ratesAddUp: false)
        self.bytes = catalog.counter(.decodeBytes, labels, ratesAddUp: false)
        self.reads = catalog.counter(.reads, labels, ratesAddUp: false)
        self.time = catalog.counter(.decodeTime, labels, ratesAddUp: false)
        self.thousand = catalog.duration(.decodeThousand, labels)
        self.catalog = catalog
    }

    package static let packetTime = MetricDefinition.decodePacketTime

    /// All metrics of a run with these lanes, for the check of thresholds.
    package static func known(_ lanes: [DecodeLane]) -> MetricCatalog {
        var known = MetricCatalog()
        for lane in lanes {
            known.add(DecodeMetrics(lane).catalog)
            _ = known.gauge(self.packetTime, lane.labels, merge: .none)
        }
        _ = known.gauge(.generatorMemory)
        return known
    }
}
