import Measurement

/// How long a server took to be back after an overload: a stage of the plan with a higher load than the next one.
///
/// It is back with the first of three intervals in a row whose response times are near those before the overload. A
/// server that is not back, and whose response times do not fall either, is metastable: the overload is over, and what
/// it left behind keeps the server busy.
struct FindingRecovery {
    private enum Limit {
        /// A median this many times its level before the overload has left it, and is back below the other.
        static let overload = 5.0
        static let back = 2.0
        /// In seconds: less is noise.
        static let margin = 0.005
        /// Intervals that say what the level before an overload is, and that show that a server is back.
        static let intervals = 3
        /// Fewer intervals after an overload, or less time than it lasted, do not show that a server is metastable.
        static let observed = 10
        /// A median that is below this share of its first ones falls.
        static let falls = 0.95
    }

    /// The first interval after the overload.
    let place: Int
    /// From the end of the overload; `nil` if the server was not back when the load rose again or ended.
    let seconds: Double?
    let isMetastable: Bool
    private let text: String

    /// The recovery that took longest, of all groups and overloads; `nil` without an overload.
    static func longest(_ lanes: [FindingLane], _ intervals: FindingIntervals) -> FindingRecovery? {
        let answers = lanes.filter { $0.kind == .answers }
        let stages = intervals.all.indices.filter { intervals.all[$0].isLoad && intervals.all[$0].stage != nil }
            .reduce(into: [[Int]]()) { stages, place in
                if let last = stages.last?.last, intervals.all[last].stage == intervals.all[place].stage {
                    stages[stages.count - 1].append(place)
                } else {
                    stages.append([place])
                }
            }
        let all = (answers.isEmpty ? lanes : answers).flatMap { lane in
            stages.indices.dropFirst().compactMap { FindingRecovery(lane, intervals, stages, fall: $0) }
        }
        return all.max { ($0.seconds ?? .infinity) < ($1.seconds ?? .infinity) }
    }

    /// `nil` if the stage's load did not fall, if nothing was overloaded, or with too little time before or after it.
    private init?(_ lane: FindingLane, _ intervals: FindingIntervals, _ stages: [[Int]], fall: Int) {
        func load(_ stage: Int) -> Double {
            intervals.all[stages[stage][0]].stage.flatMap { intervals.loads[$0] } ?? 1
        }
        let (overload, first) = (stages[fall - 1], stages[fall][0])
        guard load(fall - 1) > load(fall) else { return nil }
        // The level is that of a load that was as high as the one after it.
        let before = stages.indices.filter { $0 < fall - 1 && load($0) >= load(fall) && load($0) < load(fall - 1) }
            .flatMap { stages[$0] }.compactMap { lane.p50[$0] }
        let rise = stages.indices.first { $0 > fall && load($0) > load(fall) } ?? stages.endIndex
        let after = stages[fall..<rise].flatMap(\.self)
        guard before.count >= Limit.intervals, after.count >= Limit.intervals, let level = before.median,
            let worst = overload.compactMap({ lane.p50[$0] }).last,
            worst > level * Limit.overload, worst > level * Limit.back + Limit.margin
        else { return nil }
        // An interval without an answer is none of a server that is back.
        let isBack = after.map { lane.p50[$0].map { $0 <= level * Limit.back + Limit.margin } ?? false }
        let found = isBack.indices.first { start in
            isBack.count - start >= Limit.intervals && isBack[start..<start + Limit.intervals].allSatisfy { $0 }
        }
        let end = intervals.all[overload[overload.count - 1]].end
        let whose = lane.group.map { "\($0): " } ?? ""
        let fell = "the load fell at \(Int(bounded: end)) s\(intervals.stageWords(first))"
        self.place = first
        if let found {
            let seconds = ((intervals.all[after[found]].start - end) * 1e3).rounded() / 1e3
            let time = seconds > 0 ? "\(FindingWords.duration(seconds)) after" : "at once when"
            (self.seconds, self.isMetastable) = (seconds, false)
            self.text = "\(whose)the server was back \(time) \(fell)"
            return
        }
        func median(_ places: some Sequence<Int>) -> Double? { places.compactMap { lane.p50[$0] }.median }
        let third = Swift.max(1, after.count / 3)
        let (early, late) = (median(after.prefix(third)), median(after.suffix(third)))
        let observed = after.reduce(0) { $0 + intervals.all[$1].length }
        let isLong = after.count >= Limit.observed && observed >= overload.reduce(0) { $0 + intervals.all[$1].length }
        let isFalling = late.map { $0 < (early ?? .infinity) * Limit.falls } ?? false
        (self.seconds, self.isMetastable) = (nil, isLong && late != nil && !isFalling)
        let name = lane.kind == .answers ? "ack p50" : "delivery p50"
        let levels = late.map { "\(name) was \(FindingWords.duration($0)), and \(FindingWords.duration(level)) before" }
        let outlook =
            late == nil
            ? "" : isFalling ? ", and was falling" : isLong ? "; it does not recover by itself (metastable)" : ""
        self.text =
            "\(whose)the server was not back in the \(FindingWords.duration(observed)) after \(fell): "
            + (levels ?? "it gave no answers") + outlook
    }

    func event(_ intervals: FindingIntervals) -> FoundEvent {
        intervals.event(.change, self.place, seconds: self.seconds, isBreak: self.seconds == nil, text: self.text)
    }
}
