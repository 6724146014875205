package import Ledger
import LoadEngine
package import MQTTCodec
package import Measurement
package import NIOCore

/// A subscription whose first SUBACK came after a publisher had begun.
///
/// For this subscription, the publisher's messages below `sequence` have an unknown fate.
package struct EarlySubscription: Hashable, Sendable {
    package var subscription: UInt32
    package var publisher: UInt32
    package var sequence: UInt64
}

/// The results of one loop at the end of a run.
package struct MQTTResult: Sendable {
    package var fates: [PublisherFate]
    package var ledger: LedgerExport
    package var books: [QoS: PublishBook]
    /// The publishers' progress when late subscriptions came into effect.
    package var earlySubscriptions: [EarlySubscription]
    /// Subscriptions with a SUBACK; a share group counts as one.
    package var subscriptions: Set<UInt32>
    /// For a segment whose publishers or subscribers have counterparts in other segments.
    package var joint: JointResult?
    /// By number in the run.
    package var tallies: [(number: Int, tally: ClientTally)]
}

/// The observations of one loop of a segment, for the join of its ledger with the others.
///
/// Times are monotonic.
package struct JointResult: Sendable {
    /// The progress of the loop's publishers at one moment.
    package struct Look: Sendable {
        package var at: NIODeadline
        /// By place.
        package var sent: [UInt64]
    }

    /// Times of the SUBACKs, the first of each client.
    package var begun: [(subscription: UInt32, at: NIODeadline)] = []
    package var looks: [Look] = []
    /// Times when the last publisher and the first subscriber were asked to close.
    package var publishersEnded: NIODeadline?
    package var subscribersLeft: NIODeadline?
    package var loadBegan = NIODeadline.distantFuture
    let mostLooks: Int

    /// Limits per run: observations per publisher, and stored numbers in all.
    private static let most = (moments: 120, numbers: 1_000_000)

    init(publishers: Int) {
        self.mostLooks = max(4, min(Self.most.moments, Self.most.numbers / max(1, publishers)))
    }
}

extension MQTTShardWork {
    /// Records the publishers' progress, for subscriptions that come into effect in another segment.
    ///
    /// Called once a second, as long as there is space.
    func noteProgress(_ now: NIODeadline) {
        guard self.load.joint?.beginsTogether == false, self.places.operators > 0 else { return }
        guard let joint = self.joint, now >= self.shard.loadBegan, joint.looks.count < joint.mostLooks else { return }
        let sent = (0..<self.places.operators).map { self.clients[$0].sequence }
        self.joint?.looks.append(JointResult.Look(at: now, sent: sent))
    }

    /// The run asks a client to close.
    package func noteClosing(_ place: Int) {
        guard self.joint != nil else { return }
        let now = NIODeadline.now()
        if self.places.isOperator(place) {
            self.joint?.publishersEnded = now
        } else if self.joint?.subscribersLeft == nil {
            self.joint?.subscribersLeft = now
        }
    }

    package func takeResult() -> MQTTResult {
        var fates: [PublisherFate] = []
        if self.load.publishers > 0 {
            for place in 0..<self.places.operators {
                fates.append(
                    PublisherFate(
                        publisher: UInt32(self.number(place)),
                        qos: self.clients[place].own.qos.rawValue,
                        assigned: self.clients[place].sequence,
                        unknown: self.clients[place].unknown
                    )
                )
            }
        }
        var subscriptions: Set<UInt32> = []
        for place in 0..<self.places.count where self.clients[place].own.hasSubscribed {
            if let subscription = self.load.subscription(of: self.number(place)) {
                subscriptions.insert(UInt32(subscription))
            }
        }
        self.joint?.loadBegan = self.shard.loadBegan
        var books: [QoS: PublishBook] = [:]
        for qos in QoS.allCases { books[qos] = self.books[qos.rawValue] }
        return MQTTResult(
            fates: fates,
            ledger: self.ledger.pointee.export(),
            books: books,
            earlySubscriptions: self.earlySubscriptions,
            subscriptions: subscriptions,
            joint: self.joint,
            tallies: self.numberedTallies
        )
    }
}
