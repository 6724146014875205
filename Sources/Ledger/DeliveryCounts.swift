/// The number of arrivals in each of the ledger's categories.
package struct DeliveryCounts: Hashable, Sendable {
    /// First arrivals.
    package var distinct: UInt64 = 0
    /// Each arrival after the first, except overlaps.
    package var duplicated: UInt64 = 0
    /// First arrivals below the highest sequence number seen so far; also counted in ``distinct``.
    package var reordered: UInt64 = 0
    /// Further copies for further matching filters of one client.
    package var overlapped: UInt64 = 0

    /// All arrivals.
    package var received: UInt64 { self.distinct + self.duplicated + self.overlapped }

    package init(distinct: UInt64 = 0, duplicated: UInt64 = 0, reordered: UInt64 = 0, overlapped: UInt64 = 0) {
        self.distinct = distinct
        self.duplicated = duplicated
        self.reordered = reordered
        self.overlapped = overlapped
    }

    package mutating func add(_ arrival: StreamLedger.Arrival) {
        switch arrival {
        case .new: self.distinct += 1
        case .newLate:
            self.distinct += 1
            self.reordered += 1
        case .duplicate: self.duplicated += 1
        case .overlap: self.overlapped += 1
        }
    }

    package static func += (left: inout DeliveryCounts, right: DeliveryCounts) {
        left.distinct += right.distinct
        left.duplicated += right.duplicated
        left.reordered += right.reordered
        left.overlapped += right.overlapped
    }
}

/// The receiver, the publisher and the audience of a stream.
///
/// The receiver is a subscription of the ledger: all ordinary subscriptions of one client's session, or a share group.
package struct StreamKey: Hashable, Sendable {
    /// Bits of the audience in a payload's header, and of publisher and audience together in a stream's number.
    package static let audienceBits: UInt64 = 20
    static let streamBits: UInt64 = 42
    /// Audiences of a publisher, publishers of a run, and receivers on one event loop are below these.
    package static let audienceLimit: UInt32 = 1 << 20
    package static let publisherLimit: UInt32 = 1 << 22
    static let receiverLimit = 1 << 22

    /// The receiver's number in the whole run, not on its event loop.
    package var subscription: UInt32
    package var publisher: UInt32
    /// The publisher's number for the set of receivers that the message reaches.
    package var audience: UInt32

    package init(subscription: UInt32, publisher: UInt32, audience: UInt32 = 0) {
        self.subscription = subscription
        self.publisher = publisher
        self.audience = audience
    }
}

extension StreamKey: Comparable {
    package static func < (left: StreamKey, right: StreamKey) -> Bool {
        (left.subscription, left.publisher, left.audience) < (right.subscription, right.publisher, right.audience)
    }
}

/// The irregular arrivals of one stream; a stream without any has no such entry.
package struct Irregularity: Hashable, Sendable {
    /// Arrivals after the first that are neither overlaps nor permitted.
    package var duplicated: UInt64 = 0
    /// Arrivals after the first that the standard permits, as known at the receiver.
    package var permitted: UInt64 = 0
    package var overlapped: UInt64 = 0
    package var reordered: UInt64 = 0
    /// The sequence numbers of ``duplicated``, and of all repeats in a share group.
    package var duplicates = SequenceRanges()
    /// The sequence numbers of ``reordered``, as far as there was memory for them.
    package var overtaken = SequenceRanges()

    package init() {}

    package static func += (left: inout Irregularity, right: Irregularity) {
        left.duplicated += right.duplicated
        left.permitted += right.permitted
        left.overlapped += right.overlapped
        left.reordered += right.reordered
        for run in right.duplicates.runs { left.duplicates.insert(run) }
        for run in right.overtaken.runs { left.overtaken.insert(run) }
    }
}

/// The contents of one ledger at the end of a run, for ``Reconciliation``; copying it copies no stream.
package struct LedgerExport: Sendable {
    package var keys: [StreamKey]
    /// The streams in the order of ``keys``.
    package var streams: [StreamLedger]
    /// The irregularities by the index of the stream.
    package var irregular: [Int: Irregularity] = [:]
    /// The messages that the receiver's absence excuses, where only its segment knows of it, by the index of the stream.
    package var excused: [Int: SequenceRanges] = [:]
    /// Receivers whose first subscription came into effect after the load had begun, as far as other segments know.
    package var late: Set<UInt32> = []
    /// Receivers that were away, and share groups that a member left, as far as other segments know.
    package var absent: Set<UInt32> = []
    package var counts: PerQoS<DeliveryCounts>
    /// Arrivals whose header names an impossible publisher or QoS.
    package var foreign: UInt64
    /// Messages that reached members of a share group in several processes; each arrival but the first counts.
    package var repeated: UInt64 = 0
    /// The streams of this ledger together exceeded its memory limit.
    package var overflowed: Bool
}
