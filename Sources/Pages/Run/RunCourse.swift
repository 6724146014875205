import Charts
import Measurement

/// The time line of a run.
///
/// Times are seconds from the start of the run, as in the result files and in the sentences on the run.
struct RunCourse {
    let timeline: Timeline
    /// The end of the connect phase.
    let loadBegin: Double
    let begins: [Double]
    let lengths: [Double]
    let isMeasured: [Bool]
    /// Whether an interval is load, not connect or drain.
    let isLoad: [Bool]
    /// The stage of each interval, or its phase.
    let stages: [String]
    let bands: [TimeFrame.Band]
    /// The median.
    private let usualLength: Double

    init(_ record: RunRecord, _ timeline: Timeline) {
        self.timeline = timeline
        let connect = record.stages.first { $0.name == "connect" && !$0.measured }
        self.loadBegin = connect.map { $0.start + $0.durationSeconds } ?? record.stages.first?.start ?? 0
        let stages = record.stages
        var begins: [Double] = []
        var lengths: [Double] = []
        for (place, second) in timeline.seconds.enumerated() {
            let next = place + 1 < timeline.seconds.count ? timeline.seconds[place + 1] : nil
            let begin = place > 0 ? max(Double(second), (begins.last ?? 0) + (lengths.last ?? 0)) : Double(second)
            var end = begin + timeline.lengths[place]
            // A stage ended within this second, whose parts follow each other.
            if next == second {
                let stageEnds = stages.map { $0.start + $0.durationSeconds }
                end = stageEnds.first { $0 > begin + 1e-6 && $0 < Double(second) + 10 } ?? end
            } else if let next {
                end = min(end, Double(next))
            }
            if let length = record.durationSeconds, begin < length { end = min(end, length) }
            begins.append(begin)
            lengths.append(max(end - begin, 1e-3))
        }
        self.begins = begins
        self.lengths = lengths
        self.usualLength = lengths.sorted().dropFirst(lengths.count / 2).first ?? 1
        let own = zip(begins, lengths).map { begin, length in
            stages.last { $0.start <= begin + length / 2 }
        }
        self.stages = zip(own, timeline.phases).map { $0?.name ?? $1 }
        self.isMeasured = zip(own, timeline.phases).map { $0?.measured ?? ($1 == "measure") }
        self.isLoad = self.stages.map { $0 != "connect" && $0 != "drain" }
        self.bands = stages.filter { $0.durationSeconds > 0 }.map { stage in
            let end = stage.start + stage.durationSeconds
            return TimeFrame.Band(stage.name, begin: stage.start, end: end, isHatched: !stage.measured)
        }
    }

    /// Whether there is a course to show: a second and another.
    var isEmpty: Bool { self.timeline.seconds.first == self.timeline.seconds.last }

    /// The load, with all of the connect phase where something happened in it.
    func frame(marks: [TimeFrame.Mark]) -> TimeFrame {
        // A part of a second with which the load ends is marked as one.
        let parts = self.begins.indices.filter { self.isEnd($0) && self.lengths[$0] >= TimelineInterval.shortestRated }
            .map {
                TimeFrame.Band("", begin: self.begins[$0], end: self.begins[$0] + self.lengths[$0], isHatched: true)
            }
        var frame = TimeFrame(begins: self.begins, lengths: self.lengths, bands: self.bands + parts, marks: marks)
        let first = zip(self.begins, self.lengths).first { $0 + $1 > self.loadBegin }?.0
        let end = (self.begins.last ?? 0) + (self.lengths.last ?? 0)
        guard let first, first < end, !marks.contains(where: { $0.second < first }) else { return frame }
        frame.shown = max(self.begins.first ?? 0, min(first, self.loadBegin))...end
        return frame
    }

    /// The start of the interval that a second of the run is in.
    func place(ofSecond second: Int) -> Double {
        let seconds = self.timeline.seconds
        let place = seconds.firstIndex(of: second) ?? seconds.lastIndex { $0 <= second }
        return place.map { self.begins[$0] } ?? Double(second)
    }

    func columns(_ kinds: [MetricDefinition], where isWanted: (Labels) -> Bool = { _ in true }) -> [Timeline.Column] {
        self.timeline.columns.filter { $0.isOf(kinds) && isWanted($0.labels) }
    }

    /// Increases of counters per second, added up; nothing without a column.
    ///
    /// `isRare`: events that no chart leaves out, such as errors; a part of a second has no more of them than occurred.
    func rate(
        _ kinds: [MetricDefinition],
        isRare: Bool = false,
        where isWanted: (Labels) -> Bool = { _ in true }
    ) -> [Double]? {
        self.sum(self.columns(kinds, where: isWanted)).map { sums in
            let rates = zip(sums, self.timeline.lengths).map { $1 > 0 ? $0 / (isRare ? max($1, 1) : $1) : .nan }
            return isRare ? rates : self.trimmed(rates)
        }
    }

    /// Without parts of a second that are too short for a rate: their few events look like a fall or a jump.
    func trimmed(_ values: [Double]) -> [Double] {
        zip(values, self.timeline.lengths).map { $1 < TimelineInterval.shortestRated ? .nan : $0 }
    }

    /// Whether an interval is a part of a second with which the load ends.
    private func isEnd(_ place: Int) -> Bool {
        self.isLoad[place] && !self.isWhole(place) && !(place + 1 < self.isLoad.count && self.isLoad[place + 1])
    }

    /// Levels without that of a part of a second at the end of the load, with which every client goes.
    func withoutEnd(_ values: [Double]) -> [Double] { values.indices.map { self.isEnd($0) ? .nan : values[$0] } }

    /// Values added up; nothing without a column.
    func sum(_ columns: [Timeline.Column]) -> [Double]? { self.join(columns.map(\.values)) { $0 + $1 } }

    /// The highest figure of several durations; nothing without a column.
    func highest(_ columns: [Timeline.Column], _ figure: KeyPath<Timeline.Column, [Double]>) -> [Double]? {
        // In a damaged file a metric may be a duration in one series and something else in another.
        let series = columns.map { $0[keyPath: figure] }.filter { $0.count == self.timeline.seconds.count }
        return self.join(series) { max($0, $1) }
    }

    private func join(_ all: [[Double]], _ both: (Double, Double) -> Double) -> [Double]? {
        guard let first = all.first else { return nil }
        let joined = all.dropFirst().reduce(first) { left, right in
            zip(left, right).map { $0.isNaN ? $1 : $1.isNaN ? $0 : both($0, $1) }
        }
        return joined.contains(where: \.isFinite) ? joined : nil
    }

    /// The values of the measured phase; all of them where none is measured.
    func measured(_ values: [Double]) -> [Double] {
        guard self.isMeasured.contains(true) else { return values }
        return zip(values, self.isMeasured).map { $1 ? $0 : .nan }
    }

    /// The interval with the highest or lowest value of the measured phase.
    ///
    /// `isWhole`: without parts of a second, whose counts say little.
    func worst(_ values: [Double], isHighest: Bool, isWhole: Bool = false) -> (place: Int, value: Double)? {
        let values = self.measured(isWhole ? self.whole(values) : values)
        let places = values.enumerated().filter { $0.element.isFinite }
        let worst = isHighest ? places.max { $0.element < $1.element } : places.min { $0.element < $1.element }
        return worst.map { (place: $0.offset, value: $0.element) }
    }

    /// The values without the intervals that are parts of a second.
    func whole(_ values: [Double]) -> [Double] { values.indices.map { self.isWhole($0) ? values[$0] : .nan } }
    private func isWhole(_ place: Int) -> Bool { self.lengths[place] > 0.9 * self.usualLength }

    /// The time of an interval in words: `at 24 s`.
    func time(_ place: Int) -> String { "at \(Self.words(self.begins[place]))" }

    /// `24 s`: in seconds however long the run is, as in the result files.
    static func words(_ seconds: Double) -> String { "\(Int(bounded: seconds.rounded(.down))) s" }
}
