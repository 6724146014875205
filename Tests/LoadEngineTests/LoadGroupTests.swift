import LoadEngine
import LoopContext
import NIOCore
import NIOPosix
import Testing

@Suite("Groups of a run, on one timeline", .timeLimit(.minutes(10)))
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
    func together(_ loops: Int) async throws {
        let run = try await GroupRun(
            [(Self.plan(2), Self.works), (Self.plan(3, pace: .idle), Self.works), (Self.plan(1), Self.works)],
            loops: loops
        )
        let outcome = try await run.perform()
        #expect(outcome.stop == .planned)
        #expect(outcome.groups.map(\.up) == [2, 3, 1])
        #expect(outcome.groups.map(\.loss) == [nil, nil, nil])
        #expect(outcome.up == 6)
        let ended = await run.observer.ended
        #expect(ended.map(\.sent) == [80, 0, 80])
        let starts = Set(ended.flatMap(\.measured).map(\.lowerBound))
        #expect(starts.count == 1)
        #expect(starts.first == outcome.measured?.lowerBound)
        #expect(Set(ended.flatMap(\.measured).map(\.upperBound)) == [try #require(outcome.measured).upperBound])
        #expect(await run.observer.shapes.allSatisfy { $0 == [loops, loops, loops] })
        #expect(await run.observer.phases == [.connect, .warmup, .measure, .drain])
    }

    @Test("one that nobody of connects is noted, and the others do their work")
    func oneFails() async throws {
        let run = try await GroupRun([(Self.plan(2), Self.fails), (Self.plan(2), Self.works)])
        let outcome = try await run.perform()
        #expect(outcome.stop == .planned)
        #expect(outcome.groups.map(\.up) == [0, 2])
        #expect(outcome.groups.map(\.loss) == [.everyConnectFailed, nil])
        let ended = await run.observer.ended
        #expect(ended[1].sent == 80)
        // What nobody could send is not lost from the books.
        #expect(ended[0].offered == ended[0].notSent)
    }

    @Test("one that all leave is noted, and the others do their work")
    func oneIsLost() async throws {
        var lost = Self.plan(2)
        var works = lost
        works.limit = 80
        // By its limit, so that no slow host ends it before the loss is seen.
        (lost.measure, works.measure) = (nil, nil)
        let run = try await GroupRun([(lost, Self.leaves), (works, Self.works)])
        let outcome = try await run.perform()
        #expect(outcome.stop == .planned)
        #expect(outcome.groups.map(\.loss) == [.everyConnectionLost, nil])
        let ended = await run.observer.ended
        #expect(ended[1].sent == 80)
    }

    @Test("the limit of one ends the run when another has waited in vain for clients to come back")
    func spentBesideLost() async throws {
        var lost = Self.plan(2)
        var works = Self.plan(2, pace: .closed)
        works.limit = 10
        (lost.measure, works.measure) = (nil, nil)
        // Who is on the way back is waited for as long.
        (lost.drain, works.drain) = (.milliseconds(100), .milliseconds(100))
        let run = try await GroupRun(
            [(lost, Self.wanders), (works, Self.works)],
            reconnects: true,
            patience: .milliseconds(50)
        )
        let outcome = try await run.perform()
        #expect(outcome.stop == .planned)
        #expect(outcome.groups.map(\.loss) == [.everyConnectionLost, nil])
    }

    @Test("the run ends when none is left: those that never came up, and those that were lost")
    func noneIsLeft() async throws {
        var plan = Self.plan(2)
        plan.measure = nil
        let run = try await GroupRun([(plan, Self.fails), (plan, Self.leaves)])
        #expect(try await run.perform().stop == .everyConnectionLost)
        let neither = try await GroupRun([(plan, Self.fails), (plan, Self.fails)])
        let outcome = try await neither.perform()
        #expect(outcome.stop == .everyConnectFailed)
        #expect(outcome.loadBegan == nil)
    }

    @Test("the limit of one ends nothing while another has not spent its own")
    func limits() async throws {
        var first = Self.plan(2, pace: .closed)
        first.limit = 10
        var second = Self.plan(2)
        second.limit = 40
        (first.measure, second.measure) = (nil, nil)
        let run = try await GroupRun([(first, Self.works), (second, Self.works)])
        let outcome = try await run.perform()
        #expect(outcome.stop == .planned)
        #expect(await run.observer.ended.map(\.sent) == [10, 40])
    }

    @Test("listeners of each go by the balance of their own group")
    func balances() async throws {
        var plan = Self.plan(1)
        plan.listeners = 1
        let run = try await GroupRun([(plan, Self.works), (plan, Self.works)])
        await run.observer.completes(group: 1, atLook: 3)
        #expect(try await !run.perform().wasAborted)
        #expect(await run.observer.looks[1] ?? 0 >= 3)
    }
}

/// A run of several groups of fake clients.
private struct GroupRun: Sendable {
    struct Ended: Sendable {
        var offered: UInt64 = 0
        var sent: UInt64 = 0
        var notSent: UInt64 = 0
        var measured: [Range<NIODeadline>] = []
    }

    let observer = Recorder()
    private let threads: MultiThreadedEventLoopGroup
    private let handles: [[ShardHandle<FakeWork>]]
    private let run: LoadRun<Recorder>

    init(
        _ groups: [(LoadPlan, @Sendable (FakeWork) -> Void)],
        loops count: Int = 2,
        reconnects: Bool = false,
        patience: TimeAmount = .seconds(10)
    ) async throws {
        self.threads = MultiThreadedEventLoopGroup(numberOfThreads: count)
        let loops = Array(self.threads.makeIterator())
        let (stream, continuation) = AsyncStream.makeStream(of: RunEvent.self)
        var handles: [[ShardHandle<FakeWork>]] = []
        for (number, (plan, prepare)) in groups.enumerated() {
            var shards: [ShardHandle<FakeWork>] = []
            for (index, loop) in loops.enumerated() {
                shards.append(
                    try await loop.submit {
                        let context = LoopContext(eventLoop: loop)
                        let shard = Shard<FakeWork>(context: context, plan: plan, index: index, of: count) {
                            continuation.yield(.shard($0, group: number))
                        }
                        let work = FakeWork(shard, window: 4)
                        shard.work = work
                        prepare(work)
                        return ShardHandle(shard)
                    }.get()
                )
            }
            handles.append(shards)
        }
        self.handles = handles
        self.run = LoadRun(
            groups: zip(groups, handles).map { LoadGroup(plan: $0.0, shards: $1, reconnects: reconnects) },
            events: (stream, continuation),
            patience: patience,
            observer: self.observer
        )
    }

    func perform() async throws -> RunOutcome {
        let outcome = await self.run.perform()
        for shards in self.handles {
            var all = Ended()
            for shard in shards {
                let ended = await shard.ask { shard -> Ended? in
                    defer {
                        shard.context.timers.stop()
                        shard.work?.onConnect = nil
                        shard.work?.onSend = nil
                    }
                    return shard.work.map {
                        Ended(
                            offered: $0.total(\.offered),
                            sent: $0.total(\.sent),
                            notSent: $0.total(\.notSent),
                            measured: [shard.measured]
                        )
                    }
                }
                guard let ended = ended ?? nil else { continue }
                all.offered += ended.offered
                all.sent += ended.sent
                all.notSent += ended.notSent
                all.measured += ended.measured
            }
            await self.observer.note(all)
        }
        try await self.threads.shutdownGracefully()
        return outcome
    }
}

private actor Recorder: RunObserver {
    private(set) var phases: [RunPhase] = []
    /// Samples of each group, by interval.
    private(set) var shapes: [[Int]] = []
    private(set) var looks: [Int: Int] = [:]
    private(set) var ended: [GroupRun.Ended] = []
    private var wanted: [Int: Int] = [:]

    func note(_ ended: GroupRun.Ended) { self.ended.append(ended) }

    func completes(group: Int, atLook look: Int) { self.wanted[group] = look }

    func interval(
        second: Int,
        phase: RunPhase,
        span: TimeAmount,
        groups: [GroupSample<[UInt64]>]
    ) async -> StopReason? {
        if self.phases.last != phase { self.phases.append(phase) }
        self.shapes.append(groups.map(\.samples.count))
        return nil
    }

    func isComplete(_ balance: DeliveryBalance, of group: Int) async -> Bool {
        self.looks[group, default: 0] += 1
        return self.looks[group, default: 0] >= self.wanted[group] ?? 0
    }
}
