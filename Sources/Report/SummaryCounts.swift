import Measurement

/// The counters of the compact summary, added up in one walk over the metrics.
struct SummaryCounts {
    /// A sum of counters; absent where none is known.
    struct Sum {
        private(set) var value: Double?
        private(set) var rate: Double?

        mutating func add(_ counter: CounterReading, times sign: Double = 1) {
            self.value = (self.value ?? 0) + sign * counter.value
            if let rate = counter.rate { self.rate = (self.rate ?? 0) + sign * rate }
        }
    }

    private enum Kind {
        case offered, sent, acked, notSent, outstanding
        case disconnects, reconnects, received, answered, reordered, overlapping
    }

    private static let kinds: [String: Kind] = [
        "publish_offered": .offered, "stanza_offered": .offered, "publish_sent": .sent, "stanza_sent": .sent,
        "publish_acked": .acked, "stanza_answered": .acked, "publish_not_sent": .notSent,
        "stanza_not_sent": .notSent, "publish_outstanding": .outstanding, "stanza_outstanding": .outstanding,
        "disconnects": .disconnects, "reconnects": .reconnects, "received": .received,
        "requests_answered": .answered, "delivery_reordered": .reordered, "delivery_overlap": .overlapping,
    ]

    private(set) var offered = Sum()
    private(set) var sent = Sum()
    private(set) var acked = Sum()
    private(set) var notSent = Sum()
    /// Neither answered nor failed when the drain ended; those that were not sent are among them.
    private(set) var outstanding = Sum()
    /// Connections that the plan did not close.
    private(set) var lostConnections = Sum()
    private(set) var reconnects = Sum()
    /// Messages that clients received from each other; of a request, its answer.
    private(set) var arrived = Sum()
    private(set) var reordered = Sum()
    private(set) var overlapping = Sum()

    init(_ metrics: [Metric]) {
        // By group and kind of stanza.
        var written: Set<[String?]> = []
        var stanzas: [(kind: [String?], reading: CounterReading)] = []
        for metric in metrics {
            guard case .counter(let reading) = metric.reading, let kind = Self.kinds[metric.name] else { continue }
            switch kind {
            case .offered:
                self.offered.add(reading)
                if let stanza = metric.labels["stanza"] { written.insert([metric.labels[Labels.group], stanza]) }
            case .sent: self.sent.add(reading)
            case .acked: self.acked.add(reading)
            case .notSent: self.notSent.add(reading)
            case .outstanding: self.outstanding.add(reading)
            case .disconnects where !metric.labels.isOfPlannedDeparture: self.lostConnections.add(reading)
            case .disconnects: break
            case .reconnects: self.reconnects.add(reading)
            case .received:
                guard let stanza = metric.labels["stanza"] else {
                    self.arrived.add(reading)
                    continue
                }
                // Servers send presence of others, and answers, of their own accord.
                guard stanza != "iq", metric.labels["from"] != "other" else { continue }
                stanzas.append(([metric.labels[Labels.group], stanza], reading))
            // A request that arrived and was answered is no delivery.
            case .answered: self.arrived.add(reading, times: -1)
            case .reordered: self.reordered.add(reading)
            case .overlapping: self.overlapping.add(reading)
            }
        }
        for (kind, reading) in stanzas where written.contains(kind) { self.arrived.add(reading) }
    }
}
