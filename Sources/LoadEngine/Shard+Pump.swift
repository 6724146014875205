import LoopContext
import NIOCore

// Sending what is due: one pump for all clients of the loop.
extension Shard {
    func owed(_ place: Int) -> UInt64 {
        switch self.plan.pace {
        case .idle: 0
        case .open, .streams: self.paces[place].due - self.paces[place].sent
        // Nothing becomes due when the load is over, however late its timer fires.
        case .closed:
            self.phase == .loading && self.paces[place].ableSince < self.loadEnd ?? .distantFuture
                ? (self.plan.limit(ofOperator: self.clients.number(at: place)) ?? .max) - self.paces[place].sent : 0
        }
    }

    func markReady(_ place: Int) {
        guard !self.paces[place].isReady else { return }
        self.paces[place].isReady = true
        self.ready.append(Int32(truncatingIfNeeded: place))
        self.pumpThisTurn()
    }

    /// Runs the pump after the events of this turn of the loop.
    func pumpThisTurn() {
        guard !self.pumpIsScheduled else { return }
        self.pumpIsScheduled = true
        let shard = NIOLoopBound(self, eventLoop: self.context.eventLoop)
        self.context.eventLoop.execute { shard.value.pumpAgain() }
    }

    /// Has the pump run again after the sockets had their turn.
    ///
    /// The task queue would not do: NIO empties it before it looks at a socket, so acknowledgements would wait for
    /// as long as there is something to send.
    func pumpNextTurn() {
        guard !self.pumpIsScheduled else { return }
        self.pumpIsScheduled = true
        guard let afterSockets = self.context.afterSockets else {
            self.pumpIsScheduled = false
            return self.pumpThisTurn()
        }
        afterSockets { [unowned self] in self.pumpAgain() }
    }

    func pumpAgain() {
        self.pumpIsScheduled = false
        self.pump()
    }

    /// The turn itself; those that become ready in it join its list.
    func pump() {
        // Ready clients wait until the load begins; ``pace(_:)`` calls again then.
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
    /// A client that cannot send leaves the list, and returns by ``able(_:at:)`` or when its next operation is due.
    ///
    /// - Returns: whether none is left.
    func serveReady() -> Bool {
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

    func sendWhatIsDue(_ place: Int) {
        guard let work = self.work else { return }
        self.paces[place].isReady = false
        guard self.presence.isEmpty || !self.presence[place].isAbsent else { return }
        let owed = self.owed(place)
        let room = work.room(place)
        guard owed > 0, room > 0 else { return }
        let count = Int(min(owed, UInt64(room)))
        let batch = self.takeBatch(place, count: count)
        // Before the write, which may end the connection or free the window at once.
        self.paces[place].sent += UInt64(count)
        if case .closed = self.plan.pace {
            self.offeredCount += UInt64(count)
            work.offered(place, stream: 0, count: UInt64(count))
            if owed == UInt64(count) { self.operatorIsSpent(place) }
        } else {
            self.countLate(batch)
        }
        work.send(place, batch)
        // At QoS 0 no answer reports that the client has no open operation.
        if owed == UInt64(count), self.phase == .draining { self.checkDrained(place) }
        guard owed > UInt64(count), work.room(place) > 0, self.paces[place].isUp else { return }
        if case .closed = self.plan.pace {
            if self.thinks(place, from: self.context.now) { return }
            self.paces[place].ableSince = self.context.now
        }
        self.markReady(place)
    }

    private func takeBatch(_ place: Int, count: Int) -> OperationBatch {
        let first = self.paces[place].sent
        if let schedule = self.schedule?.schedule {
            return self.batch(place, of: schedule, first: first, count: count)
        }
        let operations = self.streams?.take(
            count,
            place: place,
            number: self.clients.number(at: place),
            origin: self.origin
        )
        return self.batch(place, operations.map { .streams($0) } ?? .whenAble, first: first, count: count)
    }

    /// Operations of one stream.
    func batch(_ place: Int, of schedule: OperationSchedule, first: UInt64, count: Int) -> OperationBatch {
        let number = self.clients.number(at: place)
        return self.batch(place, .scheduled(schedule, client: number, origin: self.origin), first: first, count: count)
    }

    private func batch(_ place: Int, _ dues: OperationBatch.Dues, first: UInt64, count: Int) -> OperationBatch {
        OperationBatch(
            first: first,
            count: count,
            ableSince: self.paces[place].ableSince,
            dues: dues,
            times: self.times
        )
    }

    func countLate(_ batch: OperationBatch) {
        self.late += UInt64(batch.count(ableBefore: self.context.now - .seconds(1)))
    }

    func operatorIsSpent(_ place: Int) {
        guard self.plan.pace == .closed, self.plan.limit != nil else { return }
        guard self.clients.isOperator(place), !self.paces[place].isSpent else { return }
        self.paces[place].isSpent = true
        self.spentOperators += 1
        if self.spentOperators == self.clients.operators { self.report(.spent(shard: self.clients.loop)) }
    }
}
