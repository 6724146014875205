/// The delivery books of a run: expected messages of the subscriptions compared with arrivals.
package struct Reconciliation: Hashable, Sendable {
    package struct Row: Hashable, Sendable {
        /// The publisher's QoS.
        package var qos: UInt8
        /// Acknowledged or confirmed messages, once per subscription, plus arrived messages with unknown fate.
        ///
        /// Absent if the publishers are not in the run.
        package var expected: UInt64?
        /// Distinct arrivals.
        package var received: UInt64
        /// Expected but not received; absent if the publishers are not in the run.
        package var lost: UInt64?
        package var duplicated: UInt64
        package var reordered: UInt64
        /// Missing between the lowest and the highest sequence number seen, whatever their fate.
        package var gaps: UInt64

        package init(
            qos: UInt8,
            expected: UInt64?,
            received: UInt64,
            lost: UInt64?,
            duplicated: UInt64 = 0,
            reordered: UInt64 = 0,
            gaps: UInt64 = 0
        ) {
            self.qos = qos
            self.expected = expected
            self.received = received
            self.lost = lost
            self.duplicated = duplicated
            self.reordered = reordered
            self.gaps = gaps
        }
    }

    /// One row per QoS that was published or received, in order.
    package private(set) var rows: [Row] = []
    /// Reasons why the books are not exact.
    package internal(set) var problems: [LedgerProblem] = []

    /// Balances the ledgers of all loops and share groups with the fate of every message sent.
    ///
    /// - Parameters:
    ///   - ledgers: the ledgers of every loop and of the share groups.
    ///   - fates: one per publisher of the run; `nil` if the publishers are elsewhere (`sub` alone).
    ///   - feeds: the publishers of each subscription, for every subscription that the run ever held.
    package init(ledgers: [LedgerExport], fates: [PublisherFate]?, feeds: [SubscriptionFeed]) {
        var balance = Balance(ledgers: ledgers)
        if let fates { balance.settle(fates: fates, feeds: feeds) }
        self.rows = balance.rows(publishersKnown: fates != nil)
        self.problems = balance.problems
    }
}
