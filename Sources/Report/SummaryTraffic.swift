package import Measurement

extension Summary {
    private typealias Column = (title: String, kind: MetricDefinition)

    /// The columns of the ledger in the order of the table of metrics; arrivals follow what was expected.
    private static var ledgerColumns: [Column] {
        let counted = MetricDefinition.all(.ledger).compactMap { kind in kind.word.map { (title: $0, kind: kind) } }
        return counted.prefix(1) + [("received", .received), ("received/s", .received)] + counted.dropFirst()
    }

    /// Messages offered, sent and acknowledged, per QoS and stream.
    var publish: [String] {
        let levels = self.levels(of: [.publishOffered, .publishSent], by: ["qos", "stage", Labels.stream])
        let columns: [Column] = [
            ("offered", .publishOffered), ("sent", .publishSent), ("sent/s", .publishSent),
            ("acked", .publishAcked), ("acked/s", .publishAcked), ("confirmed", .publishConfirmed),
            ("not sent", .publishNotSent), ("outstanding", .publishOutstanding), ("resent", .publishResent),
        ]
        return self.counters("Publish", levels, columns) + (levels.isEmpty ? [] : self.traffic)
    }

    /// A table with a row for each of these labels.
    ///
    /// A column has the counters of its kind: their rates where its title ends with `/s`. `counter` finds one of them.
    private func counters(
        _ title: String,
        _ rows: [Labels],
        _ columns: [Column],
        _ counter: ((_ column: Column, _ labels: Labels) -> CounterReading?)? = nil
    ) -> [String] {
        var table = TextTable([title] + columns.map(\.title))
        let counter = counter ?? { self.record.metric($0.kind, $1)?.counter }
        for labels in rows {
            let cells = columns.map { column in
                let reading = counter(column, labels)
                let value = column.title.hasSuffix("/s") ? reading?.rate : reading?.value
                return column.title == "outstanding" ? Cell.some(value) : Cell.number(value)
            }
            table.add([self.operation(labels, "")] + cells)
        }
        return self.section(table)
    }

    /// Messages received, and the ledger's account of them, per QoS of the publisher.
    var delivery: [String] {
        let columns = Self.ledgerColumns
        let levels = self.levels(of: [.deliveryExpected, .deliveryLost, .deliveryDuplicated, .received])
        let table = self.counters("Delivery", levels, columns) { column, labels in
            // There is a row for each cause, stream and group of publishers.
            func sum(_ kind: MetricDefinition) -> CounterReading? {
                let all = self.record.metrics.counters([kind]) { $0.contains(labels) }
                return all.sum { $0.value }.map { CounterReading(value: $0, rate: all.sum { $0.rate }) }
            }
            let found = sum(column.kind)
            switch column.kind {
            case .received:
                // The ledger's count is of the messages that are expected: requests arrive too.
                guard sum(.deliveryExpected) != nil, let own = sum(.deliveryReceived) else { return found }
                // The rate is that of all arrivals.
                return CounterReading(value: own.value, rate: own.value == found?.value ? found?.rate : nil)
            // Lost messages are missing too.
            case .deliveryMissing: return found?.value == sum(.deliveryLost)?.value ? nil : found
            default: return found
            }
        }
        // With publishers in the run their line is up there.
        let isSubscriberOnly = self.levels(of: [.publishOffered, .publishSent]).isEmpty
        let ledger = self.record.ledger
        let remark =
            ledger.pending == true
            ? "losses are known only after clamor merge: the other segments hold a part of the ledger"
            : ledger.on
                ? ledger.unfollowedWords
                : self.hasMessages ? ledger.reason.map { "the ledger is off: \($0)" } : nil
        return table + (isSubscriberOnly && !levels.isEmpty ? self.traffic : [])
            + (remark.map { self.paragraph($0, indent: 2) } ?? []) + (levels.isEmpty ? [] : self.losses)
    }

    /// Not of a run that only logs in, pings, or makes accounts.
    private var hasMessages: Bool {
        self.record.metrics.contains { metric in
            metric.isOf(.publishOffered) || metric.isOf(.received) && metric.labels["qos"] != nil
                || metric.isOf(.stanzaOffered) && metric.labels["stanza"] != "iq"
        }
    }

    /// Losses by cause, with the first example of each; empty without losses.
    var losses: [String] {
        self.record.ledger.lossText.map { self.paragraph($0, indent: 2, hanging: 2) } ?? []
    }

    /// The bytes of both directions in one line.
    var traffic: [String] {
        func flow(_ kind: MetricDefinition) -> String? {
            guard let counter = self.record.metric(kind, [:])?.counter, counter.value > 0 else { return nil }
            return counter.rate.map { Words.bytes($0) + "/s" } ?? Words.bytes(counter.value)
        }
        let counts = SummaryCounts(self.record.metrics)
        let isMixed = [counts.sent, counts.acked, counts.arrived].contains {
            self.measuredPart($0.value, $0.rate) != nil
        }
        let parts = [
            flow(.payloadBytesSent).map { "payload out \($0)" },
            flow(.payloadBytesReceived).map { "payload in \($0)" },
            flow(.bytesSent).map { "wire out \($0)" }, flow(.bytesReceived).map { "wire in \($0)" },
            isMixed ? "counts: whole run, rates: \(Words.duration(self.measuredSeconds)) measured" : nil,
        ]
        let line = parts.compactMap { $0 }.joined(separator: " · ")
        return line.isEmpty ? [] : ["  " + line]
    }

    /// How the stream came in, and how fast the decoder walks it.
    var decoder: [String] {
        var table = TextTable(
            ["Decoder", "packets", "bytes", "packets/read", "reads/packet", "decoding packets/s", "bytes/s"]
        )
        if self.record.isOfDecoders { return self.decoderBenchmark }
        for packets in self.record.metrics(named: .decodePackets) {
            func value(_ kind: MetricDefinition) -> Double? {
                self.record.metric(kind, packets.labels)?.counter?.value
            }
            let count = packets.counter?.value
            let (bytes, reads, time) = (value(.decodeBytes), value(.reads), value(.decodeTime))
            table.add([
                packets.labels["protocol"] ?? "all", Cell.number(count), bytes.map(Words.bytes),
                Cell.number(ratio(count, reads)), Cell.number(ratio(reads, count)),
                Cell.number(ratio(count, time)),
                ratio(bytes, time).map { Words.fixed($0 / 1e9, digits: 2) + " GB/s" },
            ])
        }
        return self.section(table)
    }

    /// The QoS levels, with these labels, that any of `kinds` has.
    private func levels(of kinds: [MetricDefinition], by keys: [String] = ["qos", "stage"]) -> [Labels] {
        let metrics = kinds.flatMap { self.record.metrics(named: $0) }.filter { $0.labels["qos"] != nil }
        let levels = metrics.map { metric in
            Labels(keys.reduce(into: [:]) { $0[$1] = metric.labels[$1] })
        }
        return Set(levels).sorted()
    }

    /// Stanzas offered, sent and confirmed, by kind.
    var stanzas: [String] {
        let columns: [Column] = [
            ("offered", .stanzaOffered), ("sent", .stanzaSent), ("sent/s", .stanzaSent),
            ("confirmed", .stanzaConfirmed), ("answered", .stanzaAnswered), ("answered/s", .stanzaAnswered),
            ("refused", .stanzaRefused), ("not sent", .stanzaNotSent), ("outstanding", .stanzaOutstanding),
        ]
        let kinds = self.record.metrics(named: .stanzaOffered).map(\.labels)
        return self.counters("Stanzas", kinds, columns) + (kinds.isEmpty ? [] : self.traffic)
    }

    /// Stanzas received, and the ledger's account of them.
    var stanzaDelivery: [String] {
        // Stanzas have neither filters that overlap nor an account of what was excused.
        let columns =
            Self.ledgerColumns.filter { ![.deliveryMissing, .deliveryOverlap].contains($0.kind) } + [
                ("offline", .received)
            ]
        // Requests are answered, and not delivered.
        let kinds = self.record.metrics(named: .stanzaOffered).map(\.labels).filter { $0["stanza"] != "iq" }
        let table = self.counters("Delivery", kinds, columns) { column, labels in
            func received(_ key: String, _ value: String) -> CounterReading? {
                self.record.metric(.received, labels.adding(key, value))?.counter
            }
            guard column.kind == .received else { return self.record.metric(column.kind, labels)?.counter }
            if column.title == "offline" { return received("delayed", "true") }
            return received("delayed", "false") ?? received("from", "contact")
        }
        return table + (kinds.isEmpty ? [] : self.losses)
    }
}

package func ratio(_ above: Double?, _ below: Double?) -> Double? {
    guard let above, let below, below > 0 else { return nil }
    return above / below
}

extension RunRecord {
    /// Cores that the generator used; `nil` of a run too short for its start not to count.
    package var generatorCores: Double? {
        let cores = self.durationSeconds ?? 0 < 0.1 ? nil : ratio(self.generator.cpuSeconds, self.durationSeconds)
        // Merged results have the sum of their hosts' time; the start-up is no part of the duration.
        guard let cores, self.segment.merged == nil, let all = self.host.cores.map(Double.init) else { return cores }
        return cores <= all * 1.1 ? min(cores, all) : nil
    }
}

extension [Metric] {
    /// The counters of these kinds whose labels are wanted.
    package func counters(
        _ kinds: [MetricDefinition],
        where isWanted: (Labels) -> Bool = { _ in true }
    ) -> [CounterReading] {
        let names = kinds.map(\.name)
        return self.places { names.contains($0.name) && isWanted($0.labels) }.compactMap { self[$0].counter }
    }
}

extension [CounterReading] {
    /// The sum of the known values; `nil` if none is known.
    package func sum(of field: (CounterReading) -> Double?) -> Double? {
        let known = self.compactMap(field)
        return known.isEmpty ? nil : known.reduce(0, +)
    }
}
