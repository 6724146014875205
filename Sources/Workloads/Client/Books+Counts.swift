import Ledger
import Measurement

// Books and ledger records are filled from the same counts in every protocol.
extension RunRecord {
    /// The final value of a counter, over all streams of the group; `nil` if there is none.
    func count(_ kind: MetricDefinition, _ labels: Labels) -> UInt64? {
        let counters = self.metrics.filter { $0.isOf(kind) && $0.labels.contains(labels) }.compactMap(\.counter)
        return counters.isEmpty ? nil : counters.reduce(0) { $0 + UInt64($1.value) }
    }
}

extension Books {
    fileprivate var labels: Labels { self.stanza.map { ["stanza": $0] } ?? ["qos": "\(self.qos ?? 0)"] }

    /// Takes the messages that became due, were sent and were not sent.
    mutating func fill(_ record: RunRecord) {
        let isMQTT = self.stanza == nil
        self.offered = record.count(isMQTT ? .publishOffered : .stanzaOffered, self.labels)
        self.sent = record.count(isMQTT ? .publishSent : .stanzaSent, self.labels)
        self.notSent = record.count(isMQTT ? .publishNotSent : .stanzaNotSent, self.labels)
    }

    /// Takes the ends of operations from the loops' books: with an answer each, or without.
    mutating func fill(_ parts: [MessageBook], areAnswered: Bool) {
        func sum(_ part: KeyPath<MessageBook, UInt64>) -> UInt64 { parts.reduce(0) { $0 + $1[keyPath: part] } }
        self.excused = sum(\.excused)
        if areAnswered {
            self.inFlight = sum(\.inFlight)
            self.timedOut = sum(\.timedOut)
            self.failed = sum(\.failed)
            self.outstanding = self.notSent.map { $0 + sum(\.inFlight) }
        } else {
            self.unconfirmed = sum(\.unconfirmed)
            self.failed = sum(\.broken)
            self.outstanding = self.notSent.map { $0 + sum(\.unconfirmed) - sum(\.broken) - sum(\.excused) }
        }
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
            let kinds: [MetricDefinition] =
                books.stanza == nil
                ? [.publishFailed, .publishExcused, .publishOutstanding]
                : [.stanzaFailed, .stanzaExcused, .stanzaOutstanding]
            return zip(kinds, [books.failures, books.excused, books.outstanding]).compactMap { kind, count in
                count.map {
                    let reading = CounterReading(value: Double($0), rate: nil)
                    return Metric(kind, labels: books.labels, reading: .counter(reading))
                }
            }
        }
    }
}
