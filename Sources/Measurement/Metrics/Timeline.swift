/// The time line of a run, as columns: one entry per interval in each.
///
/// An interval is a second, or ten of them in a long run.
package struct Timeline: Sendable {
    package struct Column: Sendable {
        package var name: String
        package var labels: Labels
        package var unit: String?
        package var kind: Metric.Kind
        /// A counter's increase, a gauge's level, the count of a duration; NaN where the interval has no row.
        package var values: [Double]
        /// Of a duration, in seconds, empty for others; NaN where the interval has no row.
        package var p50: [Double]
        package var p99: [Double]
        package var max: [Double]

        package init(name: String, labels: Labels, unit: String? = nil, kind: Metric.Kind) {
            self.name = name
            self.labels = labels
            self.unit = unit
            self.kind = kind
            self.values = []
            self.p50 = []
            self.p99 = []
            self.max = []
        }
    }

    /// The start of each interval, in full seconds from the start of the run, ascending.
    package var seconds: [Int]
    /// The length of each interval in seconds.
    package var lengths: [Double]
    package var phases: [String]
    package var columns: [Column]

    package init() {
        self.seconds = []
        self.lengths = []
        self.phases = []
        self.columns = []
    }
}
