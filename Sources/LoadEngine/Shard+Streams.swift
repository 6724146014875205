import NIOCore

/// The streams of one shard's operators: what is due, and what each client has taken of it.
///
/// 8 bytes a client and stream.
struct ShardStreams: Sendable {
    var schedule: StreamSchedule
    /// Operators over all shards.
    private let operators: UInt64
    /// Operations of each client and stream that the client no longer owes: passed to the workload, given up or skipped.
    private var taken: [UInt64]
    /// The next operation in each stream of one client.
    private var heads: [DueTimes]
    /// The last batch; its memory serves the next one.
    private var batch: [OperationBatch.StreamOperation] = []

    /// `nil` for a plan without streams.
    init?(_ plan: LoadPlan, _ clients: ShardClients) {
        guard case .streams = plan.pace, plan.operators > 0 else { return nil }
        let schedules = plan.schedules
        self.schedule = StreamSchedule(schedules, shard: clients.index, of: clients.shards, row: plan.row)
        self.operators = UInt64(plan.operators)
        self.taken = Array(repeating: 0, count: clients.operators * schedules.count)
        self.heads = schedules.map { DueTimes($0, from: 0, stride: UInt64(plan.operators)) }
    }

    /// Takes the next operations of the client at `place`, by due time, ties by stream; no more than the client owes.
    ///
    /// `number` is the client's in the whole run, and `origin` is when the load began.
    mutating func take(_ count: Int, place: Int, number: Int, origin: NIODeadline) -> [OperationBatch.StreamOperation] {
        let first = self.index(place, 0)
        for stream in self.heads.indices {
            self.heads[stream].move(to: self.taken[first + stream] * self.operators + UInt64(number))
        }
        self.batch.removeAll(keepingCapacity: true)
        for _ in 0..<count {
            guard let (stream, due) = self.firstHead else { preconditionFailure("what a client owes has become due") }
            let number = self.taken[first + stream]
            self.batch.append(.init(due: origin + due, stream: stream, number: number))
            self.taken[first + stream] = number + 1
            self.heads[stream].advance()
        }
        return self.batch
    }

    /// Operations of the client and stream that became due and were not taken.
    func owed(_ place: Int, _ stream: Int) -> UInt64 {
        self.schedule.passed(at: place, stream: stream) - self.taken[self.index(place, stream)]
    }

    /// The number of the next operation of the client and stream.
    func first(_ place: Int, _ stream: Int) -> UInt64 { self.taken[self.index(place, stream)] }

    /// The client will not send its next `count` operations of the stream.
    mutating func skip(_ place: Int, _ stream: Int, count: UInt64) { self.taken[self.index(place, stream)] += count }

    private var firstHead: (stream: Int, due: TimeAmount)? {
        var first: (stream: Int, due: TimeAmount)?
        for stream in self.heads.indices {
            guard let due = self.heads[stream].due else { continue }
            if let first, first.due <= due { continue }
            first = (stream, due)
        }
        return first
    }

    private func index(_ place: Int, _ stream: Int) -> Int { place * self.heads.count + stream }
}

// Open loop with several streams for each client.
extension Shard {
    /// Counts every operation of all streams due before `end` as offered.
    func offerStreams(before end: NIODeadline, now: NIODeadline) {
        guard self.streams != nil else { return }
        var left = self.mostInOrder
        while left > 0, let next = self.streams?.schedule.next, self.origin + next.due < end {
            self.streams?.schedule.advance()
            self.worstLag = max(self.worstLag, now - (self.origin + next.due))
            self.becomeDue(next.position, stream: next.stream, count: 1)
            left -= 1
        }
        if left == 0 { self.offerStreamsInBulk(before: end) }
        if self.streams?.schedule.next == nil { self.openLoopIsSpent() }
    }

    private func offerStreamsInBulk(before end: NIODeadline) {
        guard let before = self.streams?.schedule else { return }
        var after = before
        after.advance(before: end - self.origin)
        self.streams?.schedule = after
        for place in 0..<self.clients.operators {
            for stream in 0..<after.streams {
                let count = after.passed(at: place, stream: stream) - before.passed(at: place, stream: stream)
                if count > 0 { self.becomeDue(place, stream: stream, count: count) }
            }
        }
    }

    /// Gives up what the client owes, in each stream that has any.
    func giveUpStreams(_ place: Int, canSend: Bool) {
        for stream in 0..<(self.streams?.schedule.streams ?? 0) {
            guard let owed = self.streams?.owed(place, stream), owed > 0,
                let schedule = self.streams?.schedule.schedule(of: stream),
                let first = self.streams?.first(place, stream)
            else { continue }
            let batch = self.batch(place, of: schedule, first: first, count: Int(owed))
            self.streams?.skip(place, stream, count: owed)
            self.giveUp(batch, of: place, stream: stream, canSend: canSend)
        }
    }
}
