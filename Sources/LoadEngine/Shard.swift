package import LoopContext
package import NIOCore

/// The clients of one event loop: brings them up at the plan's pace, says when each operation is due, and hands
/// what is due to the workload, one write per client and turn.
///
/// One per event loop, confined to it. 32 bytes a client.
package final class Shard<Work: ShardWork> {
    package enum Phase: Hashable, Sendable {
        case idle
        case connecting
        case loading
        /// Nothing more becomes due; what is due is sent, and answers are awaited.
        case draining
        case finished
    }

    private struct ClientPace {
        /// Operations handed to the workload.
        var sent: UInt64 = 0
        /// Operations that became due; unused in closed loop.
        var due: UInt64 = 0
        var ableSince = NIODeadline.distantPast
        var isReady = false
        var isSettled = false
        var isUp = false
        var isFinishing = false
        var isFinished = false
        /// Not connected, and not coming back by itself.
        var isGone = false
        /// Closed loop: its part of the limit is sent, or never will be.
        var isSpent = false
    }

    package let context: LoopContext
    package let plan: LoadPlan
    package let clients: ShardClients
    package private(set) var phase = Phase.idle
    /// Clients connected at this moment; the run compares it with what the workload counts.
    package private(set) var live = 0
    /// Operations that became due.
    package var offered: UInt64 { self.offeredCount }
    /// Operations sent, or given up, over a second after their client could send them.
    package private(set) var late: UInt64 = 0
    package private(set) var connectsBegun = 0
    package private(set) var lastConnectBegun = NIODeadline.distantPast
    package private(set) var measured = NIODeadline.distantFuture..<NIODeadline.distantFuture
    /// The workload, given once, before anything starts.
    package var work: Work? {
        didSet { precondition(oldValue == nil, "a shard has one workload") }
    }

    /// How long sockets wait while there is something to send.
    private static var pumpBudget: TimeAmount { .microseconds(200) }
    /// How long sockets have when the plan is behind.
    private static var respite: TimeAmount { .microseconds(100) }

    // What is counted per operation is private: a property that other modules see is checked for exclusive access.
    private var offeredCount: UInt64 = 0
    private let report: (ShardEvent) -> Void
    private let paces: UnsafeMutableBufferPointer<ClientPace>
    private var ready: [Int32] = []
    private var readyHead = 0
    private var pumpIsScheduled = false
    private var schedule: ShardSchedule?
    private var origin = NIODeadline.distantFuture
    private var hasBegun = false
    private var wakeDue = NIODeadline.distantFuture
    private var loadEnd: NIODeadline?
    private var settled = 0
    private var wentUp = 0
    private var spentOperators = 0
    private var openOperators: Int
    private var openClients: Int
    // Connects
    private var connectOrigin = NIODeadline.distantFuture
    private var nextConnect = 0
    private var pendingConnects = 0
    private var listenersMayFinish = false
    private var isWaiting = false
    private var isMeasuring = false
    private var worstLag = TimeAmount.zero

    package init(
        context: LoopContext,
        plan: LoadPlan,
        index: Int,
        of shards: Int,
        report: @escaping (ShardEvent) -> Void
    ) {
        self.context = context
        self.plan = plan
        self.clients = ShardClients(plan, shard: index, of: shards)
        self.report = report
        self.paces = .allocate(capacity: self.clients.count)
        self.paces.initialize(repeating: ClientPace())
        self.openOperators = self.clients.operators
        self.openClients = self.clients.count
        if case .open(let pace) = plan.pace, plan.operators > 0 {
            let schedule = OperationSchedule(pace: pace, clients: plan.operators, limit: plan.limit)
            self.schedule = ShardSchedule(schedule, shard: index, of: shards)
        }
        context.timers.setPacing { [unowned self] now in self.pace(now) }
    }

    deinit {
        self.paces.deallocate()
    }

    // MARK: - Commands of the run

    package func startConnecting(at origin: NIODeadline) {
        self.phase = .connecting
        self.connectOrigin = origin
        if self.clients.count == 0 {
            self.report(.settled(shard: self.clients.index, up: 0))
        }
        self.wake(at: origin)
    }

    /// Starts the load: operations become due from `origin` on.
    package func startLoad(at origin: NIODeadline) {
        guard self.phase == .connecting else { return }
        self.phase = .loading
        self.origin = origin
        let start = origin + self.plan.warmup
        self.isMeasuring = false
        self.measured = start..<(self.plan.measure.map { start + $0 } ?? .distantFuture)
        self.loadEnd = self.plan.measure.map { start + $0 }
        for place in 0..<self.clients.operators where self.paces[place].isUp {
            self.able(place, at: self.paces[place].ableSince)
        }
        for place in 0..<self.clients.operators where self.paces[place].isGone || self.owed(place) == 0 {
            self.operatorIsSpent(place)
        }
        self.wake(at: origin)
    }

    /// Ends the load before its time, or with it.
    package func endLoad(at end: NIODeadline) {
        guard self.phase == .loading || self.phase == .connecting else { return }
        if self.phase == .loading { self.becomeDue(before: end) }
        let start = min(self.measured.lowerBound, end)
        self.measured = start..<max(start, min(self.measured.upperBound, end))
        self.phase = .draining
        if self.isMeasuring {
            self.isMeasuring = false
            self.work?.measuring(false)
        }
        self.work?.loadEnded()
        for place in 0..<self.clients.operators { self.checkDrained(place) }
        self.checkFinished()
    }

    /// Lets the listeners close: the run found that nothing more is to come for them, or time is up.
    package func finishListeners() {
        self.listenersMayFinish = true
        for place in self.clients.operators..<self.clients.count { self.finish(place) }
        self.checkFinished()
    }

    /// Gives up what is still due and closes every operator in good order: the drain is over.
    package func endDrain() {
        self.context.refresh()
        for place in 0..<self.clients.operators {
            self.giveUp(place)
            self.finish(place)
        }
    }

    /// Closes whatever is still open, at once.
    package func abort() {
        if self.phase == .loading || self.phase == .connecting { self.endLoad(at: self.context.refresh()) }
        self.context.refresh()
        self.listenersMayFinish = true
        for place in 0..<self.clients.count where !self.paces[place].isFinished {
            self.giveUp(place)
            self.paces[place].isFinishing = true
            self.work?.abort(place)
        }
    }

    // MARK: - Facts from the workload

    /// The client's first connect is over: it is up, or it failed for good.
    ///
    /// A client that is told of as failed once more has given up coming back.
    package func settled(_ place: Int, up: Bool) {
        self.paces[place].isGone = !up
        if !self.paces[place].isSettled {
            self.paces[place].isSettled = true
            self.settled += 1
            self.pendingConnects -= 1
            if up { self.wentUp += 1 }
            if self.settled == self.clients.count {
                self.report(.settled(shard: self.clients.index, up: self.wentUp))
            }
            if case .pending = self.plan.connect, self.nextConnect < self.clients.count {
                self.wake(at: self.context.now)
            }
        }
        if !up { self.isGone(place) }
    }

    /// The client is connected, and may operate from `now` on.
    package func up(_ place: Int, at now: NIODeadline) {
        self.paces[place].isUp = true
        self.paces[place].isGone = false
        self.live += 1
        if self.clients.isOperator(place) {
            self.able(place, at: now)
        } else if self.listenersMayFinish {
            self.finish(place)
        }
    }

    /// The client's connection is gone, for now or for good.
    package func lost(_ place: Int, returns: Bool) {
        guard self.paces[place].isUp else { return }
        self.paces[place].isUp = false
        self.paces[place].isGone = !returns
        self.live -= 1
        if !returns, self.live == 0, self.phase != .finished { self.report(.deserted(shard: self.clients.index)) }
        if !returns { self.isGone(place) }
    }

    /// Nobody waits for what the client would still have to send.
    private func isGone(_ place: Int) {
        if self.phase == .loading { self.operatorIsSpent(place) }
        self.checkDrained(place)
    }

    /// The client could not send, and now it can.
    package func able(_ place: Int, at now: NIODeadline) {
        // Nobody could send before the load began.
        self.paces[place].ableSince = self.phase == .loading ? max(now, self.origin) : now
        switch self.phase {
        case .loading: self.markReady(place)
        case .draining: if !self.checkDrained(place), self.owed(place) > 0 { self.markReady(place) }
        case .idle, .connecting, .finished: break
        }
    }

    /// The client's last connection is closed; nothing more comes from it.
    package func finished(_ place: Int) {
        guard !self.paces[place].isFinished else { return }
        if self.paces[place].isUp { self.lost(place, returns: false) }
        self.paces[place].isFinishing = true
        self.paces[place].isFinished = true
        self.openClients -= 1
        if self.clients.isOperator(place) { self.openOperators -= 1 }
        self.checkFinished()
    }

    /// In the drain: closes the client if nothing of it is open any more.
    @discardableResult
    package func checkDrained(_ place: Int) -> Bool {
        guard self.phase == .draining, self.clients.isOperator(place), !self.paces[place].isFinishing else {
            return false
        }
        if self.paces[place].isGone {
            self.giveUp(place)
        } else {
            guard self.owed(place) == 0, self.work?.isIdle(place) ?? true else { return false }
        }
        self.finish(place)
        return true
    }

    /// The same, for a workload that has just read the client's acknowledgements: what is due leaves at once, in
    /// one write with the answers.
    package func ableInTurn(_ place: Int, at now: NIODeadline) {
        // Nobody could send before the load began.
        self.paces[place].ableSince = self.phase == .loading ? max(now, self.origin) : now
        switch self.phase {
        case .loading where self.hasBegun: self.sendWhatIsDue(place)
        case .loading: self.markReady(place)
        case .draining: if !self.checkDrained(place), self.owed(place) > 0 { self.sendWhatIsDue(place) }
        case .idle, .connecting, .finished: break
        }
    }

    package var isDraining: Bool { self.phase == .draining }
}

// MARK: - Pacing

extension Shard {
    /// Does what has become due, and says when it wants to be called again.
    package func pace(_ now: NIODeadline) -> NIODeadline? {
        if self.wakeDue < .distantFuture, now >= self.wakeDue { self.work?.woke(late: now - self.wakeDue) }
        self.wakeDue = .distantFuture
        var next: NIODeadline?
        func want(_ time: NIODeadline?) {
            guard let time else { return }
            next = next.map { min($0, time) } ?? time
        }
        if self.phase == .connecting || self.phase == .loading { want(self.connectWhatIsDue(now)) }
        if self.phase == .loading {
            if now >= self.origin { self.hasBegun = true } else { want(self.origin) }
            if !self.isMeasuring, now >= self.measured.lowerBound {
                self.isMeasuring = true
                self.work?.measuring(true)
            }
            if !self.isMeasuring { want(self.measured.lowerBound) }
            self.becomeDue(before: min(now + .nanoseconds(1), self.loadEnd ?? .distantFuture))
            if let end = self.loadEnd, now >= end {
                self.endLoad(at: end)
            } else {
                want(self.loadEnd)
                if let due = self.schedule?.next?.due { want(self.origin + due) }
            }
        }
        if self.readyHead < self.ready.count { self.pump() }
        // Who is behind would be called again at once, and again, before any socket has its turn.
        if let due = next, due <= self.context.refresh() { next = self.context.now + Self.respite }
        if let next { self.wakeDue = min(self.wakeDue, next) }
        return next
    }

    /// Has ``pace(_:)`` called at that time, or earlier if that was wanted already.
    private func wake(at time: NIODeadline) {
        self.wakeDue = min(self.wakeDue, time)
        self.context.timers.setDue(self.wakeDue)
    }

    private func connectWhatIsDue(_ now: NIODeadline) -> NIODeadline? {
        guard let work = self.work, now >= self.connectOrigin else { return self.connectOrigin }
        switch self.plan.connect {
        case .rate(let perSecond):
            while self.nextConnect < self.clients.count {
                // Connect number k of the run, listeners first, so that they hear from the first message on.
                let number = self.connectNumber(self.nextConnect)
                let due = self.connectOrigin + .nanoseconds(Int64(min(9e18, Double(number) * (1e9 / perSecond))))
                guard due <= now else { return due }
                self.connectNext(work, due: due)
            }
        case .pending(let limit):
            let share = max(1, limit / self.clients.shards)
            while self.nextConnect < self.clients.count, self.pendingConnects < share {
                self.connectNext(work, due: now)
            }
        }
        return nil
    }

    private func connectNext(_ work: Work, due: NIODeadline) {
        let place = self.connectPlace(self.nextConnect)
        self.nextConnect += 1
        self.pendingConnects += 1
        self.connectsBegun += 1
        self.lastConnectBegun = self.context.refresh()
        work.connect(place, due: due)
    }

    private func connectPlace(_ order: Int) -> Int {
        order < self.clients.listeners ? self.clients.operators + order : order - self.clients.listeners
    }

    private func connectNumber(_ order: Int) -> Int {
        let place = self.connectPlace(order)
        let number = self.clients.number(at: place)
        return place < self.clients.operators ? self.plan.listeners + number : number - self.plan.operators
    }

    /// Counts every operation due before `end` as offered.
    private func becomeDue(before end: NIODeadline) {
        guard self.schedule != nil else { return }
        // One by one they keep their order among the clients; beyond a few rounds nobody could keep it.
        var left = max(4_096, 4 * self.clients.operators)
        while left > 0, let next = self.schedule?.next, self.origin + next.due < end {
            self.schedule?.advance()
            self.worstLag = max(self.worstLag, end - (self.origin + next.due))
            self.becomeDue(next.position, count: 1)
            left -= 1
        }
        if left == 0, let counts = self.schedule?.advance(before: end - self.origin) {
            for place in 0..<self.clients.operators {
                let count = counts(place) - self.paces[place].due
                if count > 0 { self.becomeDue(place, count: count) }
            }
        }
        if self.schedule?.next == nil, self.clients.operators > 0, self.spentOperators == 0 {
            self.spentOperators = self.clients.operators
            self.report(.spent(shard: self.clients.index))
        }
    }

    private func becomeDue(_ place: Int, count: UInt64) {
        self.paces[place].due += count
        self.offeredCount += count
        self.work?.offered(place, count: count)
        if self.paces[place].isUp { self.markReady(place) }
    }

    private func owed(_ place: Int) -> UInt64 {
        switch self.plan.pace {
        case .idle: 0
        case .open: self.paces[place].due - self.paces[place].sent
        case .closed:
            self.phase == .loading
                ? (self.plan.limit(ofOperator: self.clients.number(at: place)) ?? .max) - self.paces[place].sent : 0
        }
    }

    private func markReady(_ place: Int) {
        guard !self.paces[place].isReady else { return }
        self.paces[place].isReady = true
        self.ready.append(Int32(truncatingIfNeeded: place))
        self.pumpThisTurn()
    }

    /// Has the pump run behind the events of this turn of the loop.
    private func pumpThisTurn() {
        guard !self.pumpIsScheduled else { return }
        self.pumpIsScheduled = true
        let shard = NIOLoopBound(self, eventLoop: self.context.eventLoop)
        self.context.eventLoop.execute { shard.value.pumpAgain() }
    }

    /// Has the pump run again after the sockets had their turn.
    ///
    /// The task queue would not do: NIO empties it before it looks at a socket, so acknowledgements would wait for
    /// as long as there is something to send.
    private func pumpNextTurn() {
        guard !self.pumpIsScheduled else { return }
        self.pumpIsScheduled = true
        guard let afterSockets = self.context.afterSockets else {
            self.pumpIsScheduled = false
            return self.pumpThisTurn()
        }
        afterSockets { [unowned self] in self.pumpAgain() }
    }

    private func pumpAgain() {
        self.pumpIsScheduled = false
        self.pump()
    }

    /// The turn itself; those that become ready in it join its list.
    private func pump() {
        // Before the load begins those who are ready wait; ``pace(_:)`` calls when it does.
        guard self.phase == .loading && self.hasBegun || self.phase == .draining else { return }
        guard !self.pumpIsScheduled else { return }
        self.pumpIsScheduled = true
        let isDone = self.serveReady()
        self.pumpIsScheduled = false
        guard !isDone else { return }
        self.isWaiting = true
        self.pumpNextTurn()
    }

    /// Serves the clients that may have something to send, until none is left or the sockets have waited long enough.
    ///
    /// A client that cannot send leaves the list and comes back by ``able(_:at:)`` or when its next operation is due.
    ///
    /// - Returns: whether none is left.
    private func serveReady() -> Bool {
        let end = self.context.refresh() + Self.pumpBudget
        while self.readyHead < self.ready.count {
            let place = Int(self.ready[self.readyHead])
            self.readyHead += 1
            guard self.paces[place].isReady else { continue }
            self.sendWhatIsDue(place)
            if self.context.now >= end { break }
        }
        if self.readyHead == self.ready.count {
            self.ready.removeAll(keepingCapacity: true)
            self.readyHead = 0
            return true
        }
        if self.readyHead > 4_096, self.readyHead > self.ready.count / 2 {
            self.ready.removeFirst(self.readyHead)
            self.readyHead = 0
        }
        return false
    }

    private func sendWhatIsDue(_ place: Int) {
        guard let work = self.work else { return }
        self.paces[place].isReady = false
        let owed = self.owed(place)
        let room = work.room(place)
        guard owed > 0, room > 0 else { return }
        let count = Int(min(owed, UInt64(room)))
        let batch = self.batch(place, count: count)
        // Before the write, which may end the connection or free the window at once.
        self.paces[place].sent += UInt64(count)
        if case .closed = self.plan.pace {
            self.offeredCount += UInt64(count)
            work.offered(place, count: UInt64(count))
            if owed == UInt64(count) { self.operatorIsSpent(place) }
        } else {
            self.countLate(batch)
        }
        work.send(place, batch)
        // At QoS 0 no answer comes that would say that it has nothing open any more.
        if owed == UInt64(count), self.phase == .draining { self.checkDrained(place) }
        guard owed > UInt64(count), work.room(place) > 0, self.paces[place].isUp else { return }
        if case .closed = self.plan.pace { self.paces[place].ableSince = self.context.now }
        self.markReady(place)
    }

    private func batch(_ place: Int, count: Int) -> OperationBatch {
        let dues: OperationBatch.Dues
        if let schedule = self.schedule?.schedule {
            dues = .scheduled(schedule, client: self.clients.number(at: place), origin: self.origin)
        } else {
            dues = .whenAble
        }
        return OperationBatch(
            first: self.paces[place].sent,
            count: count,
            ableSince: self.paces[place].ableSince,
            dues: dues,
            measured: self.measured
        )
    }

    private func countLate(_ batch: OperationBatch) {
        self.late += UInt64(batch.count(ableBefore: self.context.now - .seconds(1)))
    }

    private func operatorIsSpent(_ place: Int) {
        guard self.plan.pace == .closed, self.plan.limit != nil else { return }
        guard self.clients.isOperator(place), !self.paces[place].isSpent else { return }
        self.paces[place].isSpent = true
        self.spentOperators += 1
        if self.spentOperators == self.clients.operators { self.report(.spent(shard: self.clients.index)) }
    }
}

// MARK: - The end

extension Shard {
    private func finish(_ place: Int) {
        guard !self.paces[place].isFinishing else { return }
        self.paces[place].isFinishing = true
        self.work?.finish(place)
    }

    private func giveUp(_ place: Int) {
        guard self.clients.isOperator(place) else { return }
        let owed = self.owed(place)
        guard owed > 0, case .open = self.plan.pace else { return }
        var late: UInt64 = 0
        if self.paces[place].isUp, self.work?.room(place) ?? 0 > 0 {
            late = UInt64(self.batch(place, count: Int(owed)).count(ableBefore: self.context.now - .seconds(1)))
        }
        self.late += late
        self.paces[place].sent += owed
        self.work?.notSent(place, count: owed, late: late)
    }

    private func checkFinished() {
        guard self.phase == .draining else { return }
        if self.openOperators == 0 {
            self.openOperators = -1
            self.report(.operatorsFinished(shard: self.clients.index))
        }
        if self.openClients == 0 {
            self.phase = .finished
            self.report(.finished(shard: self.clients.index))
        }
    }

    /// What the run wants to know once a second, apart from the metrics.
    package func takeFacts() -> ShardFacts {
        defer {
            self.isWaiting = false
            self.worstLag = .zero
        }
        return self.facts
    }

    /// The same without a new start for what is counted since the last look.
    package var facts: ShardFacts {
        let isClosed = self.plan.pace == .closed
        var waiting = self.isWaiting || self.readyHead < self.ready.count
        if !isClosed, self.phase == .loading, self.worstLag > .milliseconds(1) { waiting = true }
        return ShardFacts(
            shard: self.clients.index,
            isLoading: self.phase == .loading,
            live: self.live,
            settled: self.settled,
            connectsBegun: self.connectsBegun,
            lastConnectBegun: self.lastConnectBegun,
            offered: self.offered,
            late: self.late,
            workWaited: waiting,
            worstLag: self.worstLag,
            balance: self.work?.balance ?? DeliveryBalance()
        )
    }
}

/// A shard's state at one moment, for the run's own eyes.
package struct ShardFacts: Hashable, Sendable {
    package var shard: Int
    package var isLoading: Bool
    package var live: Int
    package var settled: Int
    package var connectsBegun: Int
    package var lastConnectBegun: NIODeadline
    package var offered: UInt64
    package var late: UInt64
    /// Whether clients that could send had to wait for the loop since the last look.
    package var workWaited: Bool
    package var worstLag: TimeAmount
    package var balance: DeliveryBalance
}
