package import Measurement

/// The metrics of stanzas that are sent to a whole group.
package struct FanOutMetrics: Sendable {
    /// From due to received by the first receiver, and by the last; only with a ledger.
    package let receivers: (first: DurationID, last: DurationID)?
    /// Time until a client had joined its group.
    package let joined: DurationID
    /// The counter of stanzas that did not reach every receiver, settled at the end.
    let unfinished: String

    init(_ work: XMPPLoad.Work, hasLedger: Bool, _ catalog: inout MetricCatalog) {
        let name = work == .muc ? "muc_fanout" : "presence_fanout"
        self.receivers =
            hasLedger
            ? (
                catalog.duration("\(name)_duration", ["receiver": "first"]),
                catalog.duration("\(name)_duration", ["receiver": "last"])
            ) : nil
        self.joined = catalog.duration(
            work == .muc ? "muc_join_duration" : "presence_setup_duration",
            wholeRun: true
        )
        self.unfinished = "\(name)_unfinished"
    }

    /// Stanzas whose last arrival is unknown: some receivers had not got them when the run ended, or had left earlier.
    func unfinished(_ count: UInt64) -> Metric {
        Metric(name: self.unfinished, reading: .counter(CounterReading(value: Double(count), rate: nil)))
    }
}
