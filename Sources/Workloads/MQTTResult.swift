import LoadEngine
package import MQTTCodec
package import Measurement

/// A subscription whose first SUBACK came after a publisher had begun: the publisher's messages below `sequence` are
/// of unknown fate for it.
package struct EarlySubscription: Hashable, Sendable {
    package var subscription: UInt32
    package var publisher: UInt32
    package var sequence: UInt64
}

/// What one loop holds at the end of a run.
package struct MQTTResult: Sendable {
    package var fates: [PublisherFate]
    package var ledger: LedgerExport
    package var books: [QoS: PublishBook]
    /// What publishers had sent when a subscription came into effect under them.
    package var earlySubscriptions: [EarlySubscription]
    /// Subscriptions whose first SUBACK came; a share group counts as one.
    package var subscriptions: Set<UInt32>
    /// By number in the run.
    package var tallies: [(number: Int, tally: ClientTally)]
}

extension MQTTShardWork {
    package func takeResult() -> MQTTResult {
        var fates: [PublisherFate] = []
        if self.load.publishers > 0 {
            for place in 0..<self.places.operators {
                fates.append(
                    PublisherFate(
                        publisher: UInt32(self.number(place)),
                        qos: self.clients[place].qos.rawValue,
                        assigned: self.clients[place].sequence,
                        unknown: self.clients[place].unknown
                    )
                )
            }
        }
        var subscriptions: Set<UInt32> = []
        for place in 0..<self.places.count where self.clients[place].hasSubscribed {
            if let subscription = self.load.subscription(of: self.number(place)) {
                subscriptions.insert(UInt32(subscription))
            }
        }
        var books: [QoS: PublishBook] = [:]
        for qos in QoS.allCases { books[qos] = self.books[qos.rawValue] }
        return MQTTResult(
            fates: fates,
            ledger: self.ledger.pointee.export(),
            books: books,
            earlySubscriptions: self.earlySubscriptions,
            subscriptions: subscriptions,
            tallies: (0..<self.places.count).map { (self.number($0), self.tallies[$0]) }
        )
    }
}
