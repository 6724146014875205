/// What one segment of a run knows of messages whose publishers and subscribers may be in different segments.
///
/// Times are CLOCK_REALTIME nanoseconds of the segment's own host. ``Reconciliation/init(joining:)`` makes the whole of
/// those of all segments.
package struct SegmentLedger: Sendable {
    /// A subscription that clients of the segment hold; a share group is one, and may be in several segments.
    package struct Subscription: Hashable, Sendable {
        /// Its number in the run.
        package var number: UInt32
        package var publishers: Range<UInt32>
        /// When the first SUBACK came; `nil` if none ever did.
        package var began: Int64?

        package init(number: UInt32, publishers: Range<UInt32>, began: Int64?) {
            self.number = number
            self.publishers = publishers
            self.began = began
        }
    }

    /// What a publisher of the segment had sent when a subscription of the segment came into effect.
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

    /// How far publishers of the segment were at a moment.
    package struct Look: Hashable, Sendable {
        package var at: Int64
        /// By publisher: what it had sent; who had sent nothing is left out.
        package var sent: [UInt32: UInt64]

        package init(at: Int64, sent: [UInt32: UInt64]) {
            self.at = at
            self.sent = sent
        }
    }

    /// Of a run with several.
    package var group: String?
    /// Before it no publisher of the segment wrote; `nil`: none ever did.
    package var loadBegan: Int64?
    /// When the last publisher closed.
    package var publishersEnded: Int64?
    /// When the first subscriber was told to leave.
    package var subscribersLeft: Int64?
    package var subscriptions: [Subscription] = []
    package var early: [Early] = []
    /// In the order of their times; what came behind the last is not known by time.
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
