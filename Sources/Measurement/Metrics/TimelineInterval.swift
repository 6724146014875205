/// One interval of the timeline: a second, or ten of them in a long run.
package struct TimelineInterval: Codable, Hashable, Sendable {
    /// One lane of a duration metric, for the histogram log.
    package struct Lane: Codable, Hashable, Sendable {
        package var name: String
        package var labels: Labels
        /// Whether it enters the run's totals; a rebuilt record adds up only these lanes.
        package var measured: Bool
        package var count: UInt64
        /// In seconds, exact.
        package var max: Double
        /// HdrHistogram V2 of nanoseconds.
        package var histogram: String
        /// The values of operations without an answer among them; absent if there are none.
        package var unanswered: UnansweredReading?

        package init(
            name: String,
            labels: Labels,
            measured: Bool,
            count: UInt64,
            max: Double,
            histogram: String,
            unanswered: UnansweredReading? = nil
        ) {
            self.name = name
            self.labels = labels
            self.measured = measured
            self.count = count
            self.max = max
            self.histogram = histogram
            self.unanswered = unanswered
        }
    }

    /// Full seconds from the start of the run to the start of the interval.
    package var second: Int
    package var phase: String
    /// The interval's length.
    package var seconds: Double
    /// The seconds that rates and percentiles need: a few events in a moment make any.
    package static let shortestRated = 0.1
    /// The interval's metrics, whether due in the measured phase or not: durations without their histograms, counters
    /// with their increase and rate, gauges with their level.
    package var metrics: [Metric]
    package var lanes: [Lane]

    package init(second: Int, phase: String, seconds: Double, metrics: [Metric], lanes: [Lane] = []) {
        self.second = second
        self.phase = phase
        self.seconds = seconds
        self.metrics = metrics
        self.lanes = lanes
    }
}
