package import Ledger
import MQTT
import Measurement
import NIOCore
package import RunResult

/// The ledger of all MQTT groups of a run, from the results of their loops.
package struct RunDelivery: Sendable {
    package let plan: DeliveryPlan
    /// `nil` in a run without a ledger.
    package let reconciliation: Reconciliation?
    private let results: [MQTTResult]
    private let shares: LedgerExport
    let end: DeliveryEnd
    private let realtimeOffset: Int64
    /// Receivers that got messages without the user property that they were sent with: such streams are not followed
    /// there.
    let stripped: Set<UInt32>

    /// - Parameters:
    ///   - plan: the publishers and receivers of all groups.
    ///   - results: those of every loop of every group.
    ///   - shares: what the members of share groups received.
    ///   - longestShared: the longest delivery to a share group, in nanoseconds.
    ///   - presence: the marks of the run's samples.
    ///   - realtimeOffset: CLOCK_REALTIME minus the monotonic clock, for the times of a segment.
    package init(
        _ plan: DeliveryPlan,
        _ results: [MQTTResult],
        shares: LedgerExport,
        longestShared: Int64 = 0,
        presence: PresenceLedger,
        realtimeOffset: Int64 = 0
    ) {
        self.plan = plan
        self.realtimeOffset = realtimeOffset
        self.results = results
        self.shares = shares
        guard plan.isFollowed else {
            self.reconciliation = nil
            self.stripped = []
            self.end = DeliveryEnd()
            return
        }
        var terms = ReconciliationTerms()
        terms.use(plan.places)
        let isJoint = results.contains { $0.joint != nil }
        if !isJoint {
            var presence = presence
            for mark in results.lazy.flatMap(\.presence) { presence.add(mark) }
            let absent = results.reduce(into: [UInt32: [UInt64]]()) { all, own in
                all.merge(own.absent) { Array(Set($0 + $1)) }
            }
            presence.close(absent, results.map(\.published))
            terms.absences = presence.export()
        }
        terms.isCluster = plan.groups.contains { $0.load.targets > 1 && $0.load.servers == 1 }
        let began = results.reduce(into: Set<UInt32>()) { $0.formUnion($1.began) }
        terms.neverBegan = results.reduce(into: Set<UInt32>()) { $0.formUnion($1.receivers) }.subtracting(began)
        for result in results {
            terms.granted.merge(result.granted, uniquingKeysWith: min)
            terms.end += result.end
        }
        terms.end.longest = max(terms.end.longest, longestShared)
        self.end = terms.end
        terms.isTooLarge = plan.isTooLarge
        let stripped = results.reduce(into: Set<UInt32>()) { $0.formUnion($1.stripped) }
        self.stripped = stripped
        if !stripped.isEmpty {
            let label = terms.label
            let streams = plan.groups.flatMap { $0.load.publishes ? $0.load.streams : [] }
            terms.label = { publisher, receiver in
                let isStripped =
                    stripped.contains(receiver) && streams[plan.stream(of: publisher)].carrier == .property
                return isStripped ? -1 : label(publisher, receiver)
            }
        }
        self.reconciliation = Reconciliation(
            arrivals: results.map(\.ledger) + [shares],
            published: plan.hasPublishers && !isJoint ? results.map(\.published) : nil,
            terms: terms
        )
    }

    /// The streams of the share groups that a group's members receive.
    func shares(of group: String) -> LedgerExport {
        var own = LedgerExport()
        for (key, stream) in zip(self.shares.keys, self.shares.streams) {
            guard let place = self.plan.places.receivers(of: key.subscription),
                Labels.firstGroup(of: self.plan.places.receivers[place].group) == group
            else { continue }
            own.keys.append(key)
            own.streams.append(stream)
        }
        return own
    }

    private var isJoint: Bool { self.results.contains { $0.joint != nil } }

    /// The ledger's part of the run's record.
    package var account: DeliveryAccount {
        var account = DeliveryAccount()
        account.notes = [self.retainedLimit].compactMap(\.self)
        if self.results.contains(where: \.retained.hasMoreTopics) { account.notes.append(.retainedTopics) }
        guard let delivery = self.reconciliation else { return account }
        // Messages missing in a segment may have reached another one.
        let hasGroups = self.plan.groups.contains { !$0.name.isEmpty }
        account.metrics = delivery.metrics(
            self.plan.places,
            hasGroups: hasGroups,
            hasFrom: self.plan.hasFrom,
            hasGaps: !self.isJoint && !self.plan.hasPublishers
        )
        account.absent = delivery.absent(self.plan.places, hasGroups: hasGroups, hasFrom: self.plan.hasFrom)
        if !self.isJoint {
            account.unreconciled = delivery.problems.map(\.reason)
            if self.results.contains(where: \.hasTooManyAudiences) {
                account.unreconciled.append(LedgerProblem.tooManyAudiences.reason)
            }
            account.notes += self.targetNotes(delivery)
        }
        if !self.stripped.isEmpty {
            let words =
                "\(Words.count(self.stripped.count, "receiver")) got messages without their user property "
                + "'\(LedgerCarrier.propertyName)': the ledger does not follow them there"
            let reason = Verdict.Reason(
                code: LedgerRecord.strippedCode,
                text: words,
                measured: Double(self.stripped.count)
            )
            // The merge knows nothing of it.
            if self.isJoint { account.unreconciled.append(reason) } else { account.notes.append(reason) }
        }
        account.segment = self.segment
        return account
    }

    private var retainedLimit: Verdict.Reason? {
        let counts = self.results.reduce(into: Set<Int>()) { $0.formUnion($1.retained.shorts) }
        let rooms = Set(
            self.plan.groups.filter(\.load.subscribes).map { $0.load.subscriberSession.receiveMaximum ?? .max }
        )
        return rooms.count == 1 ? .retainedLimit(counts, receiveMaximum: Int(rooms.min() ?? .max)) : nil
    }

    // MARK: - Examples

    /// A finding in words for the record.
    func example(_ example: Reconciliation.Example) -> LedgerExample {
        let (publisher, topic) = self.publisher(example)
        var words = LedgerExample(
            example,
            publisher: publisher ?? "publisher \(example.key.publisher)",
            subscriber: self.plan.name(ofReceiver: example.key.subscription)
        )
        words.topic = topic
        return words
    }

    private func publisher(_ example: Reconciliation.Example) -> (id: String?, topic: String?) {
        guard let place = self.plan.places.stream(of: example.key.publisher) else { return (nil, nil) }
        let stream = self.plan.places.streams[place]
        guard let group = self.plan.groups.firstIndex(where: { $0.name == stream.group && $0.load.publishes }) else {
            return (nil, nil)
        }
        let load = self.plan.groups[group].load
        let client = Int(example.key.publisher - stream.publishers.lowerBound)
        let own = load.streams.first { load.hasStreams && $0.name == stream.name } ?? load.stream
        let values = load.values(of: client)
        let topic =
            own.p2p.map { String(decoding: $0.root, as: UTF8.self) + "/p2p/..." } ?? own.topic.filter(ofClient: values)
        return (String(decoding: values.clientID, as: UTF8.self), topic)
    }

    // MARK: - Targets

    /// Whether the targets look like unconnected servers although the load treats them as one.
    ///
    /// That is so if no acknowledged message arrived at another target, and none is missing at the publisher's own
    /// target.
    private func targetNotes(_ delivery: Reconciliation) -> [Verdict.Reason] {
        guard let load = self.plan.groups.first?.load, self.plan.groups.count == 1, load.targets > 1, load.servers == 1,
            load.topology != .request, self.plan.hasLedger
        else { return [] }
        var came: [StreamKey: UInt64] = [:]
        for export in self.results.map(\.ledger) + [self.shares] {
            for (key, stream) in zip(export.keys, export.streams) { came[key] = stream.distinct }
        }
        var missing: UInt64 = 0
        for published in self.results.map(\.published) {
            for fate in published.fates where Int(fate.audience) < published.audiences.count {
                let sent = fate.assigned - min(fate.assigned, fate.unknown.count)
                let own = Int(fate.publisher) % load.targets
                for member in published.audiences[Int(fate.audience)] {
                    let key = fate.key(member.receiver)
                    if self.plan.targets(of: member.receiver).contains(own) {
                        guard came[key] ?? 0 >= sent else { return [] }
                    } else {
                        guard came[key] ?? 0 == 0 else { return [] }
                        missing += sent
                    }
                }
            }
        }
        guard missing > 0 else { return [] }
        return [
            Verdict.Reason(
                code: "targets-apart",
                text: "no message arrived from one target at another, so the targets look like separate servers: the "
                    + "\(Words.count(missing)) messages between them count as lost",
                measured: Double(missing),
                limit: 0
            )
        ]
    }

    // MARK: - Segments

    /// The data of a segment for the join of its ledger with the others.
    private var segment: SegmentLedger? {
        guard self.isJoint else { return nil }
        var ledger = SegmentLedger(received: Self.joined(self.results.map(\.ledger) + [self.shares]))
        let joint = self.results.compactMap(\.joint)
        for own in joint {
            ledger.received.absent.formUnion(own.absentShares)
            ledger.received.late.formUnion(own.lateShares)
        }
        func realtime(_ time: NIODeadline) -> Int64 { Int64(time.uptimeNanoseconds) + self.realtimeOffset }
        ledger.loadBegan = joint.map(\.loadBegan).min().flatMap { $0 == .distantFuture ? nil : realtime($0) }
        ledger.publishersEnded = joint.compactMap(\.publishersEnded).max().map(realtime)
        ledger.subscribersLeft = joint.compactMap(\.subscribersLeft).min().map(realtime)
        ledger.end = self.end.shifted(by: self.realtimeOffset)
        ledger.receivers = Set(self.results.flatMap(\.receivers)).sorted()
        ledger.began = Set(self.results.flatMap(\.began))
        for result in self.results { ledger.granted.merge(result.granted, uniquingKeysWith: min) }
        ledger.places = self.plan.places
        ledger.published = self.results.map { $0.published.shifted(by: self.realtimeOffset) }
        return ledger
    }

    /// Messages received on all loops.
    private static func joined(_ ledgers: [LedgerExport]) -> LedgerExport {
        ledgers.reduce(into: LedgerExport()) { joint, own in
            let first = joint.keys.count
            joint.keys += own.keys
            joint.streams += own.streams
            for (index, irregular) in own.irregular { joint.irregular[first + index] = irregular }
            for (index, excused) in own.excused { joint.excused[first + index] = excused }
            joint.late.formUnion(own.late)
            joint.absent.formUnion(own.absent)
            joint.foreign += own.foreign
            joint.overflowed = joint.overflowed || own.overflowed
            for qos: UInt8 in 0...2 { joint.counts[qos] += own.counts[qos] }
        }
    }
}
