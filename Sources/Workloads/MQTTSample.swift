import LoadEngine
package import MQTTCodec
package import Measurement
package import NIOCore

/// What one loop measured since the last sample.
package struct MQTTSample: Sendable {
    package var metrics: LoopSample
    /// What the share group members of the loop received.
    package var share: ShareBatch
    /// One client's reads, to time a decoder on.
    package var probe: DecodeSample?
    /// Bytes decoded.
    package var decodeBytes: UInt64
    /// CPU time of the loop's thread, nanoseconds.
    package var cpu: Int64
    package var span: TimeAmount
}

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
    /// Subscriptions that a SUBACK granted at least once, by the number of their subscriber from 0.
    package var subscriptions: [UInt32]
    /// What publishers had sent when a subscription came into effect under them.
    package var earlySubscriptions: [EarlySubscription]
    /// By number in the run.
    package var tallies: [(number: Int, tally: ClientTally)]
}

extension MQTTShardWork {
    package func takeResult() -> MQTTResult {
        var fates: [PublisherFate] = []
        if self.load.publishers > 0 {
            for place in 0..<self.shard.clients.operators {
                fates.append(
                    PublisherFate(
                        publisher: UInt32(self.number(place)),
                        qos: self.qos(place).rawValue,
                        assigned: self.clients[place].sequence,
                        unknown: self.clients[place].unknown
                    )
                )
            }
        }
        var books: [QoS: PublishBook] = [:]
        for qos in QoS.allCases { books[qos] = self.books[qos.rawValue] }
        return MQTTResult(
            fates: fates,
            ledger: self.ledger.export(),
            books: books,
            subscriptions: (self.shard.clients.operators..<self.shard.clients.count)
                .filter { self.clients[$0].hasSubscribed }
                .map { UInt32(self.number($0) - self.load.publishers) },
            earlySubscriptions: self.earlySubscriptions,
            tallies: (0..<self.shard.clients.count).map { (self.number($0), self.tallies[$0]) }
        )
    }
}
