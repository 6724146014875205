/// The delivery books of a run: what was expected at the subscriptions against what arrived.
package struct Reconciliation: Hashable, Sendable {
    package struct Row: Hashable, Sendable {
        /// The publisher's.
        package var qos: UInt8
        /// Acknowledged or confirmed, once per subscription, and those of unknown fate that arrived; absent
        /// when the publishers are not in the run.
        package var expected: UInt64?
        /// Distinct.
        package var received: UInt64
        /// Expected and not received; absent when the publishers are not in the run.
        package var lost: UInt64?
        package var duplicated: UInt64
        package var reordered: UInt64
        /// Missing between the lowest and the highest sequence seen, of whatever fate.
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

    /// One for each QoS that was published or received, in order.
    package private(set) var rows: [Row] = []
    /// Why the books are not exact.
    package internal(set) var problems: [LedgerProblem] = []

    /// Balances what the ledgers of all loops and share groups hold against the fate of every message sent.
    ///
    /// - Parameters:
    ///   - ledgers: of every loop, and of the share groups.
    ///   - fates: one for each publisher of the run; `nil` if the publishers are elsewhere (`sub` alone).
    ///   - feeds: which publishers feed which subscription, for every subscription the run ever held.
    package init(ledgers: [LedgerExport], fates: [PublisherFate]?, feeds: [SubscriptionFeed]) {
        var balance = Balance(ledgers: ledgers)
        if let fates { balance.settle(fates: fates, feeds: feeds) }
        self.rows = balance.rows(publishersKnown: fates != nil)
        self.problems = balance.problems
    }
}
