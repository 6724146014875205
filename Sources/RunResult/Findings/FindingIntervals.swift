import Measurement

/// The intervals of a run with their stages, and sums over the series of its time line.
struct FindingIntervals {
    struct Interval {
        var second: Int
        /// Seconds from the start of the run.
        var start: Double
        var length: Double
        var stage: String?
        /// Whether messages are due: not while clients connect, in the drain, or in a stage with load 0.
        var isLoad: Bool
        var isMeasured: Bool

        var end: Double { self.start + self.length }
    }

    let all: [Interval]
    private let columns: [Timeline.Column]
    /// The load of each stage of the plan, by its name, as a share of the rate; empty without stages.
    let loads: [String: Double]
    /// Whether the plan has stages, which a reader knows by name.
    var hasStages: Bool { !self.loads.isEmpty }

    init(_ record: RunRecord, _ timeline: Timeline) {
        self.columns = timeline.columns
        var loads: [String: Double] = [:]
        if case .array(let stages)? = record.plan["stages"] {
            for case .object(let stage) in stages {
                if case .string(let name)? = stage["name"] { loads[name] = stage["load"]?.double ?? 1 }
            }
        }
        self.loads = loads
        var intervals: [Interval] = []
        for (place, second) in timeline.seconds.enumerated() {
            // Intervals of one second follow each other.
            let last = intervals.last
            let start = last?.second == second ? last?.end ?? Double(second) : Double(second)
            let length = timeline.lengths[place]
            let middle = start + length / 2
            let stage = record.stages.last { $0.start <= middle && middle < $0.start + $0.durationSeconds }
            let phase = timeline.phases[place]
            let isLoad = phase != "connect" && phase != "drain" && stage.flatMap { loads[$0.name] } != 0
            intervals.append(
                Interval(
                    second: second,
                    start: start,
                    length: length,
                    stage: stage.flatMap { loads[$0.name] == nil ? nil : $0.name },
                    isLoad: isLoad,
                    isMeasured: isLoad && (stage?.measured ?? (phase == "measure"))
                )
            )
        }
        self.all = intervals
    }

    /// The series of these metrics.
    func columns(
        _ metrics: MetricDefinition...,
        where isWanted: (Labels) -> Bool = { _ in true }
    ) -> [Timeline.Column] {
        self.columns.filter { $0.isOf(metrics) && isWanted($0.labels) }
    }

    /// The sum of counters or levels in each interval; `nil` without such a series.
    func sum(_ columns: [Timeline.Column]) -> [Double]? {
        guard !columns.isEmpty else { return nil }
        return self.all.indices.map { place in
            columns.reduce(0) { $0 + ($1.values[place].isNaN ? 0 : $1.values[place]) }
        }
    }

    /// The same, with zeros without such a series.
    func counts(_ columns: [Timeline.Column]) -> [Double] { self.sum(columns) ?? self.all.map { _ in 0 } }

    /// The highest of a figure of durations in each interval; `nil` where no series has it.
    func highest(_ columns: [Timeline.Column], _ figure: KeyPath<Timeline.Column, [Double]>) -> [Double?] {
        // In a damaged file a metric may be a duration in one series and something else in another.
        let series = columns.map { $0[keyPath: figure] }.filter { $0.count == self.all.count }
        return self.all.indices.map { place in
            series.lazy.map { $0[place] }.filter { !$0.isNaN }.max()
        }
    }

    /// The second from which on the server answered and delivered nothing, to the end of the drain.
    ///
    /// Operations were due in that time, it began a second or more before the load ended, and the server had some of
    /// them: clients that cannot send make no silence. In closed loop all clients wait where no operation is due.
    func silentSecond(of record: RunRecord) -> Int? {
        let owesTurns = Self.owesTurns(record)
        guard owesTurns || record.books.contains(where: { $0.outstanding ?? 0 > 0 }),
            let load = self.all.last(where: \.isLoad)?.end
        else { return nil }
        let offered = self.counts(self.columns(.publishOffered, .stanzaOffered))
        // A count that moves at the end of a connection says nothing of the time before it.
        let ends = self.sum(
            self.columns(.publishAcked, .received, .stanzaAnswered, .stanzaAcked, .subscriptionChurnDone)
        )
        // Without receivers, the only answer to a message at QoS 0 is that the server has read it.
        if ends == nil, record.books.contains(where: { $0.confirmed ?? 0 > 0 }) { return nil }
        let loud = ends?.lastIndex { $0 > 0 } ?? -1
        let paced = record.plans.filter { $0["pacing"] != nil }
        let isOpen = paced.isEmpty || paced.contains { $0["pacing"] != "closed" || $0["think_seconds"] != nil }
        let due = self.all.indices.filter { offered[$0] > 0 || (!isOpen || owesTurns) && self.all[$0].isLoad }
        guard let first = due.first(where: { $0 > loud }) else { return nil }
        // Clients that are connected may hold their messages back themselves.
        let isOwed = owesTurns || record.books.contains { $0.outstanding ?? 0 > $0.notSent ?? 0 }
        let up = self.sum(self.columns(.clients)) ?? []
        guard isOwed || !up.isEmpty && up[first...].allSatisfy({ !($0 > 0) }) else { return nil }
        let start = self.all[first].start
        return start <= load - 1 ? Int(bounded: start) : nil
    }

    /// Whether the server has not answered changes of subscriptions, of which one or more were due in each interval.
    private static func owesTurns(_ record: RunRecord) -> Bool {
        let missed = record.whole(.subscriptionChurnMissed).compactMap(\.counter).reduce(0) { $0 + $1.value }
        let rate = record.plans.compactMap { $0["subscription_churn_rate"]?.double }.reduce(0, +)
        return rate >= 1 && Double(record.turns.outstanding) > missed
    }

    /// The median over the intervals of load.
    func median(_ values: [Double?]) -> Double? {
        self.all.indices.compactMap { self.all[$0].isLoad ? values[$0] : nil }.median
    }

    /// Runs of intervals, one after the other in time, for which `isIn` is true.
    func spans(where isIn: (Int) -> Bool) -> [Range<Int>] {
        var spans: [Range<Int>] = []
        for place in self.all.indices where isIn(place) {
            // A gap of a quarter second is less than any interval and more than any error of its length.
            if let last = spans.last, last.upperBound == place, self.all[place].start - self.all[place - 1].end < 0.25 {
                spans[spans.count - 1] = last.lowerBound..<place + 1
            } else {
                spans.append(place..<place + 1)
            }
        }
        return spans
    }

    func length(_ span: Range<Int>) -> Double { span.reduce(0) { $0 + self.all[$1].length } }

    /// ` in stage peak`; nothing in a run without stages.
    func stageWords(_ place: Int) -> String { self.all[place].stage.map { " in stage \($0)" } ?? "" }
}

/// Figures in sentences.
enum FindingWords {
    /// `412 ms`, `2.04 s`, `13 s`: three significant digits.
    static func duration(_ seconds: Double) -> String {
        switch seconds {
        case 0.9995...: self.significant(seconds) + " s"
        case 0.000_999_5...: self.significant(seconds * 1e3) + " ms"
        default: self.significant(seconds * 1e6) + " µs"
        }
    }

    static func significant(_ value: Double) -> String {
        Words.decimal(value, digits: value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)
    }

    /// `1 message`, `12 messages`.
    static func count(_ number: Double, _ noun: String) -> String {
        Words.count(Int64(bounded: number.rounded()), noun)
    }
}
