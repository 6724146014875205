import Ledger
import TestSupport
import Testing

@Suite("The ledger of share groups")
struct ShareGroupLedgerTests {
    /// One arrival at one member, in the order of the wall clock.
    private struct Arrival {
        var member: Int
        var publisher: UInt32
        var sequence: UInt64
    }

    /// The ledgers that members on several loops return at one swap.
    private struct Loops: ~Copyable {
        private var first = ShareMembers(publishers: 100)
        private var second = ShareMembers(publishers: 100)
        private(set) var now: Int64 = 0

        init(members: Int) {
            for member in 0..<members {
                if member.isMultiple(of: 2) {
                    _ = self.first.addMember(group: 9)
                } else {
                    _ = self.second.addMember(group: 9)
                }
            }
        }

        /// Each arrival is a nanosecond after the one before.
        mutating func arrived(_ arrival: Arrival) {
            self.now += 1
            let entry = ShareBatch.Arrival.of(
                arrival.publisher,
                arrival.sequence,
                qos: UInt8(arrival.publisher % 3),
                at: self.now
            )
            if arrival.member.isMultiple(of: 2) {
                self.first.arrived(member: arrival.member / 2, entry)
            } else {
                self.second.arrived(member: arrival.member / 2, entry)
            }
        }

        mutating func swap() -> [ShareBatch] { [self.first.swap(), self.second.swap()] }
    }

    /// The definition by sets, arrival by arrival in the order of the wall clock.
    private struct Oracle {
        var counts = PerQoS(repeating: DeliveryCounts())
        var seen: [UInt32: Set<UInt64>] = [:]
        /// When first arrivals came.
        var firsts: [Int64] = []
        private var now: Int64 = 0

        mutating func arrived(_ arrival: Arrival) {
            self.now += 1
            let qos = UInt8(arrival.publisher % 3)
            guard self.seen[arrival.publisher, default: []].insert(arrival.sequence).inserted else {
                self.counts[qos].duplicated += 1
                return
            }
            self.firsts.append(self.now)
            self.counts[qos].add(.new)
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
            var firsts: [Int64] = []
            for arrival in self.arrivals(weather, members, &dice) {
                loops.arrived(arrival)
                oracle.arrived(arrival)
                if dice.hits(0.001) {
                    ledger.merge(loops.swap().shuffled(using: &dice)) { firsts.append($0.duration) }
                }
            }
            ledger.merge(loops.swap()) { firsts.append($0.duration) }
            #expect(ledger.counts == oracle.counts)
            // All were due at 0.
            #expect(firsts.sorted() == oracle.firsts)
            let export = ledger.export()
            #expect(Set(export.keys) == Set(oracle.seen.keys.map { StreamKey(subscription: 9, publisher: $0) }))
            for (key, stream) in zip(export.keys, export.streams) {
                #expect(stream.distinct == UInt64(oracle.seen[key.publisher]?.count ?? -1))
                #expect(!stream.overflowed)
                #expect(stream.qos == UInt8(key.publisher % 3))
            }
        }
    }

    private struct Outcome: Equatable {
        var counts: PerQoS<DeliveryCounts>
        var durations: [Int64]
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
        var reference: Outcome?
        for _ in 0..<5 {
            // Batches are filled by hand here, so that entries change places too.
            let entries = arrivals.enumerated().map { (at: Int64($0.offset), arrival: $0.element) }
            var batches = [ShareBatch](repeating: ShareBatch(), count: 4)
            for (at, arrival) in entries.shuffled(using: &dice) {
                batches[Int.random(in: 0..<4, using: &dice)].append(
                    .of(arrival.publisher, arrival.sequence, qos: 1, at: at),
                    group: 0
                )
            }
            var ledger = ShareGroupLedger()
            var durations: [Int64] = []
            ledger.merge(batches) { durations.append($0.duration) }
            #expect(UInt64(durations.count) == ledger.counts[1].distinct)
            let outcome = Outcome(counts: ledger.counts, durations: durations.sorted())
            if let reference { #expect(outcome == reference) }
            reference = outcome
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

    @Test("the duration of a message at two members is that of the first, in the lane that its publisher named")
    func durations() {
        for lane in [0, 1, 2, 1_023, 2_047] {
            var members = ShareMembers()
            let (one, two) = (members.addMember(group: 0), members.addMember(group: 0))
            let sequence = StreamLedger.sequenceLimit - 1
            members.arrived(member: one, .of(3, sequence, qos: 2, lane: lane, due: 1_000, at: 1_800))
            members.arrived(member: two, .of(3, sequence, qos: 2, lane: lane, due: 1_000, at: 1_300))
            var ledger = ShareGroupLedger()
            var firsts: [[Int64]] = []
            ledger.merge([members.swap()]) {
                firsts.append([$0.duration, Int64($0.qos), Int64($0.lane), Int64($0.publisher), Int64($0.group)])
            }
            #expect(firsts == [[300, 2, Int64(lane), 3, 0]])
            #expect(ledger.counts[2] == DeliveryCounts(distinct: 1, duplicated: 1))
        }
    }

    @Test("the server keeps no order for shared subscriptions, within one member neither [MQTT-4.6.0-6]")
    func order() {
        var loops = Loops(members: 2)
        var ledger = ShareGroupLedger()
        for (member, sequence) in [(0, 1), (0, 3), (1, 0), (1, 5), (1, 4), (0, 2)] as [(Int, UInt64)] {
            loops.arrived(Arrival(member: member, publisher: 1, sequence: sequence))
            ledger.merge(loops.swap())
        }
        #expect(ledger.counts[1] == DeliveryCounts(distinct: 6))
        #expect(ledger.export().streams.map(\.missing) == [[]])
    }

    @Test("a member knows one past the highest number that it saw in each stream")
    func heads() {
        var members = ShareMembers()
        let (one, two) = (members.addMember(group: 4), members.addMember(group: 4))
        for (member, publisher, sequence) in [(one, 7, 3), (one, 7, 1), (one, 2, 0), (two, 7, 9)] {
            members.arrived(member: member, .of(UInt32(publisher), UInt64(sequence), qos: 1))
        }
        var heads: [[UInt64]] = []
        members.heads(of: one) { heads.append([UInt64($0), UInt64($1), $2]) }
        #expect(heads == [[2, 0, 1], [7, 0, 4]])
    }

    @Test("two groups that hear the same publisher keep books of their own")
    func groups() {
        var members = ShareMembers()
        let (one, two) = (members.addMember(group: 0), members.addMember(group: 1))
        for member in [one, two] { members.arrived(member: member, .of(5, 0, qos: 2)) }
        members.arrived(member: one, .of(5, 1, qos: 2))
        members.arrived(member: one, .of(5, 2, qos: 3))
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

extension ShareBatch.Arrival {
    /// One that was due at 0, unless something else is said.
    static func of(
        _ publisher: UInt32,
        _ sequence: UInt64,
        qos: UInt8,
        lane: Int = 0,
        due: Int64 = 0,
        at: Int64 = 0
    ) -> ShareBatch.Arrival {
        ShareBatch.Arrival(publisher: publisher, qos: qos, sequence: sequence, lane: lane, due: due, at: at)
    }
}
