package import Ledger
package import Measurement
package import NIOCore

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
