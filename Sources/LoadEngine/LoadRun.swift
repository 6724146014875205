import LoopContext
package import NIOCore

/// A shard as the run holds it: its event loop, and a way to it.
package struct ShardHandle<Work: ShardWork>: Sendable {
    private let eventLoop: any EventLoop
    private let shard: NIOLoopBound<Shard<Work>>

    /// On the shard's event loop.
    package init(_ shard: Shard<Work>) {
        self.eventLoop = shard.context.eventLoop
        self.shard = NIOLoopBound(shard, eventLoop: shard.context.eventLoop)
    }

    /// Gives the shard an order, at a time of its own: the loop's clock may stand where the last socket left it.
    package func tell(_ body: @escaping @Sendable (Shard<Work>) -> Void) {
        self.eventLoop.execute {
            let shard = self.shard.value
            shard.context.refresh()
            body(shard)
        }
    }

    package func ask<Answer: Sendable>(_ body: @escaping @Sendable (Shard<Work>) -> Answer) async -> Answer? {
        try? await self.eventLoop.submit { body(self.shard.value) }.get()
    }
}

package enum RunPhase: String, Hashable, Sendable {
    case connect
    case warmup
    case measure
    case drain
}

package enum StopReason: Hashable, Sendable {
    /// The planned time is over, or the limit is spent.
    case planned
    /// Told from outside, before the plan's end: a signal.
    case interrupted
    /// A threshold that aborts was broken.
    case thresholdBroken
    case everyConnectFailed
    case everyConnectionLost
}

/// What steers a run from outside, and from its shards.
package enum RunEvent: Hashable, Sendable {
    case shard(ShardEvent)
    case tick
    /// Something may have changed that is known by asking only.
    case look
    case stop(StopReason)
    /// The second signal: close everything now.
    case abort
}

/// Who hears of a run while it goes on.
package protocol RunObserver<Work>: Sendable {
    associatedtype Work: ShardWork

    /// A second is over, or a phase: samples and facts of all shards, in the order of the shards.
    ///
    /// - Parameters:
    ///   - second: whole seconds since the run began.
    ///   - phase: the one that the samples belong to.
    ///   - span: what the samples cover.
    ///   - samples: one of each shard.
    ///   - facts: one of each shard.
    /// - Returns: a reason to stop.
    func interval(
        second: Int,
        phase: RunPhase,
        span: TimeAmount,
        samples: [Work.Sample],
        facts: [ShardFacts]
    ) async -> StopReason?

    /// Whether the listeners have everything that must come to them, by the balance of all shards together.
    func isComplete(_ balance: DeliveryBalance) async -> Bool
}

/// When the parts of a run took place.
package struct RunOutcome: Hashable, Sendable {
    package var began: NIODeadline
    /// When the load began; `nil` if it never did.
    package var loadBegan: NIODeadline?
    /// The measured phase.
    package var measured: Range<NIODeadline>?
    package var ended: NIODeadline
    package var stop: StopReason
    package var up: Int
    /// Clients never closed in good order, since the time for it ran out.
    package var wasAborted: Bool
}

/// Leads the shards through connect, warm-up, measure and drain.
///
/// Shards keep the exact times themselves; the run only tells them what happens next.
package actor LoadRun<Observer: RunObserver> {
    package typealias Work = Observer.Work

    private let plan: LoadPlan
    private let shards: [ShardHandle<Work>]
    private let events: AsyncStream<RunEvent>
    private let send: AsyncStream<RunEvent>.Continuation
    private let observer: Observer
    private let reconnects: Bool
    private let patience: TimeAmount

    private var phase = RunPhase.connect
    private var began = NIODeadline.now()
    private var lastSample = NIODeadline.now()
    private var loadBegan: NIODeadline?
    private var measured: Range<NIODeadline>?
    private var stop: StopReason?
    private var drainDeadline: NIODeadline?
    private var up = 0
    private var settledShards = 0
    private var spentShards = 0
    private var operatorsGone = 0
    private var finishedShards = 0
    private var drainEnded = false
    private var listenersTold = false
    private var wasAborted = false
    private var emptySince: NIODeadline?
    private var soon = NIODeadline.distantPast

    /// Makes a run; nothing happens before ``perform()``.
    ///
    /// - Parameters:
    ///   - plan: the same that the shards have.
    ///   - shards: in the order of their numbers.
    ///   - events: where the shards report to, and where the run is told to stop.
    ///   - reconnects: whether clients come back by themselves.
    ///   - patience: how long a run without any connection goes on, if they do.
    ///   - observer: hears of each second.
    package init(
        plan: LoadPlan,
        shards: [ShardHandle<Work>],
        events: (stream: AsyncStream<RunEvent>, continuation: AsyncStream<RunEvent>.Continuation),
        reconnects: Bool,
        patience: TimeAmount = .seconds(10),
        observer: Observer
    ) {
        self.plan = plan
        self.shards = shards
        self.events = events.stream
        self.send = events.continuation
        self.reconnects = reconnects
        self.patience = patience
        self.observer = observer
    }

    package func perform() async -> RunOutcome {
        self.began = NIODeadline.now() + .milliseconds(5)
        self.lastSample = self.began
        let start = self.began
        self.tellAll { $0.startConnecting(at: start) }
        let clock = Task { [send = self.send] in
            // The run's own second hand: shards keep the exact times, and what the samples cover is measured.
            var second: Int64 = 1
            while !Task.isCancelled {
                try? await Task.sleep(for: .nanoseconds((start + .seconds(second) - .now()).nanoseconds))
                send.yield(.tick)
                second += 1
            }
        }
        defer { clock.cancel() }
        if !self.plan.waitsForConnects { self.startLoad() }
        for await event in self.events {
            await self.handle(event)
            if self.finishedShards == self.shards.count { break }
        }
        await self.sample()
        return RunOutcome(
            began: self.began,
            loadBegan: self.loadBegan,
            measured: self.measured,
            ended: .now(),
            stop: self.stop ?? .planned,
            up: self.up,
            wasAborted: self.wasAborted
        )
    }

    private func handle(_ event: RunEvent) async {
        switch event {
        case .shard(let event): await self.handle(event)
        case .tick:
            await self.sample()
            await self.look()
        case .look: await self.look()
        case .stop(let reason): await self.endLoad(reason)
        case .abort:
            await self.endLoad(.interrupted)
            self.abort()
        }
    }

    private func handle(_ event: ShardEvent) async {
        switch event {
        case .settled(_, let up):
            self.up += up
            self.settledShards += 1
            guard self.settledShards == self.shards.count else { return }
            if self.up == 0, self.plan.clients > 0 {
                await self.endLoad(.everyConnectFailed)
            } else if self.plan.waitsForConnects {
                await self.sample()
                self.startLoad()
            }
        case .spent:
            self.spentShards += 1
            // A shard without operators has nothing to spend.
            if self.spentShards == min(self.shards.count, self.plan.operators) { await self.endLoad(.planned) }
        case .deserted:
            await self.look()
        case .operatorsFinished:
            self.operatorsGone += 1
            await self.look()
        case .finished:
            self.finishedShards += 1
        }
    }

    private func startLoad() {
        guard self.loadBegan == nil, self.stop == nil else { return }
        // Far enough ahead that every loop hears of it before the first operation is due.
        let origin = NIODeadline.now() + .milliseconds(20)
        self.loadBegan = origin
        let start = origin + self.plan.warmup
        self.measured = start..<(self.plan.measure.map { start + $0 } ?? .distantFuture)
        self.phase = self.plan.warmup > .zero ? .warmup : .measure
        self.tellAll { $0.startLoad(at: origin) }
        if self.plan.warmup > .zero { self.lookAt(start) }
        if let end = self.plan.measure.map({ start + $0 }) { self.lookAt(end) }
    }

    private func endLoad(_ reason: StopReason) async {
        guard self.stop == nil else {
            // Told to stop in the drain: it is over.
            if reason == .interrupted { self.drainDeadline = .now() }
            return self.lookSoon()
        }
        self.stop = reason
        let now = NIODeadline.now()
        let end = min(now, self.measured?.upperBound ?? now)
        await self.sample()
        self.phase = .drain
        if let measured = self.measured {
            self.measured = end > measured.lowerBound ? measured.lowerBound..<end : nil
        }
        self.tellAll { $0.endLoad(at: end) }
        let deadline = now + (self.isHopeless ? .zero : self.plan.drain)
        self.drainDeadline = deadline
        self.lookAt(deadline)
        self.lookSoon()
    }

    private var isHopeless: Bool { self.stop == .everyConnectFailed || self.stop == .everyConnectionLost }

    /// Asks what no event tells: whether time is up, whether all connections are gone, and whether the listeners
    /// have everything.
    private func look() async {
        let now = NIODeadline.now()
        if self.phase == .warmup, let start = self.measured?.lowerBound, now >= start {
            await self.sample()
            self.phase = .measure
        }
        if self.stop == nil, let end = self.measured?.upperBound, now >= end { await self.endLoad(.planned) }
        if self.stop == nil { await self.checkDeserted(now) }
        guard let deadline = self.drainDeadline else { return }
        if now >= deadline, !self.drainEnded {
            self.drainEnded = true
            self.listenersTold = true
            self.tellAll { shard in
                shard.endDrain()
                shard.finishListeners()
            }
            self.lookAt(deadline + self.plan.closeGrace)
        }
        if self.operatorsGone == self.shards.count, !self.listenersTold {
            let balance = await self.facts().reduce(into: DeliveryBalance()) { $0 += $1.balance }
            if await self.observer.isComplete(balance) {
                self.listenersTold = true
                self.tellAll { $0.finishListeners() }
            } else {
                self.lookSoon()
            }
        }
        if now >= deadline + self.plan.closeGrace { self.abort() }
    }

    private func checkDeserted(_ now: NIODeadline) async {
        guard self.up > 0, self.settledShards == self.shards.count else { return }
        let facts = await self.facts()
        // Shards end the load by their own clocks: without connections then, they are only done.
        if let end = self.measured?.upperBound, NIODeadline.now() >= end { return }
        guard facts.allSatisfy({ $0.live == 0 }) else {
            self.emptySince = nil
            return
        }
        let since = self.emptySince ?? now
        self.emptySince = since
        if !self.reconnects || now >= since + self.patience { await self.endLoad(.everyConnectionLost) }
    }

    private func abort() {
        guard !self.wasAborted else { return }
        self.wasAborted = true
        self.tellAll { $0.abort() }
    }

    private func facts() async -> [ShardFacts] {
        var facts: [ShardFacts] = []
        for shard in self.shards {
            if let fact = await shard.ask({ $0.facts }) { facts.append(fact) }
        }
        return facts
    }

    private func sample() async {
        var samples: [Work.Sample] = []
        var facts: [ShardFacts] = []
        for shard in self.shards {
            let taken = await shard.ask { shard in shard.work.map { ($0.takeSample(), shard.takeFacts()) } }
            guard let pair = taken ?? nil else { continue }
            samples.append(pair.0)
            facts.append(pair.1)
        }
        let now = NIODeadline.now()
        let second = Int(max(0, (self.lastSample - self.began).nanoseconds) / 1_000_000_000)
        let span = now - self.lastSample
        self.lastSample = now
        let stop = await self.observer.interval(
            second: second,
            phase: self.phase,
            span: span,
            samples: samples,
            facts: facts
        )
        if let stop { self.send.yield(.stop(stop)) }
    }

    private func tellAll(_ body: @escaping @Sendable (Shard<Work>) -> Void) {
        for shard in self.shards { shard.tell(body) }
    }

    /// However many events ask for it, one look is on its way.
    private func lookSoon() {
        let now = NIODeadline.now()
        guard now >= self.soon else { return }
        self.soon = now + .milliseconds(20)
        self.lookAt(self.soon)
    }

    /// A look at a time of the plan; nothing depends on how late it comes, see ``look()``.
    private func lookAt(_ time: NIODeadline) {
        Task { [send = self.send] in
            // The clock that sleeps is another one, and may wake a moment too early.
            while case let wait = time - .now(), wait > .zero {
                try? await Task.sleep(for: .nanoseconds(wait.nanoseconds))
            }
            send.yield(.look)
        }
    }
}
