import LoopContext
import NIOCore

/// Whether a client takes part.
struct Presence {
    var isAbsent = false
    /// Absent, and not connected.
    var isParked = false
    /// Absent by its cycle, and still connected, since it awaits answers.
    var isFallingAsleep = false
    var wasUp = false
}

// How many of the clients take part.
extension Shard {
    /// The places of the clients that an attendance counts.
    var members: Range<Int> { self.plan.operators > 0 ? 0..<self.clients.operators : 0..<self.clients.count }

    private func present(_ count: Int) -> StormVictims {
        self.plan.departures.present(count, operators: self.plan.operators, listeners: self.plan.listeners)
    }

    /// Excludes the clients that are absent at first, before the connects begin.
    func parkAbsentees() {
        let isPresent: (Int) -> Bool
        if let cycle = self.plan.departures.cycle {
            isPresent = { cycle.first(of: $0).turn == 0 }
        } else {
            guard let first = self.plan.departures.attendances.first, first.at == .zero else { return }
            let present = self.present(first.present)
            self.departures?.nextAttendance = 1
            isPresent = { present.contains($0) }
        }
        var order: [(place: Int32, number: Int)] = []
        if self.plan.operators > 0 {
            order = (self.clients.operators..<self.clients.count).map {
                (Int32($0), self.clients.number(at: $0) - self.plan.operators)
            }
        }
        let before = self.plan.operators > 0 ? self.plan.listeners : 0
        // Connect numbers without holes over all shards, so that the plan's rate is kept.
        var number = before
        for member in 0..<(self.plan.operators > 0 ? self.plan.operators : self.plan.listeners)
        where isPresent(member) {
            if let place = self.clients.place(of: member) { order.append((Int32(place), number)) }
            number += 1
        }
        for place in self.members where !isPresent(self.clients.number(at: place)) {
            self.presence[place] = Presence(isAbsent: true, isParked: true)
            self.paces[place].isSettled = true
            self.counted.settled += 1
        }
        self.firstConnects = order
    }

    /// Applies the attendances before `end`: disconnects and returns their clients.
    func applyAttendances(before end: NIODeadline) {
        while let index = self.departures?.nextAttendance, index < self.plan.departures.attendances.count {
            let attendance = self.plan.departures.attendances[index]
            let start = self.origin + attendance.at
            guard start < end else { break }
            self.offerWhatIsDue(before: start)
            self.departures?.nextAttendance += 1
            let present = self.present(attendance.present)
            for place in self.members {
                let isAbsent = !present.contains(self.clients.number(at: place))
                guard isAbsent != self.presence[place].isAbsent else { continue }
                self.presence[place].isAbsent = isAbsent
                isAbsent ? self.leaves(place) : self.returns(place, at: start)
            }
        }
        while let place = self.departures?.stragglers.popLast() {
            if self.presence[Int(place)].isAbsent { self.leaves(Int(place)) }
        }
    }

    /// When the next client comes or goes by an attendance or by its cycle.
    var nextPresence: NIODeadline? {
        if let next = self.cycles?.next { return self.origin + next }
        let attendances = self.plan.departures.attendances
        guard let index = self.departures?.nextAttendance, index < attendances.count else { return nil }
        return self.origin + attendances[index].at
    }

    func leaves(_ place: Int) {
        guard !self.paces[place].isFinishing else { return }
        let cycle = self.plan.departures.cycle
        // Operations that it has not sent are given up.
        if cycle == nil { self.giveUp(place) }
        let cause: DeparturePlan.Cause = cycle == nil ? .inactive : .cycle
        if self.paces[place].isUp {
            self.depart(place, cause, cuts: cycle?.cuts ?? false)
        } else if self.paces[place].isGone {
            self.work?.departureMissed(place, cause)
        }
    }

    func returns(_ place: Int, at time: NIODeadline) {
        // Else it is still up, or about to be closed and then has its way back.
        guard self.presence[place].isParked else { return }
        self.presence[place].isParked = false
        self.departures?.compact()
        self.departures?.waiting.append((Int32(truncatingIfNeeded: place), time))
    }

    /// Keeps a client that has no connection away, if it takes no part.
    func parks(_ place: Int) -> Bool {
        guard !self.presence.isEmpty, self.presence[place].isAbsent else { return false }
        self.presence[place].isParked = true
        self.presence[place].isFallingAsleep = false
        self.departures?.absences[Int32(place)] = nil
        return true
    }

    /// An absent client has reconnected by itself: it disconnects again.
    func noteUp(_ place: Int) {
        self.presence[place].wasUp = true
        guard self.presence[place].isAbsent else { return }
        self.departures?.stragglers.append(Int32(truncatingIfNeeded: place))
        self.wake(at: self.context.now)
    }

    /// At the end of the load all clients return, for their open operations and waiting deliveries.
    func endAttendances() {
        for place in self.presence.indices {
            let wasAbsent = self.presence[place].isAbsent
            self.presence[place].isAbsent = false
            self.presence[place].isFallingAsleep = false
            if wasAbsent, !self.presence[place].isParked { self.sendWhatWaited(place, since: self.context.now) }
            let owes = self.plan.pace != .closed && self.clients.isOperator(place) && self.owed(place) > 0
            guard self.presence[place].isParked, self.presence[place].wasUp || self.plan.operatorsListen || owes else {
                continue
            }
            self.presence[place].isParked = false
            self.departures?.waiting.append((Int32(truncatingIfNeeded: place), self.context.now))
        }
        self.departures?.stragglers.removeAll()
    }
}
