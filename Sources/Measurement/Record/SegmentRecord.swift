/// The part of a plan that several processes share: `index` of `count`, from 1.
package struct SegmentRecord: Codable, Hashable, Sendable {
    package var index: Int
    package var count: Int
    /// The same for all segments of one run; absent if the run is no segment.
    package var run: String?
    /// A hash of the plan that the segments share.
    package var plan: String?
    /// Thresholds for all segments together; no single segment checks them.
    package var thresholds: [String]?
    /// The number of segments in merged results, or of the processes of this segment.
    package var merged: Int?
    /// The processes of a segment of several, merged on their host: one for each, in order.
    package var processes: [ProcessRecord]?
    /// The levels of such a segment that its time line does not show.
    package var levels: [HeldLevel]?
    /// The segments that are not in the figures of a whole run.
    package var lost: [LostSegment]?
    /// The clock of a segment whose messages arrive in others; one of several processes has one for each of them.
    package var clock: ClockRecord?

    package init(index: Int = 1, count: Int = 1) {
        self.index = index
        self.count = count
    }

    /// Whether it is a part of a run, which a merge adds to the others.
    package var isPart: Bool { self.run != nil && (self.merged == nil || self.processes != nil) }

    /// One clock for each process.
    package var clocks: [ClockRecord?] { self.processes?.map(\.clock) ?? [self.clock] }
}

/// The facts that a merge of all segments needs of a single process of a segment.
package struct ProcessRecord: Codable, Hashable, Sendable {
    package var clock: ClockRecord?
    /// The measured phase, in seconds from the start of the segment; absent if it never began.
    package var measured: Span?

    package struct Span: Codable, Hashable, Sendable {
        package var start: Double
        package var end: Double

        package init(start: Double, end: Double) {
            self.start = start
            self.end = end
        }
    }

    package init(clock: ClockRecord?, measured: Span?) {
        self.clock = clock
        self.measured = measured
    }
}

/// The sum of a level over all processes in one second in which some had no interval of the same phase.
///
/// A process that has ended counts with its last level, so that the sum is never that of a few processes alone.
package struct HeldLevel: Codable, Hashable, Sendable {
    package var name: String
    package var labels: Labels
    /// A second of the segment's time line.
    package var second: Int
    /// Absent before all processes had reported the level.
    package var value: Double?

    package init(name: String, labels: Labels, second: Int, value: Double?) {
        self.name = name
        self.labels = labels
        self.second = second
        self.value = value
    }
}

package struct LostSegment: Codable, Hashable, Sendable {
    /// The index, from 1 on.
    package var index: Int
    /// The known facts about its end: `host b, lost 12 s after the begin`.
    package var words: String

    package init(index: Int, words: String) {
        self.index = index
        self.words = words
    }
}
