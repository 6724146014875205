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
    /// Bytes allocated, if the allocator reports them.
    var allocated: UInt64?
}

/// The measurements of a lane since the last call.
package struct DecodeInterval: Sendable {
    package var sample: LoopSample
    /// Wall-clock nanoseconds: of all rounds, and of the counted rounds.
    package var wall: Int64
    package var measured: Int64
    /// Picoseconds of CPU time per packet, one value per counted round.
    ///
    /// Histograms accept any integer unit.
    package var picoseconds: Histogram
    /// The value of the last counted round.
    package var lastPicoseconds: Int64?
    /// Allocations of the counted rounds, if the allocator reports them.
    package var allocated: (bytes: UInt64, packets: UInt64)?
}

/// The recorder of one lane; confined to its thread.
final class DecodeMeter {
    private let metrics: DecodeMetrics
    private let meter: LoopMeter
    private var wall: Int64 = 0
    private var measured: Int64 = 0
    private var picoseconds = Histogram()
    private var last: Int64?
    private var allocated: (bytes: UInt64, packets: UInt64)?
    private var isMeasuring = false

    init(_ metrics: DecodeMetrics) {
        self.metrics = metrics
        self.meter = LoopMeter(catalog: metrics.catalog, loop: 0)
    }

    func add(_ round: DecodeRound, measured: Bool) {
        if measured, !self.isMeasuring { self.meter.beginMeasured() }
        if !measured, self.isMeasuring { self.meter.endMeasured() }
        self.isMeasuring = measured
        self.meter.add(self.metrics.packets, round.packets)
        self.meter.add(self.metrics.bytes, round.bytes)
        self.meter.add(self.metrics.reads, round.reads)
        self.meter.add(self.metrics.time, UInt64(max(0, round.cpu)))
        self.wall += round.wall
        guard measured, round.packets > 0 else { return }
        self.measured += round.wall
        let packets = Double(round.packets)
        self.meter.record(self.metrics.thousand, Int64((Double(round.wall) * 1_000 / packets).rounded()))
        let picoseconds = Int64((Double(round.cpu) * 1_000 / packets).rounded())
        self.picoseconds.record(picoseconds)
        self.last = picoseconds
        if let bytes = round.allocated {
            let before = self.allocated ?? (0, 0)
            self.allocated = (before.bytes + bytes, before.packets + round.packets)
        }
    }

    /// Returns the measurements since the last call.
    func take() -> DecodeInterval {
        defer {
            self.wall = 0
            self.measured = 0
            self.picoseconds = Histogram()
            self.allocated = nil
        }
        return DecodeInterval(
            sample: self.meter.swap(),
            wall: self.wall,
            measured: self.measured,
            picoseconds: self.picoseconds,
            lastPicoseconds: self.last,
            allocated: self.allocated
        )
    }
}

/// The clocks at one moment, read on the decoding thread.
struct DecodeClock {
    let wall = clamor_monotonic_nanoseconds()
    let cpu = clamor_thread_cpu_nanoseconds()
    let allocated = AllocationMeter.threadBytes

    func round(since start: DecodeClock, packets: UInt64, bytes: UInt64, reads: UInt64) -> DecodeRound {
        DecodeRound(
            packets: packets,
            bytes: bytes,
            reads: reads,
            cpu: self.cpu - start.cpu,
            wall: self.wall - start.wall,
            allocated: self.allocated.flatMap { now in start.allocated.map { now - $0 } }
        )
    }
}
