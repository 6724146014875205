import LoadEngine
import NIOCore
import Testing

@Suite("Clients that have their turn")
struct TurnTests {
    private static func plan(operators: Int, listeners: Int = 0, turns: Double, _ segment: PlanSegment) -> LoadPlan {
        var plan = LoadPlan(operators: operators, listeners: listeners, pace: .idle, measure: .seconds(1))
        plan.turns = turns
        plan.segment = segment
        return plan
    }

    @Test(
        "goes round all clients on an even grid, over all shards of all segments",
        arguments: [(1, 1), (2, 1), (3, 1), (1, 2), (2, 3)]
    )
    func grid(_ shards: Int, _ segments: Int) {
        var turns: [(number: Int, due: TimeAmount)] = []
        for segment in 0..<segments {
            for index in 0..<shards {
                let plan = Self.plan(operators: 7, turns: 100, PlanSegment(index: segment, of: segments))
                let rig = ShardRig(plan, index: index, of: shards)
                rig.begin()
                let origin = rig.now
                rig.advance(.milliseconds(999))
                #expect(rig.work.turns.allSatisfy { $0.due == $0.at })
                turns += rig.work.turns.map { (rig.shard.clients.number(at: $0.place), $0.due - origin) }
            }
        }
        turns.sort { $0.due < $1.due }
        #expect(turns.map(\.number) == (0..<100).map { $0 % 7 })
        #expect(turns.map(\.due) == (0..<100).map { .milliseconds($0 * 10) })
    }

    @Test("operators and listeners have their share of the rate each")
    func kinds() {
        let rig = ShardRig(Self.plan(operators: 2, listeners: 6, turns: 400, .whole), index: 0, of: 1)
        rig.begin()
        rig.advance(.milliseconds(999))
        #expect(rig.work.turns.count == 400)
        for place in 0..<8 { #expect(rig.work.turns.count { $0.place == place } == 50) }
    }

    @Test("a turn is a client's whether it is connected or not, and none is behind the load's end")
    func bounds() {
        let rig = ShardRig(Self.plan(operators: 4, turns: 100, .whole), index: 0, of: 1)
        rig.begin()
        rig.work.loses(1, returns: false)
        rig.advance(.seconds(3))
        #expect(rig.work.turns.count == 100)
        #expect(rig.work.turns.count { $0.place == 1 } == 25)
    }

    @Test("what was due before an end that comes between two turns of the loop is missed, of the churn too")
    func missed() {
        var plan = Self.plan(operators: 4, turns: 1_000, .whole)
        plan.departures = DeparturePlan(churn: .init(perSecond: 1_000))
        let rig = ShardRig(plan, index: 0, of: 1)
        rig.begin()
        rig.advance(.milliseconds(100))
        let given = rig.work.turns.count
        let left = rig.work.departed.count + rig.work.missed.count
        #expect(given == 101 && left == 101)
        rig.shard.endLoad(at: rig.now + .milliseconds(50))
        #expect(rig.work.turns.count == given)
        #expect(rig.work.departed.count + rig.work.missed.count == left)
        // 101 ms to 149 ms.
        #expect(rig.work.turnsMissed == 49 && rig.work.departuresMissed == 49)
    }

    @Test(
        "missed turns of an impossible rate are counted exactly, and not one by one",
        arguments: [(1, 0, 1), (7, 0, 3), (2, 6, 1), (3, 5, 2)]
    )
    func rates(_ operators: Int, _ listeners: Int, _ shards: Int) {
        var all: UInt64 = 0
        for index in 0..<shards {
            let plan = Self.plan(operators: operators, listeners: listeners, turns: 1e9, .whole)
            let rig = ShardRig(plan, index: index, of: shards)
            rig.begin()
            rig.shard.endLoad(at: rig.now + .milliseconds(900))
            all += UInt64(rig.work.turns.count) + rig.work.turnsMissed
        }
        #expect(all == 900_000_000)
    }

    @Test("who is behind catches up, and says since when each turn was due")
    func late() {
        let rig = ShardRig(Self.plan(operators: 10, turns: 1_000_000, .whole), index: 0, of: 1)
        rig.begin()
        let origin = rig.now
        rig.advance(.milliseconds(20))
        let turns = rig.work.turns.prefix(20_000)
        #expect(turns.count == 20_000 && turns.allSatisfy { $0.due <= $0.at })
        #expect(turns.map { $0.due - origin } == (0..<20_000).map { .microseconds($0) })
    }
}
