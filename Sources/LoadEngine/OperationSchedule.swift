package import NIOCore

/// When each operation of an open-loop load is due.
///
/// Arithmetic over the operation's number and nothing else: not over the clock, and not over what has been
/// answered so far. So a slow server cannot slow the plan down, and the wait it causes is counted as latency
/// instead of vanishing (coordinated omission).
///
/// Operation `k` belongs to client `k mod n`, for good.
package struct OperationSchedule: Hashable, Sendable {
    package enum Pace: Hashable, Sendable {
        /// So many operations a second over all clients together, evenly spaced.
        case rate(perSecond: Double)
        /// Each client one operation every `period`; their starts are spread evenly over the first.
        case interval(TimeAmount)
    }

    package let pace: Pace
    /// Clients that operate; at least 1.
    package let clients: Int
    /// Operations over all clients together; `nil` without a limit.
    package let limit: UInt64?

    package init(pace: Pace, clients: Int, limit: UInt64? = nil) {
        precondition(clients > 0, "a schedule has somebody to carry it out")
        switch pace {
        case .rate(let perSecond): precondition(perSecond > 0, "a rate of 0 is refused by the command line")
        case .interval(let period): precondition(period > .zero, "an interval of 0 is a closed loop")
        }
        self.pace = pace
        self.clients = clients
        self.limit = limit
    }

    /// When operation `index` is due.
    ///
    /// - Parameter index: 0 for the first.
    /// - Returns: time since the start of the load, never smaller than for `index - 1`; `nil` past the limit.
    package func due(_ index: UInt64) -> TimeAmount? {
        if let limit = self.limit, index >= limit { return nil }
        return self.time(of: index)
    }

    /// When the operation numbered `own` among those of `client` is due.
    package func due(client: Int, own: UInt64) -> TimeAmount? {
        self.due(own * UInt64(self.clients) + UInt64(client))
    }

    /// The number of operations due before `time`, of which `known` are known: by bisection, so that a load far
    /// behind its plan costs no more than one that is on time.
    package func count(dueBefore time: TimeAmount, atLeast known: UInt64 = 0) -> UInt64 {
        func isDue(_ index: UInt64) -> Bool { self.due(index).map { $0 < time } ?? false }
        var low = known
        var step: UInt64 = 1
        while isDue(low + step - 1) {
            low += step
            step *= 2
        }
        // The answer lies in low ... low + step − 1.
        while step > 1 {
            step /= 2
            if isDue(low + step - 1) { low += step }
        }
        return low
    }

    private func time(of index: UInt64) -> TimeAmount {
        switch self.pace {
        case .rate(let perSecond):
            // Above 10^15 a second a double holds no other number of nanoseconds than 0 for each.
            if perSecond < 1e15, perSecond == perSecond.rounded(.down) {
                let whole = UInt64(perSecond)
                // In 128 bits and in whole numbers: no drift, however long the load.
                let product = index.multipliedFullWidth(by: 1_000_000_000)
                guard product.high < whole else { return .nanoseconds(.max) }
                return .nanoseconds(Int64(clamping: whole.dividingFullWidth(product).quotient))
            }
            let nanoseconds = Double(index) * (1e9 / perSecond)
            return .nanoseconds(nanoseconds < 9e18 ? Int64(nanoseconds) : .max)
        case .interval(let period):
            let (round, client) = index.quotientAndRemainder(dividingBy: UInt64(self.clients))
            let (start, overflow) = round.multipliedReportingOverflow(by: UInt64(period.nanoseconds))
            if overflow { return .nanoseconds(.max) }
            let share = client.multipliedFullWidth(by: UInt64(period.nanoseconds))
            let offset = UInt64(self.clients).dividingFullWidth(share).quotient
            let (time, isPastEnd) = start.addingReportingOverflow(offset)
            return .nanoseconds(isPastEnd ? .max : Int64(clamping: time))
        }
    }
}

/// The part of a schedule that one shard carries out: every operation of clients `shard`, `shard + shards`,
/// `shard + 2 × shards`..., in due order.
package struct ShardSchedule: Sendable {
    package let schedule: OperationSchedule
    private let shard: Int
    private let shards: Int
    /// Operating clients of this shard.
    package let clients: Int
    private var round: UInt64 = 0
    private var position = 0

    package init(_ schedule: OperationSchedule, shard: Int, of shards: Int) {
        self.schedule = schedule
        self.shard = shard
        self.shards = shards
        self.clients = schedule.clients > shard ? (schedule.clients - shard + shards - 1) / shards : 0
    }

    /// The next operation's time and the place of its client within the shard; `nil` when none is left.
    package var next: (due: TimeAmount, position: Int)? {
        guard self.clients > 0 else { return nil }
        guard let due = self.schedule.due(client: self.position * self.shards + self.shard, own: self.round) else {
            return nil
        }
        return (due, self.position)
    }

    /// Goes on behind all operations due before `time`.
    ///
    /// - Returns: how many of each client there are from the start of the load on, by its place.
    package mutating func advance(before time: TimeAmount) -> (_ position: Int) -> UInt64 {
        let all = UInt64(self.schedule.clients)
        let next = self.round * all + UInt64(self.position * self.shards + self.shard)
        // Those of other shards between may be due or not, so the search begins a round earlier.
        let count = self.schedule.count(dueBefore: time, atLeast: next >= all ? next - all : 0)
        let (round, rest) = count.quotientAndRemainder(dividingBy: all)
        let (shard, shards) = (self.shard, self.shards)
        self.round = round
        self.position = Int(rest) > shard ? (Int(rest) - shard + shards - 1) / shards : 0
        if self.position >= self.clients {
            self.position = 0
            self.round += 1
        }
        return { position in round + (UInt64(position * shards + shard) < rest ? 1 : 0) }
    }

    package mutating func advance() {
        self.position += 1
        if self.position == self.clients {
            self.position = 0
            self.round += 1
        }
    }
}
