import Ledger
package import Measurement

/// The segments of one run, in their order: all of them, all that are left, or all that one host has.
package struct SegmentSet: Sendable {
    package let segments: [SegmentResult]
    /// The segment of which these are the processes; `nil` for those of a whole run.
    let host: SegmentRecord?
    let lost: [LostSegment]

    /// Why these are not the segments of one run: a line for each reason.
    package struct Refusal: Error, Hashable, Sendable {
        package let lines: [String]
    }

    /// Reads them and checks that they belong together and none is doubled, or missing without being lost.
    ///
    /// - Parameters:
    ///   - directories: of the segments, in any order. A segment may be merged of several processes.
    ///   - lost: the segments that have none.
    /// - Throws: with a line for each reason against it.
    package init(_ directories: [String], without lost: [LostSegment] = []) throws(Refusal) {
        try self.init(try Self.read(directories), nil, lost)
    }

    /// The processes of one host as a single segment.
    ///
    /// Segment i of N consists of the segments i + N × j of N × P, j < P, if indices begin with 0.
    ///
    /// - Parameters:
    ///   - directories: of all P of them, in any order.
    ///   - segment: its index, from 1, and the count.
    /// - Throws: with a line for each reason against it.
    package init(_ directories: [String], as segment: SegmentRecord) throws(Refusal) {
        precondition((1...max(1, segment.count)).contains(segment.index), "a segment is one of them")
        try self.init(try Self.read(directories), segment, [])
    }

    private init(_ segments: [SegmentResult], _ host: SegmentRecord?, _ lost: [LostSegment]) throws(Refusal) {
        let lines = Self.problems(segments, host, lost)
        guard lines.isEmpty else { throw Refusal(lines: lines) }
        self.host = host
        self.lost = lost.sorted { $0.index < $1.index }
        self.segments = segments.sorted { $0.index < $1.index }.map { segment in
            segment.naming(loopsOf: Self.number(of: segment.index, in: host))
        }
    }

    private static func read(_ directories: [String]) throws(Refusal) -> [SegmentResult] {
        var read: [SegmentResult] = []
        var lines: [String] = []
        for directory in directories {
            do throws(ResultError) {
                read.append(try SegmentResult.read(directory))
            } catch {
                lines.append("\(error)")
            }
        }
        // With contradictory segments, missing ones cannot be determined.
        guard lines.isEmpty else { throw Refusal(lines: lines) }
        return read
    }

    /// `segment 3` of a run, or `process 2` of a segment.
    func name(of segment: SegmentResult) -> String {
        "\(self.host == nil ? "segment" : "process") \(Self.number(of: segment.index, in: self.host))"
    }

    /// The number of a segment in its run, or of a process in its segment, from 1.
    private static func number(of index: Int, in host: SegmentRecord?) -> Int {
        host.map { (index - 1) / $0.count + 1 } ?? index
    }

    private static func problems(
        _ segments: [SegmentResult],
        _ host: SegmentRecord?,
        _ lost: [LostSegment]
    ) -> [String] {
        guard let first = segments.first else { return ["there is no segment to merge"] }
        let foreign = segments.compactMap { segment in
            self.difference(first, segment).map { "\(segment.path): \($0) \(first.path)" }
        }
        guard foreign.isEmpty else { return foreign }
        var wanted = Array(1...first.count)
        if let host {
            wanted = Array(stride(from: host.index, through: first.count, by: host.count))
            let others = segments.filter { !wanted.contains($0.index) || !first.count.isMultiple(of: host.count) }
            guard others.isEmpty else {
                return others.map { segment in
                    "\(segment.path): segment \(segment.index) of \(segment.count) is no process of segment "
                        + "\(host.index) of \(host.count)"
                }
            }
        }
        var lines: [String] = []
        let places = Dictionary(grouping: segments, by: \.index)
        for (index, same) in places.sorted(by: { $0.key < $1.key }) where same.count > 1 {
            let paths = same.map(\.path).joined(separator: " and ")
            lines.append("segment \(index) of \(first.count) is given \(same.count) times, \(paths); give each once")
        }
        for segment in lost where places[segment.index] != nil || !wanted.contains(segment.index) {
            let why = places[segment.index]?.first.map { "is given, \($0.path)," } ?? "is not there"
            lines.append("segment \(segment.index) of \(first.count) \(why) and cannot be lost")
        }
        let missing = wanted.filter { index in places[index] == nil && !lost.contains { $0.index == index } }
        if !missing.isEmpty {
            let names =
                missing.prefix(10).map(String.init).joined(separator: ", ") + (missing.count > 10 ? ", ..." : "")
            let words =
                missing.count == 1 ? "segment \(names) of \(first.count) is" : "segments \(names) of \(first.count) are"
            lines.append("\(words) missing; merge needs all of them")
        }
        return lines.isEmpty ? self.timeProblem(segments).map { [$0] } ?? [] : lines
    }

    /// In what a segment differs from what all have in common.
    private static func difference(_ first: SegmentResult, _ other: SegmentResult) -> String? {
        let (one, two) = (first.record, other.record)
        if !one.tool.isSameRelease(as: two.tool) {
            return "was measured by \(two.tool.name) \(two.tool.version), and not by \(one.tool.version) as"
        }
        if one.segment.count != two.segment.count {
            return "is one of \(two.segment.count) segments, and not of \(one.segment.count) as"
        }
        if one.segment.plan != two.segment.plan { return "has another plan than" }
        if one.segment.run != two.segment.run { return "is of another run than" }
        if one.segment.thresholds != two.segment.thresholds { return "has other thresholds than" }
        if first.ledger?.places != other.ledger?.places { return "has a ledger of other groups or streams than" }
        return nil
    }

    /// Segments that did not run at the same time are not one run, whatever their names.
    private static func timeProblem(_ segments: [SegmentResult]) -> String? {
        guard let last = segments.max(by: { $0.startedAt < $1.startedAt }),
            let first = segments.min(by: { $0.endedAt < $1.endedAt }), last.startedAt >= first.endedAt
        else { return nil }
        return "\(last.path): began at \(WallClock.rfc3339(last.startedAt)), when \(first.path) had ended, at "
            + "\(WallClock.rfc3339(first.endedAt)); the segments of a run must overlap in time"
    }
}

/// By what the segments of one run know each other.
package enum SegmentIdentity {
    /// A hash of the plan without the places of its servers and its stores.
    ///
    /// `schedule` adds the parts that the plan's entries leave out.
    package static func plan(_ plan: [String: JSONValue], schedule: String) -> String {
        "\(PlanIdentity(ofSegments: plan).hash) \(schedule)".stableHex
    }

    /// A run: what names it, if anything does, its seed, and the moment at which its segments begin, if that was given.
    package static func run(name: String, seed: UInt64, startAt: Int64?) -> String {
        "\(seed) \(startAt ?? 0) \(name)".stableHex
    }
}
