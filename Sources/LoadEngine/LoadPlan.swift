package import NIOCore

/// What a run is to do, as plain values: who connects, how fast, how much is asked of whom, and for how long.
///
/// Clients are numbered over the whole run: `0 ..< operators` carry out operations, the listeners behind them
/// only receive. The plan knows no protocol: what an operation is, the workload says.
package struct LoadPlan: Sendable {
    package enum ConnectPace: Hashable, Sendable {
        /// Open loop: connect number k is begun at k / rate, whatever became of the ones before.
        case rate(perSecond: Double)
        /// As fast as they succeed, with so many under way at once over all shards.
        case pending(Int)
    }

    package enum Pace: Hashable, Sendable {
        /// Clients connect and stay.
        case idle
        /// Operations become due by arithmetic, not by answers.
        case open(OperationSchedule.Pace)
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
    /// How long operations become due after the warm-up; `nil` until told to stop, or the limit is spent.
    package var measure: TimeAmount?
    /// How long what is due may still be sent, and answers be awaited, after the last operation became due.
    package var drain: TimeAmount
    /// How long the peer's FIN is awaited after the drain.
    package var closeGrace: TimeAmount

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

    /// Operations that belong to `client` under the limit: operation k belongs to client k mod n.
    package func limit(ofOperator client: Int) -> UInt64? {
        self.limit.map { limit in
            let share = limit / UInt64(self.operators)
            return share + (UInt64(client) < limit % UInt64(self.operators) ? 1 : 0)
        }
    }
}

/// The clients of one shard: every so many-th operator, and the same of the listeners behind them.
///
/// They are `index`, `index + shards`, `index + 2 × shards`... of each. A client never leaves its shard.
package struct ShardClients: Hashable, Sendable {
    package let index: Int
    package let shards: Int
    package let operators: Int
    package let listeners: Int
    private let allOperators: Int

    package init(_ plan: LoadPlan, shard index: Int, of shards: Int) {
        self.index = index
        self.shards = shards
        self.operators = Self.share(of: plan.operators, shard: index, of: shards)
        self.listeners = Self.share(of: plan.listeners, shard: index, of: shards)
        self.allOperators = plan.operators
    }

    package var count: Int { self.operators + self.listeners }

    /// The number in the whole run of the client at `place` of this shard.
    package func number(at place: Int) -> Int {
        place < self.operators
            ? place * self.shards + self.index
            : self.allOperators + (place - self.operators) * self.shards + self.index
    }

    package func isOperator(_ place: Int) -> Bool { place < self.operators }

    private static func share(of count: Int, shard: Int, of shards: Int) -> Int {
        count > shard ? (count - shard + shards - 1) / shards : 0
    }
}
