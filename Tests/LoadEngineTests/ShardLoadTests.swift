import LoadEngine
import NIOCore
import NIOEmbedded
import Testing

@Suite("The load of a shard")
struct ShardLoadTests {
    private func open(
        _ rate: Double,
        operators: Int,
        warmup: TimeAmount = .zero,
        measure: TimeAmount? = .seconds(1),
        limit: UInt64? = nil
    ) -> LoadPlan {
        LoadPlan(
            operators: operators,
            connect: .pending(1_000),
            pace: .open(.rate(perSecond: rate)),
            limit: limit,
            warmup: warmup,
            measure: measure
        )
    }

    private func closed(_ operators: Int, limit: UInt64? = nil, measure: TimeAmount? = .seconds(1)) -> LoadPlan {
        LoadPlan(operators: operators, connect: .pending(1_000), pace: .closed, limit: limit, measure: measure)
    }

    // MARK: Open loop

    @Test("each operation is sent by its client when it is due")
    func onTime() {
        let rig = ShardRig(self.open(1_000, operators: 3), window: 1_000)
        rig.begin()
        let start = rig.now
        rig.advance(.milliseconds(10))
        #expect(rig.work.sent.map(\.at) == (0...10).map { start + .milliseconds($0) })
        #expect(rig.work.sent.map(\.place) == (0...10).map { $0 % 3 })
        for sent in rig.work.sent {
            #expect(sent.dues == [sent.at])
            #expect(sent.batch.ableSince == start)
        }
        #expect(rig.shard.offered == 11)
        #expect(rig.shard.late == 0)
    }

    @Test("what a blocked client owes waits for it, in one batch with the exact due times")
    func blocked() {
        let rig = ShardRig(self.open(1_000, operators: 2), window: 1_000)
        rig.begin()
        let start = rig.now
        rig.work.blocks(1)
        rig.advance(.milliseconds(10))
        #expect(rig.work.clients[1].offered == 5)
        #expect(rig.work.dues(of: 1).isEmpty)
        #expect(rig.work.dues(of: 0).count == 6)
        rig.work.unblocks(1)
        rig.advance(.zero)
        let sent = rig.work.sent.last
        #expect(sent?.at == start + .milliseconds(10))
        #expect(sent?.batch.ableSince == start + .milliseconds(10))
        #expect(sent?.dues == [1, 3, 5, 7, 9].map { start + .milliseconds($0) })
    }

    @Test("a full window holds the rest back, and an acknowledgement lets it go, at once or behind the turn")
    func fullWindow() {
        for inTurn in [true, false] {
            let rig = ShardRig(self.open(1_000, operators: 1), window: 2)
            rig.begin()
            let start = rig.now
            rig.advance(.milliseconds(9))
            #expect(rig.work.clients[0].sent == 2)
            rig.work.answers(0, 1, inTurn: inTurn)
            if inTurn { #expect(rig.work.clients[0].sent == 3) }
            rig.advance(.zero)
            #expect(rig.work.dues(of: 0) == (0..<3).map { start + .milliseconds($0) })
            #expect(rig.work.sent.last?.batch.ableSince == start + .milliseconds(9))
        }
    }

    @Test("an operation waits for its client while that is away, and does not go to another")
    func disconnected() {
        let rig = ShardRig(self.open(1_000, operators: 2), window: 1_000)
        rig.begin()
        let start = rig.now
        rig.work.loses(0, returns: true)
        rig.advance(.milliseconds(20))
        #expect(rig.shard.live == 1)
        #expect(rig.work.dues(of: 0) == [start])
        #expect(rig.work.dues(of: 1).allSatisfy { ($0 - start).nanoseconds / 1_000_000 % 2 == 1 })
        rig.work.comesUp(0)
        rig.advance(.zero)
        #expect(rig.work.dues(of: 0) == (0...10).map { start + .milliseconds($0 * 2) })
        #expect(rig.work.sent.last?.batch.ableSince == start + .milliseconds(20))
        #expect(rig.events.all.contains(.deserted(shard: 0)) == false)
    }

    @Test("late is what its client could have sent for over a second, sent or given up")
    func late() {
        let rig = ShardRig(self.open(10, operators: 1, measure: .seconds(2)), window: 1_000)
        rig.begin()
        // The loop itself stands still for 1.55 s: the operations due at 0.1 s ... 0.5 s are over 1 s late.
        let shard = rig.shard
        rig.advance(.milliseconds(50))
        var sentAt: UInt64 = 0
        rig.work.blocks(0)
        rig.advance(.milliseconds(1_550))
        // Writable again since 0.05 s, had the loop looked.
        rig.work.clients[0].isBlocked = false
        shard.markAble(0, at: rig.now - .milliseconds(1_550))
        rig.advance(.zero)
        sentAt = rig.work.clients[0].sent
        #expect(sentAt == 17)
        // 0.6 s is exactly 1 s ago, and so not over.
        #expect(shard.late == 5)
    }

    @Test("what was held back by its client is not late, however old it is")
    func notLate() {
        let rig = ShardRig(self.open(10, operators: 1, measure: .seconds(9)), window: 1_000)
        rig.begin()
        rig.work.blocks(0)
        rig.advance(.seconds(8))
        rig.work.unblocks(0)
        rig.advance(.zero)
        #expect(rig.work.clients[0].sent == 81)
        #expect(rig.shard.late == 0)
    }

    @Test("the limit ends an open load, and is reported once it has become due")
    func openLimit() {
        let rig = ShardRig(self.open(1_000, operators: 3, measure: nil, limit: 7), window: 100)
        rig.begin()
        rig.advance(.milliseconds(5))
        #expect(rig.count(.spent(shard: 0)) == 0)
        rig.advance(.seconds(5))
        #expect(rig.count(.spent(shard: 0)) == 1)
        #expect(rig.work.clients.map(\.sent) == [3, 2, 2])
        #expect(rig.shard.offered == 7)
    }

    @Test("a loop that stood still catches up: every operation once, with its own due time")
    func catchUp() {
        let rig = ShardRig(self.open(1_000_000, operators: 3, measure: .seconds(10)), window: 1_000_000)
        rig.begin()
        let start = rig.now
        _ = rig.shard.pace(start + .milliseconds(900))
        rig.advance(.zero)
        // Those due at the start, and 900,000 more.
        #expect(rig.shard.offered == 900_001)
        #expect(rig.work.clients.map(\.sent) == [300_001, 300_000, 300_000])
        for place in 0..<3 {
            let dues = rig.work.dues(of: place)
            #expect(dues.count == Int(rig.work.clients[place].sent))
            let isExact = dues.enumerated().allSatisfy { $1 == start + .microseconds(Int64($0 * 3 + place)) }
            #expect(isExact)
        }
        #expect(rig.shard.late == 0)
    }

    // MARK: Phases

    @Test("warm-up and measured phase begin and end at their exact times, and so do the operations")
    func phases() {
        let rig = ShardRig(self.open(100, operators: 1, warmup: .milliseconds(200)), window: 10_000)
        rig.begin()
        let start = rig.now
        rig.advance(.seconds(3))
        #expect(rig.work.measuring.map(\.begins) == [true, false])
        #expect(rig.work.measuring.map(\.at) == [start + .milliseconds(200), start + .milliseconds(1_200)])
        #expect(rig.work.loadEnds == [start + .milliseconds(1_200)])
        // 1.2 s at 100/s: the one due at the end belongs to no phase any more.
        let dues = rig.work.dues(of: 0)
        #expect(dues == (0..<120).map { start + .milliseconds($0 * 10) })
        let measured = rig.work.sent.flatMap { sent in sent.dues.filter { sent.batch.lane($0) == 0 } }
        #expect(measured == Array(dues[20...]))
        #expect(rig.shard.measured == start + .milliseconds(200)..<start + .milliseconds(1_200))
    }

    @Test("in the drain what is due is still sent, answers are awaited, and each client closes when it has them")
    func drain() {
        let rig = ShardRig(self.open(1_000, operators: 2, measure: .milliseconds(10)), window: 1_000)
        rig.begin()
        rig.work.blocks(0)
        rig.advance(.milliseconds(50))
        #expect(rig.shard.phase == .draining)
        #expect(rig.work.clients.map(\.sent) == [1, 5])
        rig.work.answers(1, 5)
        #expect(rig.work.clients.map(\.isFinished) == [false, true])
        rig.work.unblocks(0)
        rig.advance(.zero)
        #expect(rig.work.clients.map(\.sent) == [5, 5])
        #expect(rig.work.clients[0].isFinished == false)
        rig.work.answers(0, 5)
        #expect(rig.work.clients[0].isFinished)
        #expect(rig.work.total(\.notSent) == 0)
        #expect(rig.events.all.suffix(2) == [.operatorsFinished(shard: 0), .finished(shard: 0)])
    }

    @Test("in the drain a client whose operations need no answer closes with its last write", arguments: [true, false])
    func drainWithoutAnswers(_ inTurn: Bool) {
        let rig = ShardRig(self.open(1_000, operators: 2, measure: .milliseconds(10)), window: 3)
        rig.work.answersAtOnce = true
        rig.begin()
        rig.work.blocks(0)
        rig.advance(.milliseconds(20))
        #expect(rig.work.clients.map(\.isFinished) == [false, true])
        rig.work.clients[0].isBlocked = false
        inTurn ? rig.shard.markAbleInTurn(0, at: rig.now) : rig.shard.markAble(0, at: rig.now)
        rig.advance(.zero)
        #expect(rig.work.clients[0].sent == 5)
        #expect(rig.events.all.last == .finished(shard: 0))
    }

    @Test("the end of the drain gives up the rest: offered = sent + not sent")
    func drainDeadline() {
        let rig = ShardRig(self.open(1_000, operators: 3, measure: .milliseconds(90)), window: 10)
        rig.begin()
        rig.advance(.milliseconds(100))
        rig.shard.endDrain()
        #expect(rig.work.clients.map(\.sent) == [10, 10, 10])
        #expect(rig.work.clients.map(\.notSent) == [20, 20, 20])
        #expect(rig.work.late == 0)
        #expect(rig.shard.offered == 90)
        #expect(rig.count(.finished(shard: 0)) == 1)
    }

    @Test("what could have been sent for over a second counts as late when it is given up")
    func givenUpLate() {
        let rig = ShardRig(self.open(1_000, operators: 1, measure: .milliseconds(10)), window: 100)
        rig.begin()
        rig.work.blocks(0)
        rig.advance(.milliseconds(20))
        // Writable again, but the shard has not been notified.
        rig.work.clients[0].isBlocked = false
        rig.advance(.milliseconds(990))
        // Due 1 ms ... 9 ms after the start, 1,010 ms ago: those before 10 ms.
        rig.shard.endDrain()
        #expect(rig.work.clients[0].notSent == 9)
        #expect(rig.work.late == 9)
        #expect(rig.shard.late == 9)
    }

    @Test("an early end stops what is due later, and cuts the measured phase")
    func earlyEnd() {
        let rig = ShardRig(self.open(1_000, operators: 1), window: 1_000)
        rig.begin()
        let start = rig.now
        rig.advance(.milliseconds(100))
        rig.shard.endLoad(at: start + .milliseconds(100))
        rig.shard.endLoad(at: start + .milliseconds(500))
        rig.advance(.seconds(2))
        #expect(rig.work.clients[0].offered == 101)
        #expect(rig.shard.measured == start..<start + .milliseconds(100))
        #expect(rig.work.measuring.map(\.at) == [start, start + .milliseconds(100)])
        #expect(rig.work.loadEnds.count == 1)
    }

    @Test("an end in the warm-up leaves nothing measured")
    func endInWarmup() {
        let rig = ShardRig(self.open(1_000, operators: 1, warmup: .seconds(1)), window: 10_000)
        rig.begin()
        rig.advance(.milliseconds(100))
        rig.shard.endLoad(at: rig.now)
        #expect(rig.shard.measured.isEmpty)
        #expect(rig.work.measuring.isEmpty)
    }

    @Test("the drain does not wait for a client that will not return")
    func goneInDrain() {
        let rig = ShardRig(self.open(1_000, operators: 3, measure: .milliseconds(30)), window: 100)
        rig.begin()
        rig.work.loses(0, returns: false)
        rig.work.loses(1, returns: true)
        rig.advance(.milliseconds(40))
        rig.work.answers(2, 10)
        #expect(rig.work.clients.map(\.isFinished) == [true, false, true])
        #expect(rig.work.clients[0].notSent == 9)
        // The second had another try, in vain: its last.
        rig.work.fails(1)
        #expect(rig.work.clients[1].notSent == 10)
        #expect(rig.events.all.last == .finished(shard: 0))
    }

    @Test("an abort closes all at once, whatever is open, and is reported once")
    func abort() {
        let rig = ShardRig(self.open(1_000, operators: 3), window: 4)
        rig.work.closesAtOnce = false
        rig.begin()
        rig.advance(.milliseconds(100))
        rig.shard.abort()
        rig.shard.abort()
        #expect(rig.work.total(\.offered) == rig.work.total(\.sent) + rig.work.total(\.notSent))
        #expect(rig.count(.finished(shard: 0)) == 1)
        #expect(rig.shard.live == 0)
        rig.advance(.seconds(5))
        #expect(rig.work.total(\.sent) == 12)
    }

    @Test("the loss of the last connection is reported, if it will not come back")
    func deserted() {
        let rig = ShardRig(self.open(10, operators: 2), window: 4)
        rig.begin()
        rig.work.loses(0, returns: false)
        #expect(rig.count(.deserted(shard: 0)) == 0)
        rig.work.loses(1, returns: true)
        #expect(rig.count(.deserted(shard: 0)) == 0)
        rig.work.comesUp(1)
        rig.work.loses(1, returns: false)
        #expect(rig.count(.deserted(shard: 0)) == 1)
        #expect(rig.shard.live == 0)
    }

    // MARK: Closed loop

    @Test("every client keeps its window full, and what it sends is due when it could be sent")
    func windowFull() {
        let rig = ShardRig(self.closed(2), window: 3)
        rig.begin()
        let start = rig.now
        #expect(rig.work.clients.map(\.inFlight) == [3, 3])
        #expect(rig.work.dues(of: 0) == [start, start, start])
        rig.advance(.milliseconds(7))
        rig.work.answers(0, 2)
        rig.advance(.zero)
        #expect(rig.work.clients.map(\.inFlight) == [3, 3])
        #expect(rig.work.dues(of: 0).suffix(2) == [start + .milliseconds(7), start + .milliseconds(7)])
        #expect(rig.shard.offered == 8)
        #expect(rig.work.total(\.offered) == rig.work.total(\.sent))
    }

    @Test("nothing is sent before the load's first moment, and nothing is due before it is sent")
    func notBeforeOrigin() {
        let rig = ShardRig(self.closed(2), window: 3)
        rig.shard.startConnecting(at: rig.now)
        rig.advance(.zero)
        rig.work.comesUp(0)
        rig.work.comesUp(1)
        let start = rig.now + .milliseconds(20)
        rig.shard.startLoad(at: start)
        rig.advance(.milliseconds(19))
        #expect(rig.work.sent.isEmpty)
        rig.work.loses(1, returns: true)
        rig.work.comesUp(1)
        rig.advance(.microseconds(999))
        #expect(rig.work.sent.isEmpty)
        rig.advance(.microseconds(1))
        #expect(rig.work.sent.map(\.at) == [start, start])
        #expect(rig.work.sent.flatMap(\.dues).allSatisfy { $0 == start })
    }

    @Test("a limit is spent exactly, each client its part", arguments: [1, 2, 3, 4, 5, 17] as [UInt64])
    func closedLimit(_ limit: UInt64) {
        let plan = self.closed(4, limit: limit, measure: nil)
        let rig = ShardRig(plan, window: 2)
        rig.begin()
        var turns = 0
        while rig.count(.spent(shard: 0)) == 0, turns < 100 {
            for place in 0..<4 where rig.work.clients[place].inFlight > 0 {
                rig.work.answers(place, rig.work.clients[place].inFlight)
            }
            rig.advance(.milliseconds(1))
            turns += 1
        }
        #expect(rig.count(.spent(shard: 0)) == 1)
        #expect(rig.work.clients.map(\.sent) == (0..<4).map { plan.limit(ofOperator: $0) ?? 0 })
        #expect(rig.work.total(\.sent) == limit)
    }

    @Test("a limit counts as spent without the part of those who never came up, or will not come back")
    func limitOfTheGone() {
        let rig = ShardRig(self.closed(3, limit: 30, measure: nil), window: 100)
        rig.shard.startConnecting(at: rig.now)
        rig.advance(.zero)
        rig.work.comesUp(0)
        rig.work.comesUp(1)
        rig.work.blocks(1)
        rig.work.fails(2)
        rig.shard.startLoad(at: rig.now)
        rig.advance(.zero)
        #expect(rig.work.clients.map(\.sent) == [10, 0, 0])
        #expect(rig.count(.spent(shard: 0)) == 0)
        rig.work.loses(1, returns: false)
        #expect(rig.count(.spent(shard: 0)) == 1)
    }

    @Test("in closed loop the end of the load ends it: nothing was owed, and nothing is given up")
    func closedEnd() {
        let rig = ShardRig(self.closed(2), window: 3)
        rig.begin()
        rig.advance(.seconds(1))
        #expect(rig.shard.phase == .draining)
        rig.work.answers(0, 1)
        rig.advance(.zero)
        #expect(rig.work.clients[0].sent == 3)
        rig.work.answers(0, 2)
        #expect(rig.work.clients[0].isFinished)
        rig.shard.endDrain()
        #expect(rig.work.total(\.notSent) == 0)
        #expect(rig.count(.finished(shard: 0)) == 1)
    }

    @Test("in closed loop an answer behind the load's end lets nothing go, before the loop notices the end")
    func closedLate() {
        let rig = ShardRig(self.closed(1), window: 3)
        let end = rig.now + .seconds(1)
        // Scheduled first, the answer comes before the timer of the load's end.
        rig.loop.assumeIsolated().scheduleTask(deadline: end) { [work = rig.work] in work.answers(0, 3, inTurn: true) }
        rig.begin()
        rig.advance(.seconds(1))
        #expect(rig.shard.phase == .finished)
        #expect(rig.work.clients[0].offered == 3 && rig.work.clients[0].sent == 3)
        #expect(rig.work.sent.flatMap(\.dues).allSatisfy(rig.shard.measured.contains))
    }

    @Test("what a client in closed loop began before the order to end belongs to the measured phase")
    func closedEarlyEnd() {
        let rig = ShardRig(self.closed(1), window: 3)
        rig.begin()
        let start = rig.now
        rig.advance(.milliseconds(10))
        rig.work.answers(0, 3, inTurn: true)
        // The order was given 5 ms ago.
        rig.shard.endLoad(at: start + .milliseconds(5))
        rig.work.answers(0, 3, inTurn: true)
        #expect(rig.work.dues(of: 0) == Array(repeating: start, count: 3) + Array(repeating: rig.now, count: 3))
        #expect(rig.work.sent.flatMap(\.dues).allSatisfy(rig.shard.measured.contains))
    }
}
