/// The number of arrivals in each of the ledger's categories.
package struct DeliveryCounts: Hashable, Sendable {
    /// First arrivals.
    package var distinct: UInt64 = 0
    /// Each arrival after the first.
    package var duplicated: UInt64 = 0
    /// First arrivals below the highest sequence number seen so far; also counted in ``distinct``.
    package var reordered: UInt64 = 0

    /// All arrivals.
    package var received: UInt64 { self.distinct + self.duplicated }

    package init(distinct: UInt64 = 0, duplicated: UInt64 = 0, reordered: UInt64 = 0) {
        self.distinct = distinct
        self.duplicated = duplicated
        self.reordered = reordered
    }

    package mutating func add(_ arrival: StreamLedger.Arrival) {
        switch arrival {
        case .new: self.distinct += 1
        case .newLate:
            self.distinct += 1
            self.reordered += 1
        case .duplicate: self.duplicated += 1
        }
    }

    package static func += (left: inout DeliveryCounts, right: DeliveryCounts) {
        left.distinct += right.distinct
        left.duplicated += right.duplicated
        left.reordered += right.reordered
    }
}

/// The publisher and the subscription of a stream; a share group is one subscription.
package struct StreamKey: Hashable, Sendable {
    /// The subscription's number in the whole run, not on its event loop.
    package var subscription: UInt32
    package var publisher: UInt32

    package init(subscription: UInt32, publisher: UInt32) {
        self.subscription = subscription
        self.publisher = publisher
    }
}

/// The contents of one ledger at the end of a run, for ``Reconciliation``; copying it copies no stream.
package struct LedgerExport: Sendable {
    package var keys: [StreamKey]
    /// In the order of ``keys``.
    package var streams: [StreamLedger]
    package var counts: PerQoS<DeliveryCounts>
    /// Arrivals whose header names an impossible publisher or QoS.
    package var foreign: UInt64
    /// The streams of this ledger together exceeded its memory limit.
    package var overflowed: Bool
}
