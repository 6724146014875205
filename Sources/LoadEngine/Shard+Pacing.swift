import LoopContext
package import NIOCore

// Operations that become due, and the wake-ups for them.
extension Shard {
    /// Does all work that is due, and returns the time of the next call.
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
            if self.plan.stages.isEmpty {
                if !self.isMeasuring, now >= self.measured.lowerBound {
                    self.isMeasuring = true
                    self.work?.measuring(true)
                }
                if !self.isMeasuring { want(self.measured.lowerBound) }
            } else if self.hasBegun {
                want(self.beginStages(min(now, (self.loadEnd ?? .distantFuture) - .nanoseconds(1))))
            }
            if self.hasBegun, now < self.loadEnd ?? .distantFuture { want(self.sendWhatWasThought(now)) }
            if self.hasBegun, now < self.loadEnd ?? .distantFuture { want(self.departWhatIsDue(now)) }
            if self.hasBegun, now < self.loadEnd ?? .distantFuture { want(self.giveTurns(now)) }
            self.becomeDue(before: min(now + .nanoseconds(1), self.loadEnd ?? .distantFuture))
            want(self.nextPresence)
            if let end = self.loadEnd, now >= end {
                self.endLoad(at: end)
            } else {
                want(self.loadEnd)
                if let due = self.nextDue { want(self.origin + due) }
            }
        }
        if self.phase == .loading || self.phase == .draining { want(self.returnWhatIsDue(now)) }
        if self.readyHead < self.ready.count { self.pump() }
        // A shard that is late would be called again at once, and the sockets would starve.
        if let due = next, due <= self.context.refresh() { next = self.context.now + Self.respite }
        if let next { self.wakeDue = min(self.wakeDue, next) }
        return next
    }

    /// Requests a call of ``pace(_:)`` at that time, unless an earlier one is requested already.
    func wake(at time: NIODeadline) {
        self.wakeDue = min(self.wakeDue, time)
        self.context.timers.setDue(self.wakeDue)
    }

    /// Counts every operation due before `end` as offered, for the clients present at its time.
    func becomeDue(before end: NIODeadline) {
        if !self.presence.isEmpty {
            self.applyCycles(before: end)
            self.applyAttendances(before: end)
        }
        self.offerWhatIsDue(before: end)
    }

    private var nextDue: TimeAmount? { self.schedule?.next?.due ?? self.streams?.schedule.next?.due }

    /// Operations that become due one by one: so they keep their order among the clients.
    ///
    /// After a few rounds the order no longer matters.
    var mostInOrder: Int { max(4_096, 4 * self.clients.operators) }

    ///
    /// `now`: the time from which they are late, if it is not the end.
    func offerWhatIsDue(before end: NIODeadline, now: NIODeadline? = nil) {
        guard self.schedule != nil else { return self.offerStreams(before: end, now: now ?? end) }
        var left = self.mostInOrder
        while left > 0, let next = self.schedule?.next, self.origin + next.due < end {
            self.schedule?.advance()
            self.worstLag = max(self.worstLag, (now ?? end) - (self.origin + next.due))
            self.becomeDue(next.position, stream: 0, count: 1)
            left -= 1
        }
        if left == 0, let counts = self.schedule?.advance(before: end - self.origin) {
            for place in 0..<self.clients.operators {
                let count = counts(place) - self.paces[place].due
                if count > 0 { self.becomeDue(place, stream: 0, count: count) }
            }
        }
        if self.schedule?.next == nil { self.openLoopIsSpent() }
    }

    /// Nothing more becomes due: the limit is spent.
    func openLoopIsSpent() {
        guard self.clients.operators > 0, self.spentOperators == 0 else { return }
        self.spentOperators = self.clients.operators
        self.report(.spent(shard: self.clients.loop))
    }

    func becomeDue(_ place: Int, stream: Int, count: UInt64) {
        self.paces[place].due += count
        var count = count
        // Operations of absent clients keep their numbers.
        let isAway = !self.presence.isEmpty && self.presence[place].isAbsent
        if isAway { count = self.dueWhileAway(place, stream: stream, count: count) }
        guard count > 0 else { return }
        self.offeredCount += count
        self.work?.offered(place, stream: stream, count: count)
        if self.paces[place].isUp, !isAway { self.markReady(place) }
    }

    // MARK: - Bringing the clients up at the plan's pace

    func connectWhatIsDue(_ now: NIODeadline) -> NIODeadline? {
        guard let work = self.work, now >= self.connectOrigin else { return self.connectOrigin }
        switch self.plan.connect {
        case .rate(let perSecond):
            while self.nextConnect < self.connectCount {
                // Connect number k of the run, listeners first, so that they hear from the first message on.
                let number = self.connectNumber(self.nextConnect)
                let due = self.connectOrigin + .nanoseconds(Int64(min(9e18, Double(number) * (1e9 / perSecond))))
                guard due <= now else { return due }
                self.connectNext(work, due: due)
            }
        case .pending(let limit):
            let share = max(1, limit / self.clients.shards)
            while self.nextConnect < self.connectCount, self.pendingConnects < share {
                self.connectNext(work, due: now)
            }
        }
        return nil
    }

    func connectNext(_ work: Work, due: NIODeadline) {
        let place = self.connectPlace(self.nextConnect)
        self.nextConnect += 1
        self.pendingConnects += 1
        self.counted.connectsBegun += 1
        self.counted.lastConnectBegun = self.context.refresh()
        work.connect(place, due: due)
    }

    /// Those who connect before the load begins, or as it does.
    var connectCount: Int { self.firstConnects?.count ?? self.clients.count }

    func connectPlace(_ order: Int) -> Int {
        if let connects = self.firstConnects { return Int(connects[order].place) }
        return order < self.clients.listeners ? self.clients.operators + order : order - self.clients.listeners
    }

    func connectNumber(_ order: Int) -> Int {
        if let connects = self.firstConnects { return connects[order].number }
        let place = self.connectPlace(order)
        let number = self.clients.number(at: place)
        return place < self.clients.operators ? self.plan.listeners + number : number - self.plan.operators
    }
}
