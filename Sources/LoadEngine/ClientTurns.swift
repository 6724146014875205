import NIOCore

/// Turns of the clients, one after the other, repeatedly, at a steady rate over all of them.
///
/// Each kind of client has its share of the rate. Turns follow by arithmetic, like the rest of the plan: every shard,
/// in every segment, computes its own.
struct ClientTurns: Sendable {
    /// The turns of the operators and of the listeners, with the place of the first of them.
    private var parts: [(schedule: ShardSchedule, first: Int)] = []

    init(perSecond: Double, _ plan: LoadPlan, _ clients: ShardClients) {
        let kinds: [(Int, Int?, Int)] = [(plan.operators, plan.row, 0), (plan.listeners, nil, clients.operators)]
        for (count, row, first) in kinds where count > 0 {
            let rate = perSecond * Double(count) / Double(plan.clients)
            let schedule = OperationSchedule(pace: .rate(perSecond: rate), clients: count)
            self.parts.append((ShardSchedule(schedule, shard: clients.index, of: clients.shards, row: row), first))
        }
    }

    /// When the next turn is due, since the load began.
    var due: TimeAmount? { self.parts.lazy.compactMap { $0.schedule.next?.due }.min() }

    /// The next turn that is due at that time since the load began: the client's place, and the due time.
    mutating func take(until elapsed: TimeAmount) -> (place: Int, due: TimeAmount)? {
        for part in self.parts.indices {
            guard let turn = self.parts[part].schedule.next, turn.due <= elapsed else { continue }
            self.parts[part].schedule.advance()
            return (self.parts[part].first + turn.position, turn.due)
        }
        return nil
    }

    /// Skips all turns due before that time since the load began.
    ///
    /// - Returns: the number of skipped turns.
    mutating func skip(before elapsed: TimeAmount) -> UInt64 {
        var skipped: UInt64 = 0
        for part in self.parts.indices {
            guard let due = self.parts[part].schedule.next?.due, due < elapsed else { continue }
            let before = self.parts[part].schedule.passed
            _ = self.parts[part].schedule.advance(before: elapsed)
            skipped += self.parts[part].schedule.passed - before
        }
        return skipped
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
