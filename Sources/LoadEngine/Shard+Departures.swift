import LoopContext
import NIOCore

/// The departures of one shard: its part of the churn, the next storm, and the clients waiting to return.
struct ShardDepartures: Sendable {
    let plan: DeparturePlan
    /// The turns of the churn.
    var churn: ClientTurns?
    var nextStorm = 0
    /// The victims of the current storm disconnected so far, over all shards, if they leave one by one.
    var nextRank = 0
    /// Clients without connection, in the order of their return, and the earliest time of it.
    var waiting: [(place: Int32, since: NIODeadline)] = []
    /// The earliest return of clients that are disconnecting, by place, if it is later.
    var absences: [Int32: NIODeadline] = [:]
    var head = 0
    /// The earliest time of the next return, at the plan's connect rate.
    var clock = NIODeadline.distantPast
    /// The due time of the first of those that came back in a row at that rate.
    var rowBegan = NIODeadline.distantPast
    /// Coming back at this moment.
    var pending = 0
    var nextAttendance = 0
    /// Clients that became connected after they were made absent.
    var stragglers: [Int32] = []

    init?(_ plan: LoadPlan, churn: ClientTurns?) {
        guard !plan.departures.isEmpty, plan.clients > 0 else { return nil }
        self.plan = plan.departures
        self.churn = churn
    }

    mutating func compact() {
        guard self.head > 4_096, self.head > self.waiting.count / 2 else { return }
        self.waiting.removeFirst(self.head)
        self.head = 0
    }
}

// Clients that leave by plan, and their way back.
extension Shard {
    /// Disconnects every client whose departure is due.
    ///
    /// - Returns: the time of the next departure.
    func departWhatIsDue(_ now: NIODeadline) -> NIODeadline? {
        guard self.departures != nil else { return nil }
        var left = Self.mostTurns
        while left > 0, let turn = self.departures?.churn?.take(until: now - self.origin) {
            left -= 1
            self.worstLag = max(self.worstLag, now - (self.origin + turn.due))
            self.depart(turn.place, .churn, cuts: self.plan.departures.churn?.cuts ?? false)
        }
        var next = self.departures?.churn?.due.map { self.origin + $0 } ?? .distantFuture
        while let index = self.departures?.nextStorm, index < self.plan.departures.storms.count {
            let storm = self.plan.departures.storms[index]
            guard self.origin + storm.at <= now else {
                next = min(next, self.origin + storm.at)
                break
            }
            if storm.over > .zero {
                let due = self.departOneByOne(index, now)
                next = min(next, due ?? .distantFuture)
                guard due == nil else { break }
            } else {
                for place in self.places(ofStorm: index) {
                    if let until = storm.until { self.departures?.absences[Int32(place)] = self.origin + until }
                    self.depart(place, storm.cause, cuts: storm.cuts)
                }
            }
            self.departures?.nextStorm += 1
        }
        return next == .distantFuture ? nil : next
    }

    /// Disconnects the victims of a storm that are due.
    ///
    /// - Returns: when the next one is due; `nil` after the last.
    private func departOneByOne(_ index: Int, _ now: NIODeadline) -> NIODeadline? {
        let storm = self.plan.departures.storms[index]
        let victims = self.victims(ofStorm: index)
        while let rank = self.departures?.nextRank, rank < victims.count {
            let wait = Double(storm.over.nanoseconds) * Double(rank) / Double(victims.count)
            let due = self.origin + storm.at + .nanoseconds(Int64(wait))
            guard due <= now else { return due }
            self.departures?.nextRank += 1
            if let place = self.clients.place(of: victims.client(rank: rank)) {
                self.depart(place, .storm, cuts: storm.cuts)
            }
        }
        self.departures?.nextRank = 0
        return nil
    }

    /// Counts the victims of storms that the load's end came before.
    func missStorms() {
        while let index = self.departures?.nextStorm, index < self.plan.departures.storms.count {
            let victims = self.victims(ofStorm: index)
            for rank in (self.departures?.nextRank ?? 0)..<max(self.departures?.nextRank ?? 0, victims.count) {
                guard let place = self.clients.place(of: victims.client(rank: rank)) else { continue }
                self.work?.departureMissed(place, self.plan.departures.storms[index].cause)
            }
            self.departures?.nextRank = 0
            self.departures?.nextStorm += 1
        }
    }

    /// With the load every absence ends.
    func endAbsences() {
        self.endAttendances()
        guard let departures = self.departures else { return }
        self.departures?.absences.removeAll()
        let now = self.context.now
        for index in departures.head..<departures.waiting.count where departures.waiting[index].since > now {
            self.departures?.waiting[index].since = now
        }
        if self.waitsToReturn > 0 { self.wake(at: now) }
    }

    private func victims(ofStorm index: Int) -> StormVictims {
        self.plan.departures.victims(ofStorm: index, clients: self.plan.clients, listeners: self.plan.listeners)
    }

    /// The shard's own part of a storm.
    private func places(ofStorm index: Int) -> some Sequence<Int> {
        let victims = self.victims(ofStorm: index)
        let clients = self.clients
        return (0..<clients.count).lazy.filter { victims.contains(clients.number(at: $0)) }
    }

    func depart(_ place: Int, _ cause: DeparturePlan.Cause, cuts: Bool) {
        guard self.paces[place].isUp, !self.paces[place].isFinishing else {
            self.departures?.absences[Int32(place)] = nil
            self.work?.departureMissed(place, cause)
            return
        }
        self.handleLoss(place, returns: true, isAbsence: cause.isAbsence)
        self.work?.depart(place, cause, cuts: cuts)
    }

    /// A departing client's connection is closed: the client may return.
    package func left(_ place: Int) {
        guard self.departures != nil, !self.paces[place].isFinishing, !self.parks(place) else { return }
        self.departures?.compact()
        let now = self.context.refresh()
        let absence = self.departures?.absences.removeValue(forKey: Int32(place)) ?? now
        self.departures?.waiting.append((Int32(truncatingIfNeeded: place), max(now, absence)))
        self.wake(at: self.context.now)
    }

    /// A client's return has ended, in success or failure.
    package func returnEnded(_ place: Int) {
        guard self.paces[place].isReturning else { return }
        if !self.paces[place].isUp { (self.counted.lastGone, self.counted.lastIsAbsent) = (self.context.now, false) }
        self.paces[place].isReturning = false
        self.departures?.pending -= 1
        if self.waitsToReturn > 0 { self.wake(at: self.context.now) }
    }

    /// Whether the plan keeps a client away that has no connection, or connects it at this moment.
    package func isAwayByPlan(_ place: Int) -> Bool {
        let pace = self.paces[place]
        return pace.isReturning || !pace.hasBeenUp && !pace.isGone
            || !self.presence.isEmpty && self.presence[place].isAbsent
    }

    /// Whether a client is absent by plan and its return is not due yet.
    var awaitsAbsentees: Bool {
        guard let departures = self.departures else { return false }
        let now = self.context.eventLoop.now
        return departures.absences.values.contains { $0 > now }
            || departures.waiting[departures.head...].contains { $0.since > now }
            || self.nextPresence != nil && self.presence.contains(where: \.isAbsent)
    }

    var waitsToReturn: Int { self.departures.map { $0.waiting.count - $0.head } ?? 0 }

    /// Reconnects the clients whose return is due.
    ///
    /// - Returns: when the next return is due.
    func returnWhatIsDue(_ now: NIODeadline) -> NIODeadline? {
        while self.waitsToReturn > 0, let departures = self.departures {
            let entry = departures.waiting[departures.head]
            switch self.plan.connect {
            case .rate(let perSecond):
                let nanoseconds = min(9e18, Double(self.clients.shards) * (1e9 / perSecond))
                let step = TimeAmount.nanoseconds(Int64(nanoseconds))
                let due = max(entry.since, departures.clock)
                guard due <= now else { return due }
                if entry.since >= departures.clock { self.departures?.rowBegan = due }
                self.departures?.clock = due + step
                self.departures?.head += 1
                self.comeBack(Int(entry.place), due: due)
                self.noteReturn(due: due)
            case .pending(let limit):
                guard entry.since <= now else { return entry.since }
                guard self.pendingConnects + departures.pending < max(1, limit / self.clients.shards) else {
                    return nil
                }
                self.departures?.head += 1
                self.comeBack(Int(entry.place), due: now)
            }
        }
        self.departures?.waiting.removeAll(keepingCapacity: true)
        self.departures?.head = 0
        return nil
    }

    private func comeBack(_ place: Int, due: NIODeadline) {
        guard !self.paces[place].isFinishing, !self.parks(place), let work = self.work else { return }
        if self.phase == .draining, self.checkDrained(place) { return }
        self.paces[place].isReturning = true
        self.departures?.pending += 1
        work.reconnect(place, due: due)
    }

    /// How much of the plan's rate was kept: the time that a row of returns was to take, by the time that it took.
    private func noteReturn(due: NIODeadline) {
        guard let began = self.departures?.rowBegan, due - began >= .milliseconds(100) else { return }
        let planned = Double((due - began).nanoseconds)
        // A runnable thread may wait this long, whatever the rate.
        let taken = Double((self.context.refresh() - began - .milliseconds(20)).nanoseconds)
        if taken > planned { self.counted.returnShare = min(self.counted.returnShare, planned / taken) }
    }
}
