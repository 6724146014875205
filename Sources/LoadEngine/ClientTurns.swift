import NIOCore

/// Turns of the clients, one after the other, repeatedly, at a steady rate over all of them.
///
/// Each kind of client has its share of the rate. Turns follow by arithmetic, like the rest of the plan: every shard,
/// in every segment, computes its own.
struct ClientTurns: Sendable {
    private var operators: ShardSchedule?
    private var listeners: ShardSchedule?
    private let firstListener: Int

    init(perSecond: Double, _ plan: LoadPlan, shard: Int, of shards: Int, firstListener: Int) {
        func part(_ count: Int, row: Int? = nil) -> ShardSchedule? {
            guard count > 0 else { return nil }
            let rate = perSecond * Double(count) / Double(plan.clients)
            let schedule = OperationSchedule(pace: .rate(perSecond: rate), clients: count)
            return ShardSchedule(schedule, shard: shard, of: shards, row: row)
        }
        self.operators = part(plan.operators, row: plan.row)
        self.listeners = part(plan.listeners)
        self.firstListener = firstListener
    }

    /// When the next turn is due, since the load began.
    var due: TimeAmount? {
        switch (self.operators?.next?.due, self.listeners?.next?.due) {
        case (let one?, let other?): min(one, other)
        case (let one, let other): one ?? other
        }
    }

    /// The next turn that is due at that time since the load began: the client's place, and the due time.
    mutating func take(until elapsed: TimeAmount) -> (place: Int, due: TimeAmount)? {
        if let turn = self.operators?.next, turn.due <= elapsed {
            self.operators?.advance()
            return (turn.position, turn.due)
        }
        if let turn = self.listeners?.next, turn.due <= elapsed {
            self.listeners?.advance()
            return (self.firstListener + turn.position, turn.due)
        }
        return nil
    }

    /// Skips all turns due before that time since the load began.
    ///
    /// - Returns: the number of skipped turns.
    mutating func skip(before elapsed: TimeAmount) -> UInt64 {
        func skip(_ schedule: inout ShardSchedule?) -> UInt64 {
            guard var moved = schedule, let due = moved.next?.due, due < elapsed else { return 0 }
            let before = moved.passed
            _ = moved.advance(before: elapsed)
            schedule = moved
            return moved.passed - before
        }
        return skip(&self.operators) + skip(&self.listeners)
    }
}

extension Shard {
    /// Turns of one turn of the loop at most, so that sockets have theirs.
    static var mostTurns: Int { 4_096 }

    /// Runs every turn that is due.
    ///
    /// - Returns: when the next one is due.
    func giveTurns(_ now: NIODeadline) -> NIODeadline? {
        guard self.turns != nil else { return nil }
        var left = Self.mostTurns
        while left > 0, let turn = self.turns?.take(until: now - self.origin) {
            left -= 1
            self.worstLag = max(self.worstLag, now - (self.origin + turn.due))
            self.work?.turn(turn.place, due: self.origin + turn.due)
        }
        return self.turns?.due.map { self.origin + $0 }
    }

    /// With the load the turns end: those that were due before it and were not given are missed.
    func missTurns(before end: NIODeadline) {
        if let count = self.turns?.skip(before: end - self.origin), count > 0 {
            self.work?.turnsMissed(count, due: end - .nanoseconds(1))
        }
        if let count = self.departures?.churn?.skip(before: end - self.origin), count > 0 {
            self.work?.departuresMissed(.churn, count: count)
        }
    }
}
