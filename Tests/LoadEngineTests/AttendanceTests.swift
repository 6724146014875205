import LoadEngine
import NIOCore
import Testing

@Suite("How many of the clients take part")
struct AttendanceTests {
    private func plan(
        operators: Int,
        listeners: Int = 0,
        _ attendances: [(at: Int64, present: Int)],
        connect: LoadPlan.ConnectPace = .pending(64),
        pace: LoadPlan.Pace = .idle
    ) -> LoadPlan {
        var plan = LoadPlan(
            operators: operators,
            listeners: listeners,
            connect: connect,
            pace: pace,
            measure: .seconds(1)
        )
        plan.departures = DeparturePlan(
            attendances: attendances.map { .init(at: .milliseconds($0.at), present: $0.present) },
            seed: 7
        )
        return plan
    }

    /// All shards of a plan on their own loops, whose clients come up as soon as they may.
    private func rigs(_ plan: LoadPlan, _ shards: Int = 1, window: Int = 1_000) -> [ShardRig] {
        (0..<shards).map { index in
            let rig = ShardRig(plan, index: index, of: shards, window: window)
            rig.work.answersAtOnce = true
            rig.work.onConnect = { [unowned work = rig.work] in work.comesUp($0) }
            rig.work.onReturn = { [unowned work = rig.work] in work.comesUp($0) }
            return rig
        }
    }

    private func begin(_ rig: ShardRig) {
        rig.shard.startConnecting(at: rig.now)
        rig.advance(.zero)
        rig.shard.startLoad(at: rig.now)
        rig.advance(.zero)
    }

    /// Numbers of those who are up, over all shards.
    private func up(_ rigs: [ShardRig]) -> Set<Int> {
        Set(
            rigs.flatMap { rig in
                rig.work.clients.indices.filter { rig.work.clients[$0].isUp }.map { rig.shard.clients.number(at: $0) }
            }
        )
    }

    @Test("as many as were asked for are up, fewer of them a part of more; the rest comes back", arguments: [1, 2, 3])
    func counts(_ shards: Int) {
        let rigs = self.rigs(
            self.plan(operators: 20, listeners: 3, [(100, 8), (200, 3), (300, 12), (400, 20)]),
            shards
        )
        rigs.forEach(self.begin)
        var seen: [Set<Int>] = [self.up(rigs)]
        for _ in 0..<4 {
            for rig in rigs { rig.advance(.milliseconds(100)) }
            seen.append(self.up(rigs))
        }
        // The listeners stay all along.
        #expect(seen.map(\.count) == [23, 11, 6, 15, 23])
        #expect(seen.allSatisfy { $0.isSuperset(of: 20..<23) })
        #expect(seen[2].isSubset(of: seen[1]) && seen[1].isSubset(of: seen[3]))
        #expect(rigs.flatMap(\.work.departed).count == 12 + 5)
        #expect(rigs.flatMap(\.work.departed).allSatisfy { $0.cause == .inactive && !$0.cuts })
        #expect(rigs.flatMap(\.work.missed).isEmpty)
        #expect(rigs.flatMap(\.work.returned).count == 9 + 8)
    }

    @Test("who is not there at first connects when their turn comes, at the plan's rate", arguments: [1, 2])
    func atFirst(_ shards: Int) {
        let rigs = self.rigs(
            self.plan(operators: 10, listeners: 2, [(0, 4), (500, 10)], connect: .rate(perSecond: 100)),
            shards
        )
        var dues: [TimeAmount] = []
        for rig in rigs {
            let start = rig.now
            rig.shard.startConnecting(at: start)
            rig.advance(.seconds(1))
            dues += rig.work.connects.map { $0.due - start }
            #expect(rig.events.all.contains(.settled(shard: rig.shard.clients.index, up: rig.work.connects.count)))
            rig.shard.startLoad(at: rig.now)
        }
        // No holes where the others would be.
        #expect(dues.sorted() == (0..<6).map { .milliseconds($0 * 10) })
        for rig in rigs { rig.advance(.milliseconds(499)) }
        #expect(self.up(rigs).count == 6)
        #expect(rigs.flatMap(\.work.returned).isEmpty)
        for rig in rigs { rig.advance(.milliseconds(200)) }
        #expect(self.up(rigs).count == 12)
        #expect(rigs.flatMap(\.work.departed).isEmpty)
        #expect(rigs.flatMap(\.events.all).count == shards)
    }

    @Test("operations of absent clients are skipped; the others keep their times", arguments: [1, 2, 3])
    func schedule(_ shards: Int) {
        let pace = OperationSchedule.Pace.rate(perSecond: 1_000)
        let rigs = self.rigs(
            self.plan(operators: 10, [(0, 3), (300, 10), (600, 5)], pace: .open(pace)),
            shards
        )
        rigs.forEach(self.begin)
        let origins = rigs.map(\.now)
        for rig in rigs { rig.advance(.milliseconds(1_100)) }
        var sent: [Int: [TimeAmount]] = [:]
        for (rig, origin) in zip(rigs, origins) {
            for batch in rig.work.sent {
                let number = rig.shard.clients.number(at: batch.place)
                sent[number, default: []] += batch.dues.map { $0 - origin }
            }
        }
        let times = sent.values.joined()
        #expect(times.count { $0 < .milliseconds(300) } == 90)
        #expect(times.count { $0 >= .milliseconds(300) && $0 < .milliseconds(600) } == 300)
        #expect(times.count { $0 >= .milliseconds(600) } == 200)
        let grid = OperationSchedule(pace: pace, clients: 10)
        for (number, times) in sent {
            let own = Set((0..<100).compactMap { grid.due(client: number, own: $0) })
            #expect(own.isSuperset(of: times))
            #expect(Set(times).count == times.count)
        }
        let clients = rigs.flatMap(\.work.clients)
        #expect(clients.reduce(0) { $0 + $1.offered } == 590)
        #expect(clients.reduce(0) { $0 + $1.sent } == 590)
        #expect(clients.allSatisfy { $0.notSent == 0 })
    }

    @Test("a loop that wakes up late has asked for the same")
    func late() {
        let rig = self.rigs(
            self.plan(operators: 4, [(100, 2), (200, 4), (300, 1)], pace: .open(.rate(perSecond: 400)))
        )[0]
        self.begin(rig)
        // As it is when something holds the loop: the end comes before any of it was looked at.
        rig.shard.endLoad(at: rig.now + .milliseconds(400))
        #expect(rig.work.total(\.offered) == 40 + 20 + 40 + 10)
    }

    @Test("what a client owes when it leaves will never be sent, and the books say so")
    func owed() {
        let rig = self.rigs(self.plan(operators: 2, [(500, 1)], pace: .open(.rate(perSecond: 200))), window: 10)[0]
        rig.work.answersAtOnce = false
        self.begin(rig)
        rig.advance(.milliseconds(700))
        let leaver = rig.work.departed.map(\.place)
        #expect(leaver.count == 1)
        let client = rig.work.clients[leaver.first ?? 0]
        #expect([client.offered, client.sent, client.notSent] == [50, 10, 40])
    }

    @Test("listeners of a group that only listens are counted themselves, and come back with the load's end")
    func listeners() {
        let rig = self.rigs(self.plan(operators: 0, listeners: 6, [(0, 5), (100, 2)]))[0]
        self.begin(rig)
        rig.advance(.milliseconds(200))
        #expect(self.up([rig]).count == 2)
        rig.shard.endLoad(at: rig.now)
        rig.advance(.zero)
        // All but the one that never was there.
        #expect(self.up([rig]).count == 5)
        rig.shard.finishListeners()
        rig.advance(.zero)
        #expect(rig.count(.finished(shard: 0)) == 1)
    }

    @Test("who comes up by itself while it takes no part leaves again")
    func straggler() {
        let rig = self.rigs(self.plan(operators: 2, [(100, 1)]))[0]
        self.begin(rig)
        rig.advance(.milliseconds(50))
        for place in 0..<2 { rig.work.loses(place, returns: true) }
        rig.advance(.milliseconds(100))
        #expect(rig.work.departed.isEmpty)
        for place in 0..<2 { rig.work.comesBack(place) }
        rig.advance(.milliseconds(1))
        #expect(rig.work.departed.count == 1)
        #expect(self.up([rig]).count == 1)
    }
}
