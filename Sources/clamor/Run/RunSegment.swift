import CPosix
import LoadEngine
import Measurement
import NIOCore
import Report

/// What makes a run a segment: its place among the others, and the moment at which all of them begin.
struct RunSegment {
    let options: SegmentOptions

    /// How `run.json` names it; `thresholds` are left to the merge.
    func record(plan: [String: JSONValue], seed: UInt64, thresholds: [String]) -> SegmentRecord {
        guard let part = self.options.part else { return SegmentRecord() }
        var record = SegmentRecord(index: part.index + 1, count: part.count)
        record.plan = SegmentIdentity.plan(plan, schedule: self.options.schedule)
        // What a parent says of the start is of the run that it has named.
        record.run = SegmentIdentity.run(
            name: self.options.run,
            seed: seed,
            startAt: self.options.isChild ? nil : self.options.startAt
        )
        record.thresholds = thresholds
        return record
    }

    /// CLOCK_REALTIME nanoseconds; `nil`: at once.
    func start() async throws(RunRefusal) -> Int64? {
        guard self.options.isChild else { return self.options.startAt }
        guard let start = await ParentLink.start() else {
            throw RunRefusal("the run was given up before it began", .interrupted)
        }
        return start
    }

    /// The same moment by the clock that event loops have.
    static func deadline(_ start: Int64) -> NIODeadline {
        let monotonic = start - clamor_realtime_nanoseconds() + clamor_monotonic_nanoseconds()
        return .uptimeNanoseconds(UInt64(max(0, monotonic)))
    }

    static func realtime(_ time: NIODeadline) -> Int64 {
        Int64(time.uptimeNanoseconds) - clamor_monotonic_nanoseconds() + clamor_realtime_nanoseconds()
    }
}
