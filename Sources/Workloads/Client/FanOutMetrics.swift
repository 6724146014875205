package import Measurement

/// What a stanza to a whole group is measured by.
package struct FanOutMetrics: Sendable {
    /// Due → received by the first of them, and by the last; only with a ledger.
    package let receivers: (first: DurationID, last: DurationID)?
    /// Until a client was in its group.
    package let joined: DurationID
    /// The counter of those that have not come to everybody, settled at the end.
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

    /// Stanzas of which it is not known when the last receiver had them: some had not when the run ended, or went before.
    func unfinished(_ count: UInt64) -> Metric {
        Metric(name: self.unfinished, reading: .counter(CounterReading(value: Double(count), rate: nil)))
    }
}
