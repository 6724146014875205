package import Ledger
package import Measurement

extension Reconciliation.Row {
    /// The counts that are metrics; `gaps` only where it is unknown what was expected.
    ///
    /// `labels`: `nil` for the row's QoS.
    package func metrics(hasGaps: Bool = false, labels: Labels? = nil) -> [Metric] {
        let counts: [(String, UInt64?)] = [
            ("delivery_expected", self.expected), ("delivery_lost", self.lost),
            ("delivery_duplicated", self.duplicated), ("delivery_reordered", self.reordered),
            (Self.gapsName, hasGaps && self.expected == nil ? self.gaps : nil),
        ]
        return counts.compactMap { name, value in value.map { self.metric(name, $0, labels: labels) } }
    }

    private static let gapsName = "delivery_gaps"
    /// All that ``metrics(hasGaps:labels:)`` may have.
    static let metricNames: Set = [
        "delivery_expected", "delivery_lost", "delivery_duplicated", "delivery_reordered", gapsName,
    ]

    package func metric(_ name: String, _ value: UInt64, labels: Labels? = nil) -> Metric {
        Metric(
            name: name,
            labels: labels ?? ["qos": "\(self.qos)"],
            reading: .counter(CounterReading(value: Double(value), rate: nil))
        )
    }
}
