import Ledger
import Measurement
import Testing
import Workloads

@Suite("Payload header and lanes")
struct PayloadLaneTests {
    @Test(
        "the header names the lane of a message: stage + 1, and 0 for what counts nowhere",
        arguments: [
            (MetricLane.unmeasured, 0), (MetricLane.measured, 1), (MetricLane.stage(0), 1), (MetricLane.stage(1), 2),
            (MetricLane.stage(999), 1_000),
        ] as [(Int, UInt32)]
    )
    func stages(_ lane: Int, _ field: UInt32) {
        for qos: UInt8 in 0...2 {
            let flags = PayloadHeader.flags(qos: qos, lane: lane)
            #expect(flags == field << 2 | UInt32(qos))
            let header = PayloadHeader(run: 0, publisher: 0, flags: flags, sequence: 0, due: 0)
            #expect(header.qos == qos)
            // A run without stages has the measured phase alone.
            let plain = [0: MetricLane.unmeasured, 1: MetricLane.measured][field] ?? MetricLane.unmeasured
            #expect(header.lane(stages: 0) == plain)
            let staged = field == 0 || field > 3 ? MetricLane.unmeasured : MetricLane.stage(Int(field) - 1)
            #expect(header.lane(stages: 3) == staged)
        }
    }
}
