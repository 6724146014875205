import Ledger

extension Reconciliation.Row {
    /// A row whose losses have the usual cause of its QoS; unless given, all that is missing is lost.
    static func of(
        qos: UInt8,
        expected: UInt64?,
        received: UInt64,
        lost: UInt64?,
        lostBy: [LossCause: UInt64]? = nil,
        missing: UInt64? = nil,
        duplicated: UInt64 = 0,
        permitted: UInt64 = 0,
        overlapped: UInt64 = 0,
        reordered: UInt64 = 0,
        gaps: UInt64 = 0
    ) -> Reconciliation.Row {
        let usual: LossCause = qos == 0 ? .dropped : .violated
        return Reconciliation.Row(
            qos: qos,
            expected: expected,
            received: received,
            lost: lost,
            lostBy: lostBy ?? (lost ?? 0 > 0 ? [usual: lost ?? 0] : [:]),
            missing: missing ?? lost,
            duplicated: duplicated,
            permitted: permitted,
            overlapped: overlapped,
            reordered: reordered,
            gaps: gaps
        )
    }
}
