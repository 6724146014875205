package import HostFit
package import LoadEngine
package import Measurement
import Report

/// Which part of a load this process carries out, and when it begins.
package struct SegmentOptions: Hashable, Sendable {
    /// `nil`: all of it.
    package var part: PlanSegment?
    /// A text that all segments of one run have in common, and no other run; empty where nothing names the run.
    package var run = ""
    /// A hash of the whole schedule; set if a segment is run.
    package var schedule = ""
    /// Nanoseconds that this process takes its clock to be ahead of its host's, as another host's might be.
    package var clockAhead: Int64 = 0
    /// Nanoseconds per second that it takes its clock to gain.
    package var clockGain: Int64 = 0
    /// CLOCK_REALTIME less CLOCK_MONOTONIC as who started this process has it, so that all its segments have one clock to
    /// the nanosecond; `nil`: as this process has it.
    package var realtimeOffset: Int64?
    /// CLOCK_REALTIME nanoseconds; `nil`: at once.
    package var startAt: Int64?
    /// Started by another `clamor`, which says when to begin.
    package var isChild = false
    /// Which process begins the run of this segment together with others on other hosts; `nil`: none.
    package var coordinator: CoordinatorOptions?
    /// The number of segments that a coordinator waits for.
    package var expected: Int?
    /// Segments on this host, each a process of its own, and the command line of this one; `nil`: this process alone.
    package var processes: Processes?

    package init() {}

    package struct Processes: Hashable, Sendable {
        package var count: Int
        /// The command line of the run's first segment, and of each other one, without what each decides for itself.
        package var (first, others): ([String], [String])

        package init(count: Int, first: [String] = [], others: [String] = []) {
            self.count = count
            (self.first, self.others) = (first, others)
        }
    }
}

extension LoadOptions {
    package var part: PlanSegment { self.segment.part ?? .whole }
}

extension SegmentOptions {
    /// Another process begins the run, and knows all segments.
    package var isLed: Bool { self.isChild || self.coordinator != nil }

    /// The number of parts of the whole load; `nil` if it is not divided.
    package var count: Int? {
        guard let processes = self.processes?.count else { return self.part?.count ?? self.expected }
        return processes * (self.part?.count ?? 1)
    }

    /// How a load is to be divided so that no process has more clients than `most`.
    package func split(_ plan: LoadPlan, of most: Int, where isDivisible: (SegmentOptions) -> Bool) -> LoadSplit? {
        let isBySegment = self.part != nil && !self.isChild
        let count = plan.segments(of: most, upTo: isBySegment ? Self.mostSegments : Self.mostProcesses) { count in
            var options = SegmentOptions()
            if isBySegment {
                options.part = PlanSegment(index: 0, of: count)
            } else {
                options.processes = Processes(count: count)
            }
            return isDivisible(options)
        }
        return count.map { isBySegment ? .segments($0) : .processes($0) }
    }

    /// The most that `--segment` takes.
    package static let mostSegments = 100_000

    /// The most that `--processes` takes.
    package static let mostProcesses = 1_024
}

extension SegmentOptions.Processes {
    /// The command line of one segment.
    ///
    /// `part`: of the load, which the processes share; `nil`: all of it.
    package func arguments(
        of index: Int,
        in part: PlanSegment? = nil,
        seed: UInt64,
        threads: Int,
        directory: String
    ) -> [String] {
        // Clients k mod N of a host are those k mod N·P of its P processes together.
        let (first, hosts) = (part?.index ?? 0, part?.count ?? 1)
        return (first + index > 0 ? self.others : self.first) + [
            "--segment", "\(first + hosts * index + 1)/\(hosts * self.count)", "--child", "--seed", "\(seed)",
            "--threads", "\(threads)",
            "--out", directory, "--quiet",
        ]
    }
}

extension SegmentOptions {
    package var clock: OwnClock {
        OwnClock(offset: self.realtimeOffset, ahead: self.clockAhead, gain: self.clockGain)
    }

    /// The same value for all segments of one run.
    ///
    /// A start given by a leader belongs to the run that the leader named.
    package func runIdentity(seed: UInt64) -> String {
        SegmentIdentity.run(name: self.run, seed: seed, startAt: self.isLed ? nil : self.startAt)
    }

    /// Whether segments can recognise each other's messages: their options name a common run.
    package var namesRun: Bool { self.part != nil && (self.isLed || self.startAt != nil || !self.run.isEmpty) }

    /// The run number in the header of every message of a group: common to named segments, otherwise of this process.
    package func headerRun(seed: UInt64, group: String?) -> UInt32 {
        guard self.namesRun else { return UInt32.random(in: 1...UInt32.max) }
        return max(1, UInt32(truncatingIfNeeded: "\(self.runIdentity(seed: seed)) \(group ?? "")".stableHash))
    }
}
