package import Measurement
package import NIOCore

/// What one loop measured since the last sample.
package struct LoadSample: Sendable {
    package var metrics: LoopSample
    /// What the share group members of the loop received.
    package var share = ShareBatch()
    /// One client's reads, to time a decoder on.
    package var probe: DecodeSample?
    /// Bytes decoded.
    package var decodeBytes: UInt64
    /// CPU time of the loop's thread, nanoseconds.
    package var cpu: Int64
    package var span: TimeAmount
}
