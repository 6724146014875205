import Ledger
import Testing

@Suite("One stream in several segments")
struct JointStreamTests {
    @Test("it is exact only if it is exact in each of them", arguments: [false, true], [false, true])
    func exact(_ first: Bool, _ second: Bool) {
        // Messages 0 and 1 reached the first segment, 2 and 3 the second one.
        let parts = [
            StreamLedger(qos: 1, next: 2, missing: SequenceRanges(), overflowed: first),
            StreamLedger(qos: 1, next: 4, missing: SequenceRanges([0..<2]), overflowed: second),
        ]
        let segments = parts.map { part in
            var received = LedgerExport()
            received.keys = [StreamKey(subscription: 0, publisher: 0)]
            received.streams = [part]
            received.counts[part.qos].distinct = part.distinct
            return SegmentLedger(received: received)
        }
        let isExact = !first && !second
        // The processes of a segment are joined in the same way, before the segments are.
        #expect(SegmentLedger(joining: segments).received.streams.map(\.overflowed) == [!isExact])
        #expect(Reconciliation(joining: segments).problems.contains(.tooManyGaps(streams: 1)) == !isExact)
    }
}
