import FoundationEssentials
import LoadEngine
import Measurement
import Report
import Workloads

extension OptionReader {
    /// The part of the load that is this process's, and when it begins; behind thresholds and seed.
    mutating func read(_ flags: SegmentFlags, into options: inout LoadOptions) {
        options.segment.isChild = flags.child
        if let text = flags.startAt { options.segment.startAt = self.startAt(text) }
        if let count = self.number(flags.processes, "--processes", in: 1...SegmentOptions.mostProcesses) {
            options.segment.processes = SegmentOptions.Processes(count: count, arguments: self.arguments)
            if flags.segment != nil { self.report("--processes", "starts the segments itself; leave --segment out") }
            if flags.startAt != nil { self.report("--processes", "starts its segments together; leave --start-at out") }
        }
        if let text = flags.segment { self.read(segment: text, into: &options) }
        guard options.segment.part != nil || options.segment.processes != nil else { return }
        for sentence in options.thresholds where sentence.split(separator: " ").last == "abort" {
            self.report(
                "--threshold",
                "'\(sentence)': abort asks of the whole run what a segment sees in part; leave it out"
            )
        }
    }

    private mutating func read(segment text: String, into options: inout LoadOptions) {
        let place = text == "auto" ? self.segmentOfEnvironment : SegmentPlace(text)
        guard let place else {
            if text != "auto" {
                self.report("--segment", "'\(text)' is no segment; write it like 2/4, from 1/4 to 4/4, or auto")
            }
            return
        }
        options.segment.part = PlanSegment(index: place.index - 1, of: place.count)
        options.segment.run = self.environment["CLAMOR_RUN"] ?? place.run
        if options.seed == nil {
            self.report("--segment", "needs --seed N, the same for all segments, so that they have one plan")
        }
    }

    private var segmentOfEnvironment: SegmentPlace? {
        mutating get {
            do throws(QuantityError) {
                return try SegmentPlace(environment: self.environment)
            } catch {
                self.report("--segment", "auto: \(error)")
                return nil
            }
        }
    }

    private mutating func startAt(_ text: String) -> Int64? {
        do throws(QuantityError) {
            return try StartText.parse(text, now: Int64(Date().timeIntervalSince1970 * 1e9))
        } catch {
            self.report("--start-at", error.description)
            return nil
        }
    }

    // MARK: - Loads that can be divided

    /// Whether a check finds nothing wrong.
    static func passes(_ check: (inout OptionReader) -> Void) -> Bool {
        var reader = OptionReader(arguments: [], environment: [:], checks: OptionChecks())
        check(&reader)
        return reader.problems.isEmpty
    }

    /// Whether each segment has clients, and publishers with their subscribers.
    mutating func checkSegments(_ options: RunOptions) {
        guard let count = options.common.segmentCount else { return }
        let flag = options.common.segmentFlag
        if options.store != nil, options.segment.processes != nil {
            self.report("--store", "each process needs a file of its own; give the segments theirs with --segment I/N")
        }
        // Before their numbers, which follow from it.
        if options.kind == .pubsub, options.topology != .pair {
            return self.report(
                flag,
                "with --topology \(options.topology.rawValue) subscribers hear publishers of other segments, which in "
                    + "this build no ledger follows; take --topology pair, or pub and sub each by itself"
            )
        }
        for (number, name) in [(options.publishers, "-c"), (options.subscribers, "--subscribers")]
        where number > 0 && number < count {
            let name = options.kind == .pubsub ? name : "-c"
            return self.report(
                flag,
                "\(count) segments of \(name) \(number) would not have a client each; ask for fewer"
            )
        }
        guard options.kind == .pubsub else { return }
        if options.subscribers > options.publishers, options.publishers % count != 0 {
            self.report(
                flag,
                "the \(options.subscribers) subscribers of \(options.publishers) publishers would be in other segments "
                    + "than these; make -c a multiple of \(count)"
            )
        }
        if options.publishers > 1, !options.topic.contains("%i"), !options.topic.contains("%c") {
            self.report(flag, "publishers of all segments would have one topic; put %i into -t")
        }
    }

    mutating func checkSegments(_ options: XMPPOptions) {
        guard let count = options.common.segmentCount else { return }
        let flag = options.common.segmentFlag
        if options.kind == .message {
            self.report(
                flag,
                "clients write to others that may be in other segments, which in this build no ledger follows"
            )
        }
        if options.registers || options.kind == .register {
            self.report(flag, "accounts are made by one process in this build; create them first, with --keep")
        }
        // Whole rooms and circles.
        let parts = options.hasGroups ? options.operators / max(1, options.groupSize) : options.operators
        if parts < count {
            let what = options.hasGroups ? "\(parts) groups" : "-c \(parts)"
            self.report(flag, "\(count) segments of \(what) would not have clients each; ask for fewer")
        }
    }
}

extension LoadOptions {
    var segmentCount: Int? { self.segment.part?.count ?? self.segment.processes?.count }

    var segmentFlag: String { self.segment.processes == nil ? "--segment" : "--processes" }
}

/// Segment `index` of `count`, from 1, and what names the run that it is of.
struct SegmentPlace: Hashable {
    var index: Int
    var count: Int
    var run = ""

    static let most = 100_000

    /// Reads `2/4`.
    init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.allSatisfy { $0.isASCII && $0.isNumber } }),
            let index = Int(parts[0]), let count = Int(parts[1]), (1...Self.most).contains(count),
            (1...count).contains(index)
        else { return nil }
        self.index = index
        self.count = count
    }

    /// What a scheduler says in the environment of the processes that it starts.
    init(environment: [String: String]) throws(QuantityError) {
        let sources: [(name: String, read: ([String: String]) throws(QuantityError) -> SegmentPlace)] = [
            ("JOB_COMPLETION_INDEX", Self.ofKubernetes), ("SLURM_ARRAY_TASK_ID", Self.ofSlurm),
            ("OMPI_COMM_WORLD_RANK", Self.ofOpenMPI),
        ]
        let present = sources.filter { environment[$0.name] != nil }
        guard let source = present.first else {
            let names = sources.map(\.name).joined(separator: ", ")
            throw QuantityError("the environment has none of \(names); write the segment like 2/4")
        }
        guard present.count == 1 else {
            let names = present.map(\.name).joined(separator: " and ")
            throw QuantityError("the environment has \(names), and which is meant is not known; write it like 2/4")
        }
        self = try source.read(environment)
    }

    private static func number(_ name: String, _ environment: [String: String]) throws(QuantityError) -> Int {
        guard let text = environment[name] else { throw QuantityError("\(name) is missing in the environment") }
        guard let number = Int(text), number >= 0 else {
            throw QuantityError("\(name) is '\(text)', and should be a whole number")
        }
        return number
    }

    private init(index: Int, count: Int, run: String, of name: String) throws(QuantityError) {
        guard (1...Self.most).contains(count), (1...count).contains(index) else {
            throw QuantityError("\(name) makes it segment \(index) of \(count), which there is not")
        }
        self.index = index
        self.count = count
        self.run = run
    }

    private static func ofKubernetes(_ environment: [String: String]) throws(QuantityError) -> SegmentPlace {
        let count = try self.number("CLAMOR_SEGMENTS", environment)
        let index = try self.number("JOB_COMPLETION_INDEX", environment)
        return try SegmentPlace(index: index + 1, count: count, run: "", of: "JOB_COMPLETION_INDEX")
    }

    private static func ofSlurm(_ environment: [String: String]) throws(QuantityError) -> SegmentPlace {
        let id = try self.number("SLURM_ARRAY_TASK_ID", environment)
        let least = try self.number("SLURM_ARRAY_TASK_MIN", environment)
        let most = try self.number("SLURM_ARRAY_TASK_MAX", environment)
        let step = try self.number("SLURM_ARRAY_TASK_STEP", environment)
        guard step > 0, id >= least, most >= id, (id - least) % step == 0, (most - least) % step == 0 else {
            throw QuantityError(
                "task \(id) is none of \(least) to \(most) in steps of \(step) (SLURM_ARRAY_TASK_MIN, _MAX, _STEP)"
            )
        }
        let count = (most - least) / step + 1
        // Of a list such as 1,5,6 the step says nothing.
        if let tasks = environment["SLURM_ARRAY_TASK_COUNT"], Int(tasks) != count {
            throw QuantityError(
                "the array has \(tasks) tasks (SLURM_ARRAY_TASK_COUNT), and \(least) to \(most) in steps of \(step) are "
                    + "\(count); number them without gaps"
            )
        }
        let run = environment["SLURM_ARRAY_JOB_ID"] ?? ""
        return try SegmentPlace(index: (id - least) / step + 1, count: count, run: run, of: "SLURM_ARRAY_TASK_ID")
    }

    private static func ofOpenMPI(_ environment: [String: String]) throws(QuantityError) -> SegmentPlace {
        let rank = try self.number("OMPI_COMM_WORLD_RANK", environment)
        let size = try self.number("OMPI_COMM_WORLD_SIZE", environment)
        let run = environment["PMIX_NAMESPACE"] ?? ""
        return try SegmentPlace(index: rank + 1, count: size, run: run, of: "OMPI_COMM_WORLD_RANK")
    }
}

/// A moment to begin at: `2026-11-21T01:37:10Z`, or seconds since 1970.
package enum StartText {
    private static let year = 365 * 86_400 * 1_000_000_000 as Int64

    /// - Returns: CLOCK_REALTIME nanoseconds, after `now` and within a year.
    package static func parse(_ text: String, now: Int64) throws(QuantityError) -> Int64 {
        guard let time = self.moment(text) else {
            throw QuantityError("'\(text)' is no moment; write it like 2026-11-21T01:37:10Z, or in seconds since 1970")
        }
        guard time > now else {
            throw QuantityError(
                "\(WallClock.rfc3339(time)) is past, it is \(WallClock.rfc3339(now)); give a moment to come"
            )
        }
        guard time - now <= self.year else { throw QuantityError("'\(text)' is more than a year away") }
        return time
    }

    private static func moment(_ text: String) -> Int64? {
        if text.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." }) {
            guard let seconds = Double(text), seconds > 0, seconds < 9e9 else { return nil }
            return Int64((seconds * 1e9).rounded())
        }
        return WallClock.nanoseconds(text)
    }
}
