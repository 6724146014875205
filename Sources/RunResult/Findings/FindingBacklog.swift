import Measurement

/// The messages that were due and not answered, over the measured phase.
struct FindingBacklog {
    private enum Limit {
        static let intervals = 5
        /// Messages that are left at the end.
        static let messages = 10.0
        /// Seconds by which the answers fell further behind.
        static let delay = 0.05
        /// The rise is more than so many times what an interval is off the line by chance.
        static let noise = 4.0
        /// Messages per second, and their share of those due: less is a difference of rounding.
        static let slope = 0.1
        static let share = 0.001
        /// The share of the rise that is of the second half: a backlog that only came once does not grow.
        static let lateShare = 0.25
    }

    /// By least squares over the ends of the measured intervals, in messages per second.
    let slope: Double
    /// Messages due per second of the measured phase.
    let offered: Double
    /// The slope of a backlog that grew until the end of the measured phase; `nil` for any other.
    let growth: Double?

    /// `nil` where a message failed, which makes the counts inexact, or with fewer than five measured intervals.
    init?(_ record: RunRecord, _ lanes: [FindingLane], _ intervals: FindingIntervals) {
        let answers = lanes.filter { $0.kind == .answers }
        let measured = intervals.all.indices.filter { intervals.all[$0].isMeasured }
        guard !answers.isEmpty, answers.allSatisfy(\.isExact), measured.count >= Limit.intervals else { return nil }
        let offered = Self.totals(intervals.all.indices.map { place in answers.reduce(0) { $0 + $1.offered[place] } })
        let done = Self.totals(intervals.all.indices.map { place in answers.reduce(0) { $0 + $1.done[place] } })
        let times = measured.map { intervals.all[$0].end }
        let backlogs = measured.map { offered[$0] - done[$0] }
        guard let line = Line(times, backlogs), let due = Line(times, measured.map { offered[$0] }) else { return nil }
        self.slope = line.slope
        let rates = record.metrics.filter { $0.isOfAnswered && $0.labels[Labels.stage] == nil }
            .compactMap(\.counter?.rate)
        self.offered = rates.isEmpty ? due.slope : rates.reduce(0, +)
        let delays = measured.map { Self.delay(intervals, offered, done[$0], at: $0) }
        let isLeft = backlogs.suffix(3).allSatisfy { $0 >= Limit.messages }
        let isLarge = line.slope >= max(Limit.slope, self.offered * Limit.share)
        // Messages of clients that are not there stay without an answer, whatever the server does.
        let isComplete = Self.isComplete(record, answers, measured)
        self.growth = isLarge && isLeft && isComplete && Self.grows(times, delays) ? line.slope : nil
    }

    /// Whether all planned clients were there all the time; true where that is unknown.
    private static func isComplete(_ record: RunRecord, _ lanes: [FindingLane], _ measured: [Int]) -> Bool {
        guard let planned = record.clientsPlanned else { return true }
        if let up = record.clientsUp, up < planned { return false }
        let clients = lanes.compactMap(\.clients)
        guard clients.count == lanes.count else { return true }
        let highest = clients.reduce(0) { $0 + ($1.max() ?? 0) }
        return measured.allSatisfy { place in clients.reduce(0) { $0 + $1[place] } >= highest }
    }

    private static func totals(_ counts: [Double]) -> [Double] {
        var sum = 0.0
        return counts.map { count in
            sum += count
            return sum
        }
    }

    /// Seconds since as many messages were due as are answered.
    ///
    /// Messages in flight say less: with the same response time a higher rate has more of them.
    private static func delay(_ intervals: FindingIntervals, _ offered: [Double], _ done: Double, at end: Int) -> Double
    {
        var place = end
        guard done < offered[place] else { return 0 }
        while place > 0, offered[place - 1] > done { place -= 1 }
        let before = place > 0 ? offered[place - 1] : 0
        let share = (done - before) / (offered[place] - before)
        return intervals.all[end].end - intervals.all[place].start - intervals.all[place].length * share
    }

    /// Whether the delay rose over the phase and is there at its end, by more than chance.
    ///
    /// Levels are medians of three intervals: one interval decides nothing.
    private static func grows(_ times: [Double], _ delays: [Double]) -> Bool {
        guard let line = Line(times, delays), let last = delays.last else { return false }
        func level(_ middle: Int) -> Double { Array(delays[middle - 1...middle + 1]).median ?? 0 }
        // A stall that ended in the last interval is over.
        let end = Swift.min(level(delays.count - 2), last)
        let rise = end - level(1)
        let chance = zip(times, delays).map { abs($1 - line.value(at: $0)) }.median ?? 0
        return rise >= Limit.delay && rise > chance * Limit.noise
            && end - level(delays.count / 2) >= rise * Limit.lateShare
    }

    /// A line by least squares.
    private struct Line {
        let slope: Double
        private let time: Double
        private let mean: Double

        /// `nil` where all times are the same.
        init?(_ times: [Double], _ values: [Double]) {
            let count = Double(times.count)
            (self.time, self.mean) = (times.reduce(0, +) / count, values.reduce(0, +) / count)
            var (above, below) = (0.0, 0.0)
            for (moment, value) in zip(times, values) {
                above += (moment - self.time) * (value - self.mean)
                below += (moment - self.time) * (moment - self.time)
            }
            guard below > 0 else { return nil }
            self.slope = above / below
        }

        func value(at moment: Double) -> Double { self.mean + self.slope * (moment - self.time) }
    }
}

extension Metric {
    /// Whether it counts messages that were due, and that each have an answer.
    fileprivate var isOfAnswered: Bool {
        self.isOf(.publishOffered) && self.labels["qos"] != "0"
            || self.isOf(.stanzaOffered) && self.labels["stanza"] == "iq"
    }
}
