package import NIOCore

/// The plan of a run, as plain values: clients, connect rate, operations and duration.
///
/// Clients are numbered over the whole run: `0 ..< operators` carry out operations, and the listeners after them only
/// receive. The plan knows no protocol: the workload defines the operation.
package struct LoadPlan: Sendable {
    package enum ConnectPace: Hashable, Sendable {
        /// Open loop: connect number k begins at k / rate, regardless of earlier connects.
        case rate(perSecond: Double)
        /// Connects begin as fast as they succeed, with this many in flight over all shards.
        case pending(Int)
    }

    package enum Pace: Hashable, Sendable {
        /// Clients connect and stay.
        case idle
        /// Operations become due by arithmetic, not by answers.
        case open(OperationSchedule.Pace)
        /// The same with several streams of operations, each at a pace of its own: every operator has all of them.
        ///
        /// A client's operations have one order: by due time, ties by stream.
        case streams([OperationSchedule.Pace])
        /// Every client keeps its window full.
        case closed
    }

    package var operators: Int
    package var listeners: Int
    package var connect: ConnectPace
    package var pace: Pace
    /// Operations over all clients together; `nil` without a limit.
    package var limit: UInt64?
    /// Whether operations wait until every client is up or has failed.
    package var waitsForConnects: Bool
    package var warmup: TimeAmount
    /// How long operations become due after the warm-up; `nil`: until a stop, or until the limit is spent.
    package var measure: TimeAmount?
    /// How long what is due may still be sent, and answers be awaited, after the last operation became due.
    package var drain: TimeAmount
    /// How long the peer's FIN is awaited after the drain.
    package var closeGrace: TimeAmount
    /// Parts of the load with metrics of their own; none, or from the beginning of the load to its end, and no warm-up.
    package var stages: [Stage] = []
    /// How long a client of a closed loop waits when it could send again.
    package var think = TimeAmount.zero
    package var departures = DeparturePlan()
    /// Other actions of the clients during the load, one client after the other: the rate per second over all clients.
    package var turns: Double?
    /// Operators receive what others send: they stay until everything has come.
    package var operatorsListen = false
    /// Operators this many numbers apart share an event loop, and the number of rows is whole; `nil`: any operators may
    /// share a loop.
    package var row: Int?
    /// The load is the connects: it ends when every client is up or has failed.
    package var endsWithConnects = false
    /// The part of all this that this process carries out.
    package var segment = PlanSegment.whole

    package init(
        operators: Int,
        listeners: Int = 0,
        connect: ConnectPace = .pending(64),
        pace: Pace,
        limit: UInt64? = nil,
        waitsForConnects: Bool = true,
        warmup: TimeAmount = .zero,
        measure: TimeAmount?,
        drain: TimeAmount = .seconds(10),
        closeGrace: TimeAmount = .seconds(2)
    ) {
        self.operators = operators
        self.listeners = listeners
        self.connect = connect
        self.pace = pace
        self.limit = limit
        self.waitsForConnects = waitsForConnects
        self.warmup = warmup
        self.measure = measure
        self.drain = drain
        self.closeGrace = closeGrace
    }

    package var clients: Int { self.operators + self.listeners }

    /// Operators that are dealt out over the event loops one by one, before it begins with the first loop again.
    package var width: Int { self.row ?? self.operators }
    /// The times that all groups of a run share.
    var times: [TimeAmount?] {
        [self.warmup, self.measure, self.drain, self.closeGrace] + self.stages.flatMap { [$0.start, $0.end] }
    }

    /// The end of the pacing interval of the last operation under the limit, since the start of the load; `nil` without
    /// due times or a limit.
    var pacedEnd: TimeAmount? {
        guard let limit = self.limit, self.operators > 0, case .open(let pace) = self.pace else { return nil }
        var next = limit
        if case .shaped(let load) = pace, case .bursts(let size) = load.arrivals {
            let size = UInt64(max(1, size))
            next = limit / size * size &+ (limit.isMultiple(of: size) ? 0 : size)
        }
        let end = OperationSchedule(pace: pace, clients: self.operators).due(next)
        return end == OperationSchedule.never ? nil : end
    }

    /// Operations that belong to `client` under the limit: operation k belongs to client k mod n.
    package func limit(ofOperator client: Int) -> UInt64? {
        self.limit.map { limit in
            let share = limit / UInt64(self.operators)
            return share + (UInt64(client) < limit % UInt64(self.operators) ? 1 : 0)
        }
    }
}

/// The clients of one shard: every n-th operator, and every n-th listener after the operators.
///
/// They are `index`, `index + shards`, `index + 2 × shards`... of the listeners, and of the operators in every row of
/// the plan. A client never leaves its shard. If a plan has segments, every n-th shard belongs to this process, and the
/// others to other processes.
package struct ShardClients: Hashable, Sendable {
    /// The shard's number among those of all segments.
    package let index: Int
    /// The number of shards of all segments, if they had as many event loops as this one.
    package let shards: Int
    /// The shard's number among those of this process.
    package let loop: Int
    package let operators: Int
    package let listeners: Int
    private let allOperators: Int
    private let width: Int
    /// Operators of this shard in each row.
    package let perRow: Int

    /// Makes the clients of event loop `loop` among `loops` of this process.
    package init(_ plan: LoadPlan, shard loop: Int, of loops: Int) {
        precondition(plan.operators == 0 || plan.operators % plan.width == 0, "rows are whole")
        let index = plan.segment.index + plan.segment.count * loop
        let shards = plan.segment.count * loops
        self.loop = loop
        self.index = index
        self.shards = shards
        self.width = plan.width
        self.perRow = Self.share(of: plan.width, shard: index, of: shards)
        self.operators = plan.operators > 0 ? self.perRow * (plan.operators / plan.width) : 0
        self.listeners = Self.share(of: plan.listeners, shard: index, of: shards)
        self.allOperators = plan.operators
    }

    package var count: Int { self.operators + self.listeners }

    /// The number in the whole run of the client at `place` of this shard.
    package func number(at place: Int) -> Int {
        if place < self.perRow { return place * self.shards + self.index }
        return place < self.operators
            ? place / self.perRow * self.width + place % self.perRow * self.shards + self.index
            : self.allOperators + (place - self.operators) * self.shards + self.index
    }

    /// The place of a client by its number in the whole run; `nil` for those of other shards.
    package func place(of number: Int) -> Int? {
        if number >= self.allOperators {
            let listener = number - self.allOperators
            return listener % self.shards == self.index ? self.operators + listener / self.shards : nil
        }
        let (row, rest) = number.quotientAndRemainder(dividingBy: self.width)
        return rest % self.shards == self.index ? row * self.perRow + rest / self.shards : nil
    }

    package func isOperator(_ place: Int) -> Bool { place < self.operators }

    static func share(of count: Int, shard: Int, of shards: Int) -> Int {
        count > shard ? (count - shard + shards - 1) / shards : 0
    }
}
