import CPosix
import LoadEngine
import Measurement
import NIOCore
import Report
import RunResult

/// The identity of a segment: its index, and the common start time.
struct RunSegment {
    let options: SegmentOptions
    /// The `clamor` process that started this one, if any.
    let parent: ParentLink?

    init(_ options: SegmentOptions) {
        self.options = options
        self.parent = options.isChild ? ParentLink() : nil
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

    /// CLOCK_REALTIME in nanoseconds; `nil` starts at once.
    func start() async throws(RunRefusal) -> Int64? {
        guard let parent = self.parent else { return self.options.startAt }
        guard let start = await parent.start() else {
            throw RunRefusal("the run was given up before it began", .interrupted)
        }
        return start
    }

    /// Reports to the parent that the load could begin; `nil` without a parent.
    var tellSettled: (@Sendable () -> Void)? {
        guard let parent = self.parent else { return nil }
        return { parent.tellSettled() }
    }

    /// Passes on the parent's orders during the run.
    func listen(_ monitor: RunMonitor, _ events: AsyncStream<RunEvent>.Continuation) -> Task<Void, Never>? {
        self.parent.map { parent in
            Task {
                for await order in parent.orders {
                    switch order {
                    case .load(let time): events.yield(.begin(at: self.options.deadline(time)))
                    case .complete(let group):
                        await monitor.everythingCame(to: group)
                        events.yield(.look)
                    }
                }
            }
        }
    }

    /// Whether loads begin together, at a time that the parent sends.
    static func beginsTogether(_ options: LoadOptions) -> Bool { options.segment.isChild && options.waitsForAll }

    /// The same time on the event loops' clock.
    static func deadline(_ start: Int64) -> NIODeadline {
        let monotonic = start - clamor_realtime_nanoseconds() + clamor_monotonic_nanoseconds()
        return .uptimeNanoseconds(UInt64(max(0, monotonic)))
    }

    static func realtime(_ time: NIODeadline) -> Int64 {
        Int64(time.uptimeNanoseconds) - clamor_monotonic_nanoseconds() + clamor_realtime_nanoseconds()
    }
}

extension SegmentOptions {
    /// The time given by the parent, converted from the common clock.
    func deadline(_ realtime: Int64) -> NIODeadline {
        guard let offset = self.realtimeOffset else { return RunSegment.deadline(realtime) }
        return .uptimeNanoseconds(UInt64(max(0, realtime - offset)))
    }

    /// The same value for all segments of one run.
    ///
    /// A start given by a parent belongs to the run that the parent named.
    func runIdentity(seed: UInt64) -> String {
        SegmentIdentity.run(name: self.run, seed: seed, startAt: self.isChild ? nil : self.startAt)
    }

    /// Whether segments can recognise each other's messages: their options name a common run.
    var namesRun: Bool { self.part != nil && (self.isChild || self.startAt != nil || !self.run.isEmpty) }

    /// The run number in the header of every message of a group: common to named segments, otherwise of this process.
    func headerRun(seed: UInt64, group: String?) -> UInt32 {
        guard self.namesRun else { return UInt32.random(in: 1...UInt32.max) }
        return max(1, UInt32(truncatingIfNeeded: "\(self.runIdentity(seed: seed)) \(group ?? "")".stableHash))
    }
}
