package import Ledger
package import LoadEngine
package import Measurement
import NIOCore

/// The state of a run's monitor for the messages that its MQTT groups exchange.
package struct DeliveryMonitor: Sendable {
    private let plan: DeliveryPlan?
    /// The place of each group in the run, and its metrics, by its place in the plan.
    private var groups: [(place: Int, metrics: MQTTMetrics)] = []
    private var sharing = ShareGroupLedger()
    package private(set) var presence = PresenceLedger()
    /// The slowest deliveries to share groups, by the place of the group that they are recorded for.
    private var slowest: [Int: SlowHeap] = [:]

    /// `groups`: the workloads of all groups of the run, in its order.
    package init(_ groups: [any Workload]) {
        let workloads = groups.enumerated().compactMap { place, load in
            (load as? MQTTWorkload).map { (place: place, load: $0) }
        }
        self.plan = workloads.first?.load.plan
        self.groups = workloads.map { ($0.place, $0.load.metrics) }
    }

    /// Adds what share groups received and who was away, before the samples are added up.
    package mutating func settle(_ samples: inout [GroupSample<LoadSample>]) {
        guard let plan = self.plan else { return }
        var batches: [ShareBatch] = []
        for group in samples {
            for sample in group.samples {
                if !sample.share.isEmpty { batches.append(sample.share) }
                for mark in sample.presence { self.presence.add(mark) }
            }
        }
        guard !batches.isEmpty else { return }
        let groups = self.groups
        var slowest: [Int: SlowHeap] = [:]
        swap(&slowest, &self.slowest)
        self.sharing.merge(batches) { first in
            guard let receivers = plan.places.receivers(of: first.group) else { return }
            let home = plan.home(ofReceivers: receivers)
            let stream = plan.places.streams.count < 2 ? 0 : plan.places.stream(of: first.publisher) ?? 0
            let name = plan.places.receivers[receivers].group
            guard home < groups.count,
                let id = groups[home].metrics.shareDuration(stream: stream, qos: first.qos, group: name),
                !samples[groups[home].place].samples.isEmpty
            else { return }
            samples[groups[home].place].samples[0].metrics.record(id, first.duration, lane: first.lane)
            guard first.duration > slowest[groups[home].place]?.floor ?? .min,
                groups[home].metrics.catalog.counts(lane: first.lane, in: id)
            else { return }
            slowest[groups[home].place, default: SlowHeap()].add(SlowEntry(first, id))
        }
        self.slowest = slowest
    }

    /// The slowest deliveries to share groups, with the places of their groups in the run.
    package var slow: [(group: Int, entry: SlowEntry)] {
        self.slowest.flatMap { group, heap in heap.entries.map { (group, $0) } }
    }

    /// The balance with the messages of share groups, which no loop can know alone.
    package func withShares(_ balance: DeliveryBalance) -> DeliveryBalance {
        var sum = balance
        sum.received += (0...2).reduce(Int64(0)) { $0 + Int64(self.sharing.counts[UInt8($1)].distinct) }
        let longest = TimeAmount.nanoseconds(self.slow.map(\.entry.duration).max() ?? 0)
        sum.longest = sum.longest.map { max($0, longest) }
        return sum
    }

    /// Whether the missing messages may all be excused by absences.
    package func mayBeExcused(_ balance: DeliveryBalance) -> Bool {
        guard let most = self.presence.mostExcused else { return true }
        return balance.uncertain == 0 && balance.expected - balance.received <= Int64(clamping: most)
    }

    /// The messages that the share groups received.
    package var shares: LedgerExport { self.sharing.export() }
}

extension SlowEntry {
    /// Which member received it is not known here.
    fileprivate init(_ first: FirstArrival, _ metric: DurationID) {
        self.init(
            .arrival,
            metric,
            duration: first.duration,
            due: first.due,
            sender: first.publisher,
            audience: first.audience,
            sequence: first.sequence
        )
    }
}
