import LoadEngine
import NIOCore
import Testing

@Suite("Clients that leave by plan")
struct DepartureTests {
    private func plan(
        operators: Int,
        listeners: Int = 0,
        _ departures: DeparturePlan,
        connect: LoadPlan.ConnectPace = .pending(64),
        measure: TimeAmount = .seconds(1)
    ) -> LoadPlan {
        var plan = LoadPlan(
            operators: operators,
            listeners: listeners,
            connect: connect,
            pace: .idle,
            measure: measure
        )
        plan.departures = departures
        return plan
    }

    @Test("a storm takes exactly its share, by the seed", arguments: [1, 2, 7, 10, 1_000, 9_973, 100_000])
    func victims(_ clients: Int) {
        for share in [0.01, 0.3, 0.5, 1] {
            let storm = DeparturePlan.Storm(share: share, at: .zero)
            let plan = DeparturePlan(storms: [storm, storm], seed: 5)
            let first = plan.victims(ofStorm: 0, clients: clients)
            let count = (0..<clients).count(where: first.contains)
            #expect(count == Int((share * Double(clients)).rounded()))
            #expect(first == DeparturePlan(storms: [storm], seed: 5).victims(ofStorm: 0, clients: clients))
        }
    }

    @Test("two storms, and two seeds, take different clients")
    func differentVictims() {
        let storm = DeparturePlan.Storm(share: 0.3, at: .zero)
        func taken(_ seed: UInt64, _ index: Int) -> [Int] {
            let victims = DeparturePlan(storms: [storm, storm], seed: seed).victims(ofStorm: index, clients: 1_000)
            return (0..<1_000).filter(victims.contains)
        }
        #expect(taken(1, 0) != taken(1, 1))
        #expect(taken(1, 0) != taken(2, 0))
    }

    @Test("churn goes round all clients on an even grid, over all shards", arguments: [1, 2, 3])
    func churn(_ shards: Int) {
        var left: [(at: TimeAmount, number: Int)] = []
        for index in 0..<shards {
            let rig = ShardRig(
                self.plan(operators: 6, DeparturePlan(churn: .init(perSecond: 100))),
                index: index,
                of: shards
            )
            rig.work.onReturn = { [unowned work = rig.work] in work.comesUp($0) }
            rig.begin()
            let origin = rig.now
            rig.advance(.milliseconds(119))
            left += rig.work.departed.map { ($0.at - origin, rig.shard.clients.number(at: $0.place)) }
            #expect(rig.work.departed.allSatisfy { $0.cause == .churn && !$0.cuts })
            #expect(rig.work.missed.isEmpty)
        }
        left.sort { $0.at < $1.at }
        #expect(left.map(\.at) == (0..<12).map { .milliseconds($0 * 10) })
        #expect(left.map(\.number) == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5])
    }

    @Test("publishers and subscribers have their shares of the churn")
    func bothKinds() {
        let rig = ShardRig(self.plan(operators: 3, listeners: 1, DeparturePlan(churn: .init(perSecond: 40))))
        rig.work.onReturn = { [unowned work = rig.work] in work.comesUp($0) }
        rig.begin()
        rig.advance(.milliseconds(999))
        #expect(rig.work.departed.count(where: { $0.place < 3 }) == 30)
        #expect(rig.work.departed.count(where: { $0.place == 3 }) == 10)
    }

    @Test("whose turn it is while away is passed over, and counted")
    func missed() {
        let rig = ShardRig(self.plan(operators: 1, DeparturePlan(churn: .init(perSecond: 100))))
        rig.begin()
        rig.advance(.milliseconds(45))
        #expect(rig.work.departed.count == 1)
        #expect(rig.work.missed == [0, 0, 0, 0])
    }

    @Test("no client departs after the load has ended; absent clients may still return")
    func ends() {
        let storms = [DeparturePlan.Storm(share: 1, at: .milliseconds(90)), .init(share: 1, at: .milliseconds(110))]
        let plan = self.plan(operators: 0, listeners: 4, DeparturePlan(storms: storms), measure: .milliseconds(100))
        let rig = ShardRig(plan)
        rig.work.leavesAtOnce = false
        rig.begin()
        rig.advance(.milliseconds(95))
        #expect(rig.work.departed.count == 4)
        #expect(rig.work.missed.isEmpty)
        rig.advance(.milliseconds(100))
        #expect(rig.work.departed.count == 4)
        // The second storm never comes, and says so.
        #expect(rig.work.missed.sorted() == [0, 1, 2, 3])
        #expect(rig.work.returned.isEmpty)
        rig.shard.left(2)
        rig.advance(.zero)
        #expect(rig.work.returned.map(\.place) == [2])
    }

    @Test("a storm leaves at once, and comes back at the rate of connects")
    func storm() {
        let plan = self.plan(
            operators: 10,
            DeparturePlan(storms: [.init(share: 0.5, at: .milliseconds(20))]),
            connect: .rate(perSecond: 100)
        )
        let rig = ShardRig(plan)
        rig.work.onConnect = { [unowned work = rig.work] in work.comesUp($0) }
        rig.shard.startConnecting(at: rig.now)
        rig.advance(.seconds(1))
        rig.shard.startLoad(at: rig.now)
        let origin = rig.now
        rig.work.onReturn = { [unowned work = rig.work] in work.comesUp($0) }
        rig.advance(.milliseconds(20))
        #expect(rig.work.departed.count == 5)
        #expect(rig.work.departed.allSatisfy { $0.cause == .storm && $0.cuts && $0.at == origin + .milliseconds(20) })
        #expect(rig.shard.live == 6)
        rig.advance(.milliseconds(100))
        #expect(rig.work.returned.map(\.due) == (0..<5).map { origin + .milliseconds(20 + 10 * $0) })
        #expect(rig.work.returned.map(\.at) == rig.work.returned.map(\.due))
        #expect(rig.shard.live == 10)
        #expect(rig.shard.facts.returnShare == 1)
    }

    @Test("without a rate so many are on their way back at once, and a failure makes room")
    func pendingReturns() {
        let plan = self.plan(
            operators: 6,
            DeparturePlan(storms: [.init(share: 1, at: .zero)]),
            connect: .pending(2)
        )
        let rig = ShardRig(plan)
        rig.begin()
        #expect(rig.work.departed.count == 6)
        #expect(rig.work.returned.map(\.place) == [0, 1])
        rig.work.comesUp(0)
        rig.advance(.zero)
        #expect(rig.work.returned.map(\.place) == [0, 1, 2])
        rig.work.fails(1)
        rig.shard.returnEnded(2)
        rig.advance(.zero)
        #expect(rig.work.returned.map(\.place) == [0, 1, 2, 3, 4])
        #expect(rig.shard.live == 1)
    }

    @Test("who comes back while others still connect for the first time takes the room that they leave")
    func returnsDuringTheRamp() {
        let plan = self.plan(
            operators: 0,
            listeners: 3,
            DeparturePlan(storms: [.init(share: 1, at: .milliseconds(10))]),
            connect: .pending(1)
        )
        let rig = ShardRig(plan)
        rig.shard.startConnecting(at: rig.now)
        rig.advance(.zero)
        rig.work.comesUp(0)
        rig.advance(.zero)
        rig.work.comesUp(1)
        rig.advance(.zero)
        #expect(rig.work.connects.map(\.place) == [0, 1, 2])
        rig.shard.startLoad(at: rig.now)
        rig.advance(.milliseconds(20))
        #expect(rig.work.departed.map(\.place) == [0, 1])
        #expect(rig.work.missed == [2])
        #expect(rig.work.returned.isEmpty)
        rig.work.comesUp(2)
        rig.advance(.zero)
        #expect(rig.work.returned.map(\.place) == [0])
    }

    @Test("a rate of connects so low that its step fits no clock", arguments: [1e-10, 1e-290])
    func slowestRate(_ perSecond: Double) {
        let plan = self.plan(
            operators: 1,
            DeparturePlan(churn: .init(perSecond: 100)),
            connect: .rate(perSecond: perSecond)
        )
        let rig = ShardRig(plan)
        rig.work.onReturn = { [unowned work = rig.work] in work.comesUp($0) }
        rig.begin()
        rig.advance(.milliseconds(50))
        // The first is due at once, the second never.
        #expect(rig.work.departed.count == 2)
        #expect(rig.work.returned.count == 1)
    }

    @Test("whose connection is still closing comes back when it is closed")
    func slowClose() {
        let plan = self.plan(operators: 2, DeparturePlan(storms: [.init(share: 1, at: .zero)]))
        let rig = ShardRig(plan)
        rig.work.leavesAtOnce = false
        rig.begin()
        rig.advance(.milliseconds(50))
        #expect(rig.work.returned.isEmpty)
        rig.shard.left(1)
        rig.advance(.zero)
        #expect(rig.work.returned.map(\.place) == [1])
        #expect(rig.work.returned[0].due == rig.now)
    }

    @Test("without listeners an absence takes its share of all clients")
    func absentOperators() {
        let storm = DeparturePlan.Storm(share: 0.5, at: .zero, cuts: false, until: .seconds(1))
        let victims = DeparturePlan(storms: [storm], seed: 3).victims(ofStorm: 0, clients: 10)
        #expect((0..<10).count(where: victims.contains) == 5)
    }

    static let paces: [LoadPlan.ConnectPace] = [.pending(64), .rate(perSecond: 100)]

    @Test("listeners that are away come back when their time is over; operators stay", arguments: paces)
    func absence(_ pace: LoadPlan.ConnectPace) {
        let storm = DeparturePlan.Storm(share: 0.5, at: .milliseconds(20), cuts: false, until: .milliseconds(500))
        let plan = self.plan(operators: 4, listeners: 10, DeparturePlan(storms: [storm], seed: 3), connect: pace)
        let rig = ShardRig(plan)
        rig.work.onConnect = { [unowned work = rig.work] in work.comesUp($0) }
        rig.work.onReturn = { [unowned work = rig.work] in work.comesUp($0) }
        rig.shard.startConnecting(at: rig.now)
        rig.advance(.seconds(1))
        rig.shard.startLoad(at: rig.now)
        let origin = rig.now
        rig.advance(.milliseconds(499))
        #expect(rig.work.departed.count == 5)
        #expect(Set(rig.work.departed.map(\.place)).count == 5)
        #expect(rig.work.departed.allSatisfy { $0.place >= 4 && $0.cause == .offline && !$0.cuts })
        #expect(rig.work.departed.allSatisfy { $0.at == origin + .milliseconds(20) })
        #expect(rig.work.returned.isEmpty)
        #expect(rig.shard.live == 9)
        rig.advance(.milliseconds(100))
        let step = if case .rate = pace { 10 } else { 0 }
        #expect(rig.work.returned.map(\.at) == (0..<5).map { origin + .milliseconds(Int64(500 + step * $0)) })
        #expect(rig.shard.live == 14)
        #expect(rig.shard.facts.returnShare == 1)
    }

    @Test("with the load, planned or not, every absence ends", arguments: [100, 300])
    func absenceEnds(_ milliseconds: Int64) {
        let storm = DeparturePlan.Storm(share: 1, at: .zero, cuts: false, until: .milliseconds(300))
        let plan = self.plan(
            operators: 0,
            listeners: 3,
            DeparturePlan(storms: [storm]),
            measure: .milliseconds(300)
        )
        let rig = ShardRig(plan)
        rig.begin()
        rig.advance(.milliseconds(milliseconds - 1))
        #expect(rig.work.departed.count == 3)
        #expect(rig.work.returned.isEmpty)
        rig.advance(.milliseconds(1))
        rig.shard.endLoad(at: rig.now)
        rig.advance(.zero)
        #expect(rig.work.returned.count == 3)
    }

    @Test("a run whose clients are all absent by plan is not deserted")
    func notDeserted() {
        let rig = ShardRig(self.plan(operators: 3, DeparturePlan(storms: [.init(share: 1, at: .zero)])))
        rig.begin()
        #expect(rig.shard.live == 0)
        #expect(rig.count(.deserted(shard: 0)) == 0)
    }
}
