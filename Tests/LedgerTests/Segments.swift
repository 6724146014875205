import Ledger

extension SegmentLedger {
    /// A segment in which one member of the share group 0 received this from publisher 0.
    static func sharing(_ sequences: [UInt64], qos: UInt8 = 1) -> SegmentLedger {
        var members = ShareMembers(publishers: 1)
        let member = members.addMember(group: 0)
        for sequence in sequences { members.arrived(member: member, .of(0, sequence, qos: qos)) }
        var ledger = ShareGroupLedger()
        ledger.merge([members.swap()])
        var segment = SegmentLedger(received: ledger.export())
        segment.receivers = [0]
        segment.began = [0]
        segment.subscribersLeft = 100
        return segment
    }

    /// The same segment with publisher 0, whose messages reach receiver 0, or the share group 0.
    func publishing(_ assigned: UInt64, qos: UInt8 = 1, isShared: Bool = false) -> SegmentLedger {
        var segment = self
        segment.published[0] = PublishedExport(
            audiences: [[AudienceMember(receiver: 0, qos: 2, isShared: isShared)]],
            fates: [PublisherFate(publisher: 0, qos: qos, assigned: assigned)]
        )
        segment.loadBegan = 10
        segment.publishersEnded = 90
        return segment
    }

    /// A segment of publisher 0 alone.
    static func publishing(_ assigned: UInt64, qos: UInt8 = 1, isShared: Bool = false) -> SegmentLedger {
        SegmentLedger(received: LedgerExport()).publishing(assigned, qos: qos, isShared: isShared)
    }
}
