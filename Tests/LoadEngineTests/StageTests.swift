import LoadEngine
import Measurement
import NIOCore
import Testing

@Suite("Stages, think time, and clients that come back over a stage")
struct StageTests {
    private func staged(_ plan: LoadPlan, _ lengths: [Int64]) -> LoadPlan {
        var plan = plan
        var start = TimeAmount.zero
        for length in lengths {
            plan.stages.append(LoadPlan.Stage(start: start, end: start + .milliseconds(length)))
            start = start + .milliseconds(length)
        }
        plan.measure = start
        return plan
    }

    @Test("a stage begins when it is due, and what was due before it counts before it")
    func begins() {
        let plan = self.staged(
            LoadPlan(operators: 2, connect: .pending(9), pace: .open(.rate(perSecond: 1_000)), measure: nil),
            [100, 50, 200]
        )
        let rig = ShardRig(plan, window: 1_000)
        rig.begin()
        let start = rig.now
        rig.advance(.milliseconds(500))
        #expect(rig.work.stages.map(\.stage) == [0, 1, 2, nil])
        #expect(rig.work.stages.map { $0.at - start } == [0, 100, 150, 350].map { .milliseconds($0) })
        #expect(rig.work.stages.map(\.offered) == [0, 100, 150, 350])
        // With stages, the measured phase is not reported separately.
        #expect(rig.work.measuring.isEmpty)
        for sent in rig.work.sent {
            for due in sent.dues {
                let time = due - start
                #expect(sent.batch.lane(due) == (time < .milliseconds(100) ? 2 : time < .milliseconds(150) ? 3 : 4))
            }
        }
    }

    @Test("an operation belongs to the stage in which it was due, however late it leaves")
    func lateOperations() {
        let plan = self.staged(
            LoadPlan(operators: 1, connect: .pending(9), pace: .open(.rate(perSecond: 100)), measure: nil),
            [100, 100, 100]
        )
        let rig = ShardRig(plan, window: 1_000)
        rig.begin()
        rig.work.blocks(0)
        rig.advance(.milliseconds(250))
        rig.work.unblocks(0)
        rig.advance(.milliseconds(1))
        let sent = rig.work.sent.filter { $0.batch.first > 0 }.flatMap { sent in sent.dues.map(sent.batch.lane) }
        #expect(sent == Array(repeating: 2, count: 9) + Array(repeating: 3, count: 10) + Array(repeating: 4, count: 6))
    }

    @Test("a load that is ended before its time ends the stage that goes on, and begins no other")
    func endsEarly() {
        let plan = self.staged(
            LoadPlan(operators: 1, connect: .pending(9), pace: .open(.rate(perSecond: 100)), measure: nil),
            [100, 100, 100]
        )
        let rig = ShardRig(plan, window: 1_000)
        rig.begin()
        rig.advance(.milliseconds(130))
        let end = rig.now
        #expect(rig.shard.times.lane(end + .milliseconds(80)) == MetricLane.stage(2))
        rig.shard.endLoad(at: end)
        rig.advance(.seconds(1))
        #expect(rig.work.stages.map(\.stage) == [0, 1, nil])
        // Values recorded in the drain by its own time belong to no stage, least of all to one that never began.
        let times = [-1, 0, 80].map { rig.shard.times.lane(end + .milliseconds($0)) }
        #expect(times == [MetricLane.stage(1), MetricLane.unmeasured, MetricLane.unmeasured])
        #expect(rig.work.stages.map(\.offered) == [0, 10, 14])
    }

    @Test("who thinks sends again so long after the answer, and at first they are spread over one think time")
    func think() {
        var plan = LoadPlan(operators: 4, connect: .pending(9), pace: .closed, measure: .seconds(1))
        plan.think = .milliseconds(100)
        let rig = ShardRig(plan, window: 1)
        rig.begin()
        let start = rig.now
        rig.advance(.milliseconds(99))
        #expect(rig.work.sent.map(\.place) == [0, 1, 2, 3])
        #expect(rig.work.sent.map { $0.at - start } == [0, 25, 50, 75].map { .milliseconds($0) })
        rig.advance(.milliseconds(31))
        // Answered after 130 ms; the think time follows.
        for inTurn in [true, false] { rig.work.answers(inTurn ? 0 : 1, 1, inTurn: inTurn) }
        rig.advance(.milliseconds(99))
        #expect(rig.work.sent.count == 4)
        rig.advance(.milliseconds(1))
        #expect(rig.work.sent.dropFirst(4).map(\.place) == [0, 1])
        for sent in rig.work.sent.dropFirst(4) {
            #expect(sent.at - start == .milliseconds(230))
            // Think time is not counted as delay.
            #expect(sent.dues == [sent.at])
        }
    }

    @Test("at QoS 0, where nothing is answered, a client sends one message every think time")
    func thinkWithoutAnswers() {
        var plan = LoadPlan(operators: 1, connect: .pending(9), pace: .closed, measure: .seconds(1))
        plan.think = .milliseconds(200)
        let rig = ShardRig(plan, window: 1)
        rig.work.answersAtOnce = true
        rig.begin()
        let start = rig.now
        rig.advance(.seconds(2))
        #expect(rig.work.sent.map { $0.at - start } == [0, 200, 400, 600, 800].map { .milliseconds($0) })
    }

    @Test("a client that comes up before the load's first moment sends at that moment or later")
    func thinksBeforeTheLoad() {
        var plan = LoadPlan(operators: 1, connect: .pending(9), pace: .closed, measure: .seconds(1))
        plan.think = .milliseconds(5)
        let rig = ShardRig(plan, window: 1)
        rig.shard.startConnecting(at: rig.now)
        rig.advance(.zero)
        let start = rig.now + .milliseconds(20)
        rig.shard.startLoad(at: start)
        rig.work.comesUp(0)
        rig.advance(.milliseconds(30))
        #expect(rig.work.sent.flatMap(\.dues) == [start])
    }

    @Test("a client that was away while it thought thinks again when it is back, once")
    func thinksAgain() {
        var plan = LoadPlan(operators: 1, connect: .pending(9), pace: .closed, measure: .seconds(1))
        plan.think = .milliseconds(100)
        let rig = ShardRig(plan, window: 1)
        rig.begin()
        let start = rig.now
        rig.work.answers(0, 1)
        rig.advance(.milliseconds(30))
        rig.work.loses(0, returns: true)
        rig.advance(.milliseconds(100))
        rig.work.comesBack(0)
        rig.advance(.milliseconds(99))
        #expect(rig.work.sent.count == 1)
        rig.advance(.milliseconds(1))
        #expect(rig.work.sent.map { $0.at - start } == [0, 230].map { .milliseconds($0) })
    }

    @Test("reconnects are spread evenly over their stage, each client once, whatever the shards", arguments: [1, 3])
    func spread(_ shards: Int) {
        var plan = LoadPlan(operators: 20, listeners: 30, connect: .pending(100), pace: .idle, measure: .seconds(4))
        plan.departures = DeparturePlan(
            storms: [
                DeparturePlan.Storm(share: 0.4, at: .seconds(1), over: .seconds(2)),
                DeparturePlan.Storm(share: 0.2, at: .seconds(3), over: .seconds(1)),
            ],
            seed: 6
        )
        var left: [(number: Int, at: TimeAmount)] = []
        for index in 0..<shards {
            let rig = ShardRig(plan, index: index, of: shards)
            rig.work.onReturn = { [unowned work = rig.work] in work.comesBack($0) }
            rig.begin()
            let start = rig.now
            rig.advance(.seconds(5))
            for client in rig.work.departed {
                left.append((rig.shard.clients.number(at: client.place), client.at - start))
            }
            #expect(rig.work.missed.isEmpty)
            #expect(rig.work.returned.count == rig.work.departed.count)
        }
        left.sort { $0.at < $1.at }
        let asked: [TimeAmount] = (0..<30).map { .milliseconds(1_000 + 100 * $0) }
        #expect(left.map(\.at) == asked)
        for (index, part) in [left.prefix(20), left.dropFirst(20)].enumerated() {
            let victims = plan.departures.victims(ofStorm: index, clients: 50)
            #expect(Set(part.map(\.number)).count == victims.count)
            #expect(part.map(\.number) == (0..<victims.count).map(victims.client))
            #expect(part.allSatisfy { victims.contains($0.number) })
        }
    }

    @Test("those of a stage whose turn never came are counted as missed")
    func missed() {
        var plan = LoadPlan(operators: 10, connect: .pending(100), pace: .idle, measure: .seconds(4))
        plan.departures = DeparturePlan(
            storms: [
                DeparturePlan.Storm(share: 1, at: .seconds(1), over: .seconds(2)),
                DeparturePlan.Storm(share: 0.3, at: .seconds(3)),
            ],
            seed: 2
        )
        let rig = ShardRig(plan)
        rig.begin()
        rig.advance(.milliseconds(1_500))
        #expect(rig.work.departed.count == 3)
        rig.shard.endLoad(at: rig.now)
        #expect(rig.work.missed.count == 7 + 3)
    }

    @Test("a place is found by the number that it has", arguments: [1, 2, 5])
    func places(_ shards: Int) {
        for plan in [
            LoadPlan(operators: 7, listeners: 4, pace: .idle, measure: nil),
            LoadPlan(operators: 0, listeners: 9, pace: .idle, measure: nil), self.rows,
        ] {
            var found = 0
            for index in 0..<shards {
                let clients = ShardClients(plan, shard: index, of: shards)
                for place in 0..<clients.count { #expect(clients.place(of: clients.number(at: place)) == place) }
                found += (0..<plan.clients).count { clients.place(of: $0) != nil }
            }
            #expect(found == plan.clients)
        }
    }

    private var rows: LoadPlan {
        var plan = LoadPlan(operators: 12, pace: .idle, measure: nil)
        plan.row = 4
        return plan
    }

    @Test(
        "the ranks of a storm are a permutation, and its first ones are whom it takes",
        arguments: [1, 2, 7, 100, 9_973]
    )
    func ranks(_ clients: Int) {
        for seed in 0..<20 as Range<UInt64> {
            let victims = StormVictims(share: 0.3, of: 0..<clients, seed: seed)
            let order = (0..<clients).map(victims.client)
            #expect(Set(order).count == clients)
            #expect(order.prefix(victims.count).allSatisfy(victims.contains))
            #expect(!order.dropFirst(victims.count).contains(where: victims.contains))
        }
    }
}
