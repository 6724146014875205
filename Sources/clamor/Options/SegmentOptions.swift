import HostFit
package import LoadEngine

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
    /// CLOCK_REALTIME less CLOCK_MONOTONIC as who started this process has it, so that all its segments have one clock to
    /// the nanosecond; `nil`: as this process has it.
    package var realtimeOffset: Int64?
    /// CLOCK_REALTIME nanoseconds; `nil`: at once.
    package var startAt: Int64?
    /// Started by another `clamor`, which says when to begin.
    package var isChild = false
    /// Segments on this host, each a process of its own, and the command line of this one; `nil`: this process alone.
    package var processes: Processes?

    package struct Processes: Hashable, Sendable {
        package var count: Int
        package var arguments: [String]

        package init(count: Int, arguments: [String]) {
            self.count = count
            self.arguments = arguments
        }
    }

    package init() {}
}

extension LoadOptions {
    var part: PlanSegment { self.segment.part ?? .whole }
}

extension SegmentOptions {
    /// How a load is to be divided so that no process has more clients than `most`.
    func split(_ plan: LoadPlan, of most: Int, where isDivisible: (SegmentOptions) -> Bool) -> LoadSplit? {
        let isBySegment = self.part != nil && !self.isChild
        let count = plan.segments(of: most, upTo: isBySegment ? SegmentPlace.most : Self.mostProcesses) { count in
            var options = SegmentOptions()
            if isBySegment {
                options.part = PlanSegment(index: 0, of: count)
            } else {
                options.processes = Processes(count: count, arguments: [])
            }
            return isDivisible(options)
        }
        return count.map { isBySegment ? .segments($0) : .processes($0) }
    }

    /// That `--processes` takes.
    static let mostProcesses = 1_024
}

extension SegmentOptions.Processes {
    /// The command line of one segment.
    package func arguments(of index: Int, seed: UInt64, threads: Int, directory: String) -> [String] {
        var words = self.arguments
        let specs = CommandName(arguments: words).map { OptionTable.specs(of: $0) } ?? []
        // Each segment decides for itself, or its parent for it.
        for option in CommandLineWords(words, specs).options.reversed()
        where [.process, .command].contains(option.spec.scope) || option.spec.scope == .single && index > 0 {
            words.removeSubrange(option.range)
        }
        return words + [
            "--segment", "\(index + 1)/\(self.count)", "--child", "--seed", "\(seed)", "--threads", "\(threads)",
            "--out", directory, "--quiet",
        ]
    }
}
