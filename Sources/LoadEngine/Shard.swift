package import LoopContext
package import NIOCore

/// The clients of one event loop: connects them at the plan's pace, determines when each operation is due, and passes
/// due operations to the workload, one write per client and turn.
///
/// One per event loop, confined to it. 32 bytes a client, and 8 more for each stream of a plan with streams.
package final class Shard<Work: ShardWork> {
    package enum Phase: Hashable, Sendable {
        case idle
        case connecting
        case loading
        /// Nothing more becomes due; what is due is sent, and answers are awaited.
        case draining
        case finished
    }

    struct ClientPace {
        /// Operations handed to the workload.
        var sent: UInt64 = 0
        /// Operations that became due; unused in closed loop.
        var due: UInt64 = 0
        var ableSince = NIODeadline.distantPast
        var isReady = false
        var isSettled = false
        var isUp = false
        var hasBeenUp = false
        var isFinishing = false
        var isFinished = false
        /// Not connected, and not coming back by itself.
        var isGone = false
        /// Closed loop: its part of the limit is sent, or never will be.
        var isSpent = false
        /// Left by plan, and connecting again.
        var isReturning = false
    }

    package let context: LoopContext
    package let plan: LoadPlan
    package let clients: ShardClients
    package internal(set) var phase = Phase.idle
    /// Clients connected at this moment; the run compares it with what the workload counts.
    package internal(set) var live = 0
    /// Operations that became due.
    package var offered: UInt64 { self.offeredCount }
    /// Operations sent, or given up, over a second after their client could send them.
    package internal(set) var late: UInt64 = 0
    package internal(set) var measured = NIODeadline.distantFuture..<NIODeadline.distantFuture
    /// The workload, given once, before anything starts.
    package var work: Work? { didSet { precondition(oldValue == nil, "a shard has one workload") } }

    /// How long sockets wait while there is something to send.
    static var pumpBudget: TimeAmount { .microseconds(200) }
    /// The time for sockets when the plan is late.
    static var respite: TimeAmount { .microseconds(100) }

    // Per-operation counters are not `package`: properties visible to other modules are checked for exclusive access.
    var offeredCount: UInt64 = 0
    let report: (ShardEvent) -> Void
    let paces: UnsafeMutableBufferPointer<ClientPace>
    /// Empty where all take part all the time.
    let presence: UnsafeMutableBufferPointer<Presence>
    var ready: [Int32] = []
    var readyHead = 0
    var pumpIsScheduled = false
    /// The schedule of an open loop without streams.
    var schedule: ShardSchedule?
    /// The schedules of a plan with streams.
    var streams: ShardStreams?
    var origin = NIODeadline.distantFuture
    /// When operations begin to become due; the distant future until that is known.
    package var loadBegan: NIODeadline { self.origin }
    var hasBegun = false
    var wakeDue = NIODeadline.distantFuture
    var loadEnd: NIODeadline?
    /// When the drain ended: for its time, or since nothing more was to come.
    package internal(set) var drainEnded: NIODeadline?
    /// The facts that are counted as they happen; ``facts`` adds the others.
    var counted: ShardFacts
    var wentUp = 0
    var spentOperators = 0
    var openOperators: Int
    var operatorsMayFinish: Bool
    var openClients: Int
    // Connects
    var connectOrigin = NIODeadline.distantFuture
    var nextConnect = 0
    /// The clients that connect, and their numbers in the run; `nil`: all.
    var firstConnects: [(place: Int32, number: Int)]?
    var pendingConnects = 0
    var listenersMayFinish = false
    var departures: ShardDepartures?
    var cycles: ShardCycles?
    var turns: ClientTurns?
    var isWaiting = false
    var isMeasuring = false
    var stageTimes: StageTimes?
    var nextStage = 0
    /// The clients that think, in a plan in which they do.
    var thinkers: Thinkers?
    var worstLag = TimeAmount.zero

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
        self.counted = ShardFacts(shard: self.clients.loop)
        self.report = report
        self.paces = .allocate(capacity: self.clients.count)
        self.paces.initialize(repeating: ClientPace())
        self.presence = .allocate(capacity: plan.departures.hasPresence ? self.clients.count : 0)
        self.presence.initialize(repeating: Presence())
        self.openOperators = self.clients.operators
        self.openClients = self.clients.count
        if case .open(let pace) = plan.pace, plan.operators > 0 {
            let schedule = OperationSchedule(pace: pace, clients: plan.operators, limit: plan.limit)
            self.schedule = ShardSchedule(schedule, shard: self.clients.index, of: self.clients.shards, row: plan.row)
        }
        self.streams = ShardStreams(plan, self.clients)
        let clients = self.clients
        let churn = plan.departures.churn.map { ClientTurns(perSecond: $0.perSecond, plan, clients) }
        self.departures = ShardDepartures(plan, churn: churn)
        self.turns = plan.turns.map { ClientTurns(perSecond: $0, plan, clients) }
        if plan.pace == .closed, plan.think > .zero { self.thinkers = Thinkers(clients: self.clients.operators) }
        self.operatorsMayFinish = !plan.operatorsListen
        self.cycles = plan.departures.cycle.map { cycle in
            let members = self.members.map { (place: $0, number: self.clients.number(at: $0)) }
            return ShardCycles(cycle, seed: plan.departures.seed, members: members)
        }
        self.parkAbsentees()
        context.timers.setPacing { [unowned self] now in self.pace(now) }
    }

    deinit {
        self.paces.deallocate()
        self.presence.deallocate()
    }

    // MARK: - Commands of the run

    package func startConnecting(at origin: NIODeadline) {
        self.phase = .connecting
        self.connectOrigin = origin
        if self.connectCount == 0 { self.report(.settled(shard: self.clients.loop, up: 0)) }
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
        self.stageTimes = StageTimes(self.plan, origin: origin)
        if !self.startThinking() {
            for place in 0..<self.clients.operators where self.paces[place].isUp {
                self.markAble(place, at: self.paces[place].ableSince)
            }
        }
        for place in 0..<self.clients.operators where self.paces[place].isGone || self.owed(place) == 0 {
            self.operatorIsSpent(place)
        }
        self.wake(at: origin)
    }

    /// Ends the load before its time, or with it.
    package func endLoad(at end: NIODeadline) {
        guard self.phase == .loading || self.phase == .connecting else { return }
        // In closed loop every operation begun before this order is due in the load, which ends behind the last one.
        let behind = min(self.context.refresh() + .nanoseconds(1), self.loadEnd ?? .distantFuture)
        let end = self.plan.pace == .closed ? max(end, behind) : end
        if self.phase == .loading {
            self.endStages(end)
            self.becomeDue(before: end)
            self.missTurns(before: end)
        }
        self.missStorms()
        self.endAbsences()
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
        self.noteDrainEnd()
        self.listenersMayFinish = true
        for place in self.clients.operators..<self.clients.count { self.finish(place) }
        self.checkFinished()
    }

    private func noteDrainEnd() {
        self.context.refresh()
        if self.drainEnded == nil { self.drainEnded = self.context.now }
    }

    /// Gives up what is still due and closes every operator in good order: the drain is over.
    package func endDrain() {
        self.noteDrainEnd()
        for place in 0..<self.clients.operators {
            self.giveUp(place)
            self.finish(place)
        }
    }

    /// Closes all connections at once.
    package func abort() {
        if self.phase == .loading || self.phase == .connecting { self.endLoad(at: self.context.refresh()) }
        self.noteDrainEnd()
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
    /// A second report of failure means that the client has stopped trying to return.
    package func settled(_ place: Int, up: Bool) {
        self.paces[place].isGone = !up
        self.returnEnded(place)
        if !self.paces[place].isSettled {
            self.paces[place].isSettled = true
            self.counted.settled += 1
            self.pendingConnects -= 1
            if up {
                self.wentUp += 1
            } else if self.clients.isOperator(place) {
                self.counted.failedOperators += 1
            } else {
                self.counted.failedListeners += 1
            }
            if self.counted.settled == self.clients.count {
                self.report(.settled(shard: self.clients.loop, up: self.wentUp))
            }
            // Returning clients share the limit of pending connects with new ones.
            if case .pending = self.plan.connect, self.nextConnect < self.connectCount || self.waitsToReturn > 0 {
                self.wake(at: self.context.now)
            }
        }
        if !up { self.handleGone(place) }
    }

    /// The client is connected, and may operate from `now` on.
    package func up(_ place: Int, at now: NIODeadline) {
        self.paces[place].isUp = true
        if !self.paces[place].hasBeenUp { self.counted.everUp += 1 }
        self.paces[place].hasBeenUp = true
        self.paces[place].isGone = false
        self.live += 1
        if !self.presence.isEmpty { self.noteUp(place) }
        if self.clients.isOperator(place) {
            self.markAble(place, at: now)
        } else if self.listenersMayFinish {
            self.finish(place)
        }
    }

    /// The client's connection is gone, for now or for good.
    package func lost(_ place: Int, returns: Bool) { self.handleLoss(place, returns: returns, isAbsence: false) }

    func handleLoss(_ place: Int, returns: Bool, isAbsence: Bool) {
        guard self.paces[place].isUp else { return }
        (self.counted.lastGone, self.counted.lastIsAbsent) = (self.context.now, isAbsence)
        self.paces[place].isUp = false
        if !self.presence.isEmpty { self.presence[place].isFallingAsleep = false }
        self.paces[place].isGone = !returns
        self.live -= 1
        if !returns, self.live == 0, self.phase != .finished { self.report(.deserted(shard: self.clients.loop)) }
        if !returns { self.handleGone(place) }
    }

    /// Operations that the client still owes are no longer awaited.
    func handleGone(_ place: Int) {
        if self.phase == .loading { self.operatorIsSpent(place) }
        self.checkDrained(place)
    }

    /// The client could not send, and now it can.
    package func markAble(_ place: Int, at now: NIODeadline) {
        if self.isAble(place, at: now) { self.markReady(place) }
    }

    /// Notes since when the client can send; whether it may send at once.
    @inline(__always)
    private func isAble(_ place: Int, at now: NIODeadline) -> Bool {
        // Sending begins with the load, at the earliest.
        self.paces[place].ableSince = self.phase == .loading ? max(now, self.origin) : now
        switch self.phase {
        case .loading:
            guard self.presence.isEmpty || !self.presence[place].isAbsent else {
                self.sleepIfQuiet(place)
                return false
            }
            return !self.thinks(place, from: now)
        case .draining: return !self.checkDrained(place) && self.owed(place) > 0
        case .idle, .connecting, .finished: return false
        }
    }

    /// The client's last connection is closed; no events of it follow.
    package func finished(_ place: Int) {
        guard !self.paces[place].isFinished else { return }
        if self.paces[place].isUp { self.lost(place, returns: false) }
        self.paces[place].isFinishing = true
        self.paces[place].isFinished = true
        self.openClients -= 1
        if self.clients.isOperator(place) { self.openOperators -= 1 }
        self.checkFinished()
    }

    /// During the drain: closes the client if it has no open operation.
    @discardableResult
    package func checkDrained(_ place: Int) -> Bool {
        guard self.phase == .draining, self.clients.isOperator(place), !self.paces[place].isFinishing else {
            return false
        }
        if self.paces[place].isGone {
            self.giveUp(place)
        } else {
            guard self.operatorsMayFinish, self.isQuiet(place) else { return false }
        }
        self.finish(place)
        return true
    }

    /// The same, for a workload that has just read the client's acknowledgements: what is due leaves at once, in
    /// one write with the answers.
    package func markAbleInTurn(_ place: Int, at now: NIODeadline) {
        guard self.isAble(place, at: now) else { return }
        if self.hasBegun || self.phase == .draining { self.sendWhatIsDue(place) } else { self.markReady(place) }
    }

    package var isDraining: Bool { self.phase == .draining }
}
