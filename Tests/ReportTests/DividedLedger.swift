import Ledger
import TestSupport

/// The ledgers of the segments of one run with losses, repeats and late messages, drawn from a seed.
///
/// Three publishers of each QoS, six receivers and two share groups with members in all segments.
struct DividedLedger {
    private(set) var segments: [SegmentLedger]
    private var dice: SeededDice
    private var table = AudienceTable()
    private static let publishers: UInt32 = 9
    private static let receivers: UInt32 = 6
    private static let groups: [UInt32] = [6, 7]

    init(_ count: Int, seed: UInt64) {
        self.dice = SeededDice(seed: seed)
        self.segments = (0..<count).map { _ in SegmentLedger(received: LedgerExport()) }
        let plain = (0..<Self.receivers).map { AudienceMember(receiver: $0, qos: 2, ownQoS: $0 == 3 ? 0 : 2) }
        let shared = Self.groups.map { AudienceMember(receiver: $0, qos: UInt8($0 - 6), isShared: true) }
        let audience = self.table.number(of: plain + shared)
        let places = LedgerPlaces(
            streams: [
                LedgerPlaces.Stream(publishers: 0..<4, own: 0, group: "ops", name: "command"),
                LedgerPlaces.Stream(publishers: 4..<Self.publishers, own: nil, group: "ops", name: "report"),
            ],
            receivers: [
                LedgerPlaces.Receivers(numbers: 0..<Self.receivers, group: "devices"),
                LedgerPlaces.Receivers(numbers: 6..<7, group: "devices+audit"),
                LedgerPlaces.Receivers(numbers: 7..<8, group: "audit"),
            ]
        )
        let fates = (0..<Self.publishers).map { self.fate($0, audience) }
        for (index, segment) in self.segments.indices.enumerated() {
            self.segments[segment].places = places
            // Two event loops, of which each has some of the segment's publishers.
            self.segments[segment].published = (0..<2).map { loop in
                let own = fates.filter { Int($0.publisher) % count == index && $0.publisher % 2 == loop }
                return PublishedExport(audiences: self.table.audiences, fates: own)
            }
            self.segments[segment].loadBegan = 10
            self.segments[segment].publishersEnded = Int64.random(in: 100...120, using: &self.dice)
            self.segments[segment].subscribersLeft = Int64.random(in: 110...130, using: &self.dice)
        }
        for receiver in 0..<Self.receivers { self.receive(receiver, fates, in: Int(receiver) % count) }
        self.share(fates)
    }

    private mutating func numbers(below count: UInt64, _ share: Double) -> SequenceRanges {
        SequenceRanges((0..<count).filter { _ in self.dice.hits(share) }.map { $0..<$0 + 1 })
    }

    private mutating func fate(_ publisher: UInt32, _ audience: UInt32) -> PublisherFate {
        let count = UInt64.random(in: 20...60, using: &self.dice)
        var fate = PublisherFate(publisher: publisher, audience: audience, qos: UInt8(publisher % 3), assigned: count)
        fate.unknown = self.numbers(below: count, 0.05)
        fate.resent = self.numbers(below: count, 0.1)
        fate.admitted = self.numbers(below: count, 0.03)
        fate.expires = self.dice.hits(0.2)
        fate.isOrdered = self.dice.hits(0.8)
        return fate
    }

    /// Sequence numbers in their order of arrival.
    private mutating func arrivals(_ fate: PublisherFate) -> [UInt64] {
        var arrivals: [UInt64] = []
        for sequence in 0..<fate.assigned where !self.dice.hits(0.1) {
            let place = self.dice.hits(0.1) ? max(0, arrivals.count - 3) : arrivals.count
            arrivals.insert(sequence, at: place)
            if self.dice.hits(0.05) { arrivals.append(sequence) }
        }
        return arrivals
    }

    private mutating func receive(_ receiver: UInt32, _ fates: [PublisherFate], in segment: Int) {
        var ledger = SubscriberLedger(publishers: Self.publishers)
        let place = ledger.addSubscription(receiver)
        if self.dice.hits(0.2) { ledger.beganLate(place) }
        for fate in fates {
            for sequence in self.arrivals(fate) {
                if self.dice.hits(0.003) { ledger.open(place) }
                _ = ledger.arrived(
                    subscription: place,
                    publisher: fate.publisher,
                    audience: fate.audience,
                    qos: fate.qos,
                    sequence: sequence,
                    copies: self.dice.hits(0.5) ? 2 : 1
                )
            }
        }
        self.segments[segment].add(ledger.export())
        self.segments[segment].receivers.append(receiver)
        if !self.dice.hits(0.1) { self.segments[segment].began.insert(receiver) }
        if self.dice.hits(0.2) { self.segments[segment].granted[receiver] = 1 }
    }

    /// A message may come to members in several segments, or twice to one.
    private mutating func share(_ fates: [PublisherFate]) {
        var batches: [[ShareBatch]] = []
        for index in self.segments.indices {
            var members = ShareMembers(publishers: Self.publishers)
            let places = Self.groups.map { members.addMember(group: $0) }
            for fate in fates {
                for sequence in 0..<fate.assigned {
                    for place in places where self.dice.hits(1.1 / Double(self.segments.count)) {
                        let arrival = ShareBatch.Arrival(
                            publisher: fate.publisher,
                            audience: fate.audience,
                            qos: fate.qos,
                            sequence: sequence,
                            lane: 0,
                            due: 0,
                            at: Int64(sequence)
                        )
                        for _ in 0..<(self.dice.hits(0.05) ? 2 : 1) { members.arrived(member: place, arrival) }
                    }
                }
            }
            batches.append([members.swap()])
            var ledger = ShareGroupLedger()
            ledger.merge(batches[index])
            for group in Self.groups {
                if self.dice.hits(0.05) { ledger.memberLeft(group) }
                if self.dice.hits(0.05) { ledger.beganLate(group) }
            }
            self.segments[index].add(ledger.export())
            self.segments[index].receivers += Self.groups
            self.segments[index].began.formUnion(Self.groups)
            if self.dice.hits(0.2) { self.segments[index].granted[6] = UInt8.random(in: 0...2, using: &self.dice) }
        }
    }
}

extension SegmentLedger {
    /// Adds the arrivals of an event loop with streams of its own.
    fileprivate mutating func add(_ export: LedgerExport) {
        let first = self.received.keys.count
        self.received.keys += export.keys
        self.received.streams += export.streams
        for (index, irregular) in export.irregular { self.received.irregular[first + index] = irregular }
        for (index, excused) in export.excused { self.received.excused[first + index] = excused }
        self.received.late.formUnion(export.late)
        self.received.absent.formUnion(export.absent)
        for qos: UInt8 in 0...2 { self.received.counts[qos] += export.counts[qos] }
    }
}
