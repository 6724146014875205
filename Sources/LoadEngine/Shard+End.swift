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

    /// In the drain: a client is away, and comes back by itself.
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
        return ShardFacts(
            shard: self.clients.loop,
            isLoading: self.phase == .loading,
            live: self.live,
            lastGone: self.lastGone.at,
            lastIsAbsent: self.lastGone.isAbsence,
            awaitsAbsentees: self.live == 0 && self.awaitsAbsentees,
            settled: self.settled,
            failedOperators: self.failedOperators,
            failedListeners: self.failedListeners,
            everUp: self.everUp,
            connectsBegun: self.connectsBegun,
            lastConnectBegun: self.lastConnectBegun,
            offered: self.offered,
            late: self.late,
            workWaited: waiting,
            worstLag: self.worstLag,
            returnShare: self.returnShare,
            isQuiet: self.isQuiet,
            awaitsReturn: self.awaitsReturn,
            balance: self.work?.balance ?? DeliveryBalance()
        )
    }
}

/// A shard's state at one moment, for the run's own eyes.
package struct ShardFacts: Hashable, Sendable {
    package var shard: Int
    package var isLoading: Bool
    package var live: Int
    /// When the last connection was lost, or a return failed.
    package var lastGone: NIODeadline
    /// Its client is away by plan, for a time.
    package var lastIsAbsent: Bool
    /// No client is connected, and some of them are absent by plan.
    package var awaitsAbsentees: Bool
    package var settled: Int
    /// Clients that did not come up at first.
    package var failedOperators: Int
    package var failedListeners: Int
    /// Clients that were up at some time.
    package var everUp: Int
    package var connectsBegun: Int
    package var lastConnectBegun: NIODeadline
    package var offered: UInt64
    package var late: UInt64
    /// Whether clients that could send had to wait for the loop since the last look.
    package var workWaited: Bool
    package var worstLag: TimeAmount
    /// The lowest share of the plan's connect rate that returning clients kept; 1 if none was late.
    package var returnShare: Double
    /// In the drain, of operators that receive as well: all have sent what was due, and have their answers.
    package var isQuiet: Bool
    /// In the drain: a client that is away comes back by itself, and its messages with it.
    package var awaitsReturn: Bool
    package var balance: DeliveryBalance
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
