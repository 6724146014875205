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
        package var values: [Double] = []
        /// Percentiles of a duration in seconds, empty for other kinds; NaN where the interval has no row.
        package var p50: [Double] = []
        package var p99: [Double] = []
        package var max: [Double] = []
        /// The places of the intervals in which ``p99`` is only known to be at least so much.
        package var bounds: Set<Int> = []

        package init(name: String, labels: Labels, unit: String? = nil, kind: Metric.Kind) {
            self.name = name
            self.labels = labels
            self.unit = unit
            self.kind = kind
        }
    }

    /// The start of each interval, in full seconds from the start of the run, ascending.
    package var seconds: [Int] = []
    /// The length of each interval in seconds.
    package var lengths: [Double] = []
    package var phases: [String] = []
    package var columns: [Column] = []

    package init() {}
}
