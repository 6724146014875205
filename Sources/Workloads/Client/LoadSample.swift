import CPosix
package import Ledger
package import Measurement
package import NIOCore

/// Takes the samples of one event loop, and keeps the totals of the last one.
struct LoopSampler {
    private let loop: Int
    private var lastCPU = clamor_thread_cpu_nanoseconds()
    private var lastDecodeBytes: UInt64 = 0
    private var last: NIODeadline
    private var recycled: LoopSample?

    /// Call this on the loop's thread: it reads that thread's CPU time.
    init(loop: Int, now: NIODeadline) {
        self.loop = loop
        self.last = now
    }

    /// The measurements since the last call.
    ///
    /// `live` is the number of connections that the clients count, `planned` the number that the shard counts. Both
    /// must agree.
    mutating func take(
        _ meter: LoopMeter,
        _ metrics: TrafficMetrics,
        live: Int,
        planned: Int,
        now: NIODeadline
    ) -> LoadSample {
        let cpu = clamor_thread_cpu_nanoseconds()
        let span = now - self.last
        let used = cpu - self.lastCPU
        meter.set(metrics.connected, Double(live))
        if span > .zero { meter.set(metrics.cpu[self.loop], Double(used) / Double(span.nanoseconds)) }
        if live != planned {
            meter.error(ErrorRecord.liveConnections, at: Int64(now.uptimeNanoseconds)) {
                "\(live) here, \(planned) planned"
            }
        }
        let recycled = self.recycled
        self.recycled = nil
        let sample = meter.swap(recycled)
        let bytes = meter.value(of: metrics.decodeBytes)
        defer {
            self.lastCPU = cpu
            self.last = now
            self.lastDecodeBytes = bytes
        }
        return LoadSample(metrics: sample, decodeBytes: bytes - self.lastDecodeBytes, cpu: used, span: span)
    }

    mutating func recycle(_ sample: LoopSample) { self.recycled = sample }
}

/// The measurements of one loop since the last sample.
package struct LoadSample: Sendable {
    package var metrics: LoopSample
    /// Messages that the loop's share group members received.
    package var share = ShareBatch()
    /// Where publishers and receivers were when a receiver came or went.
    package var presence: [PresenceMark] = []
    /// One client's reads, used to time a decoder.
    package var probe: DecodeSample?
    /// Bytes decoded.
    package var decodeBytes: UInt64
    /// CPU time of the loop's thread, nanoseconds.
    package var cpu: Int64
    package var span: TimeAmount
}
