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
    /// Of a coordinator: the number of segments that it waits for.
    package var expected: Int?
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
}

extension LoadOptions {
    var part: PlanSegment { self.segment.part ?? .whole }
}

extension SegmentOptions {
    /// Another process begins the run, and knows all segments.
    var isLed: Bool { self.isChild || self.coordinator != nil }

    /// The number of parts of the whole load; `nil` if it is not divided.
    var count: Int? {
        guard let processes = self.processes?.count else { return self.part?.count ?? self.expected }
        return processes * (self.part?.count ?? 1)
    }

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
    ///
    /// `part`: of the load, which the processes share; `nil`: all of it.
    package func arguments(
        of index: Int,
        in part: PlanSegment? = nil,
        seed: UInt64,
        threads: Int,
        directory: String
    ) -> [String] {
        var words = self.arguments
        let specs = CommandName(arguments: words).map { OptionTable.specs(of: $0) } ?? []
        // Each segment decides for itself, or its parent for it.
        for option in CommandLineWords(words, specs).options.reversed()
        where [.process, .command].contains(option.spec.scope)
            || option.spec.scope == .single && index + (part?.index ?? 0) > 0
        {
            words.removeSubrange(option.range)
        }
        // Clients k mod N of a host are those k mod N·P of its P processes together.
        let (first, hosts) = (part?.index ?? 0, part?.count ?? 1)
        return words + [
            "--segment", "\(first + hosts * index + 1)/\(hosts * self.count)", "--child", "--seed", "\(seed)",
            "--threads", "\(threads)",
            "--out", directory, "--quiet",
        ]
    }
}
