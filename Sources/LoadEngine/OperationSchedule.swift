package import NIOCore

/// When each operation of an open-loop load is due.
///
/// A due time follows from the operation's number alone, not from the clock or the answers so far. So a slow server
/// cannot slow the plan down, and the wait that it causes is counted as latency instead of vanishing (coordinated
/// omission).
///
/// Operation `k` belongs to client `k mod n`, for good.
package struct OperationSchedule: Hashable, Sendable {
    package enum Pace: Hashable, Sendable {
        /// Operations per second over all clients together, evenly spaced.
        case rate(perSecond: Double)
        /// Each client one operation every `period`; their starts are spread evenly over the first.
        case interval(TimeAmount)
        /// A rate that changes, or operations that do not come evenly.
        case shaped(ShapedLoad)
    }

    /// Later than any load lasts, and early enough to be added to any time.
    static var never: TimeAmount { .nanoseconds(.max) }

    package let pace: Pace
    /// Clients that operate; at least 1.
    package let clients: Int
    /// Operations over all clients together; `nil` without a limit.
    package let limit: UInt64?

    package init(pace: Pace, clients: Int, limit: UInt64? = nil) {
        precondition(clients > 0, "a schedule needs at least one client")
        switch pace {
        case .rate(let perSecond): precondition(perSecond > 0, "a rate of 0 is refused by the command line")
        case .interval(let period): precondition(period > .zero, "an interval of 0 is a closed loop")
        case .shaped: break
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

    /// The number of operations due before `time`, of which `known` are known: by bisection, so that a late load costs
    /// no more than a punctual one.
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

    fileprivate func time(of index: UInt64) -> TimeAmount {
        guard let (numerator, divisor) = self.step else {
            switch self.pace {
            case .shaped(let load): return load.time(of: index)
            case .interval: return Self.never
            case .rate(let perSecond):
                let nanoseconds = Double(index) * (1e9 / perSecond)
                return nanoseconds < 9e18 ? .nanoseconds(Int64(nanoseconds)) : Self.never
            }
        }
        let (time, _) = Self.divide(index, numerator, by: divisor)
        return .nanoseconds(Int64(clamping: time))
    }

    /// Operation k is due at k × `numerator` ÷ `divisor` nanoseconds, rounded down; `nil` where that is no fraction.
    ///
    /// At an interval client c of n begins at c × interval ÷ n, so that operation k is due at k × interval ÷ n.
    fileprivate var step: (numerator: UInt64, divisor: UInt64)? {
        switch self.pace {
        case .rate(let perSecond):
            // Above 10^15 a second a double holds no other number of nanoseconds than 0 for each.
            perSecond < 1e15 && perSecond == perSecond.rounded(.down) ? (1_000_000_000, UInt64(perSecond)) : nil
        case .interval(let period):
            (UInt64(period.nanoseconds), UInt64(self.clients))
        case .shaped: nil
        }
    }

    /// In 128 bits and in whole numbers: no drift, however long the load.
    ///
    /// `UInt64.max` for what does not fit.
    fileprivate static func divide(
        _ index: UInt64,
        _ numerator: UInt64,
        by divisor: UInt64
    ) -> (quotient: UInt64, remainder: UInt64) {
        let product = index.multipliedFullWidth(by: numerator)
        guard product.high < divisor else { return (.max, 0) }
        return divisor.dividingFullWidth(product)
    }
}

/// The due times of every n-th operation, each computed from the previous one.
///
/// They are those of ``OperationSchedule/due(_:)`` to the nanosecond: the remainder is carried along, so that a step
/// costs two additions instead of a division of 128 bits.
package struct DueTimes: Sendable {
    private let schedule: OperationSchedule
    private let stride: UInt64
    private let divisor: UInt64
    private let timeStep: UInt64
    private let restStep: UInt64
    /// The operation that ``due`` is of.
    package private(set) var index: UInt64
    private var time: UInt64 = 0
    private var rest: UInt64 = 0
    /// `nil` past the limit.
    package private(set) var due: TimeAmount?

    package init(_ schedule: OperationSchedule, from index: UInt64, stride: UInt64) {
        self.schedule = schedule
        self.stride = stride
        self.index = index
        // Without a fraction each is computed by itself.
        self.divisor = schedule.step?.divisor ?? 0
        (self.timeStep, self.restStep) =
            schedule.step.map { OperationSchedule.divide(stride, $0.numerator, by: $0.divisor) } ?? (0, 0)
        self.move(to: index)
    }

    package mutating func advance() {
        self.index += self.stride
        guard self.divisor > 0 else { return self.compute() }
        // Two remainders, each below a divisor of 10^15 or a number of clients.
        let rest = self.rest + self.restStep
        let carries = rest >= self.divisor
        self.rest = carries ? rest - self.divisor : rest
        self.time = Self.sum(self.time, self.timeStep, carries ? 1 : 0)
        self.limit()
    }

    /// Goes to any operation.
    package mutating func move(to index: UInt64) {
        self.index = index
        guard let step = self.schedule.step else { return self.compute() }
        (self.time, self.rest) = OperationSchedule.divide(index, step.numerator, by: step.divisor)
        self.limit()
    }

    private mutating func compute() {
        self.time = UInt64(self.schedule.time(of: self.index).nanoseconds)
        self.limit()
    }

    private mutating func limit() {
        let isPast = self.schedule.limit.map { self.index >= $0 } ?? false
        self.due = isPast ? nil : .nanoseconds(Int64(clamping: self.time))
    }

    /// Saturated: what does not fit is never.
    private static func sum(_ time: UInt64, _ step: UInt64, _ carry: UInt64) -> UInt64 {
        let (first, overflow) = time.addingReportingOverflow(step)
        let (sum, more) = first.addingReportingOverflow(carry)
        return overflow || more ? .max : sum
    }
}

/// The part of a schedule that one shard carries out, in due order.
///
/// Every operation of clients `shard`, `shard + shards`, `shard + 2 × shards`... of each row.
package struct ShardSchedule: Sendable {
    package let schedule: OperationSchedule
    private let shard: Int
    private let shards: Int
    /// Clients of a row, and how many of them are this shard's.
    private let width: Int
    private let perRow: Int
    private let rows: UInt64
    /// Operating clients of this shard.
    package var clients: Int { self.perRow * Int(self.rows) }
    /// Rows of operations before ``position``.
    private var round: UInt64 = 0
    private var position = 0
    /// The due time of the operation at ``position`` in ``round``.
    private var times: DueTimes

    /// - Parameters:
    ///   - schedule: over all shards.
    ///   - shard: its number.
    ///   - shards: how many there are.
    ///   - row: clients of a row (``LoadPlan/row``), a divisor of the schedule's clients.
    package init(_ schedule: OperationSchedule, shard: Int, of shards: Int, row: Int? = nil) {
        self.schedule = schedule
        self.shard = shard
        self.shards = shards
        self.width = row ?? schedule.clients
        self.perRow = ShardClients.share(of: self.width, shard: shard, of: shards)
        self.rows = UInt64(schedule.clients / self.width)
        self.times = DueTimes(schedule, from: UInt64(shard), stride: UInt64(shards))
    }

    /// The next operation's time and the place of its client within the shard; `nil` when none is left.
    package var next: (due: TimeAmount, position: Int)? {
        guard self.perRow > 0, let due = self.times.due else { return nil }
        return (due, self.rows == 1 ? self.position : Int(self.round % self.rows) * self.perRow + self.position)
    }

    /// Skips all operations due before `time`.
    ///
    /// - Returns: the number of operations of each client since the load began, by its place.
    package mutating func advance(before time: TimeAmount) -> (_ place: Int) -> UInt64 {
        let all = UInt64(self.schedule.clients)
        let next = self.index
        // Those of other shards between may be due or not, so the search begins a round earlier.
        let count = self.schedule.count(dueBefore: time, atLeast: next >= all ? next - all : 0)
        let (round, rest) = count.quotientAndRemainder(dividingBy: all)
        let (row, restOfRow) = count.quotientAndRemainder(dividingBy: UInt64(self.width))
        let (shard, shards, width, perRow) = (self.shard, self.shards, self.width, self.perRow)
        self.round = row
        self.position = ShardClients.share(of: Int(restOfRow), shard: shard, of: shards)
        if self.position >= perRow {
            self.position = 0
            self.round += 1
        }
        self.times.move(to: self.index)
        return { place in
            let number = place / perRow * width + place % perRow * shards + shard
            return round + (UInt64(number) < rest ? 1 : 0)
        }
    }

    package mutating func advance() {
        self.position += 1
        if self.position < self.perRow { return self.times.advance() }
        self.position = 0
        self.round += 1
        // With one shard the next round is one step away too.
        if self.shards == 1 { self.times.advance() } else { self.times.move(to: self.index) }
    }

    /// Operations of this shard that were passed.
    package var passed: UInt64 { self.round * UInt64(self.perRow) + UInt64(self.position) }

    /// Operations of one client that were passed, by its place.
    package func passed(at place: Int) -> UInt64 {
        let (turn, row) = self.round.quotientAndRemainder(dividingBy: self.rows)
        return turn + (place < Int(row) * self.perRow + self.position ? 1 : 0)
    }

    private var index: UInt64 { self.round * UInt64(self.width) + UInt64(self.position * self.shards + self.shard) }
}
