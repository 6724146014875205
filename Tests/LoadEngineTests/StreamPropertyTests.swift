import LoadEngine
import NIOCore
import TestSupport
import Testing

@Suite("Streams against a server that does as it likes")
struct StreamPropertyTests {
    /// Plans, and what happens in them, from a seed.
    private struct Dice {
        var generator: SeededGenerator

        mutating func hits(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &self.generator) < share }

        mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self.generator) }

        mutating func time(_ range: ClosedRange<Int>) -> TimeAmount { .microseconds(Int64(self.number(range))) }

        mutating func one<Element>(of all: [Element]) -> Element { all[self.number(0...all.count - 1)] }

        /// From few values, so that operations of several streams are due at one time.
        private mutating func pace(_ operators: Int) -> OperationSchedule.Pace {
            let interval = self.one(of: [2, 4, 10, 20, 30])
            return switch self.number(0...3) {
            case 0: .interval(.milliseconds(Int64(interval)))
            case 1: .rate(perSecond: Double(operators) * 1_000 / Double(interval))
            case 2: .rate(perSecond: Double(self.number(5...3_000)))
            default:
                .shaped(
                    ShapedLoad(
                        RateCurve([.init(length: .milliseconds(45), from: 0, to: 4_000)]),
                        .poisson(seed: self.generator.next())
                    )
                )
            }
        }

        private mutating func attendances(_ operators: Int, _ measure: TimeAmount) -> DeparturePlan {
            var attendances: [DeparturePlan.Attendance] = []
            for _ in 0..<self.number(1...4) {
                let at = self.hits(0.3) ? .zero : self.time(1...Int(measure.nanoseconds / 1_000))
                attendances.append(.init(at: at, present: self.number(0...operators)))
            }
            return DeparturePlan(attendances: attendances, seed: self.generator.next())
        }

        mutating func plan(isFast: Bool) -> LoadPlan {
            let row = self.number(1...4)
            let operators = row * self.number(1...3)
            var paces: [OperationSchedule.Pace] = []
            for _ in 0..<self.number(1...4) { paces.append(self.pace(operators)) }
            if isFast { paces.append(.rate(perSecond: 1_500_000)) }
            let measure = TimeAmount.milliseconds(isFast ? 10 : 60)
            var plan = LoadPlan(
                operators: operators,
                connect: .pending(1_000),
                pace: .streams(paces),
                measure: measure
            )
            if self.hits(0.5) { plan.row = row }
            if self.hits(0.3) {
                let most = StreamList(plan).operations.count
                plan.limit = UInt64(self.number(0...most + most / 4))
            }
            if self.hits(0.5) { plan.departures = self.attendances(operators, measure) }
            return plan
        }
    }

    /// One plan on all its loops and segments, with everything that can happen to its clients.
    private struct Chaos {
        let plan: LoadPlan
        let all: StreamRigs
        let isFast: Bool
        var dice: Dice

        init(seed: UInt64) {
            var dice = Dice(generator: SeededGenerator(seed: seed))
            // Some are so fast that a loop that stands still catches up in bulk.
            self.isFast = seed % 20 == 0
            self.plan = dice.plan(isFast: self.isFast)
            let loops = dice.one(of: [[1], [2], [3], [1, 1], [2, 1], [1, 1, 1]])
            self.all = StreamRigs(self.plan, loops: loops, window: self.isFast ? 100_000 : dice.number(1...20))
            self.dice = dice
        }

        mutating func run() {
            for rig in self.all.rigs { self.run(rig) }
        }

        private mutating func run(_ rig: ShardRig) {
            var lost: Set<Int> = []
            rig.work.onReturn = { [unowned work = rig.work] in work.comesUp($0) }
            rig.begin()
            let end = rig.now + (self.plan.measure ?? .zero) + .milliseconds(5)
            while rig.now < end {
                self.step(rig, &lost)
                // The loop stands still.
                if self.dice.hits(self.isFast ? 0.3 : 0.05) {
                    _ = rig.shard.pace(rig.now + self.dice.time(1_000...20_000))
                }
                rig.advance(self.dice.time(0...1_000))
            }
            rig.shard.endDrain()
            rig.advance(.seconds(1))
        }

        private mutating func step(_ rig: ShardRig, _ lost: inout Set<Int>) {
            guard !rig.work.clients.isEmpty else { return }
            let place = self.dice.number(0...rig.work.clients.count - 1)
            let client = rig.work.clients[place]
            guard !client.isFinishing else { return }
            switch (client.isUp, self.dice.number(0...99)) {
            case (false, 0..<50):
                if lost.remove(place) != nil { rig.work.comesUp(place) }
            case (true, 0..<3):
                lost.insert(place)
                rig.work.loses(place, returns: true)
            case (true, 3..<15): rig.work.blocks(place)
            case (true, 15..<40): rig.work.unblocks(place)
            case (true, 40...) where client.inFlight > 0:
                rig.work.answers(place, self.dice.number(1...client.inFlight), inTurn: self.dice.hits(0.5))
            default: break
            }
        }

        // MARK: What must hold

        /// The operations of a client, divided where it was absent; without those that were due meanwhile.
        private func periods(_ client: Int, _ operations: [StreamList.Operation]) -> [[StreamList.Operation]] {
            let departures = self.plan.departures
            var periods: [[StreamList.Operation]] = [[]]
            var start = TimeAmount.zero
            var isPresent = true
            func add(until end: TimeAmount) {
                guard isPresent else { return }
                periods[periods.count - 1] += operations.filter { $0.due >= start && $0.due < end }
            }
            for attendance in departures.attendances {
                add(until: attendance.at)
                start = attendance.at
                let present = departures.present(attendance.present, operators: self.plan.operators, listeners: 0)
                isPresent = present.contains(client)
                if !isPresent { periods.append([]) }
            }
            add(until: self.plan.measure ?? .zero)
            return periods
        }

        func check() {
            let list = StreamList(self.plan).byClient
            let sent = self.all.sent
            let offered = self.all.counts(\.offeredOf)
            let notSent = self.all.counts(\.notSentOf)
            for client in 0..<self.plan.operators {
                let own = sent[client, default: []]
                let periods = self.periods(client, list[client, default: []])
                // In each period its operations leave in their order; the rest is given up with the period's end.
                var rest = own[...]
                for period in periods {
                    let count = zip(period, rest).prefix { $0 == $1 }.count
                    rest = rest.dropFirst(count)
                }
                #expect(rest.isEmpty, "client \(client)")
                let counts = Array(periods.joined()).byStream
                #expect(offered[client, default: [:]] == counts)
                let unsent = counts.merging(own.byStream) { $0 - $1 }.filter { $0.value > 0 }
                #expect(notSent[client, default: [:]] == unsent)
            }
            for rig in self.all.rigs {
                #expect(rig.shard.offered == rig.work.total(\.offered))
                #expect(rig.count(.finished(shard: rig.shard.clients.loop)) == 1)
                rig.work.sent.forEach(self.check)
            }
        }

        private func check(_ sent: FakeWork.Sent) {
            let dues = sent.operations.map(\.due)
            #expect(sent.batch.firstDue == dues.first)
            #expect(sent.dues == dues)
            for limit in [sent.batch.ableSince, sent.batch.firstDue + .milliseconds(3), .distantFuture] {
                let count = dues.count { max($0, sent.batch.ableSince) < limit }
                #expect(sent.batch.count(ableBefore: limit) == count)
            }
        }
    }

    @Test("what each client sends, and what it gives up, is its part of the list in its order", arguments: 0..<300)
    func random(_ seed: Int) {
        var chaos = Chaos(seed: UInt64(seed))
        chaos.run()
        chaos.check()
    }
}
