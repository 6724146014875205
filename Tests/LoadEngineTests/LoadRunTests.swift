import LoadEngine
import LoopContext
import NIOCore
import Synchronization
import TestSupport
import Testing

@Suite("A run, from its first connect to its last FIN")
struct LoadRunTests {
    private static let soon = TimeAmount.milliseconds(60)

    private func open(_ operators: Int, listeners: Int = 0, waits: Bool = true) -> LoadPlan {
        LoadPlan(
            operators: operators,
            listeners: listeners,
            pace: .open(.rate(perSecond: 1_000)),
            waitsForConnects: waits,
            warmup: .milliseconds(20),
            measure: Self.soon,
            drain: .seconds(30),
            closeGrace: .seconds(30)
        )
    }

    @Test("where the connects are the load, it ends when every client is up or has failed")
    func endsWithConnects() throws {
        var plan = LoadPlan(operators: 3, pace: .idle, waitsForConnects: false, measure: nil, drain: .seconds(30))
        plan.endsWithConnects = true
        let run = try TestRun(plan, shards: 2) { work in
            work.onConnect = { place in
                _ = work.shard.context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(1)) {
                    if place == 1 { work.fails(place) } else { work.comesUp(place) }
                }
            }
        }
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        #expect(outcome.up == 2)
        #expect(!outcome.wasAborted)
        #expect(outcome.measured != nil)
    }

    @Test(
        "ends as planned: warm-up, measured phase and drain, all operations sent and all clients closed",
        arguments: [1, 3]
    )
    func planned(_ shards: Int) throws {
        let run = try TestRun(self.open(2), shards: shards) { work in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
        }
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        #expect(outcome.up == 2)
        #expect(!outcome.wasAborted)
        let measured = try #require(outcome.measured)
        #expect(outcome.loadBegan == measured.lowerBound - .milliseconds(20))
        #expect(measured.upperBound - measured.lowerBound == Self.soon)
        let end = run.observer.ended
        #expect(end.map(\.offered).reduce(0, +) == 80)
        #expect(end.map(\.sent).reduce(0, +) == 80)
        #expect(end.map(\.live) == Array(repeating: 0, count: shards))
        let phases = run.observer.phases
        #expect(phases == [.connect, .warmup, .measure, .drain])
        #expect(run.observer.samples.allSatisfy { $0 == shards })
    }

    @Test("operators that receive as well stay until everything has come, each on its own loop", arguments: [1, 2])
    func operatorsThatListen(_ shards: Int) throws {
        var plan = self.open(2)
        plan.operatorsListen = true
        let run = try TestRun(plan, shards: shards) { work in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
        }
        // The balance is incomplete at the first looks: until then no client may have left.
        run.observer.completes(atLook: 3)
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        #expect(!outcome.wasAborted)
        #expect(run.observer.balances.count >= 3)
        #expect(run.observer.ended.map(\.sent).reduce(0, +) == 80)
    }

    @Test("operators that receive as well go when the drain is over, whatever has not come")
    func operatorsThatMiss() throws {
        var plan = self.open(2)
        plan.operatorsListen = true
        plan.drain = .milliseconds(200)
        let run = try TestRun(plan, shards: 2) { work in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
        }
        run.observer.completes(atLook: .max)
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        #expect(!outcome.wasAborted)
    }

    @Test("a load that waits for others begins on the event, and reports once that it could begin")
    func awaitsOthers() throws {
        let knocks = Mutex([NIODeadline]())
        let time = VirtualTime()
        let (stream, events) = AsyncStream.makeStream(of: RunEvent.self)
        let run = try TestRun(
            self.open(2),
            shards: 2,
            events: (stream, events),
            time: time,
            awaitOthers: {
                knocks.withLock { $0.append(time.now) }
                events.yield(.begin(at: time.now + .seconds(1)))
            }
        ) { work, _ in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
        }
        let outcome = try run.perform()
        let knocked = knocks.withLock(\.self)
        #expect(knocked.count == 1)
        #expect(outcome.loadBegan == knocked.first.map { $0 + .seconds(1) })
        #expect(outcome.stop == .planned)
        // The wait is no part of the load.
        #expect(run.observer.phases == [.connect, .warmup, .measure, .drain])
        #expect(run.observer.spans[.connect, default: .zero] >= .milliseconds(980))
        #expect(run.observer.spans[.warmup, default: .zero] <= .milliseconds(60))
        #expect(run.observer.ended.map(\.sent).reduce(0, +) == 80)
    }

    @Test("a load that waits for others can be ended before it begins")
    func awaitsNobody() throws {
        let run = try TestRun(self.open(2), shards: 1, awaitOthers: {}) { work in
            work.onConnect = { work.comesUp($0) }
        }
        run.observer.stopWith(.interrupted, in: .connect)
        let outcome = try run.perform()
        #expect(outcome.loadBegan == nil && outcome.stop == .interrupted)
    }

    @Test("ends when the limit is spent", arguments: [LoadPlan.Pace.closed, .open(.rate(perSecond: 1_000))])
    func limit(_ pace: LoadPlan.Pace) throws {
        let plan = LoadPlan(operators: 3, pace: pace, limit: 50, measure: nil, drain: .seconds(30))
        let run = try TestRun(plan, shards: 2) { work in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
        }
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        #expect(run.observer.ended.map(\.sent).reduce(0, +) == 50)
    }

    @Test("the time of a limit lasts to the end of its last operation's interval", arguments: [1, 2, 50] as [UInt64])
    func pacedLimit(_ limit: UInt64) throws {
        let plan = LoadPlan(operators: 1, pace: .open(.rate(perSecond: 2)), limit: limit, measure: nil)
        let run = try TestRun(plan, shards: 1) { work in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
        }
        let outcome = try run.perform()
        let measured = try #require(outcome.measured)
        #expect(measured.upperBound - measured.lowerBound == .milliseconds(500 * Int64(limit)))
        #expect(outcome.ended >= measured.upperBound)
    }

    @Test(
        "bursts too, of which the last need not be whole, and a curve that ends with the limit",
        arguments: [(4, .bursts(of: 4), 2_000), (5, .bursts(of: 4), 4_000), (20, .even, nil)]
            as [(UInt64, ShapedLoad.Arrivals, Int64?)]
    )
    func shapedLimit(_ limit: UInt64, _ arrivals: ShapedLoad.Arrivals, _ milliseconds: Int64?) throws {
        let shape = ShapedLoad(RateCurve([.init(length: .seconds(10), from: 2, to: 2)]), arrivals)
        let plan = LoadPlan(operators: 1, pace: .open(.shaped(shape)), limit: limit, measure: nil)
        let run = try TestRun(plan, shards: 1) { work in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
        }
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        let measured = try #require(outcome.measured)
        guard let milliseconds else { return }
        #expect(measured.upperBound - measured.lowerBound == .milliseconds(milliseconds))
    }

    @Test("a limit smaller than the number of operators ends the run too")
    func smallLimit() throws {
        let plan = LoadPlan(operators: 5, pace: .closed, limit: 2, measure: nil, drain: .seconds(30))
        let run = try TestRun(plan, shards: 3) { work in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
        }
        #expect(try run.perform().stop == .planned)
        #expect(run.observer.ended.map(\.sent).reduce(0, +) == 2)
    }

    @Test("ends at once when no client comes up", arguments: [true, false])
    func everyConnectFailed(_ waits: Bool) throws {
        let run = try TestRun(self.open(4, listeners: 1, waits: waits), shards: 2) { work in
            work.onConnect = { work.fails($0) }
        }
        let outcome = try run.perform()
        #expect(outcome.stop == .everyConnectFailed)
        #expect(outcome.up == 0)
        if waits { #expect(outcome.loadBegan == nil) }
        #expect(run.observer.ended.allSatisfy { $0.offered == $0.sent + $0.notSent })
    }

    @Test("fails where the time is over before a client came up, and not where one did", arguments: [true, false])
    func neverSettled(_ oneComesUp: Bool) throws {
        let run = try TestRun(self.open(4, listeners: 1, waits: false), shards: 2) { work in
            work.onConnect = { if oneComesUp && work.shard.clients.number(at: $0) == 0 { work.comesUp($0) } }
        }
        let outcome = try run.perform()
        #expect(outcome.stop == (oneComesUp ? .planned : .everyConnectFailed))
        #expect(outcome.up == (oneComesUp ? 1 : 0))
        #expect(outcome.loadBegan != nil)
    }

    @Test("ends where no client that sends came up, or none that receives; one of each is enough", arguments: 0..<4)
    func noneOfAKind(_ failing: Int) throws {
        let (sends, receives) = (failing != 0, failing != 1)
        let run = try TestRun(self.open(3, listeners: 3), shards: 2) { work in
            work.answersAtOnce = true
            work.onConnect = { place in
                let number = work.shard.clients.number(at: place)
                let isUp = number < 3 ? sends && (number == 0 || failing == 3) : receives && number == 3
                if isUp { work.comesUp(place) } else { work.fails(place) }
            }
        }
        let outcome = try run.perform()
        #expect(outcome.stop == [.everyOperatorFailed, .everyListenerFailed, .planned, .planned][failing])
        #expect(outcome.up == [1, 1, 2, 4][failing])
        #expect(!outcome.wasAborted && (outcome.loadBegan == nil) == (failing < 2))
    }

    @Test("ends at once when all connections are gone and none comes back by itself")
    func everyConnectionLost() throws {
        var plan = self.open(4)
        plan.measure = nil
        let run = try TestRun(plan, shards: 2) { work in
            work.onConnect = { work.comesUp($0) }
            work.onSend = { work.loses($0, returns: false) }
        }
        let outcome = try run.perform()
        #expect(outcome.stop == .everyConnectionLost)
        #expect(outcome.up == 4)
        #expect(run.observer.ended.allSatisfy { $0.offered == $0.sent + $0.notSent })
    }

    @Test("waits for clients that come back, and ends when none has for a while")
    func noneComesBack() throws {
        var plan = self.open(2)
        plan.measure = nil
        let run = try TestRun(plan, shards: 1, reconnects: true, patience: .milliseconds(50)) { work in
            work.onConnect = { work.comesUp($0) }
            work.onSend = { work.loses($0, returns: true) }
        }
        #expect(try run.perform().stop == .everyConnectionLost)
    }

    /// Subscribers of whom a share is away from the load's beginning on.
    private func absence(_ share: Double, of listeners: Int, until: TimeAmount = .hours(1)) -> LoadPlan {
        var plan = LoadPlan(operators: 0, listeners: listeners, pace: .idle, measure: nil, drain: .seconds(30))
        plan.departures = DeparturePlan(storms: [.init(share: share, at: .zero, cuts: false, until: until)])
        return plan
    }

    @Test("who is away by plan is not lost, on one loop or on several", arguments: [1, 2])
    func away(_ shards: Int) throws {
        let left = Mutex(0)
        let run = try TestRun(
            self.absence(1, of: 4),
            shards: shards,
            reconnects: true,
            patience: .zero
        ) { work, send in
            work.onConnect = { work.comesUp($0) }
            work.onReturn = { work.comesUp($0) }
            work.onDepart = { _ in
                guard
                    left.withLock({ count in
                        count += 1
                        return count == 4
                    })
                else { return }
                send(.look)
                send(.stop(.interrupted))
            }
        }
        #expect(try run.perform().stop == .interrupted)
        #expect(left.withLock { $0 } == 4)
    }

    @Test("if the other clients are lost meanwhile, the run is deserted")
    func lostBesideAway() throws {
        let run = try TestRun(
            self.absence(0.5, of: 4),
            shards: 1,
            reconnects: true,
            patience: .zero
        ) { work, send in
            work.onConnect = { work.comesUp($0) }
            work.onDepart = { _ in
                guard work.departed.count == 2 else { return }
                for place in 0..<4 where work.clients[place].isUp { work.loses(place, returns: true) }
                send(.look)
            }
        }
        #expect(try run.perform().stop == .everyConnectionLost)
    }

    @Test("who was away by plan is lost when no way back leads anywhere")
    func awayForGood() throws {
        let run = try TestRun(
            self.absence(1, of: 2, until: .milliseconds(20)),
            shards: 1,
            reconnects: true,
            patience: .zero
        ) { work, send in
            work.onConnect = { work.comesUp($0) }
            work.onReturn = { place in
                work.fails(place)
                if work.returned.count == 2 { send(.look) }
            }
        }
        #expect(try run.perform().stop == .everyConnectionLost)
    }

    @Test("ends before the plan's end when told so, and cuts the measured phase")
    func interrupted() throws {
        var plan = self.open(2)
        plan.measure = .hours(1)
        plan.warmup = .zero
        let run = try TestRun(plan, shards: 2) { work in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
        }
        run.observer.stopWith(.interrupted, in: .measure)
        let outcome = try run.perform()
        #expect(outcome.stop == .interrupted)
        #expect(!outcome.wasAborted)
        let measured = try #require(outcome.measured)
        #expect(measured.upperBound <= outcome.ended)
        #expect(run.observer.ended.allSatisfy { $0.offered == $0.sent + $0.notSent })
    }

    @Test("a broken threshold ends it with that reason; a later one does not count")
    func threshold() throws {
        var plan = self.open(1)
        plan.measure = .hours(1)
        let run = try TestRun(plan, shards: 1) { work in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
        }
        run.observer.stopWith(.thresholdBroken, in: .measure)
        #expect(try run.perform().stop == .thresholdBroken)
    }

    @Test("a stop while clients still connect ends it without a load")
    func interruptedConnecting() throws {
        var plan = self.open(1_000)
        plan.connect = .rate(perSecond: 1)
        let run = try TestRun(plan, shards: 2) { work in
            work.onConnect = { work.comesUp($0) }
        }
        run.observer.stopWith(.interrupted, in: .connect)
        let outcome = try run.perform()
        #expect(outcome.stop == .interrupted)
        #expect(outcome.loadBegan == nil && outcome.measured == nil)
        #expect(run.observer.ended.map(\.connectsBegun).reduce(0, +) < 1_000)
    }

    @Test("the second signal closes everything at once")
    func abort() throws {
        var plan = self.open(2)
        plan.measure = .hours(1)
        let run = try TestRun(plan, shards: 2) { work in
            work.onConnect = { work.comesUp($0) }
            work.closesAtOnce = false
        }
        run.send(.stop(.interrupted))
        run.send(.abort)
        let outcome = try run.perform()
        #expect(outcome.stop == .interrupted)
        #expect(outcome.wasAborted)
    }

    @Test("the drain ends at its deadline, and clients that do not close are cut off after the grace")
    func deadlines() throws {
        var plan = self.open(2, listeners: 1)
        plan.drain = .milliseconds(50)
        plan.closeGrace = .milliseconds(50)
        let run = try TestRun(plan, shards: 1) { work in
            work.onConnect = { work.comesUp($0) }
            work.closesAtOnce = false
        }
        let outcome = try run.perform()
        #expect(outcome.stop == .planned)
        #expect(outcome.wasAborted)
        // A window of 4 each, and no answer.
        #expect(run.observer.ended.map(\.sent) == [8])
        #expect(run.observer.ended.map(\.notSent) == [72])
    }

    @Test(
        "a signal in the drain ends the drain, and the run before its time",
        arguments: [StopReason.interrupted, .planned]
    )
    func interruptedDrain(_ signal: StopReason) throws {
        var plan = self.open(1)
        plan.drain = .hours(1)
        let run = try TestRun(plan, shards: 1) { work in
            work.onConnect = { work.comesUp($0) }
        }
        // Where a signal is the load's regular end, it is none for the drain.
        run.observer.stopWith(signal, in: .drain)
        let outcome = try run.perform()
        #expect(outcome.stop == .interrupted)
        #expect(!outcome.wasAborted)
        // A window of 4, and no answer.
        #expect(run.observer.ended.map(\.sent) == [4])
        #expect(run.observer.ended.map(\.notSent) == [76])
    }

    @Test("listeners stay until they have received all expected messages")
    func listeners() throws {
        let run = try TestRun(self.open(2, listeners: 2), shards: 2) { work in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
            work.balance = DeliveryBalance(expected: 1, received: 0)
        }
        // The second look finds the books complete.
        run.observer.completes(atLook: 2)
        let outcome = try run.perform()
        #expect(!outcome.wasAborted)
        #expect(run.observer.balances == [2, 2])
    }

    @Test("the drain tells how long nothing has come since everything was sent", arguments: [1, 2])
    func quiet(_ shards: Int) throws {
        let run = try TestRun(self.open(2, listeners: 2), shards: shards) { work in
            work.onConnect = { work.comesUp($0) }
            work.answersAtOnce = true
            work.balance = DeliveryBalance(expected: 1, received: 0)
        }
        run.observer.completes(afterQuiet: .seconds(1))
        let outcome = try run.perform()
        #expect(!outcome.wasAborted)
        let spans = run.observer.quiets
        #expect(spans.first == .zero && spans == spans.sorted())
        // Looks come every 20 ms.
        #expect(spans.last.map { $0 >= .seconds(1) && $0 < .milliseconds(1_021) } == true)
    }
}

/// A run of fake clients in virtual time.
private struct TestRun {
    struct Ended: Sendable {
        var offered: UInt64
        var sent: UInt64
        var notSent: UInt64
        var connectsBegun: Int
        var live: Int
    }

    typealias Events = (stream: AsyncStream<RunEvent>, continuation: AsyncStream<RunEvent>.Continuation)

    let observer = Recorder()
    private let time: VirtualTime
    private let shards: [Shard<FakeWork>]
    private let run: LoadRun<Recorder>
    let send: @Sendable (RunEvent) -> Void

    init(
        _ plan: LoadPlan,
        shards count: Int,
        reconnects: Bool = false,
        patience: TimeAmount = .seconds(10),
        awaitOthers: (@Sendable () -> Void)? = nil,
        prepare: (FakeWork) -> Void
    ) throws {
        try self.init(plan, shards: count, reconnects: reconnects, patience: patience, awaitOthers: awaitOthers) {
            work,
            _ in prepare(work)
        }
    }

    init(
        _ plan: LoadPlan,
        shards count: Int,
        reconnects: Bool = false,
        patience: TimeAmount = .seconds(10),
        events: Events = AsyncStream.makeStream(of: RunEvent.self),
        time: VirtualTime = VirtualTime(),
        awaitOthers: (@Sendable () -> Void)? = nil,
        steer: (FakeWork, _ send: @escaping @Sendable (RunEvent) -> Void) -> Void
    ) throws {
        self.time = time
        let continuation = events.continuation
        let send: @Sendable (RunEvent) -> Void = { continuation.yield($0) }
        self.send = send
        self.shards = (0..<count).map { index in
            let shard = Shard<FakeWork>(
                context: LoopContext(eventLoop: time.loop, tick: .exact),
                plan: plan,
                index: index,
                of: count
            ) { continuation.yield(.shard($0)) }
            let work = FakeWork(shard, window: 4)
            shard.work = work
            steer(work, send)
            return shard
        }
        self.run = LoadRun(
            groups: [LoadGroup(plan: plan, shards: self.shards.map { ShardHandle($0) }, reconnects: reconnects)],
            events: events,
            patience: patience,
            awaitOthers: awaitOthers,
            clock: time,
            observer: self.observer
        )
    }

    func perform() throws -> RunOutcome {
        let outcomes = try self.time.run([{ @Sendable [run = self.run] in await run.perform() }])
        for shard in self.shards {
            guard let work = shard.work else { continue }
            defer { work.forgetTest() }
            self.observer.note(
                Ended(
                    offered: work.total(\.offered),
                    sent: work.total(\.sent),
                    notSent: work.total(\.notSent),
                    connectsBegun: shard.facts.connectsBegun,
                    live: shard.live
                )
            )
        }
        return try #require(outcomes.first)
    }
}

/// Records its calls, and stops the run when the test requires it.
private final class Recorder: RunObserver {
    private struct State {
        var phases: [RunPhase] = []
        var spans: [RunPhase: TimeAmount] = [:]
        var samples: [Int] = []
        var balances: [Int64] = []
        var quiets: [TimeAmount] = []
        var patience = TimeAmount.zero
        var ended: [TestRun.Ended] = []
        var stop: (reason: StopReason, phase: RunPhase)?
        var looks = 0
    }

    private let state = Mutex(State())

    var phases: [RunPhase] { self.state.withLock(\.phases) }
    /// The length of each phase, by the intervals.
    var spans: [RunPhase: TimeAmount] { self.state.withLock(\.spans) }
    var samples: [Int] { self.state.withLock(\.samples) }
    var balances: [Int64] { self.state.withLock(\.balances) }
    var quiets: [TimeAmount] { self.state.withLock(\.quiets) }
    /// The counts of each shard at the end.
    var ended: [TestRun.Ended] { self.state.withLock(\.ended) }

    func stopWith(_ reason: StopReason, in phase: RunPhase) { self.state.withLock { $0.stop = (reason, phase) } }

    func note(_ ended: TestRun.Ended) { self.state.withLock { $0.ended.append(ended) } }

    func completes(atLook look: Int) { self.state.withLock { $0.looks = look } }
    func completes(afterQuiet patience: TimeAmount) { self.state.withLock { $0.patience = patience } }

    func interval(
        second: Int,
        phase: RunPhase,
        span: TimeAmount,
        groups: consuming [GroupSample<[UInt64]>]
    ) async -> StopReason? {
        let samples = groups[0].samples.count
        return self.state.withLock { state in
            if state.phases.last != phase { state.phases.append(phase) }
            state.spans[phase] = state.spans[phase, default: .zero] + span
            state.samples.append(samples)
            return state.stop.flatMap { $0.phase == phase ? $0.reason : nil }
        }
    }

    func isComplete(_ balance: DeliveryBalance, of group: Int, quiet: TimeAmount) async -> Bool {
        self.state.withLock { state in
            state.balances.append(balance.expected)
            state.quiets.append(quiet)
            return state.balances.count >= state.looks && quiet >= state.patience
        }
    }
}
