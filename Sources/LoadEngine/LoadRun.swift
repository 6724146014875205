package import NIOCore

/// Leads the shards of one or more groups through connect, warm-up, measure and drain.
///
/// Shards keep the exact times themselves; the run only orders the next phase, for all groups at once.
package actor LoadRun<Observer: RunObserver> {
    private var groups: [GroupState<Observer.Sample>]
    private let events: AsyncStream<RunEvent>
    private let send: AsyncStream<RunEvent>.Continuation
    private let observer: Observer
    private let clock: any RunClock
    private let patience: TimeAmount
    private let startAt: NIODeadline?
    private let awaitOthers: (@Sendable () -> Void)?
    private var awaitsOthers = false

    private var phase = RunPhase.connect
    private var began: NIODeadline
    private var lastSample: NIODeadline
    private var loadBegan: NIODeadline?
    private var measured: Range<NIODeadline>?
    private var stop: StopReason?
    private var drainDeadline: NIODeadline?
    private var drainEnded = false
    private var wasAborted = false
    private var soon = NIODeadline.distantPast
    private var tick: Int64 = 0
    /// The current stage of the plan.
    private var stage = 0

    /// Makes a run; nothing happens before ``perform()``.
    ///
    /// - Parameters:
    ///   - groups: at least one.
    ///   - events: the shards report there, and a stop of the run arrives there.
    ///   - patience: how long a run without any connection continues at least, if clients reconnect by themselves.
    ///   - startAt: when the first connect is due, if that is to come; `nil`: at once.
    ///   - awaitOthers: called once, when the load could begin; it then begins with ``RunEvent/begin(at:)``. `nil`: the
    ///     run waits for no other process.
    ///   - clock: what the run's seconds and waits are counted by; the shards' loops have to go by the same.
    ///   - observer: called once a second.
    package init(
        groups: [LoadGroup<Observer.Sample>],
        events: (stream: AsyncStream<RunEvent>, continuation: AsyncStream<RunEvent>.Continuation),
        patience: TimeAmount = .seconds(10),
        startAt: NIODeadline? = nil,
        awaitOthers: (@Sendable () -> Void)? = nil,
        clock: any RunClock = SystemRunClock(),
        observer: Observer
    ) {
        precondition(!groups.isEmpty, "a run has clients")
        precondition(groups.allSatisfy { $0.plan.times == groups[0].plan.times }, "a run has one timeline")
        self.groups = groups.map { GroupState($0) }
        self.events = events.stream
        self.send = events.continuation
        self.patience = patience
        self.startAt = startAt
        self.awaitOthers = awaitOthers
        self.observer = observer
        self.clock = clock
        self.began = clock.now
        self.lastSample = clock.now
    }

    /// The times of all groups.
    private var plan: LoadPlan { self.groups[0].plan }

    package func perform() async -> RunOutcome {
        self.began = max(self.clock.now + .milliseconds(5), self.startAt ?? .distantPast)
        self.lastSample = self.began
        await self.observer.begins(at: self.began)
        self.tellAll(.startConnecting(at: self.began))
        self.awaitTick()
        if !self.groups.contains(where: \.plan.waitsForConnects) { self.startLoad() }
        for await event in self.events {
            await self.handle(event)
            if self.groups.allSatisfy(\.isFinished) { break }
        }
        await self.sample()
        var outcome = RunOutcome(
            began: self.began,
            ended: self.clock.now,
            stop: self.stop ?? .planned,
            groups: self.groups.map(\.outcome)
        )
        outcome.loadBegan = self.loadBegan
        outcome.measured = self.measured
        outcome.stages = self.stages
        outcome.wasAborted = self.wasAborted
        return outcome
    }

    private func handle(_ event: RunEvent) async {
        switch event {
        case .shard(let event, let group): await self.handle(event, group)
        case .tick:
            self.awaitTick()
            await self.sample()
            await self.look()
        case .look: await self.look()
        case .begin(let origin):
            // The others may not wait for the last clients of this process.
            guard self.awaitOthers != nil, self.loadBegan == nil else { return }
            await self.sample()
            self.startLoad(at: origin)
        case .stop(let reason):
            // Where a signal is the load's regular end, a second one is not.
            await self.endLoad(self.stop != nil && reason == .planned ? .interrupted : reason)
        case .endLoad(let reason): if self.stop == nil { await self.endLoad(reason) }
        case .abort:
            await self.endLoad(.interrupted)
            self.abort()
        }
    }

    private func handle(_ event: ShardEvent, _ group: Int) async {
        switch event {
        case .settled(_, let up):
            self.groups[group].up += up
            self.groups[group].settledShards += 1
            guard self.groups[group].isSettled else { return }
            // A group that was stopped before has not failed. A first connect is retried until it is settled, so a
            // group without any connection stays so.
            if self.stop == nil { self.groups[group].loss = await self.groups[group].lossOfConnects() }
            await self.checkSettled()
        case .spent:
            self.groups[group].spentShards += 1
            await self.checkSpent()
        case .deserted:
            await self.look()
        case .operatorsFinished:
            self.groups[group].operatorsGone += 1
            await self.look()
        case .finished:
            self.groups[group].finishedShards += 1
        }
    }

    /// Ends the load when all active operators have spent their limits, and the time of the last operation is over.
    private func checkSpent() async {
        let operating = self.groups.filter(\.operates)
        // A segment without operators of its own has spent nothing.
        guard self.stop == nil, operating.contains(where: { $0.spentShards > 0 }), operating.allSatisfy(\.isSpent)
        else { return }
        let paced = operating.compactMap(\.plan.pacedEnd).max()
        if let end = paced.flatMap({ time in self.loadBegan.map { $0 + time } }) {
            guard self.clock.now >= end else { return self.lookAt(end) }
            // Rates are over the time in which operations were due.
            if let measured = self.measured, operating.allSatisfy({ $0.plan.pacedEnd != nil }) {
                self.measured = measured.clamped(to: measured.lowerBound..<max(measured.lowerBound, end))
            }
        }
        await self.endLoad(.planned)
    }

    /// Begins the load when every group that it waits for has settled; without any connected client there is no load.
    private func checkSettled() async {
        guard self.stop == nil else { return self.lookSoon() }
        if let loss = self.groups[0].loss, self.groups.allSatisfy({ $0.loss != nil }) {
            await self.endLoad(loss)
        } else if self.groups.allSatisfy({ $0.isSettled && $0.plan.endsWithConnects }) {
            await self.endLoad(.planned)
        } else if self.groups.allSatisfy({ $0.isSettled || !$0.plan.waitsForConnects }), self.loadBegan == nil {
            guard let awaitOthers = self.awaitOthers else {
                await self.sample()
                return self.startLoad()
            }
            guard !self.awaitsOthers else { return }
            self.awaitsOthers = true
            awaitOthers()
        }
    }

    private func startLoad(at others: NIODeadline = .distantPast) {
        guard self.loadBegan == nil, self.stop == nil else { return }
        // If the load is the connects, they have begun already.
        let isUnderWay = self.groups.allSatisfy(\.plan.endsWithConnects)
        let origin = isUnderWay ? self.began : max(others, self.clock.now + Self.lead)
        self.loadBegan = origin
        let start = origin + self.plan.warmup
        self.measured = start..<(self.plan.measure.map { start + $0 } ?? .distantFuture)
        self.tellAll(.startLoad(at: origin))
        for stage in self.plan.stages.dropFirst() { self.lookAt(origin + stage.start) }
        // A wait for others belongs to the connect phase.
        let isNear = origin <= self.clock.now + Self.lead
        if isNear { self.phase = self.firstPhase } else { self.lookAt(origin - Self.lead) }
        if self.plan.warmup > .zero { self.lookAt(start) }
        if let end = self.plan.measure.map({ start + $0 }) { self.lookAt(end) }
    }

    /// The begin is so far ahead that every loop learns of it before the first operation is due.
    private static var lead: TimeAmount { .milliseconds(20) }

    private var firstPhase: RunPhase {
        (self.plan.stages.first?.isMeasured ?? (self.plan.warmup == .zero)) ? .measure : .warmup
    }

    private func endLoad(_ reason: StopReason) async {
        guard self.stop == nil else {
            // A stop during the drain ends it, and what the drain waited for stays open.
            if reason == .interrupted || reason == .ordered {
                self.drainDeadline = self.clock.now
                if self.stop == .planned { self.stop = reason }
            }
            return self.lookSoon()
        }
        self.stop = reason == .planned ? await self.checkUnsettled() ?? reason : reason
        let now = self.clock.now
        let end = min(now, self.measured?.upperBound ?? now)
        await self.sample()
        self.phase = .drain
        if let measured = self.measured {
            self.measured = end > measured.lowerBound ? measured.lowerBound..<end : nil
        }
        self.tellAll(.endLoad(at: end))
        let deadline = now + (self.isHopeless ? .zero : self.plan.drain)
        self.drainDeadline = deadline
        self.lookAt(deadline)
        self.lookSoon()
    }

    /// The reason if all groups have failed when the time is over.
    ///
    /// First connects may still be tried then: a group none of whose clients ever came up has failed.
    private func checkUnsettled() async -> StopReason? {
        for group in self.groups.indices where !self.groups[group].isSettled && self.groups[group].loss == nil {
            let facts = await self.groups[group].facts()
            let hasTried = facts.contains { $0.connectsBegun > 0 } && facts.allSatisfy { $0.everUp == 0 }
            self.groups[group].loss = hasTried ? .everyConnectFailed : nil
        }
        return self.groups.allSatisfy { $0.loss != nil } ? self.groups[0].loss : nil
    }

    /// A stage's last interval ends with it.
    private func checkStage(_ now: NIODeadline) async {
        guard self.stop == nil, let origin = self.loadBegan else { return }
        let begun = self.plan.stages.lastIndex { origin + $0.start <= now } ?? 0
        guard begun > self.stage else { return }
        self.stage = begun
        await self.sample()
        self.phase = self.plan.stages[begun].isMeasured ? .measure : .warmup
    }

    /// When the stages were that have begun.
    private var stages: [Range<NIODeadline>] {
        guard let origin = self.loadBegan, let end = self.measured?.upperBound else { return [] }
        return self.plan.stages.map { origin + $0.start..<origin + $0.end }.filter { $0.lowerBound < end }
            .map { $0.lowerBound..<min($0.upperBound, end) }
    }

    private var isHopeless: Bool {
        switch self.stop {
        case .everyConnectFailed, .everyOperatorFailed, .everyListenerFailed, .everyConnectionLost: true
        case .planned, .interrupted, .ordered, .thresholdBroken, nil: false
        }
    }

    /// Checks conditions that no event reports: whether time is up, all connections are gone, or the listeners have
    /// received everything.
    private func look() async {
        let now = self.clock.now
        if self.phase == .connect, self.stop == nil, let origin = self.loadBegan, now + Self.lead >= origin {
            await self.sample()
            self.phase = self.firstPhase
        }
        await self.checkStage(now)
        if self.plan.stages.isEmpty, self.phase == .warmup, let start = self.measured?.lowerBound, now >= start {
            await self.sample()
            self.phase = .measure
        }
        if self.stop == nil, let end = self.measured?.upperBound, now >= end { await self.endLoad(.planned) }
        if self.stop == nil { await self.checkDeserted(now) }
        await self.checkSpent()
        guard let deadline = self.drainDeadline else { return }
        if now >= deadline, !self.drainEnded {
            self.drainEnded = true
            for group in self.groups.indices {
                self.groups[group].listenersTold = true
                self.groups[group].operatorsReleased = true
            }
            self.tellAll(.endDrain)
            self.lookAt(deadline + self.plan.closeGrace)
        }
        for exchange in self.exchanges {
            await self.checkOperators(exchange)
            await self.checkListeners(exchange)
        }
        if now >= deadline + self.plan.closeGrace { self.abort() }
    }

    /// The groups that receive each other's messages, by their places; each set is named by its first group.
    private var exchanges: [[Int]] {
        var sets: [[Int]] = []
        for (place, state) in self.groups.enumerated() {
            let known = sets.firstIndex { set in
                state.group.exchange != nil && self.groups[set[0]].group.exchange == state.group.exchange
            }
            if let known { sets[known].append(place) } else { sets.append([place]) }
        }
        return sets
    }

    /// The sum over all shards of a set of groups, whether none of them has an open operation, and whether none of their
    /// clients is to come back.
    private func balance(of exchange: [Int]) async -> (sum: DeliveryBalance, isQuiet: Bool, areThere: Bool) {
        var (sum, isQuiet, areThere) = (DeliveryBalance(), true, true)
        for group in exchange {
            let facts = await self.groups[group].facts()
            for fact in facts { sum += fact.balance }
            areThere = areThere && !facts.contains(where: \.awaitsReturn)
            if self.groups[group].plan.operatorsListen { isQuiet = isQuiet && facts.allSatisfy(\.isQuiet) }
        }
        return (sum, isQuiet, areThere)
    }

    /// Operators that also receive stay until no operation is open on any shard and all deliveries have arrived.
    private func checkOperators(_ exchange: [Int]) async {
        let staying = exchange.filter {
            self.groups[$0].plan.operatorsListen && !self.groups[$0].operatorsReleased
        }
        guard !staying.isEmpty, !self.drainEnded else { return }
        // The others have sent everything when they are gone.
        let areOthersGone = exchange.allSatisfy {
            self.groups[$0].plan.operatorsListen || self.groups[$0].areOperatorsGone
        }
        let (balance, isQuiet, areThere) = await self.balance(of: exchange)
        let quiet = self.quiet(exchange[0], balance, isOver: areOthersGone && isQuiet && areThere)
        if areOthersGone, isQuiet, await self.observer.isComplete(balance, of: exchange[0], quiet: quiet) {
            for group in staying {
                self.groups[group].operatorsReleased = true
                self.groups[group].tellAll(.releaseOperators)
            }
        } else {
            self.lookSoon()
        }
    }

    /// Listeners disconnect when all deliveries of the groups' operators have arrived.
    private func checkListeners(_ exchange: [Int]) async {
        let waiting = exchange.filter { !self.groups[$0].listenersTold }
        guard !waiting.isEmpty, exchange.allSatisfy({ self.groups[$0].areOperatorsGone }) else { return }
        let (balance, _, areThere) = await self.balance(of: exchange)
        let quiet = self.quiet(exchange[0], balance, isOver: areThere)
        if await self.observer.isComplete(balance, of: exchange[0], quiet: quiet) {
            for group in waiting {
                self.groups[group].listenersTold = true
                self.groups[group].tellAll(.finishListeners)
            }
        } else {
            self.lookSoon()
        }
    }

    /// How long nothing has come to an exchange since all its messages were sent and all its clients were there.
    private func quiet(_ exchange: Int, _ balance: DeliveryBalance, isOver: Bool) -> TimeAmount {
        let now = self.clock.now
        let since = self.groups[exchange].sentSince ?? now
        self.groups[exchange].sentSince = isOver ? since : nil
        return isOver ? now - max(since, balance.lastArrival) : .zero
    }

    /// Records a group without clients; when all groups are without clients, the run ends.
    private func checkDeserted(_ now: NIODeadline) async {
        guard self.groups.allSatisfy(\.isSettled) else { return }
        for group in self.groups.indices where self.groups[group].up > 0 {
            let facts = await self.groups[group].facts()
            // Shards end the load by their own clocks: without connections then, they are only done.
            if let end = self.measured?.upperBound, self.clock.now >= end { return }
            guard facts.allSatisfy({ $0.live == 0 }), !facts.areAwayByPlan else {
                self.groups[group].emptySince = nil
                if self.groups[group].loss == .everyConnectionLost { self.groups[group].loss = nil }
                continue
            }
            let since = self.groups[group].emptySince ?? now
            self.groups[group].emptySince = since
            let patience = max(self.patience, self.groups[group].group.returnTime)
            if !self.groups[group].group.reconnects || now >= since + patience {
                self.groups[group].loss = .everyConnectionLost
            }
        }
        if self.groups.contains(where: { $0.loss == .everyConnectionLost }), self.groups.allSatisfy({ $0.loss != nil })
        {
            await self.endLoad(.everyConnectionLost)
        } else if self.groups.contains(where: { $0.loss != nil }) {
            // Operations that these clients still owe are no longer awaited.
            await self.checkSpent()
        }
    }

    private func abort() {
        guard !self.wasAborted else { return }
        self.wasAborted = true
        self.tellAll(.abort)
    }

    private func sample() async {
        var samples: [GroupSample<Observer.Sample>] = []
        for place in self.groups.indices {
            let sample = await self.groups[place].sample()
            self.groups[place].everUp = sample.facts.reduce(0) { $0 + $1.everUp }
            samples.append(sample)
        }
        let now = self.clock.now
        let second = Int(max(0, (self.lastSample - self.began).nanoseconds) / 1_000_000_000)
        let span = now - self.lastSample
        self.lastSample = now
        let stop = await self.observer.interval(second: second, phase: self.phase, span: span, groups: samples)
        if let stop { self.send.yield(.stop(stop)) }
    }

    private func tellAll(_ order: ShardOrder) {
        for group in self.groups { group.tellAll(order) }
    }

    /// Requests one look, however many events ask for it.
    private func lookSoon() {
        let now = self.clock.now
        guard now >= self.soon else { return }
        self.soon = now + .milliseconds(20)
        self.lookAt(self.soon)
    }

    /// A look at a time of the plan; nothing depends on how late it comes, see ``look()``.
    private func lookAt(_ time: NIODeadline) { self.clock.wake(at: time) { [send = self.send] in send.yield(.look) } }

    /// The run's own second hand: shards keep the exact times, and the span of each sample is measured.
    private func awaitTick() {
        self.tick += 1
        self.clock.wake(at: self.began + .seconds(self.tick)) { [send = self.send] in send.yield(.tick) }
    }
}
