import Measurement
import Testing

@Suite("The ledger of share groups")
struct ShareGroupLedgerTests {
    /// One arrival at one member, in the order of the wall clock.
    private struct Arrival {
        var member: Int
        var publisher: UInt32
        var sequence: UInt64
    }

    /// What members on several loops hand out at one swap.
    private struct Loops: ~Copyable {
        private var first = ShareMembers(publishers: 100)
        private var second = ShareMembers(publishers: 100)

        init(members: Int) {
            for member in 0..<members {
                if member.isMultiple(of: 2) {
                    _ = self.first.addMember(group: 9)
                } else {
                    _ = self.second.addMember(group: 9)
                }
            }
        }

        mutating func arrived(_ arrival: Arrival) {
            let qos = UInt8(arrival.publisher % 3)
            let (publisher, sequence) = (arrival.publisher, arrival.sequence)
            if arrival.member.isMultiple(of: 2) {
                self.first.arrived(member: arrival.member / 2, publisher: publisher, qos: qos, sequence: sequence)
            } else {
                self.second.arrived(member: arrival.member / 2, publisher: publisher, qos: qos, sequence: sequence)
            }
        }

        mutating func swap() -> [ShareBatch] { [self.first.swap(), self.second.swap()] }
    }

    /// The definition by sets: of a sequence that is new in a set of batches, the first arrival is one in order if
    /// any member had it in order.
    private struct Oracle {
        var counts = PerQoS(repeating: DeliveryCounts())
        var seen: [UInt32: Set<UInt64>] = [:]
        private var highest: [Int: [UInt32: UInt64]] = [:]
        private var open: [UInt32: [UInt64: (count: UInt64, allBelow: Bool)]] = [:]

        mutating func arrived(_ arrival: Arrival) {
            let highest = self.highest[arrival.member]?[arrival.publisher]
            let isBelow = highest.map { arrival.sequence < $0 } ?? false
            self.highest[arrival.member, default: [:]][arrival.publisher] = max(highest ?? 0, arrival.sequence)
            let old = self.open[arrival.publisher]?[arrival.sequence] ?? (0, true)
            self.open[arrival.publisher, default: [:]][arrival.sequence] = (old.count + 1, old.allBelow && isBelow)
        }

        mutating func swap() {
            for (publisher, sequences) in self.open {
                let qos = UInt8(publisher % 3)
                for (sequence, arrivals) in sequences {
                    let isNew = self.seen[publisher, default: []].insert(sequence).inserted
                    self.counts[qos].duplicated += arrivals.count - (isNew ? 1 : 0)
                    guard isNew else { continue }
                    self.counts[qos].add(arrivals.allBelow ? .newLate : .new)
                }
            }
            self.open = [:]
        }
    }

    @Test(
        "agrees with sets for random members, boundaries and permutations",
        arguments: Weather.all.filter { $0.count <= 4000 },
        [1, 2, 5]
    )
    func oracle(_ weather: Weather, _ members: Int) {
        for seed: UInt64 in 1...2 {
            var dice = SeededDice(seed: seed)
            var loops = Loops(members: members)
            var oracle = Oracle()
            var ledger = ShareGroupLedger()
            for arrival in self.arrivals(weather, members, &dice) {
                loops.arrived(arrival)
                oracle.arrived(arrival)
                if dice.hits(0.001) {
                    oracle.swap()
                    ledger.merge(loops.swap().shuffled(using: &dice))
                }
            }
            oracle.swap()
            ledger.merge(loops.swap())
            #expect(ledger.counts == oracle.counts)
            let export = ledger.export()
            #expect(Set(export.keys) == Set(oracle.seen.keys.map { StreamKey(subscription: 9, publisher: $0) }))
            for (key, stream) in zip(export.keys, export.streams) {
                #expect(stream.distinct == UInt64(oracle.seen[key.publisher]?.count ?? -1))
                #expect(!stream.overflowed)
                #expect(stream.qos == UInt8(key.publisher % 3))
            }
        }
    }

    @Test(
        "what arrived does not depend on how the batches of a set are cut and ordered",
        arguments: 1...5 as ClosedRange<UInt64>
    )
    func permutations(_ seed: UInt64) {
        var dice = SeededDice(seed: seed)
        var weather = Weather(testDescription: "", loss: 0.05, duplicates: 0.2, delays: 0.3, farthest: 300)
        weather.count = 2000
        let arrivals = self.arrivals(weather, 3, &dice)
        var reference: PerQoS<DeliveryCounts>?
        for _ in 0..<5 {
            // Batches are filled by hand here, so that entries change places too.
            var entries: [(Arrival, Bool)] = []
            var highest: [Int: [UInt32: UInt64]] = [:]
            for arrival in arrivals {
                let seen = highest[arrival.member]?[arrival.publisher] ?? 0
                entries.append((arrival, arrival.sequence < seen))
                highest[arrival.member, default: [:]][arrival.publisher] = max(seen, arrival.sequence)
            }
            var batches = [ShareBatch](repeating: ShareBatch(), count: 4)
            for (arrival, isBelow) in entries.shuffled(using: &dice) {
                batches[Int.random(in: 0..<4, using: &dice)].append(
                    group: 0,
                    publisher: arrival.publisher,
                    sequence: arrival.sequence,
                    wasBelow: isBelow,
                    qos: 1
                )
            }
            var ledger = ShareGroupLedger()
            ledger.merge(batches)
            if let reference { #expect(ledger.counts == reference) }
            reference = ledger.counts
        }
    }

    @Test("the same sequence at two members is one message and one duplicate, whichever swap brings it")
    func twoMembers() {
        for swapsBetween in [false, true] {
            var loops = Loops(members: 2)
            var ledger = ShareGroupLedger()
            loops.arrived(Arrival(member: 0, publisher: 0, sequence: 0))
            if swapsBetween { ledger.merge(loops.swap()) }
            loops.arrived(Arrival(member: 1, publisher: 0, sequence: 0))
            ledger.merge(loops.swap())
            #expect(ledger.counts[0] == DeliveryCounts(distinct: 1, duplicated: 1))
        }
    }

    @Test("members that take turns are in order, each for itself")
    func turns() {
        var loops = Loops(members: 2)
        var ledger = ShareGroupLedger()
        // Member 1 is behind member 0, and both see rising numbers only.
        for (member, sequence) in [(0, 1), (0, 3), (1, 0), (1, 2)] as [(Int, UInt64)] {
            loops.arrived(Arrival(member: member, publisher: 1, sequence: sequence))
        }
        ledger.merge(loops.swap())
        #expect(ledger.counts[1] == DeliveryCounts(distinct: 4))
        // Member 1 now goes back.
        loops.arrived(Arrival(member: 1, publisher: 1, sequence: 5))
        loops.arrived(Arrival(member: 1, publisher: 1, sequence: 4))
        ledger.merge(loops.swap())
        #expect(ledger.counts[1] == DeliveryCounts(distinct: 6, reordered: 1))
        #expect(ledger.export().streams.map(\.missing) == [[]])
    }

    @Test("two groups that hear the same publisher keep books of their own")
    func groups() {
        var members = ShareMembers()
        let (one, two) = (members.addMember(group: 0), members.addMember(group: 1))
        for member in [one, two] { members.arrived(member: member, publisher: 5, qos: 2, sequence: 0) }
        members.arrived(member: one, publisher: 5, qos: 2, sequence: 1)
        members.arrived(member: one, publisher: 5, qos: 3, sequence: 2)
        var ledger = ShareGroupLedger()
        ledger.merge([members.swap()])
        #expect(ledger.counts[2] == DeliveryCounts(distinct: 3))
        let export = ledger.export()
        #expect(export.keys == [StreamKey(subscription: 0, publisher: 5), StreamKey(subscription: 1, publisher: 5)])
        #expect(export.streams.map(\.distinct) == [2, 1])
        #expect(export.foreign == 1)
    }

    private func arrivals(_ weather: Weather, _ members: Int, _ dice: inout SeededDice) -> [Arrival] {
        var weather = weather
        weather.count /= 2
        var all: [Arrival] = []
        for publisher: UInt32 in 0..<4 {
            for sequence in weather.arrivals(&dice) {
                all.append(
                    Arrival(member: .random(in: 0..<members, using: &dice), publisher: publisher, sequence: sequence)
                )
            }
        }
        // The publishers side by side, each in its own order.
        return all.enumerated().map { (key: $0.offset % max(1, all.count / 4), value: $0.element) }
            .sorted { $0.key < $1.key }.map(\.value)
    }
}
