import LoadEngine
import LoopContext
import NIOCore
import Synchronization
import TestSupport
import Testing

@Suite("Groups of a run, on one timeline")
struct LoadGroupTests {
    private static func plan(_ operators: Int, pace: LoadPlan.Pace = .open(.rate(perSecond: 1_000))) -> LoadPlan {
        LoadPlan(
            operators: operators,
            pace: pace,
            warmup: .milliseconds(20),
            measure: .milliseconds(60),
            drain: .seconds(30),
            closeGrace: .seconds(30)
        )
    }

    private static let works: @Sendable (FakeWork) -> Void = { work in
        work.onConnect = { work.comesUp($0) }
        work.answersAtOnce = true
    }

    private static let fails: @Sendable (FakeWork) -> Void = { work in
        work.onConnect = { work.fails($0) }
    }

    private static let leaves: @Sendable (FakeWork) -> Void = { work in
        work.onConnect = { work.comesUp($0) }
        work.onSend = { work.loses($0, returns: false) }
    }

    private static let wanders: @Sendable (FakeWork) -> Void = { work in
        work.onConnect = { work.comesUp($0) }
        work.onSend = { work.loses($0, returns: true) }
    }

    @Test("all begin together when the last is up, measure the same time and end together", arguments: [1, 2])
    func together(_ loops: Int) throws {
        let run = try GroupRun(
            [(Self.plan(2), Self.works), (Self.plan(3, pace: .idle), Self.works), (Self.plan(1), Self.works)],
            loops: loops
        )
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        #expect(outcome.groups.map(\.up) == [2, 3, 1])
        #expect(outcome.groups.map(\.loss) == [nil, nil, nil])
        #expect(outcome.up == 6)
        let ended = run.observer.ended
        #expect(ended.map(\.sent) == [80, 0, 80])
        let starts = Set(ended.flatMap(\.measured).map(\.lowerBound))
        #expect(starts.count == 1)
        #expect(starts.first == outcome.measured?.lowerBound)
        #expect(Set(ended.flatMap(\.measured).map(\.upperBound)) == [try #require(outcome.measured).upperBound])
        #expect(run.observer.shapes.allSatisfy { $0 == [loops, loops, loops] })
        #expect(run.observer.phases == [.connect, .warmup, .measure, .drain])
    }

    @Test("a group without any connection is noted, and the others do their work")
    func oneFails() throws {
        let run = try GroupRun([(Self.plan(2), Self.fails), (Self.plan(2), Self.works)])
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        #expect(outcome.groups.map(\.up) == [0, 2])
        #expect(outcome.groups.map(\.loss) == [.everyConnectFailed, nil])
        let ended = run.observer.ended
        #expect(ended[1].sent == 80)
        // Operations that no client could send are still in the books.
        #expect(ended[0].offered == ended[0].notSent)
    }

    @Test("one that all leave is noted, and the others do their work")
    func oneIsLost() throws {
        var lost = Self.plan(2)
        var works = lost
        works.limit = 80
        // By its limit, so that no slow host ends it before the loss is seen.
        (lost.measure, works.measure) = (nil, nil)
        let run = try GroupRun([(lost, Self.leaves), (works, Self.works)])
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        #expect(outcome.groups.map(\.loss) == [.everyConnectionLost, nil])
        let ended = run.observer.ended
        #expect(ended[1].sent == 80)
    }

    @Test("the limit of one ends the run when another has waited in vain for clients to come back")
    func spentBesideLost() throws {
        var lost = Self.plan(2)
        var works = Self.plan(2, pace: .closed)
        works.limit = 10
        (lost.measure, works.measure) = (nil, nil)
        // The drain of returning clients lasts as long.
        (lost.drain, works.drain) = (.milliseconds(100), .milliseconds(100))
        let run = try GroupRun(
            [(lost, Self.wanders), (works, Self.works)],
            reconnects: true,
            patience: .milliseconds(50)
        )
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        #expect(outcome.groups.map(\.loss) == [.everyConnectionLost, nil])
    }

    @Test("the run ends when none is left: those that never came up, and those that were lost")
    func noneIsLeft() throws {
        var plan = Self.plan(2)
        plan.measure = nil
        let run = try GroupRun([(plan, Self.fails), (plan, Self.leaves)])
        #expect(try run.perform().stop == .everyConnectionLost)
        let neither = try GroupRun([(plan, Self.fails), (plan, Self.fails)])
        let outcome = try neither.perform()
        #expect(outcome.stop == .everyConnectFailed)
        #expect(outcome.loadBegan == nil)
    }

    @Test("the limit of one ends nothing while another has not spent its own")
    func limits() throws {
        var first = Self.plan(2, pace: .closed)
        first.limit = 10
        var second = Self.plan(2)
        second.limit = 40
        (first.measure, second.measure) = (nil, nil)
        let run = try GroupRun([(first, Self.works), (second, Self.works)])
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        #expect(run.observer.ended.map(\.sent) == [10, 40])
    }

    @Test("listeners of each go by the balance of their own group")
    func balances() throws {
        var plan = Self.plan(1)
        plan.listeners = 1
        let run = try GroupRun([(plan, Self.works), (plan, Self.works)])
        run.observer.completes(group: 1, atLook: 3)
        #expect(try !run.perform().wasAborted)
        #expect(run.observer.looks[1] ?? 0 >= 3)
    }
}

/// A run of several groups of fake clients, in virtual time.
private struct GroupRun {
    struct Ended: Sendable {
        var offered: UInt64 = 0
        var sent: UInt64 = 0
        var notSent: UInt64 = 0
        var measured: [Range<NIODeadline>] = []
    }

    let observer = Recorder()
    private let time = VirtualTime()
    private let shards: [[Shard<FakeWork>]]
    private let run: LoadRun<Recorder>

    init(
        _ groups: [(LoadPlan, @Sendable (FakeWork) -> Void)],
        loops count: Int = 2,
        reconnects: Bool = false,
        patience: TimeAmount = .seconds(10)
    ) throws {
        let (stream, continuation) = AsyncStream.makeStream(of: RunEvent.self)
        let time = self.time
        self.shards = groups.enumerated().map { number, group in
            (0..<count).map { index in
                let shard = Shard<FakeWork>(
                    context: LoopContext(eventLoop: time.loop, tick: .exact),
                    plan: group.0,
                    index: index,
                    of: count
                ) { continuation.yield(.shard($0, group: number)) }
                let work = FakeWork(shard, window: 4)
                shard.work = work
                group.1(work)
                return shard
            }
        }
        self.run = LoadRun(
            groups: zip(groups, self.shards).map {
                LoadGroup(plan: $0.0, shards: $1.map { ShardHandle($0) }, reconnects: reconnects)
            },
            events: (stream, continuation),
            patience: patience,
            clock: time,
            observer: self.observer
        )
    }

    func perform() throws -> RunOutcome {
        let outcomes = try self.time.run([{ @Sendable [run = self.run] in await run.perform() }])
        for shards in self.shards {
            var all = Ended()
            for shard in shards {
                guard let work = shard.work else { continue }
                defer { work.forgetTest() }
                all.offered += work.total(\.offered)
                all.sent += work.total(\.sent)
                all.notSent += work.total(\.notSent)
                all.measured.append(shard.measured)
            }
            self.observer.note(all)
        }
        return try #require(outcomes.first)
    }
}

private final class Recorder: RunObserver {
    private struct State {
        var phases: [RunPhase] = []
        var shapes: [[Int]] = []
        var looks: [Int: Int] = [:]
        var ended: [GroupRun.Ended] = []
        var wanted: [Int: Int] = [:]
    }

    private let state = Mutex(State())

    var phases: [RunPhase] { self.state.withLock(\.phases) }
    /// Samples of each group, by interval.
    var shapes: [[Int]] { self.state.withLock(\.shapes) }
    var looks: [Int: Int] { self.state.withLock(\.looks) }
    var ended: [GroupRun.Ended] { self.state.withLock(\.ended) }

    func note(_ ended: GroupRun.Ended) { self.state.withLock { $0.ended.append(ended) } }

    func completes(group: Int, atLook look: Int) { self.state.withLock { $0.wanted[group] = look } }

    func interval(
        second: Int,
        phase: RunPhase,
        span: TimeAmount,
        groups: consuming [GroupSample<[UInt64]>]
    ) async -> StopReason? {
        let shape = groups.map(\.samples.count)
        self.state.withLock { state in
            if state.phases.last != phase { state.phases.append(phase) }
            state.shapes.append(shape)
        }
        return nil
    }

    func isComplete(_ balance: DeliveryBalance, of group: Int, quiet: TimeAmount) async -> Bool {
        self.state.withLock { state in
            state.looks[group, default: 0] += 1
            return state.looks[group, default: 0] >= state.wanted[group] ?? 0
        }
    }
}
