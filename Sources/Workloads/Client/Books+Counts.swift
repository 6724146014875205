import Ledger
import Measurement

// Books and ledger records are filled from the same counts in every protocol.
extension RunRecord {
    /// The final value of a counter, over all streams of the group; `nil` if there is none.
    func count(_ name: String, _ labels: Labels) -> UInt64? {
        let counters = self.metrics.filter { $0.name == name && $0.labels.contains(labels) }.compactMap(\.counter)
        return counters.isEmpty ? nil : counters.reduce(0) { $0 + UInt64($1.value) }
    }
}

extension Books {
    /// Takes the messages that became due, were sent and were not sent from counters with this prefix.
    mutating func fill(_ record: RunRecord, _ prefix: String, _ labels: Labels) {
        self.offered = record.count("\(prefix)_offered", labels)
        self.sent = record.count("\(prefix)_sent", labels)
        self.notSent = record.count("\(prefix)_not_sent", labels)
    }

    /// Takes the deliveries of a ledger; without one they stay unknown.
    mutating func fill(_ row: Reconciliation.Row?) {
        self.expected = row?.expected
        self.received = row?.received
        self.lost = row?.lost
        self.deliveryOutstanding = row?.outstanding
        self.duplicated = row?.duplicated
    }
}

extension LedgerRecord {
    mutating func countStreams(_ exports: [LedgerExport]) {
        self.streams = exports.reduce(0) { $0 + $1.streams.count }
        self.overflowed = exports.reduce(0) { $0 + $1.streams.count { $0.overflowed } }
    }
}

extension [Books] {
    /// Operations without an answer: those that failed, that the plan cut off, and the others, sent or not.
    var unansweredMetrics: [Metric] {
        self.flatMap { books in
            let labels: Labels = books.stanza.map { ["stanza": $0] } ?? ["qos": "\(books.qos ?? 0)"]
            let prefix = books.stanza == nil ? "publish" : "stanza"
            let ends = [
                ("failed", books.failures), ("excused", books.excused), ("outstanding", books.outstanding),
            ]
            return ends.compactMap { name, count in
                count.map {
                    let reading = CounterReading(value: Double($0), rate: nil)
                    return Metric(name: "\(prefix)_\(name)", labels: labels, reading: .counter(reading))
                }
            }
        }
    }
}
