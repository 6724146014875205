/// The records of one segment about messages whose publishers and subscribers may be in different segments.
///
/// Times are CLOCK_REALTIME nanoseconds of the segment's own host. ``Reconciliation/init(joining:)`` joins the records
/// of all segments.
package struct SegmentLedger: Sendable {
    /// A subscription of the segment's clients; a share group is one, and may be in several segments.
    package struct Subscription: Hashable, Sendable {
        /// Its number in the run.
        package var number: UInt32
        package var publishers: Range<UInt32>
        /// Time of the first SUBACK; `nil` without any.
        package var began: Int64?

        package init(number: UInt32, publishers: Range<UInt32>, began: Int64?) {
            self.number = number
            self.publishers = publishers
            self.began = began
        }
    }

    /// The number of messages that a publisher had sent when a subscription of the same segment came into effect.
    package struct Early: Hashable, Sendable {
        package var subscription: UInt32
        package var publisher: UInt32
        package var sequence: UInt64

        package init(subscription: UInt32, publisher: UInt32, sequence: UInt64) {
            self.subscription = subscription
            self.publisher = publisher
            self.sequence = sequence
        }
    }

    /// The progress of the segment's publishers at one moment.
    package struct Look: Hashable, Sendable {
        package var at: Int64
        /// By publisher: the number of messages sent; publishers without any are omitted.
        package var sent: [UInt32: UInt64]

        package init(at: Int64, sent: [UInt32: UInt64]) {
            self.at = at
            self.sent = sent
        }
    }

    /// The group's name in a run with several groups.
    package var group: String?
    /// No publisher of the segment wrote before this time; `nil`: none ever did.
    package var loadBegan: Int64?
    /// Time when the last publisher closed.
    package var publishersEnded: Int64?
    /// Time when the first subscriber was asked to leave.
    package var subscribersLeft: Int64?
    package var subscriptions: [Subscription] = []
    package var early: [Early] = []
    /// In order of time; progress after the last observation is unknown.
    package var looks: [Look] = []
    package var fates: [PublisherFate] = []
    package var received: LedgerExport

    package init(received: LedgerExport) { self.received = received }
}

extension LedgerExport {
    package init() {
        self.init(
            keys: [],
            streams: [],
            counts: PerQoS(repeating: DeliveryCounts()),
            foreign: 0,
            overflowed: false
        )
    }
}
