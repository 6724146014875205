import LoadEngine
import NIOCore
import TestSupport
import Testing

@Suite("A shard against a server that does as it likes")
struct ShardPropertyTests {
    /// One run with everything that can happen to clients, from a seed, with the invariants looked at after each step.
    private struct Chaos {
        let rig: ShardRig
        let plan: LoadPlan
        var generator: SeededGenerator
        var start = NIODeadline.distantFuture
        var checked = 0

        init(seed: UInt64, pace: LoadPlan.Pace) {
            self.generator = SeededGenerator(seed: seed)
            var plan = LoadPlan(
                operators: Int.random(in: 1...12, using: &self.generator),
                listeners: Int.random(in: 0...3, using: &self.generator),
                connect: Bool.random(using: &self.generator) ? .pending(5) : .rate(perSecond: 800),
                pace: pace,
                waitsForConnects: Bool.random(using: &self.generator),
                warmup: .milliseconds(Int64.random(in: 0...30, using: &self.generator)),
                measure: .milliseconds(100)
            )
            if Bool.random(using: &self.generator) { plan.limit = UInt64.random(in: 0...300, using: &self.generator) }
            let shards = Int.random(in: 1...3, using: &self.generator)
            let index = Int.random(in: 0..<shards, using: &self.generator)
            self.plan = plan
            self.rig = ShardRig(plan, index: index, of: shards, window: Int.random(in: 1...8, using: &self.generator))
            self.rig.work.closesAtOnce = Bool.random(using: &self.generator)
        }

        private var end: NIODeadline { self.start + self.plan.warmup + .milliseconds(100) }

        mutating func run() {
            self.rig.shard.startConnecting(at: self.rig.now)
            if !self.plan.waitsForConnects { self.load() }
            for _ in 0..<400 {
                self.step()
                self.rig.advance(.microseconds(Int64.random(in: 0...1_000, using: &self.generator)))
                self.check()
                let isSettled = self.rig.events.all.contains { if case .settled = $0 { true } else { false } }
                if isSettled, self.start == .distantFuture { self.load() }
            }
            // Whatever is still open is closed now.
            if self.rig.shard.phase == .connecting || self.rig.shard.phase == .loading {
                self.rig.shard.endLoad(at: min(self.rig.now, self.end))
            }
            self.rig.shard.endDrain()
            self.rig.shard.finishListeners()
            for place in self.rig.work.clients.indices { self.rig.work.closes(place) }
            self.rig.advance(.seconds(1))
            self.check()
            #expect(self.rig.count(.finished(shard: self.rig.shard.clients.index)) == 1)
            #expect(self.rig.shard.live == 0)
            let work = self.rig.work
            for client in work.clients { #expect(client.offered == client.sent + client.notSent) }
        }

        private mutating func load() {
            self.start = self.rig.now + .milliseconds(5)
            self.rig.shard.startLoad(at: self.start)
        }

        private mutating func step() {
            let work = self.rig.work
            guard let place = work.clients.indices.randomElement(using: &self.generator) else { return }
            let client = work.clients[place]
            guard client.isBegun, !client.isFinished else { return }
            switch (client.isUp, Int.random(in: 0..<100, using: &self.generator)) {
            case (false, 0..<40) where !client.isFinishing: work.comesUp(place)
            case (false, 95...) where !client.isFinishing: work.fails(place)
            case (true, _) where client.isFinishing: work.closes(place)
            case (true, 0..<3): work.loses(place, returns: Bool.random(using: &self.generator))
            case (true, 3..<15): work.blocks(place)
            case (true, 15..<40): work.unblocks(place)
            case (true, 40...) where client.inFlight > 0:
                let count = Int.random(in: 1...client.inFlight, using: &self.generator)
                work.answers(place, count, inTurn: Bool.random(using: &self.generator))
            default: break
            }
        }

        private mutating func check() {
            let work = self.rig.work
            let shard = self.rig.shard
            #expect(shard.live == work.clients.count { $0.isUp })
            #expect(shard.offered == work.total(\.offered))
            for event in Set(self.rig.events.all) {
                if case .deserted = event { continue }
                #expect(self.rig.count(event) == 1)
            }
            for (place, client) in work.clients.enumerated() {
                #expect(client.sent + client.notSent <= client.offered)
                self.checkOffered(place, client)
                // A client that could send has no operation left to send.
                if work.room(place) > 0, self.rig.now >= self.start, self.rig.shard.phase == .loading {
                    #expect(self.owed(place, client) == 0)
                }
            }
            for sent in work.sent[self.checked...] { self.checkSent(sent) }
            self.checked = work.sent.count
        }

        private func owed(_ place: Int, _ client: FakeWork.Client) -> UInt64 {
            guard case .closed = self.plan.pace else { return client.offered - client.sent - client.notSent }
            guard self.rig.shard.clients.isOperator(place) else { return 0 }
            return self.plan.limit(ofOperator: self.rig.shard.clients.number(at: place)).map { $0 - client.sent } ?? 1
        }

        /// Open loop: offered is what the schedule says, no more and no less.
        private func checkOffered(_ place: Int, _ client: FakeWork.Client) {
            guard case .open(let pace) = self.plan.pace, self.start < .distantFuture else { return }
            guard self.rig.shard.clients.isOperator(place), self.rig.shard.phase == .loading else { return }
            let schedule = OperationSchedule(pace: pace, clients: self.plan.operators, limit: self.plan.limit)
            let number = self.rig.shard.clients.number(at: place)
            var count: UInt64 = 0
            while let due = schedule.due(client: number, own: count), self.start + due <= self.rig.now { count += 1 }
            #expect(client.offered == count)
        }

        private func checkSent(_ sent: FakeWork.Sent) {
            let number = self.rig.shard.clients.number(at: sent.place)
            #expect(sent.at >= self.start)
            #expect(sent.batch.ableSince <= sent.at)
            for (index, due) in sent.dues.enumerated() {
                #expect(due >= self.start && due < self.end && due <= sent.at)
                guard case .open(let pace) = self.plan.pace else {
                    #expect(due == sent.batch.ableSince)
                    continue
                }
                let schedule = OperationSchedule(pace: pace, clients: self.plan.operators, limit: self.plan.limit)
                let own = sent.batch.first + UInt64(index)
                #expect(schedule.due(client: number, own: own).map { self.start + $0 } == due)
            }
        }
    }

    @Test("the books hold after every step, at a rate", arguments: 0..<60)
    func rate(_ seed: Int) {
        var chaos = Chaos(seed: UInt64(seed), pace: .open(.rate(perSecond: 5_000)))
        chaos.run()
    }

    @Test("the books hold after every step, at an interval", arguments: 100..<140)
    func interval(_ seed: Int) {
        var chaos = Chaos(seed: UInt64(seed), pace: .open(.interval(.milliseconds(2))))
        chaos.run()
    }

    @Test("the books hold after every step, in closed loop", arguments: 200..<260)
    func closed(_ seed: Int) {
        var chaos = Chaos(seed: UInt64(seed), pace: .closed)
        chaos.run()
    }
}
