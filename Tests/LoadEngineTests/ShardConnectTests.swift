import LoadEngine
import NIOCore
import Testing

@Suite("Connects of a shard")
struct ShardConnectTests {
    private func plan(_ connect: LoadPlan.ConnectPace, operators: Int, listeners: Int = 0) -> LoadPlan {
        LoadPlan(operators: operators, listeners: listeners, connect: connect, pace: .idle, measure: .seconds(1))
    }

    @Test("at a rate, connect k is begun at k/rate, whatever became of the ones before")
    func rate() {
        let rig = ShardRig(self.plan(.rate(perSecond: 250), operators: 4))
        let start = rig.now + .milliseconds(10)
        rig.shard.startConnecting(at: start)
        rig.advance(.milliseconds(9))
        #expect(rig.work.connects.isEmpty)
        rig.advance(.milliseconds(9))
        #expect(rig.work.connects.map(\.place) == [0, 1, 2])
        rig.advance(.seconds(1))
        #expect(rig.work.connects.map(\.due) == (0..<4).map { start + .milliseconds($0 * 4) })
        #expect(rig.work.connects.map(\.at) == rig.work.connects.map(\.due))
        #expect(rig.shard.facts.connectsBegun == 4)
        #expect(rig.shard.facts.lastConnectBegun == start + .milliseconds(12))
        #expect(rig.events.all.isEmpty)
    }

    @Test("the shards of a run begin their connects on one common grid, listeners first", arguments: [1, 2, 3])
    func grid(_ shards: Int) {
        let plan = self.plan(.rate(perSecond: 1_000), operators: 5, listeners: 4)
        var begun: [(at: NIODeadline, number: Int)] = []
        var start = NIODeadline.distantPast
        for index in 0..<shards {
            let rig = ShardRig(plan, index: index, of: shards)
            start = rig.now
            rig.shard.startConnecting(at: start)
            rig.advance(.seconds(1))
            begun += rig.work.connects.map { ($0.at, rig.shard.clients.number(at: $0.place)) }
        }
        begun.sort { $0.at < $1.at }
        #expect(begun.map(\.at) == (0..<9).map { start + .milliseconds($0) })
        #expect(begun.map(\.number) == [5, 6, 7, 8, 0, 1, 2, 3, 4])
    }

    @Test("without a rate, so many are under way at once, over all shards")
    func pending() {
        let rig = ShardRig(self.plan(.pending(7), operators: 8, listeners: 2), index: 1, of: 2)
        rig.shard.startConnecting(at: rig.now)
        rig.advance(.zero)
        // 4 operators and 1 listener are here, and 7 / 2 may be under way.
        #expect(rig.work.connects.map(\.place) == [4, 0, 1])
        rig.work.comesUp(0)
        rig.advance(.zero)
        #expect(rig.work.connects.map(\.place) == [4, 0, 1, 2])
        rig.work.fails(4)
        rig.advance(.zero)
        #expect(rig.work.connects.map(\.place) == [4, 0, 1, 2, 3])
        #expect(rig.shard.live == 1)
    }

    @Test("connects that end at once do not pile up")
    func atOnce() {
        let rig = ShardRig(self.plan(.pending(1), operators: 1_000))
        rig.work.onConnect = { place in place % 3 == 0 ? rig.work.fails(place) : rig.work.comesUp(place) }
        rig.shard.startConnecting(at: rig.now)
        rig.advance(.zero)
        #expect(rig.work.connects.count == 1_000)
        #expect(rig.events.all == [.settled(shard: 0, up: 666)])
        #expect(rig.shard.live == 666)
    }

    @Test("it is settled once, when each client is up or has failed")
    func settled() {
        let rig = ShardRig(self.plan(.pending(64), operators: 3))
        rig.shard.startConnecting(at: rig.now)
        rig.advance(.zero)
        rig.work.comesUp(0)
        rig.work.fails(1)
        #expect(rig.events.all.isEmpty)
        rig.work.fails(2)
        rig.work.fails(2)
        #expect(rig.events.all == [.settled(shard: 0, up: 1)])
    }

    @Test("a shard without clients is settled at once, and finished with the load")
    func nobody() {
        let rig = ShardRig(self.plan(.pending(64), operators: 1), index: 1, of: 2)
        rig.shard.startConnecting(at: rig.now)
        #expect(rig.events.all == [.settled(shard: 1, up: 0)])
        rig.shard.startLoad(at: rig.now)
        rig.advance(.seconds(2))
        #expect(
            rig.events.all == [.settled(shard: 1, up: 0), .operatorsFinished(shard: 1), .finished(shard: 1)]
        )
    }

    @Test("a load that does not wait for connects does not delay them, and clients join as they connect")
    func noWait() {
        let plan = LoadPlan(
            operators: 4,
            connect: .rate(perSecond: 100),
            pace: .open(.rate(perSecond: 400)),
            waitsForConnects: false,
            measure: .seconds(1)
        )
        let rig = ShardRig(plan, window: 1_000)
        let start = rig.now + .milliseconds(5)
        rig.work.onConnect = { rig.work.comesUp($0) }
        rig.shard.startConnecting(at: start)
        rig.shard.startLoad(at: start + .milliseconds(20))
        rig.advance(.milliseconds(100))
        #expect(rig.work.connects.map(\.at) == (0..<4).map { start + .milliseconds($0 * 10) })
        // The last came up 10 ms after the load began: what was due by then waited for it, and did not move.
        #expect(rig.work.dues(of: 3).first == start + .milliseconds(20) + .microseconds(7_500))
        #expect(rig.work.sent.first { $0.place == 3 }?.at == start + .milliseconds(30))
        #expect(rig.work.sent.first { $0.place == 3 }?.batch.ableSince == start + .milliseconds(30))
    }

    @Test("without a load, clients stay until its time is over, listeners until the order")
    func idle() {
        let rig = ShardRig(self.plan(.pending(64), operators: 2, listeners: 1))
        rig.begin()
        rig.advance(.milliseconds(999))
        #expect(rig.shard.live == 3)
        rig.advance(.milliseconds(1))
        #expect(rig.shard.live == 1)
        #expect(rig.events.all.last == .operatorsFinished(shard: 0))
        rig.shard.finishListeners()
        #expect(rig.events.all.last == .finished(shard: 0))
        #expect(rig.shard.live == 0)
    }

    @Test("connects that were never begun are closed with the rest, and none follows")
    func earlyEnd() {
        let rig = ShardRig(self.plan(.rate(perSecond: 10), operators: 3, listeners: 1))
        rig.work.onConnect = { rig.work.comesUp($0) }
        rig.shard.startConnecting(at: rig.now)
        rig.advance(.milliseconds(150))
        rig.shard.endLoad(at: rig.now)
        rig.shard.finishListeners()
        rig.advance(.seconds(1))
        #expect(rig.work.connects.count == 2)
        #expect(rig.count(.finished(shard: 0)) == 1)
        #expect(rig.shard.live == 0)
    }
}
