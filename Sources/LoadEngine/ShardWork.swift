package import NIOCore

/// The protocol's part of a shard, event-loop confined like its shard.
///
/// Clients are named by their place in the shard, `0 ..< clients`, operators first.
package protocol ShardWork: AnyObject, SendableMetatype {
    associatedtype Sample: Sendable

    /// Begins the client's first connect, which was due at `due`.
    ///
    /// It answers with ``Shard/settled(_:up:)``, once, however often it tries.
    func connect(_ place: Int, due: NIODeadline)

    /// Ends the client's connection, for a later return: with a closing packet, or without.
    ///
    /// It answers with ``Shard/left(_:)`` when the connection is closed.
    func depart(_ place: Int, _ cause: DeparturePlan.Cause, cuts: Bool)

    /// It was the client's turn to leave, but it is not connected.
    func departureMissed(_ place: Int, _ cause: DeparturePlan.Cause)

    /// The number of departures that the load's end came before.
    func departuresMissed(_ cause: DeparturePlan.Cause, count: UInt64)

    /// It is the client's turn, connected or not, since `due`; only of plans that have ``LoadPlan/turns``.
    func turn(_ place: Int, due: NIODeadline)

    /// The number of turns that the load's end came before.
    func turnsMissed(_ count: UInt64, due: NIODeadline)

    /// Connects a client that left by plan, or for the first time one that was absent until now; `due` was the planned
    /// time.
    ///
    /// It answers with ``Shard/settled(_:up:)`` as for a first connect, or with ``Shard/returnEnded(_:)`` if it retries
    /// by itself.
    func reconnect(_ place: Int, due: NIODeadline)

    /// How many operations the client may send now: 0 while it is not connected, its window is full or its
    /// socket takes no more. When that changes to more than 0, it calls ``Shard/markAble(_:at:)``.
    func room(_ place: Int) -> Int

    /// Sends the batch, all of it, in one write.
    func send(_ place: Int, _ batch: OperationBatch)

    /// Operations of the client became due.
    ///
    /// - Parameters:
    ///   - place: of the client.
    ///   - stream: of all these operations; 0 in a plan without streams.
    ///   - count: how many.
    func offered(_ place: Int, stream: Int, count: UInt64)

    /// Operations of the client and stream became due while it was away by its cycle, and are skipped or replaced.
    func skipped(_ place: Int, stream: Int, count: UInt64)

    /// Operations of the client and stream will never be sent; `late` of them were due, and their client could have
    /// sent them for over a second.
    func notSent(_ place: Int, stream: Int, _ batch: OperationBatch, late: UInt64)

    /// Whether every operation that was sent has had its answer, or has run out of time.
    func isIdle(_ place: Int) -> Bool

    /// Closes the client in good order. It answers with ``Shard/finished(_:)``, once.
    func finish(_ place: Int)

    /// Closes what is still open, at once; the same answer.
    func abort(_ place: Int)

    /// The loop woke up for something that was due, so much later.
    func woke(late: TimeAmount)

    /// The measured phase begins, or ends.
    func measuring(_ begins: Bool)

    /// The next stage begins; `nil`: the last one has ended.
    ///
    /// In a load with stages ``measuring(_:)`` is not called.
    func begins(stage: Int?)

    /// The last operation has become due.
    func loadEnded()

    /// The measurements since the last call; taken once a second.
    func takeSample() -> Sample

    /// The messages that the listeners still have to receive, as far as this shard knows.
    var balance: DeliveryBalance { get }
}

extension ShardWork {
    package func turn(_ place: Int, due: NIODeadline) {}
    package func turnsMissed(_ count: UInt64, due: NIODeadline) {}
    package func skipped(_ place: Int, stream: Int, count: UInt64) {}
}

/// Deliveries that operators of a shard have caused, and that listeners of a shard have seen.
///
/// The sum over all shards decides whether the listeners may disconnect.
package struct DeliveryBalance: Codable, Hashable, Sendable {
    /// Expected deliveries: messages whose fate is known, once for each of their listeners.
    package var expected: Int64
    /// Distinct deliveries seen.
    package var received: Int64
    /// Messages of unknown fate: while there are any, `received` proves nothing.
    package var uncertain: Int64
    /// When the last message came.
    package var lastArrival = NIODeadline.distantPast
    /// The longest delivery so far; `nil` where a quiet server is no proof.
    package var longest: TimeAmount?

    package init(expected: Int64 = 0, received: Int64 = 0, uncertain: Int64 = 0) {
        self.expected = expected
        self.received = received
        self.uncertain = uncertain
    }

    package static func += (sum: inout DeliveryBalance, part: DeliveryBalance) {
        sum.expected += part.expected
        sum.received += part.received
        sum.uncertain += part.uncertain
        sum.lastArrival = max(sum.lastArrival, part.lastArrival)
        sum.longest = [sum.longest, part.longest].compactMap(\.self).max()
    }

    package var isComplete: Bool { self.uncertain == 0 && self.received >= self.expected }

    /// The clocks of another machine differ: it receives the counts alone.
    private enum CodingKeys: String, CodingKey {
        case expected, received, uncertain
    }
}

/// Operations of one client that go out in one write.
package struct OperationBatch: Sendable {
    package enum Dues: Sendable {
        /// Closed loop: all were due when their client could send them.
        case whenAble
        /// Open loop: by the schedule.
        case scheduled(OperationSchedule, client: Int, origin: NIODeadline)
        /// Open loop with streams: one for each operation of the batch, by due time, ties by stream.
        case streams([StreamOperation])
    }

    package struct StreamOperation: Hashable, Sendable {
        package let due: NIODeadline
        package let stream: Int
        /// The number among its client's operations of the stream, from 0.
        package let number: UInt64

        package init(due: NIODeadline, stream: Int, number: UInt64) {
            self.due = due
            self.stream = stream
            self.number = number
        }
    }

    /// The number of the first among its client's operations of all streams, from 0.
    package let first: UInt64
    package let count: Int
    /// When the first of them was due.
    package let firstDue: NIODeadline
    /// When the client could send: connected, with room in its window, its socket writable.
    package let ableSince: NIODeadline
    package let dues: Dues
    private let times: LoadTimes

    package init(first: UInt64, count: Int, ableSince: NIODeadline, dues: Dues, times: LoadTimes) {
        self.first = first
        self.count = count
        self.ableSince = ableSince
        self.dues = dues
        self.times = times
        self.firstDue = Self.due(dues, 0, first: first, ableSince: ableSince)
    }

    /// When operation `index` of the batch was due.
    package func due(_ index: Int) -> NIODeadline {
        index == 0 ? self.firstDue : Self.due(self.dues, index, first: self.first, ableSince: self.ableSince)
    }

    private static func due(_ dues: Dues, _ index: Int, first: UInt64, ableSince: NIODeadline) -> NIODeadline {
        switch dues {
        case .whenAble:
            return ableSince
        case .scheduled(let schedule, let client, let origin):
            guard let offset = schedule.due(client: client, own: first + UInt64(index)) else { return origin }
            return origin + offset
        case .streams(let operations):
            return operations[index].due
        }
    }

    /// Whether all were due at once: when their client could send them.
    package var isDueWhenAble: Bool {
        if case .whenAble = self.dues { true } else { false }
    }

    /// Calls `body` for each operation of the batch, in order, with its place in the batch and when it was due.
    package func forEach(_ body: (_ index: Int, _ due: NIODeadline) -> Void) {
        switch self.dues {
        case .scheduled(let schedule, let client, let origin) where self.count > 1:
            let all = UInt64(schedule.clients)
            var times = DueTimes(schedule, from: self.first * all + UInt64(client), stride: all)
            for index in 0..<self.count {
                body(index, times.due.map { origin + $0 } ?? origin)
                times.advance()
            }
        case .scheduled, .whenAble:
            for index in 0..<self.count { body(index, self.firstDue) }
        case .streams(let operations):
            for index in 0..<self.count { body(index, operations[index].due) }
        }
    }

    /// The same with the stream of each operation, and its number among those of its client and stream, from 0.
    ///
    /// Without streams all belong to stream 0.
    package func forEachOperation(_ body: (_ index: Int, _ due: NIODeadline, _ stream: Int, _ number: UInt64) -> Void) {
        guard case .streams(let operations) = self.dues else {
            return self.forEach { index, due in body(index, due, 0, self.first + UInt64(index)) }
        }
        for index in 0..<self.count {
            body(index, operations[index].due, operations[index].stream, operations[index].number)
        }
    }

    /// The stream of operation `index`, and its number among those of its client and stream.
    package func operation(_ index: Int) -> (stream: Int, number: UInt64) {
        guard case .streams(let operations) = self.dues else { return (0, self.first + UInt64(index)) }
        return (operations[index].stream, operations[index].number)
    }

    /// How many of the batch their client could have sent before `limit`.
    package func count(ableBefore limit: NIODeadline) -> Int {
        guard self.ableSince < limit, self.firstDue < limit else { return 0 }
        // Due times only rise.
        var range = 0..<self.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = self.due(middle) < limit ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return range.lowerBound
    }

    /// Which part of the load an operation due then belongs to, see ``LoadTimes/lane(_:)``.
    package func lane(_ due: NIODeadline) -> Int { self.times.lane(due) }
}

/// Events from a shard to the run, sent from its event loop.
package enum ShardEvent: Hashable, Sendable {
    /// Every client is up or has failed.
    case settled(shard: Int, up: Int)
    /// No more operations become due: the limit is spent.
    case spent(shard: Int)
    /// The last connection of the shard is gone, and will not reconnect by itself.
    case deserted(shard: Int)
    /// Every operator is closed.
    case operatorsFinished(shard: Int)
    /// Every client is closed.
    case finished(shard: Int)
}
