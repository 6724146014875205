import CPosix
import LoadEngine
import Measurement
import NIOCore
import Report
import RunResult

/// What makes a run a segment: its place among the others, and the moment at which all of them begin.
struct RunSegment {
    let options: SegmentOptions
    /// Who started this process, where another `clamor` did.
    let parent: ParentLink?

    init(_ options: SegmentOptions) {
        self.options = options
        self.parent = options.isChild ? ParentLink() : nil
    }

    /// How `run.json` names it; `thresholds` are left to the merge.
    func record(plan: [String: JSONValue], seed: UInt64, thresholds: [String]) -> SegmentRecord {
        guard let part = self.options.part else { return SegmentRecord() }
        var record = SegmentRecord(index: part.index + 1, count: part.count)
        record.plan = SegmentIdentity.plan(plan, schedule: self.options.schedule)
        // What a parent says of the start is of the run that it has named.
        record.run = self.options.runIdentity(seed: seed)
        record.thresholds = thresholds
        return record
    }

    /// CLOCK_REALTIME nanoseconds; `nil`: at once.
    func start() async throws(RunRefusal) -> Int64? {
        guard let parent = self.parent else { return self.options.startAt }
        guard let start = await parent.start() else {
            throw RunRefusal("the run was given up before it began", .interrupted)
        }
        return start
    }

    /// Tells whoever leads all segments that the load could begin; `nil` where nobody does.
    var tellSettled: (@Sendable () -> Void)? {
        guard let parent = self.parent else { return nil }
        return { parent.tellSettled() }
    }

    /// Passes on what the parent says while the run goes on.
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

    /// Whether loads begin together: somebody who leads all segments says when.
    static func beginsTogether(_ options: LoadOptions) -> Bool { options.segment.isChild && options.waitsForAll }

    /// The same moment by the clock that event loops have.
    static func deadline(_ start: Int64) -> NIODeadline {
        let monotonic = start - clamor_realtime_nanoseconds() + clamor_monotonic_nanoseconds()
        return .uptimeNanoseconds(UInt64(max(0, monotonic)))
    }

    static func realtime(_ time: NIODeadline) -> Int64 {
        Int64(time.uptimeNanoseconds) - clamor_monotonic_nanoseconds() + clamor_realtime_nanoseconds()
    }
}

extension SegmentOptions {
    /// A moment that whoever started this process names, by the clock that both have in common.
    func deadline(_ realtime: Int64) -> NIODeadline {
        guard let offset = self.realtimeOffset else { return RunSegment.deadline(realtime) }
        return .uptimeNanoseconds(UInt64(max(0, realtime - offset)))
    }

    /// The same for all segments of one run.
    ///
    /// What a parent says of the start is of the run that it has named.
    func runIdentity(seed: UInt64) -> String {
        SegmentIdentity.run(name: self.run, seed: seed, startAt: self.isChild ? nil : self.startAt)
    }

    /// Whether segments know each other's messages: something names their run, and no other one.
    var namesRun: Bool { self.part != nil && (self.isChild || self.startAt != nil || !self.run.isEmpty) }

    /// The number in the header of every message of a group: of all segments where they have a name, else of this process.
    func headerRun(seed: UInt64, group: String?) -> UInt32 {
        guard self.namesRun else { return UInt32.random(in: 1...UInt32.max) }
        return max(1, UInt32(truncatingIfNeeded: "\(self.runIdentity(seed: seed)) \(group ?? "")".stableHash))
    }
}
