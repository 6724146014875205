package import Ledger
import Measurement

extension PayloadHeader {
    /// The flags of a message that was due in this lane of the load.
    ///
    /// A load without stages has one lane, the measured phase.
    package static func flags(qos: UInt8, lane: Int, audience: UInt32 = 0) -> UInt32 {
        Self.flags(qos: qos, stage: lane == MetricLane.unmeasured ? 0 : max(1, lane &- 1), audience: audience)
    }

    /// The lane that records the publisher's stage, in a run with this many stages.
    ///
    /// A stage that the run does not have is not recorded.
    package func lane(stages: Int) -> Int {
        let stage = self.stage
        guard stage > 0 else { return MetricLane.unmeasured }
        if stages == 0 { return stage == 1 ? MetricLane.measured : MetricLane.unmeasured }
        return stage <= stages ? MetricLane.stage(stage - 1) : MetricLane.unmeasured
    }
}
