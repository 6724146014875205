import CPosix
import LoadEngine
import Measurement
import NIOCore
import Report
import RunResult

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
        return start
    }

    /// Reports to the leader that the load could begin; `nil` without one.
    var tellSettled: (@Sendable () -> Void)? {
        guard let leader = self.leader else { return nil }
        return { leader.tellSettled() }
    }

    /// Passes on the leader's orders during the run.
    ///
    /// - Parameters:
    ///   - monitor: of the run.
    ///   - events: of the run.
    ///   - isRegularEnd: the load has no end of its own: a signal is its regular end.
    ///   - correct: called with each new offset of the common clock.
    /// - Returns: the task, which is cancelled at the end; `nil` without a leader.
    func listen(
        _ monitor: RunMonitor,
        _ events: AsyncStream<RunEvent>.Continuation,
        isRegularEnd: Bool,
        correct: @escaping @Sendable (Int64) -> Void
    ) -> Task<Void, Never>? {
        self.leader.map { leader in
            Task {
                for await order in leader.orders {
                    switch order {
                    case .load(let time): events.yield(.begin(at: time))
                    case .complete(let group):
                        await monitor.everythingCame(to: group)
                        events.yield(.look)
                    case .stop(.signal): events.yield(.stop(isRegularEnd ? .planned : .ordered))
                    case .stop(.lost): events.yield(.wind(.ordered))
                    case .stop(.threshold(let expression)):
                        await monitor.broke(expression)
                        events.yield(.wind(.thresholdBroken))
                    case .clock(let offset): correct(offset)
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

extension SegmentOptions {
    /// The clock of this process.
    var clock: OwnClock {
        OwnClock(offset: self.realtimeOffset, ahead: self.clockAhead, gain: self.clockGain)
    }

    /// The same value for all segments of one run.
    ///
    /// A start given by a leader belongs to the run that the leader named.
    func runIdentity(seed: UInt64) -> String {
        SegmentIdentity.run(name: self.run, seed: seed, startAt: self.isLed ? nil : self.startAt)
    }

    /// Whether segments can recognise each other's messages: their options name a common run.
    var namesRun: Bool { self.part != nil && (self.isLed || self.startAt != nil || !self.run.isEmpty) }

    /// The run number in the header of every message of a group: common to named segments, otherwise of this process.
    func headerRun(seed: UInt64, group: String?) -> UInt32 {
        guard self.namesRun else { return UInt32.random(in: 1...UInt32.max) }
        return max(1, UInt32(truncatingIfNeeded: "\(self.runIdentity(seed: seed)) \(group ?? "")".stableHash))
    }
}

/// The reason why a run does not start: one line, and the exit status.
struct RunRefusal: Error {
    let line: String
    let status: ExitStatus

    init(_ line: String, _ status: ExitStatus = .usage) {
        self.line = line
        self.status = status
    }

    /// The refusal with the group's name as prefix, in a run of several groups.
    func of(group: String?) -> RunRefusal {
        group.map { RunRefusal("\($0): \(self.line)", self.status) } ?? self
    }
}

/// The end of a run, as its coordinator or the shell hears of it.
struct SessionEnd {
    let status: ExitStatus
    /// The directory of the results; `nil` if there are none.
    var directory: String?
    /// The reason for that.
    var words: String?
}
