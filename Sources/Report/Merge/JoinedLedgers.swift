import Ledger
import Measurement

/// The ledgers that the segments of a run left to their merge, each as one.
struct JoinedLedgers {
    fileprivate struct Joined {
        /// `nil`: the only one of a run without groups.
        let group: String?
        let delivery: Reconciliation
        let subscriptions: Int
        let streams: Int
        let overflowed: Int
    }

    private let all: [Joined]
    /// How exactly the clocks go together by which deliveries were measured; `nil` where none went between segments.
    private let agreement: ClockAgreement?

    init(_ segments: [SegmentResult]) {
        self.agreement =
            segments.contains { !$0.ledgers.isEmpty } ? ClockAgreement(segments.map(\.record.segment.clock)) : nil
        self.all = (segments.first?.ledgers.map(\.group) ?? []).map { group in
            let parts = segments.compactMap { $0.ledgers.first { $0.group == group } }
            let streams = parts.flatMap { zip($0.received.keys, $0.received.streams) }
            return Joined(
                group: group,
                delivery: Reconciliation(joining: parts),
                subscriptions: Set(parts.flatMap { $0.subscriptions.map(\.number) }).count,
                streams: Set(streams.map { $0.0 }).count,
                overflowed: streams.count { $0.1.overflowed }
            )
        }
    }

    /// Whether the metric belongs to such a ledger: segments hold parts of it that cannot be added up.
    func isSettled(_ metric: Metric) -> Bool {
        Reconciliation.Row.metricNames.contains(metric.name)
            && self.all.contains { $0.group == metric.labels[Labels.group] }
    }

    var metrics: [Metric] {
        self.all.flatMap { joined in
            joined.delivery.rows.flatMap { $0.metrics() }.map { metric in
                var metric = metric
                metric.labels = metric.labels.of(group: joined.group, metric: metric.name)
                return metric
            }
        }
    }

    var problems: [Verdict.Reason] {
        let clocks: [Verdict.Reason]
        if case .unknown(let segment) = self.agreement {
            clocks = [
                Verdict.Reason(
                    code: "clock-offset",
                    text:
                        "how far the clock of segment \(segment) is from that of segment 1 is not known, so neither is "
                        + "how long deliveries between them took, nor what was sent before a subscription came"
                )
            ]
        } else {
            clocks = []
        }
        return clocks
            + self.all.flatMap { joined in
                joined.delivery.problems.map { problem in
                    var reason = problem.reason
                    if let group = joined.group { reason.text = "\(group): \(reason.text)" }
                    return reason
                }
            }
    }

    /// The clock error of deliveries between two segments, in seconds; `nil` if it is zero or unknown.
    var clockError: Double? {
        guard case .within(let seconds) = self.agreement, seconds > 0 else { return nil }
        return seconds
    }

    /// Adds the accuracy of the measurement to delivery metrics.
    func marking(_ metrics: [Metric]) -> [Metric] {
        guard let error = self.clockError else { return metrics }
        return metrics.map { metric in
            guard metric.name == "delivery_duration", var reading = metric.duration else { return metric }
            var metric = metric
            reading.clockError = error
            metric.reading = .duration(reading)
            return metric
        }
    }

    /// The same in words.
    var notes: [Verdict.Reason] {
        self.clockError.map { error in
            [
                Verdict.Reason(
                    code: "clock-error",
                    text:
                        "deliveries between segments are known to ±\(Human.duration(error)), which is what the clocks of "
                        + "their hosts may differ by; what is below that is marked",
                    measured: error
                )
            ]
        } ?? []
    }

    /// The sums of the segments' books, with what of their columns is the ledger's.
    func completing(_ books: [Books]) -> [Books] {
        books.map { books in
            guard let joined = self.all.first(where: { $0.group == books.group }), let qos = books.qos else {
                return books
            }
            let row = joined.delivery.rows.first { Int($0.qos) == qos }
            var books = books
            books.expected = row?.expected
            books.received = row?.received
            books.lost = row?.lost
            books.duplicated = row?.duplicated
            return books
        }
    }

    /// Adds the ledgers' results to the record.
    func complete(_ record: inout RunRecord) {
        guard var groups = record.groups else {
            self.all.first?.complete(&record.ledger)
            return
        }
        for joined in self.all {
            for place in groups.indices where groups[place].name == joined.group {
                joined.complete(&groups[place].ledger)
            }
        }
        record.groups = groups
        record.ledger = .joined(groups)
    }
}

extension JoinedLedgers.Joined {
    fileprivate func complete(_ ledger: inout LedgerRecord) {
        (ledger.pending, ledger.reason) = (nil, nil)
        ledger.subscriptions = self.subscriptions
        ledger.streams = self.streams
        ledger.overflowed = self.overflowed
    }
}
