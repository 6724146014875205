import LoopContext
package import NIOCore

// The end of clients and shard, and the shard's facts for the run.
extension Shard {
    func finish(_ place: Int) {
        guard !self.paces[place].isFinishing else { return }
        self.paces[place].isFinishing = true
        self.work?.finish(place)
    }

    /// Lets operators close that stayed for what was still to come.
    package func releaseOperators() {
        self.operatorsMayFinish = true
        for place in 0..<self.clients.operators { self.checkDrained(place) }
    }

    /// Whether nothing of the client is open.
    func isQuiet(_ place: Int) -> Bool { self.owed(place) == 0 && self.work?.isIdle(place) ?? true }

    /// When the first operation became due that the client owes; `nil` without one, and in closed loop.
    package func oldestOwed(_ place: Int) -> NIODeadline? {
        guard self.clients.isOperator(place), self.owed(place) > 0 else { return nil }
        if let schedule = self.schedule?.schedule {
            return self.batch(place, of: schedule, first: self.paces[place].sent, count: 1).firstDue
        }
        guard let streams = self.streams else { return nil }
        return (0..<streams.schedule.streams).filter { streams.owed(place, $0) > 0 }.map { stream in
            let schedule = streams.schedule.schedule(of: stream)
            return self.batch(place, of: schedule, first: streams.first(place, stream), count: 1).firstDue
        }.min()
    }

    func giveUp(_ place: Int) {
        guard self.clients.isOperator(place) else { return }
        let owed = self.owed(place)
        guard owed > 0, self.schedule != nil || self.streams != nil else { return }
        let canSend = self.paces[place].isUp && self.work?.room(place) ?? 0 > 0
        guard let schedule = self.schedule?.schedule else { return self.giveUpStreams(place, canSend: canSend) }
        let batch = self.batch(place, of: schedule, first: self.paces[place].sent, count: Int(owed))
        self.giveUp(batch, of: place, stream: 0, canSend: canSend)
    }

    func giveUp(_ batch: OperationBatch, of place: Int, stream: Int, canSend: Bool) {
        let late = canSend ? UInt64(batch.count(ableBefore: self.context.now - .seconds(1))) : 0
        self.late += late
        self.paces[place].sent += UInt64(batch.count)
        self.work?.notSent(place, stream: stream, batch, late: late)
    }

    func checkFinished() {
        guard self.phase == .draining else { return }
        if self.openOperators == 0 {
            self.openOperators = -1
            self.report(.operatorsFinished(shard: self.clients.loop))
        }
        if self.openClients == 0 {
            self.phase = .finished
            self.report(.finished(shard: self.clients.loop))
        }
    }

    private var isQuiet: Bool {
        guard self.plan.operatorsListen, self.phase == .draining else { return self.phase == .finished }
        return (0..<self.clients.operators).allSatisfy { place in
            self.paces[place].isFinishing || self.paces[place].isGone || self.isQuiet(place)
        }
    }

    /// Whether a client is away in the drain, and comes back by itself.
    private var awaitsReturn: Bool {
        self.phase == .draining
            && (0..<self.clients.count).contains { place in
                let pace = self.paces[place]
                return pace.isSettled && !pace.isUp && !pace.isGone && !pace.isFinishing
            }
    }

    /// The facts that the run reads once a second, apart from the metrics.
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
        var facts = self.counted
        facts.isLoading = self.phase == .loading
        facts.live = self.live
        facts.awaitsAbsentees = self.live == 0 && self.awaitsAbsentees
        // Where clients sleep, one that is lost while all others do is no end.
        if self.cycles != nil, facts.awaitsAbsentees { facts.lastIsAbsent = true }
        facts.offered = self.offered
        facts.late = self.late
        facts.workWaited = waiting
        facts.worstLag = self.worstLag
        facts.isQuiet = self.isQuiet
        facts.awaitsReturn = self.awaitsReturn
        facts.balance = self.work?.balance ?? DeliveryBalance()
        return facts
    }
}

/// A shard's state at one moment, for the run's own eyes.
package struct ShardFacts: Hashable, Sendable {
    package var shard: Int
    package var isLoading = false
    package var live = 0
    /// When the last connection was lost, or a return failed.
    package var lastGone = NIODeadline.distantPast
    /// Its client is away by plan, for a time.
    package var lastIsAbsent = false
    /// No client is connected, and some of them are absent by plan.
    package var awaitsAbsentees = false
    package var settled = 0
    /// Clients that did not come up at first.
    package var failedOperators = 0
    package var failedListeners = 0
    /// Clients that were up at some time, also those that a later stage brings.
    package var everUp = 0
    package var connectsBegun = 0
    package var lastConnectBegun = NIODeadline.distantPast
    package var offered: UInt64 = 0
    package var late: UInt64 = 0
    /// Whether clients that could send had to wait for the loop since the last look.
    package var workWaited = false
    package var worstLag = TimeAmount.zero
    /// The lowest share of the plan's connect rate that returning clients kept; 1 if none was late.
    package var returnShare = 1.0
    /// Operators that receive as well have sent what was due in the drain, and have their answers.
    package var isQuiet = false
    /// A client that is away in the drain comes back by itself, and its messages with it.
    package var awaitsReturn = false
    package var balance = DeliveryBalance()
}

extension [ShardFacts] {
    /// Whether all clients of a group are disconnected, as planned.
    ///
    /// The last disconnect decides: if it was a loss, the group is not absent by plan.
    var areAwayByPlan: Bool {
        let last = self.map(\.lastGone).max()
        return self.allSatisfy { $0.live == 0 && ($0.lastGone != last || $0.lastIsAbsent) }
            && self.contains(where: \.awaitsAbsentees)
    }
}
