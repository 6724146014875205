import CPosix
import Coordination
import LoadEngine
import Measurement
import NIOCore
import Report
package import RunResult
import Scenario

/// The identity of a segment: its index, and the common start time.
struct RunSegment {
    let options: SegmentOptions
    /// The process that begins the run, if another one does.
    let leader: (any RunLeader)?

    init(_ options: SegmentOptions, leader: (any RunLeader)? = nil) {
        self.options = options
        self.leader = leader ?? (options.isChild ? ParentLink(clockOffset: options.clock.offsetNow) : nil)
    }

    /// The segment's entry in `run.json`; the merge checks `thresholds`.
    func record(plan: [String: JSONValue], seed: UInt64, thresholds: [String]) -> SegmentRecord {
        guard let part = self.options.part else { return SegmentRecord() }
        var record = SegmentRecord(index: part.index + 1, count: part.count)
        record.plan = SegmentIdentity.plan(plan, schedule: self.options.schedule)
        // A start given by a parent belongs to the run that the parent named.
        record.run = self.options.runIdentity(seed: seed)
        record.thresholds = thresholds
        return record
    }

    /// When the first connect is due; `nil`: at once.
    func start() async throws(RunRefusal) -> NIODeadline? {
        guard let leader = self.leader else { return self.options.startAt.map { Self.deadline($0) } }
        guard let start = await leader.start() else {
            throw RunRefusal("the run was given up before it began", .interrupted)
        }
        return Self.deadline(start, clockOffset: leader.clockOffset)
    }

    /// Passes on the leader's orders during the run.
    ///
    /// - Parameters:
    ///   - monitor: of the run.
    ///   - events: of the run.
    ///   - isRegularEnd: the load has no end of its own: a signal is its regular end.
    ///   - world: where the run takes place.
    ///   - correct: called with each new offset of the common clock.
    /// - Returns: the task, which is cancelled at the end; `nil` without a leader.
    func listen(
        _ monitor: RunMonitor,
        _ events: AsyncStream<RunEvent>.Continuation,
        _ isRegularEnd: Bool,
        in world: RunWorld,
        correct: @escaping @Sendable (Int64) -> Void
    ) -> Task<Void, Never>? {
        self.leader.map { leader in
            world.makeTask {
                for await order in leader.orders {
                    switch order {
                    case .load(let time):
                        events.yield(.begin(at: Self.deadline(time, clockOffset: leader.clockOffset)))
                    case .complete(let group):
                        await monitor.everythingCame(to: group)
                        events.yield(.look)
                    case .stop(.ordered): events.yield(.stop(isRegularEnd ? .planned : .ordered))
                    case .stop(.over): break
                    case .stop(.lost): events.yield(.endLoad(.ordered))
                    case .stop(.threshold(let expression)):
                        await monitor.broke(expression)
                        events.yield(.endLoad(.thresholdBroken))
                    case .clock(let offset): correct(offset)
                    case .welcome, .refused, .taken, .start, .echo, .want, .done: break
                    }
                }
            }
        }
    }

    /// The same time on the event loops' clock.
    static func deadline(_ start: Int64) -> NIODeadline {
        self.deadline(start, clockOffset: clamor_realtime_nanoseconds() - clamor_monotonic_nanoseconds())
    }

    /// A time of a clock that is CLOCK_MONOTONIC plus an offset.
    static func deadline(_ time: Int64, clockOffset: Int64) -> NIODeadline {
        let (own, isOver) = time.subtractingReportingOverflow(clockOffset)
        return .uptimeNanoseconds(UInt64(isOver ? (time < 0 ? 0 : .max) : max(0, own)))
    }

    /// The segments' common clock minus CLOCK_MONOTONIC, in nanoseconds.
    var clockOffset: Int64 {
        self.leader?.clockOffset ?? clamor_realtime_nanoseconds() - clamor_monotonic_nanoseconds()
    }
}

/// The end of a run, as its coordinator or the shell hears of it.
package struct SessionEnd: Sendable {
    package let status: ExitStatus
    /// The directory of the results; `nil` if there are none.
    package var directory: String?
    /// The reason for that.
    package var words: String?
}
