package import Ledger
package import Measurement
package import NIOCore

/// The measurements of one loop since the last sample.
package struct LoadSample: Sendable {
    package var metrics: LoopSample
    /// Messages that the loop's share group members received.
    package var share = ShareBatch()
    /// One client's reads, used to time a decoder.
    package var probe: DecodeSample?
    /// Bytes decoded.
    package var decodeBytes: UInt64
    /// CPU time of the loop's thread, nanoseconds.
    package var cpu: Int64
    package var span: TimeAmount
}

extension ShareGroupLedger {
    /// Collects the messages that the share group members of all loops received, and records the durations of first
    /// arrivals in the first sample.
    ///
    /// `durations` is indexed by the publisher's QoS.
    package mutating func settle(_ samples: inout [LoadSample], durations: [DurationID]) {
        guard samples.contains(where: { !$0.share.isEmpty }) else { return }
        let batches = samples.map(\.share)
        self.merge(batches) { duration, qos, lane in
            samples[0].metrics.record(durations[Int(qos)], duration, lane: lane)
        }
    }
}
