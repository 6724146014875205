package import NIOCore

extension OperationSchedule {
    /// The schedules of the streams that the same clients have, under one limit.
    ///
    /// The limit counts the operations of all streams by their due times. Of those due at one time, the operations of
    /// the first stream come first.
    package static func streams(_ paces: [Pace], clients: Int, limit: UInt64? = nil) -> [OperationSchedule] {
        precondition(!paces.isEmpty, "a plan with streams has at least one")
        let shares = limit.flatMap { self.shares(of: $0, paces, clients: clients) }
        return paces.enumerated().map { stream, pace in
            OperationSchedule(pace: pace, clients: clients, limit: shares?[stream])
        }
    }

    /// The number of operations of each stream under a common limit; `nil` if the streams never reach it.
    private static func shares(of limit: UInt64, _ paces: [Pace], clients: Int) -> [UInt64]? {
        // Below it no sum of counts overflows; at 10⁹ operations a second it takes two years.
        guard limit < 1 << 56 else { return nil }
        // No stream is counted further than is needed to see that the limit is exceeded.
        let schedules = paces.map { OperationSchedule(pace: $0, clients: clients, limit: limit + 1) }
        func counts(dueBefore time: Int64) -> [UInt64] { schedules.map { $0.count(dueBefore: .nanoseconds(time)) } }
        // The latest time before which no more than the limit is due, bit by bit.
        var last: Int64 = 0
        for bit in (0..<Int64(63)).reversed() where counts(dueBefore: last | 1 << bit).reduce(0, +) <= limit {
            last |= 1 << bit
        }
        guard last < .max else { return nil }
        var shares = counts(dueBefore: last)
        var rest = limit - shares.reduce(0, +)
        for (stream, count) in counts(dueBefore: last + 1).enumerated() {
            let more = min(rest, count - shares[stream])
            shares[stream] += more
            rest -= more
        }
        return shares
    }
}

extension LoadPlan {
    /// When the operations of each stream are due; a single schedule in an open loop without streams, and none without
    /// an open loop or operators.
    package var schedules: [OperationSchedule] {
        guard self.operators > 0 else { return [] }
        return switch self.pace {
        case .idle, .closed: []
        case .open(let pace): [OperationSchedule(pace: pace, clients: self.operators, limit: self.limit)]
        case .streams(let paces): OperationSchedule.streams(paces, clients: self.operators, limit: self.limit)
        }
    }
}

/// The part of a plan's streams that one shard carries out, in due order.
///
/// The operations of the first stream come first where several are due at one time.
package struct StreamSchedule: Sendable {
    /// One for each stream.
    private var parts: [ShardSchedule]
    /// When the next operation of each stream is due; `nil` when none is left.
    private var dues: [TimeAmount?]
    /// The stream of the next operation; `nil` when none is left.
    private var first: Int?

    /// - Parameters:
    ///   - schedules: one for each stream, over all shards.
    ///   - shard: its number.
    ///   - shards: how many there are.
    ///   - row: clients of a row, as in ``ShardSchedule/init(_:shard:of:row:)``.
    package init(_ schedules: [OperationSchedule], shard: Int, of shards: Int, row: Int? = nil) {
        self.parts = schedules.map { ShardSchedule($0, shard: shard, of: shards, row: row) }
        self.dues = self.parts.map { $0.next?.due }
        self.findFirst()
    }

    package var streams: Int { self.parts.count }

    /// The next operation's time, the place of its client within the shard, and its stream; `nil` when none is left.
    package var next: (due: TimeAmount, position: Int, stream: Int)? {
        guard let first = self.first, let next = self.parts[first].next else { return nil }
        return (next.due, next.position, first)
    }

    package mutating func advance() {
        guard let first = self.first else { return }
        self.parts[first].advance()
        self.dues[first] = self.parts[first].next?.due
        self.findFirst()
    }

    /// Skips all operations of all streams due before `time`.
    package mutating func advance(before time: TimeAmount) {
        for stream in self.parts.indices {
            guard let due = self.dues[stream], due < time else { continue }
            _ = self.parts[stream].advance(before: time)
            self.dues[stream] = self.parts[stream].next?.due
        }
        self.findFirst()
    }

    /// Operations of this shard that were passed, over all streams.
    package var passed: UInt64 { self.parts.reduce(0) { $0 + $1.passed } }

    /// Operations of one client and stream that were passed.
    package func passed(at place: Int, stream: Int) -> UInt64 { self.parts[stream].passed(at: place) }
    func schedule(of stream: Int) -> OperationSchedule { self.parts[stream].schedule }

    private mutating func findFirst() {
        self.first = nil
        var earliest: TimeAmount?
        for stream in self.dues.indices {
            guard let due = self.dues[stream] else { continue }
            if let earliest, earliest <= due { continue }
            earliest = due
            self.first = stream
        }
    }
}
