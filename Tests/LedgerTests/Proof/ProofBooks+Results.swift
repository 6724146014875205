import Ledger
import TestSupport

// The books at the end of a run.
extension ProofBooks {
    private func published(_ shard: Shard) -> PublishedExport {
        let fates = shard.publishers.fates { publisher, audience in
            let (number, client, stream) = shard.numbers[publisher]
            let facts = self.plan.group(of: client).streams[stream]
            // The topics of the stream that reach the same receivers.
            let reached = shard.table.audiences[Int(audience)]
            let topics = Set(facts.topics).filter { self.members[$0].elementsEqual(reached) }
            return PublisherFate(
                publisher: number,
                qos: facts.qos,
                assigned: 0,
                expires: facts.expires,
                isOrdered: topics.count <= 1
            )
        }
        return PublishedExport(audiences: shard.table.audiences, fates: fates)
    }

    private var neverBegan: Set<UInt32> {
        var all = Set(self.receiverNumbers.values)
        for case .noticed(_, let notice) in self.run.log { all.remove(self.receiver(notice.target)) }
        return all
    }

    private var granted: [UInt32: UInt8] {
        var granted: [UInt32: UInt8] = [:]
        for (target, number) in self.receiverNumbers where self.plan.grant(of: target) < 2 {
            granted[number] = self.plan.grant(of: target)
        }
        return granted
    }

    /// The facts that each shard knows of the end.
    private func ends() -> [DeliveryEnd] {
        var ends = self.shards.map { _ in DeliveryEnd() }
        let ending = self.run.ending
        func one() -> Int { .random(in: ends.indices, using: &self.dice) }
        ends[one()].longest = ending.longest
        let last = Int64.random(in: -5_000_000_000...5_000_000_000, using: &self.dice)
        let other = self.dice.hits(0.2) ? nil : last - .random(in: 0...1_000_000_000, using: &self.dice)
        let isPublish = self.dice.hits(0.3)
        ends[one()].lastArrival = isPublish ? other : last
        ends[one()].lastPublish = isPublish ? last : other
        if let quiet = ending.quiet {
            for index in ends.indices where self.dice.hits(0.7) {
                ends[index].probed = last + quiet + .random(in: 0...1_000_000_000, using: &self.dice)
            }
            ends[one()].probed = last + quiet
        }
        for client in ending.unproved {
            let share = self.plan.group(of: client).share
            let receiver = self.receiver(share.map { ProofPlan.Target.share($0) } ?? .client(client))
            ends[client % ends.count].unproved.insert(receiver)
        }
        return ends
    }

    /// As one process has them.
    func reconciliation() -> Reconciliation {
        var presence = PresenceLedger()
        var queues = self.shards.flatMap { [$0.publisherMarks[...], $0.receiverMarks[...]] }
        while let index = queues.indices.filter({ !queues[$0].isEmpty }).randomElement(using: &self.dice) {
            // Loops hand their marks over in batches.
            for _ in 0..<Int.random(in: 1...20, using: &self.dice) {
                if let mark = queues[index].popFirst() { presence.add(mark) }
            }
        }
        let published = self.shards.map(self.published)
        var absent: [UInt32: [UInt64]] = [:]
        for (client, visit) in self.run.absent {
            if let share = self.plan.group(of: client).share {
                // A member that was let go has left for good.
                guard self.plan.group(of: client).keepsSessions else { continue }
                absent[self.receiver(.share(share)), default: []].append(VirtualRun.memberVisit(client, visit))
            } else {
                absent[self.receiver(.client(client)), default: []].append(UInt64(visit))
            }
        }
        for (share, visit) in self.run.empty { absent[self.receiver(.share(share)), default: []].append(UInt64(visit)) }
        presence.close(absent, published)
        var terms = ReconciliationTerms()
        terms.absences = presence.export()
        terms.neverBegan = self.neverBegan
        terms.granted = self.granted
        terms.isCluster = self.plan.clusterDelay > 0
        for end in self.ends() { terms.end += end }
        terms.use(self.layout)
        let exports = self.shards.map { $0.receivers.export() } + [self.shards[0].shares.export()]
        return Reconciliation(arrivals: exports, published: published, terms: terms)
    }

    /// As segments have them.
    func joint() -> Reconciliation {
        let neverBegan = self.neverBegan
        let ends = self.ends()
        let segments = self.shards.enumerated().map { index, shard in
            var received = shard.receivers.export()
            received.add(shard.shares.export())
            var segment = SegmentLedger(received: received)
            segment.published = [self.published(shard)]
            segment.places = self.layout
            segment.granted = self.granted
            segment.end = ends[index]
            for (target, number) in self.receiverNumbers {
                if case .client(let client) = target, client % self.shards.count != index { continue }
                segment.receivers.append(number)
                if !neverBegan.contains(number) { segment.began.insert(number) }
            }
            return segment
        }
        return Reconciliation(joining: segments)
    }

    /// The label of a row.
    func label(_ row: NaiveModel.Row) -> Int {
        let share = row.receivers - self.plan.groups.count
        let receivers = share < 0 ? "g\(row.receivers)" : "share\(share)"
        let place = self.layout.receivers.firstIndex { $0.group == receivers } ?? -1
        let stream = self.layout.streams.firstIndex { $0.group == "g\(row.publishers)" && $0.name == "s\(row.stream)" }
        return place * self.layout.streams.count + (stream ?? -1)
    }

    /// The message of an example.
    func message(of example: Reconciliation.Example) -> Int? {
        self.places.firstIndex {
            $0?.publisher == example.key.publisher && $0?.audience == example.key.audience
                && $0?.sequence == example.sequence
        }
    }
}

extension LedgerExport {
    /// Adds the streams of another ledger, none of which is in this one.
    mutating func add(_ other: LedgerExport) {
        let offset = self.keys.count
        self.keys += other.keys
        self.streams += other.streams
        for (index, irregular) in other.irregular { self.irregular[offset + index] = irregular }
        for (index, excused) in other.excused { self.excused[offset + index] = excused }
        self.late.formUnion(other.late)
        self.absent.formUnion(other.absent)
        self.foreign += other.foreign
        self.overflowed = self.overflowed || other.overflowed
        for qos: UInt8 in 0...2 { self.counts[qos] += other.counts[qos] }
    }
}
