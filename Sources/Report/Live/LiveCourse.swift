/// The planned course of a load: its stages, and its rate where one is planned.
///
/// Times are seconds from the begin of the load, behind the connect phase.
package struct LiveCourse: Hashable, Sendable {
    package struct Stage: Hashable, Sendable {
        package var name: String
        /// Absent where a limit or a signal ends it.
        package var seconds: Double?
        package var isMeasured: Bool

        package init(_ name: String, seconds: Double?, isMeasured: Bool = true) {
            self.name = name
            self.seconds = seconds
            self.isMeasured = isMeasured
        }
    }

    /// A stretch of the load in which the rate changes evenly, in operations per second of all groups together.
    package struct Stretch: Hashable, Sendable {
        package var seconds: Double
        package var from: Double
        package var to: Double

        package init(seconds: Double, from: Double, to: Double) {
            self.seconds = seconds
            self.from = from
            self.to = to
        }
    }

    package struct Place: Hashable, Sendable {
        package var stage: Stage
        package var number: Int
        /// The time from the begin of the stage.
        package var elapsed: Double
        /// Until the end of the load; absent where it has no planned end.
        package var left: Double?
    }

    package var stages: [Stage]
    /// Empty in closed loop.
    package var stretches: [Stretch]
    package var drainSeconds: Double

    package init(stages: [Stage] = [], stretches: [Stretch] = [], drainSeconds: Double = 0) {
        self.stages = stages
        self.stretches = stretches
        self.drainSeconds = drainSeconds
    }

    /// The planned length of the load; absent where it has no planned end.
    package var seconds: Double? {
        let known = self.stages.compactMap(\.seconds)
        return known.count == self.stages.count && !known.isEmpty ? known.reduce(0, +) : nil
    }

    /// The planned operations per second; absent in closed loop, and behind the end of the load.
    package func rate(at time: Double) -> Double? {
        var begin = 0.0
        for stretch in self.stretches {
            let passed = time - begin
            begin += stretch.seconds
            guard passed < stretch.seconds else { continue }
            let share = stretch.seconds > 0 ? max(0, passed) / stretch.seconds : 0
            return stretch.from + (stretch.to - stretch.from) * share
        }
        return nil
    }

    /// The stage at a time; the last one behind the end.
    package func place(at time: Double) -> Place? {
        var begin = 0.0
        for (number, stage) in self.stages.enumerated() {
            let isLast = number == self.stages.count - 1
            guard isLast || stage.seconds.map({ time < begin + $0 }) ?? true else {
                begin += stage.seconds ?? 0
                continue
            }
            let left = self.seconds.map { max(0, $0 - time) }
            return Place(stage: stage, number: number, elapsed: max(0, time - begin), left: left)
        }
        return nil
    }
}
