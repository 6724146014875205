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

    private(set) var offered = Sum()
    private(set) var sent = Sum()
    private(set) var acked = Sum()
    private(set) var notSent = Sum()
    private(set) var skipped = Sum()
    /// Neither answered nor failed when the drain ended; those that were not sent are among them.
    private(set) var outstanding = Sum()
    /// Connections that the plan did not close.
    private(set) var lostConnections = Sum()
    private(set) var reconnects = Sum()
    /// Messages that clients received from each other; of a request, its answer.
    private(set) var arrived = Sum()
    /// The faults of deliveries by kind, besides those that are lost or owed.
    private(set) var irregular: [MetricDefinition: Sum] = [:]
    private(set) var overlapping = Sum()

    init(_ metrics: [Metric]) {
        // By group and kind of stanza.
        var written: Set<[String?]> = []
        var stanzas: [(kind: [String?], reading: CounterReading)] = []
        for metric in metrics {
            guard case .counter(let reading) = metric.reading, let kind = metric.definition else { continue }
            switch kind.role {
            case .offered:
                self.offered.add(reading)
                if let stanza = metric.labels["stanza"] { written.insert([metric.labels[Labels.group], stanza]) }
            case .sent: self.sent.add(reading)
            case .acked: self.acked.add(reading)
            case .notSent: self.notSent.add(reading)
            case .outstanding: self.outstanding.add(reading)
            case .ledger:
                if kind == .deliveryOverlap { self.overlapping.add(reading) }
                if MetricDefinition.irregularities.contains(kind) {
                    self.irregular[kind, default: Sum()].add(reading)
                }
            case .other: self.add(kind, metric.labels, reading, &stanzas)
            default: break
            }
        }
        for (kind, reading) in stanzas where written.contains(kind) { self.arrived.add(reading) }
    }

    private mutating func add(
        _ kind: MetricDefinition,
        _ labels: Labels,
        _ reading: CounterReading,
        _ stanzas: inout [(kind: [String?], reading: CounterReading)]
    ) {
        switch kind {
        case .disconnects: if !labels.isOfPlannedDeparture { self.lostConnections.add(reading) }
        case .reconnects: self.reconnects.add(reading)
        case .publishSkipped, .publishReplaced, .stanzaSkipped, .stanzaReplaced: self.skipped.add(reading)
        case .received:
            guard let stanza = labels["stanza"] else { return self.arrived.add(reading) }
            // Servers send presence of others, and answers, of their own accord.
            guard stanza != "iq", labels["from"] != "other" else { return }
            stanzas.append(([labels[Labels.group], stanza], reading))
        // A request that arrived and was answered is no delivery.
        case .requestsAnswered, .repliesReceived: self.arrived.add(reading, times: -1)
        default: break
        }
    }
}
