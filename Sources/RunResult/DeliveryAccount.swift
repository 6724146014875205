package import Ledger
package import Measurement

/// The ledger's part of a run's record, for all groups whose messages it follows.
package struct DeliveryAccount: Sendable {
    /// Metrics settled at the end, with the labels of their groups.
    package var metrics: [Metric] = []
    /// Deliveries that did not come.
    package var absent: [AbsentValues] = []
    /// Reasons why the books are not exact.
    package var unreconciled: [Verdict.Reason] = []
    /// Notes for the reader of the figures.
    package var notes: [Verdict.Reason] = []
    /// Input for the ledger that a merge builds from all segments, where one segment alone has none.
    package var segment: SegmentLedger?

    package init() {}
}
