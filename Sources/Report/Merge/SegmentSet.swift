import Ledger
import Measurement

/// The segments of one run, all of them, in their order.
package struct SegmentSet: Sendable {
    package let segments: [SegmentResult]

    /// Why these are not the segments of one run: a line for each reason.
    package struct Refusal: Error, Hashable, Sendable {
        package let lines: [String]
    }

    /// Reads them and checks that they belong together and none is missing or doubled.
    package init(_ directories: [String]) throws(Refusal) {
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
        try self.init(read)
    }

    package init(_ segments: [SegmentResult]) throws(Refusal) {
        let lines = Self.problems(segments)
        guard lines.isEmpty else { throw Refusal(lines: lines) }
        self.segments = segments.sorted { $0.index < $1.index }
    }

    private static func problems(_ segments: [SegmentResult]) -> [String] {
        guard let first = segments.first else { return ["there is no segment to merge"] }
        let foreign = segments.compactMap { segment in
            self.difference(first, segment).map { "\(segment.path): \($0) \(first.path)" }
        }
        guard foreign.isEmpty else { return foreign }
        var lines: [String] = []
        let places = Dictionary(grouping: segments, by: \.index)
        for (index, same) in places.sorted(by: { $0.key < $1.key }) where same.count > 1 {
            let paths = same.map(\.path).joined(separator: " and ")
            lines.append("segment \(index) of \(first.count) is given \(same.count) times, \(paths); give each once")
        }
        let missing = (1...first.count).filter { places[$0] == nil }
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
        if one.tool != two.tool {
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
