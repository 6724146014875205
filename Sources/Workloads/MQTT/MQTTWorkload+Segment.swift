import Ledger
import NIOCore

// The data of a segment for the join of its ledger with the others.
extension MQTTWorkload {
    func segmentLedger(_ results: [MQTTResult], _ shares: LedgerExport) -> SegmentLedger? {
        guard self.load.joint != nil, self.load.hasLedger, self.load.subscribers > 0 else { return nil }
        var ledger = SegmentLedger(
            received: self.load.topology == .shared ? shares : Self.joined(results.map(\.ledger))
        )
        let joint = results.compactMap(\.joint)
        ledger.loadBegan = joint.map(\.loadBegan).min().flatMap { $0 == .distantFuture ? nil : self.realtime($0) }
        ledger.publishersEnded = joint.compactMap(\.publishersEnded).max().map(self.realtime)
        ledger.subscribersLeft = joint.compactMap(\.subscribersLeft).min().map(self.realtime)
        ledger.fates = results.flatMap(\.fates)
        ledger.looks = self.looks(results)
        ledger.early = results.flatMap(\.earlySubscriptions).map {
            SegmentLedger.Early(subscription: $0.subscription, publisher: $0.publisher, sequence: $0.sequence)
        }
        ledger.subscriptions = self.subscriptions(results, joint)
        return ledger
    }

    private func realtime(_ time: NIODeadline) -> Int64 {
        Int64(time.uptimeNanoseconds) + self.load.realtimeOffset
    }

    /// Subscriptions of this segment's clients; the first member of a share group counts.
    private func subscriptions(_ results: [MQTTResult], _ joint: [JointResult]) -> [SegmentLedger.Subscription] {
        let own = Set(results.flatMap { $0.tallies.compactMap { self.load.subscription(of: $0.number) } })
        let begun = Dictionary(joint.flatMap(\.begun).map { ($0.subscription, $0.at) }, uniquingKeysWith: min)
        return self.load.feeds.filter { own.contains(Int($0.subscription)) }.map { feed in
            SegmentLedger.Subscription(
                number: feed.subscription,
                publishers: feed.publishers,
                began: begun[feed.subscription].map(self.realtime)
            )
        }
    }

    /// The loops are observed one after another, so the time of the k-th observation is that of its first loop.
    private func looks(_ results: [MQTTResult]) -> [SegmentLedger.Look] {
        let looking = results.filter { !$0.fates.isEmpty }
        let count = looking.map { $0.joint?.looks.count ?? 0 }.min() ?? 0
        return (0..<count).map { index in
            var look = SegmentLedger.Look(at: .max, sent: [:])
            for result in looking {
                guard let own = result.joint?.looks[index] else { continue }
                look.at = min(look.at, self.realtime(own.at))
                for (fate, sent) in zip(result.fates, own.sent) where sent > 0 { look.sent[fate.publisher] = sent }
            }
            return look
        }
    }

    /// Messages received on all loops.
    private static func joined(_ ledgers: [LedgerExport]) -> LedgerExport {
        ledgers.reduce(into: LedgerExport()) { joint, own in
            joint.keys += own.keys
            joint.streams += own.streams
            joint.foreign += own.foreign
            joint.overflowed = joint.overflowed || own.overflowed
            for qos: UInt8 in 0...2 { joint.counts[qos] += own.counts[qos] }
        }
    }
}
