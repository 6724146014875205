/// The sums of a ``Reconciliation``.
struct Balance {
    private struct RowKey: Hashable {
        var label: Int
        var qos: UInt8
    }

    private struct Sums {
        var acknowledged: UInt64 = 0
        var unknownArrived: UInt64 = 0
        var lost: [LossCause: UInt64] = [:]
        var missing: UInt64 = 0
        /// Absent deliveries that are not lost.
        var outstanding: UInt64 = 0
        /// Those of them whose publish was not answered, or never sent.
        var unanswered: UInt64 = 0
        var received: UInt64 = 0
        var gaps: UInt64 = 0
        var duplicated: UInt64 = 0
        var permitted: UInt64 = 0
        var overlapped: UInt64 = 0
        var reordered: UInt64 = 0
        var isPublished = false
    }

    private let terms: ReconciliationTerms
    private var sums: [RowKey: Sums] = [:]
    private var streams: [StreamKey: StreamLedger] = [:]
    /// Few streams have entries here.
    private var irregular: [StreamKey: Irregularity] = [:]
    private var excused: [StreamKey: SequenceRanges] = [:]
    /// Counted at each arrival; the streams' counts must be equal.
    private var counts = PerQoS(repeating: DeliveryCounts())
    private var inStreams = PerQoS(repeating: UInt64(0))
    private var late: Set<UInt32> = []
    private var absent: Set<UInt32> = []
    /// Few runs have any.
    private var absentDeliveries: [AbsentDelivery: (lost: UInt64, outstanding: UInt64)] = [:]
    private(set) var examples: [Reconciliation.Example] = []
    private var hasExample: Set<ExampleKey> = []
    private var overflowed = 0
    private var isOutOfMemory = false
    private var foreign: UInt64 = 0
    private var aboveAssigned = 0
    private var met = 0
    private var mixed = 0
    /// Every publisher knows that the server has read its last message.
    private var isRead = true

    private struct ExampleKey: Hashable {
        var label: Int
        var finding: Reconciliation.Finding
    }

    init(arrivals: [LedgerExport], terms: ReconciliationTerms) {
        self.terms = terms
        self.streams.reserveCapacity(arrivals.reduce(0) { $0 + $1.keys.count })
        for ledger in arrivals {
            for qos: UInt8 in 0...2 { self.counts[qos] += ledger.counts[qos] }
            self.foreign += ledger.foreign
            self.isOutOfMemory = self.isOutOfMemory || ledger.overflowed
            self.late.formUnion(ledger.late)
            self.absent.formUnion(ledger.absent)
            for (key, stream) in zip(ledger.keys, ledger.streams) {
                if self.streams.updateValue(stream, forKey: key) != nil { self.mixed += 1 }
                if stream.overflowed { self.overflowed += 1 }
                self.inStreams[stream.qos] += stream.distinct
            }
            for (index, irregular) in ledger.irregular { self.irregular[ledger.keys[index]] = irregular }
            for (index, excused) in ledger.excused { self.excused[ledger.keys[index]] = excused }
        }
    }

    // MARK: - Publishers

    /// Adds the publishers' side, and computes the expected and the lost messages.
    mutating func settle(_ published: [PublishedExport]) {
        self.isRead = published.allSatisfy { $0.fates.allSatisfy(\.outstanding.isEmpty) }
        for export in published { self.settle(export) }
    }

    private mutating func settle(_ published: PublishedExport) {
        for fate in published.fates {
            let own = self.terms.own(fate.publisher)
            for member in published.members(of: fate) where member.copies(from: own) > 0 { self.settle(fate, member) }
        }
    }

    private mutating func settle(_ fate: PublisherFate, _ member: AudienceMember) {
        var key = fate.key(member.receiver)
        if !self.terms.hasAudiences { key.audience = 0 }
        let label = self.terms.label(fate.publisher, member.receiver)
        let row = RowKey(label: label, qos: fate.qos)
        let stream = self.streams[key]
        if stream != nil { self.met += 1 }
        let next = stream?.next ?? 0
        if next > fate.assigned { self.aboveAssigned += 1 }
        if let stream, stream.qos != fate.qos { self.mixed += 1 }

        let assigned = fate.assigned
        var missing = SequenceRanges(stream?.missing ?? [])
        if next < assigned { missing.insert(next..<assigned) }
        missing = missing.clamped(to: 0..<assigned)
        let requested = self.terms.own(fate.publisher) == member.receiver ? member.ownQoS : member.qos
        let qos = min(fate.qos, requested, self.terms.granted[member.receiver] ?? 2)
        let excusesAll = self.excusesAll(fate, member, qos: qos)
        let excused =
            excusesAll ? SequenceRanges([0..<assigned]) : self.excused(fate, member, key, stream, qos: qos)
        var unknown = fate.unknown.clamped(to: 0..<assigned)
        for run in excused.runs { unknown.insert(run) }
        let unknownMissing = unknown.intersectionCount(missing)
        var owed = fate.outstanding
        for run in fate.unsent.runs { owed.insert(run) }
        var open = owed.intersection(missing).subtracting(excused)
        // Messages without a number follow those that have one.
        if !excusesAll { open.insert(assigned..<assigned + fate.neverSent) }
        let unanswered = open.count
        let absent = missing.subtracting(unknown)
        let lost = self.lost(absent, fate, member, key, next: next, qos: qos)

        var sums = self.sums[row] ?? Sums()
        sums.isPublished = sums.isPublished || assigned > 0 || fate.neverSent > 0
        sums.acknowledged += assigned - unknown.count
        sums.unknownArrived += unknown.count - unknownMissing
        sums.unanswered += unanswered
        sums.outstanding += unanswered + absent.count - lost.reduce(0) { $0 + $1.messages.count }
        sums.missing += missing.count - fate.unsent.intersectionCount(missing)
        self.sums[row] = sums
        for run in absent.runs { open.insert(run) }
        self.noteAges(of: open, lost: lost.map(\.messages), fate.dues, row)
        for (cause, messages) in lost { self.note(messages, as: cause, fate, key, row) }
        self.sortIrregular(fate, member, key, qos: qos)
    }

    /// Sorts what did not come by the time at which it was due: lost messages, and the others of `absent`.
    private mutating func noteAges(of absent: SequenceRanges, lost: [SequenceRanges], _ dues: [DueMark], _ row: RowKey)
    {
        guard row.label >= 0, !absent.isEmpty else { return }
        var start: UInt64 = 0
        for mark in dues {
            let part = start..<start + mark.count
            start = part.upperBound
            let all = absent.clamped(to: part).count
            guard all > 0 else { continue }
            let lost = lost.reduce(0) { $0 + $1.clamped(to: part).count }
            let key = AbsentDelivery(label: row.label, qos: row.qos, lane: mark.lane, last: mark.last)
            self.absentDeliveries[key, default: (0, 0)].lost += lost
            self.absentDeliveries[key, default: (0, 0)].outstanding += all - lost
        }
    }

    /// Whether all messages are expected only if they arrive, those without a number too.
    private func excusesAll(_ fate: PublisherFate, _ member: AudienceMember, qos: UInt8) -> Bool {
        // Any part of a connection that broke is excused, and any message may have been with a member that left.
        fate.expires || self.terms.neverBegan.contains(member.receiver)
            || self.terms.isTooLarge(fate.publisher, member.receiver)
            || (member.isShared || qos == 0) && self.absent.contains(member.receiver)
    }

    /// The messages that are expected only if they arrive, whatever their publisher knows: those sent while the
    /// receiver's subscription was not in effect.
    private func excused(
        _ fate: PublisherFate,
        _ member: AudienceMember,
        _ key: StreamKey,
        _ stream: StreamLedger?,
        qos: UInt8
    ) -> SequenceRanges {
        let all = 0..<fate.assigned
        var excused = SequenceRanges()
        if let absences = self.terms.absences[key] {
            let broken = qos == 0 ? absences.broken : absences.ended
            for run in broken.clamped(to: all).runs { excused.insert(run) }
            for run in absences.ended.clamped(to: all).runs { excused.insert(run) }
        }
        for run in self.excused[key]?.clamped(to: all).runs ?? [] { excused.insert(run) }
        if self.absent.contains(member.receiver) || self.late.contains(member.receiver) {
            excused.insert(0..<min(stream?.first ?? fate.assigned, fate.assigned))
        }
        return excused
    }

    /// Sorts the absent deliveries of acknowledged messages by the proof that they are lost; the others may still come.
    private func lost(
        _ absent: SequenceRanges,
        _ fate: PublisherFate,
        _ member: AudienceMember,
        _ key: StreamKey,
        next: UInt64,
        qos: UInt8
    ) -> [(cause: LossCause, messages: SequenceRanges)] {
        guard !absent.isEmpty else { return [] }
        let absences = self.terms.absences[key]
        // A share group has no order (MQTT 5.0 §4.8.2), and a message that was sent again may come late (§4.4).
        // A receiver that left a node of a cluster may come back to another one; a new subscription is no return.
        let broken = absences.map { $0.broken.subtracting($0.ended) } ?? SequenceRanges()
        let isMoved = self.terms.isCluster && !broken.isEmpty
        // Copies for overlapping filters may come at different QoS, which have an order each.
        let isSingle = member.copies(from: self.terms.own(fate.publisher)) == 1
        let isOrdered = fate.isOrdered && !member.isShared && isSingle && !isMoved
        let passed = isOrdered ? absent.clamped(to: 0..<next).subtracting(fate.resent) : SequenceRanges()
        let withheld = self.isRead && self.terms.end.isWithheld(from: member.receiver) ? absent : SequenceRanges()
        var fresh = absences?.fresh.intersection(passed) ?? SequenceRanges()
        for run in absences?.fresh.intersection(withheld).runs ?? [] { fresh.insert(run) }
        let proofs: [(LossCause, SequenceRanges)] = [
            (.sessionLost, absences?.sessionLost ?? SequenceRanges()), (.serverAdmitted, fate.admitted),
            (.freshSubscription, fresh), (qos == 0 ? .dropped : .violated, passed),
            (qos == 0 ? .dropped : .withheld, withheld),
        ]
        var rest = absent
        var lost: [(cause: LossCause, messages: SequenceRanges)] = []
        for (cause, messages) in proofs where !messages.isEmpty {
            let proved = rest.intersection(messages)
            guard !proved.isEmpty else { continue }
            lost.append((cause, proved))
            rest = rest.subtracting(proved)
        }
        return lost
    }

    private mutating func note(
        _ lost: SequenceRanges,
        as cause: LossCause,
        _ fate: PublisherFate,
        _ key: StreamKey,
        _ row: RowKey
    ) {
        guard let first = lost.runs.first?.lowerBound else { return }
        self.sums[row, default: Sums()].lost[cause, default: 0] += lost.count
        self.example(.lost(cause), key, row, first, isResent: fate.resent.contains(first))
    }

    private mutating func example(
        _ finding: Reconciliation.Finding,
        _ key: StreamKey,
        _ row: RowKey,
        _ sequence: UInt64?,
        isResent: Bool = false
    ) {
        guard self.hasExample.insert(ExampleKey(label: row.label, finding: finding)).inserted else { return }
        self.examples.append(
            Reconciliation.Example(
                label: row.label,
                finding: finding,
                key: key,
                qos: row.qos,
                sequence: sequence,
                isResent: isResent
            )
        )
    }

    /// Sorts out what the fates explain.
    ///
    /// A message that its publisher sent again may arrive once more, and late (MQTT 5.0 §4.3.2). A message of QoS 1 may
    /// come to several members of a share group (§4.8.2). The server keeps no order across topics (§4.6).
    private mutating func sortIrregular(_ fate: PublisherFate, _ member: AudienceMember, _ key: StreamKey, qos: UInt8) {
        guard var irregular = self.irregular[key] else { return }
        if member.isShared {
            // Only here the QoS of the deliveries is known.
            let all = irregular.duplicated + irregular.permitted
            irregular.permitted = qos == 1 ? all : 0
            irregular.duplicated = all - irregular.permitted
        }
        if fate.qos == 1, irregular.duplicated > 0, irregular.duplicates.intersectionCount(fate.resent) > 0 {
            // How often each one came is unknown: each repeat beyond one is taken for one of a message sent again.
            irregular.duplicates = irregular.duplicates.subtracting(fate.resent)
            let others = min(irregular.duplicates.count, irregular.duplicated)
            irregular.permitted += irregular.duplicated - others
            irregular.duplicated = others
        }
        let isWhole = irregular.overtaken.count == irregular.reordered
        let again = isWhole ? irregular.overtaken.intersectionCount(fate.resent) : fate.resent.count
        irregular.reordered -= min(irregular.reordered, again)
        irregular.overtaken = irregular.overtaken.subtracting(fate.resent)
        if !fate.isOrdered { irregular.reordered = 0 }
        self.irregular[key] = irregular
    }

    // MARK: - Receivers

    /// Adds the receivers' side, once all publishers are settled.
    mutating func finish() {
        for (key, stream) in self.streams {
            let row = RowKey(label: self.terms.label(key.publisher, key.subscription), qos: stream.qos)
            self.sums[row, default: Sums()].received += stream.distinct
            self.sums[row, default: Sums()].gaps += stream.gaps
        }
        // Sorted, so that the same example comes from the same ledgers.
        for (key, irregular) in self.irregular.sorted(by: { $0.key < $1.key }) {
            let row = RowKey(label: self.terms.label(key.publisher, key.subscription), qos: self.streams[key]?.qos ?? 0)
            var sums = self.sums[row] ?? Sums()
            sums.duplicated += irregular.duplicated + irregular.permitted
            sums.permitted += irregular.permitted
            sums.overlapped += irregular.overlapped
            sums.reordered += irregular.reordered
            self.sums[row] = sums
            if irregular.duplicated > 0 {
                self.example(.duplicated, key, row, irregular.duplicates.runs.first?.lowerBound)
            }
            if irregular.reordered > 0 {
                self.example(.reordered, key, row, irregular.overtaken.runs.first?.lowerBound)
            }
        }
    }

    /// The deliveries that did not come, in the order of their rows and times.
    var absences: [AbsentDelivery] {
        self.absentDeliveries.map { key, counts in
            var own = key
            (own.lost, own.outstanding) = counts
            return own
        }.sorted { ($0.label, $0.qos, $0.lane, $0.last) < ($1.label, $1.qos, $1.lane, $1.last) }
    }

    func rows(publishersKnown: Bool) -> [Reconciliation.Row] {
        self.sums.filter { $0.key.label >= 0 && ($0.value.isPublished || $0.value.received > 0) }
            .sorted { ($0.key.label, $0.key.qos) < ($1.key.label, $1.key.qos) }
            .map { key, sums in
                Reconciliation.Row(
                    label: key.label,
                    qos: key.qos,
                    expected: publishersKnown ? sums.acknowledged + sums.unknownArrived + sums.unanswered : nil,
                    received: sums.received,
                    lost: publishersKnown ? sums.lost.values.reduce(0, +) : nil,
                    outstanding: publishersKnown ? sums.outstanding : nil,
                    lostBy: sums.lost,
                    missing: publishersKnown ? sums.missing : nil,
                    duplicated: sums.duplicated,
                    permitted: sums.permitted,
                    overlapped: sums.overlapped,
                    reordered: sums.reordered,
                    gaps: sums.gaps
                )
            }
    }

    /// All invariants that are violated.
    func problems(publishersKnown: Bool) -> [LedgerProblem] {
        var problems: [LedgerProblem] = []
        if self.overflowed > 0 { problems.append(.tooManyGaps(streams: self.overflowed)) }
        if self.isOutOfMemory { problems.append(.outOfMemory) }
        if self.foreign > 0 { problems.append(.damagedHeaders(messages: self.foreign)) }
        if self.aboveAssigned > 0 { problems.append(.neverSent(streams: self.aboveAssigned)) }
        let strayed = self.streams.count - self.met
        if publishersKnown, strayed > 0 { problems.append(.strayed(streams: strayed)) }
        if self.mixed > 0 { problems.append(.mixed(streams: self.mixed)) }
        for qos: UInt8 in 0...2 { problems += self.imbalance(qos) }
        return problems
    }

    private func imbalance(_ qos: UInt8) -> [LedgerProblem] {
        let counted = self.counts[qos].distinct
        var problems: [LedgerProblem] = []
        if self.inStreams[qos] != counted {
            problems.append(.miscounted(qos: qos, arrived: counted, inStreams: self.inStreams[qos]))
        }
        let rows = self.sums.filter { $0.key.qos == qos }.values
        guard rows.contains(where: \.isPublished) else { return problems }
        let expected = rows.reduce(0) { $0 + $1.acknowledged + $1.unknownArrived + $1.unanswered }
        let lost = rows.reduce(0) { $0 + $1.lost.values.reduce(0, +) }
        let outstanding = rows.reduce(0) { $0 + $1.outstanding }
        if expected != counted + lost + outstanding {
            problems.append(
                .unbalanced(qos: qos, expected: expected, received: counted, lost: lost, outstanding: outstanding)
            )
        }
        return problems
    }
}
