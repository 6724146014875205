package import Measurement

// Every figure of a run.
extension Summary {
    static var tail: [KeyPath<DurationReading, Double>] { [\.p50, \.p99, \.p999, \.max] }
    private static var whole: [KeyPath<DurationReading, Double>] { [\.p50, \.p90, \.p99, \.p999, \.max] }

    /// Tables of all metrics by their names, as objectives name them; those of stages follow those of the whole run.
    var everything: [[String]] {
        var tables: [Metric.Kind: TextTable] = [
            .duration: TextTable("Durations", Self.whole), .counter: TextTable(["Counters", "count", "per second"]),
            .gauge: TextTable(["Gauges", "last", "lowest", "mean", "highest"]),
        ]
        let all = Dictionary(grouping: self.record.metrics + self.stageMetrics, by: \.name)
        for kind in MetricDefinition.all {
            guard let series = all[kind.name] else { continue }
            func text(_ value: Double?) -> String? { value.map { Threshold.Field.mean.text($0, unit: kind.unit) } }
            if series.contains(where: { !$0.labels.isEmpty }) { tables[kind.kind]?.add([kind.name]) }
            for metric in series {
                let title = metric.labels.isEmpty ? kind.name : "  " + metric.labels.words
                switch metric.reading {
                case .duration: tables[.duration]?.add(title, metric)
                case .counter(let reading):
                    let rate = reading.rate.map { Threshold.Field.rate.text($0, unit: kind.unit) }
                    tables[.counter]?.add([title, text(reading.value), rate])
                case .gauge(let reading):
                    tables[.gauge]?.add([title] + [reading.value, reading.min, reading.mean, reading.max].map(text))
                }
            }
        }
        let isMixed = all.values.joined().contains { self.measuredPart($0.counter?.value, $0.counter?.rate) != nil }
        let remark = "counts: whole run, rates: \(Words.duration(self.measuredSeconds)) measured"
        return [Metric.Kind.duration, .counter, .gauge].map { kind in
            (tables[kind].map(self.section) ?? [])
                + (kind == .counter && isMixed ? self.paragraph(remark, indent: 2) : [])
        }
    }

    /// How the stream came in, and how fast the decoder walks it.
    var decoder: [String] {
        var table = TextTable(
            ["Decoder", "packets", "bytes", "packets/read", "reads/packet", "decoding packets/s", "bytes/s"]
        )
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

    /// The result of `clamor decode`: rate, cost, and the form of the input.
    var decoderBenchmark: [String] {
        let (one, many) = self.decodedWords
        var speed = TextTable(["Decoder", "\(many)/s", "GB/s", "ns/\(one)", "min", "max", "on the wall"])
        var reads = TextTable(["Reads", many, "bytes", "reads", "\(many)/read", "reads/\(one)"])
        for packets in self.record.decodeLanes {
            let labels = packets.labels
            let title = [labels["path"], labels["form"]].compactMap(\.self).joined(separator: " ")
            let bytes = self.record.metric(.decodeBytes, labels)?.counter
            let time = self.record.metric(.decodePacketTime, labels)?.gauge
            let wall = self.record.metric(.decodeThousand, labels)?.duration?.p50
            let count = packets.counter?.value
            let readCount = self.record.metric(.reads, labels)?.counter?.value
            func nanoseconds(_ seconds: Double?) -> String? { seconds.map { Words.fixed($0 * 1e9, digits: 2) } }
            speed.add([
                title, Cell.number(packets.counter?.rate.map { $0.rounded() }),
                bytes?.rate.map { Words.fixed($0 / 1e9, digits: 3) },
                nanoseconds(time?.median), nanoseconds(time?.min), nanoseconds(time?.max),
                nanoseconds(wall.map { $0 / 1_000 }),
            ])
            reads.add([
                title, Cell.number(count), bytes.map { Words.bytes($0.value) },
                Cell.number(readCount), Cell.number(ratio(count, readCount)), Cell.number(ratio(readCount, count)),
            ])
        }
        return self.section(speed) + self.decoderRemarks + [""] + self.section(reads)
    }

    /// The decoder's output in this protocol, singular and plural.
    private var decodedWords: (String, String) {
        let isXMPP = self.record.metrics(named: .decodePackets).contains { $0.labels["protocol"] == "xmpp" }
        return isXMPP ? ("stanza", "stanzas") : ("packet", "packets")
    }

    private var decoderRemarks: [String] {
        self.paragraph(
            "ns/\(self.decodedWords.0): CPU time of the decoding thread, median of the rounds; over a socket with reading. "
                + "Each row is relative to its own time.",
            indent: 2
        )
    }

    /// How evenly the clients were served.
    var fairness: [String] {
        var table = TextTable(["Fairness over clients", "clients", "min", "p5", "p50", "p95", "max", "Jain"])
        var worst: [String] = []
        for (name, group) in self.record.clients.sorted(by: { $0.key < $1.key }) {
            var spreads: [(String, ClientSpread?, (Double) -> String)] = [
                ("sent", group.sent, Words.number), ("acked", group.acked, Words.number),
                ("received", group.received, Words.number), ("longest ack", group.longestAckSeconds, Words.duration),
            ]
            // Where clients do nothing but connect, that is what they share out.
            if spreads.allSatisfy({ $0.1 == nil }) {
                spreads = [("connect time", group.connectSeconds, Words.duration)]
            }
            for case (let title, .some(let spread), let text) in spreads {
                let values = [(0, spread.min), (5, spread.p5), (50, spread.p50), (95, spread.p95), (100, spread.max)]
                let cells = values.map { percent, value in
                    percent.isMultiple(of: 100) || Cell.isCarried(Double(percent), by: UInt64(clamping: spread.clients))
                        ? text(value) : Words.unknown
                }
                let jain = spread.jain.map { Words.fixed($0, digits: 3) }
                table.add(["\(name), \(title)", Words.count(UInt64(clamping: spread.clients))] + cells + [jain])
                // Below 0.9 a tenth of the clients may have had nothing: worth their names.
                if let index = spread.jain, index < 0.9, ["sent", "acked", "received"].contains(title) {
                    let names = spread.worst.map { "\($0.id) \(text($0.value))" }.joined(separator: ", ")
                    worst += self.paragraph("least \(title): \(names)", indent: 4, hanging: 2)
                }
            }
        }
        return self.section(table) + worst
    }

    /// The equations of the design, per QoS, with their figures.
    var books: [String] {
        let books = self.record.books
        guard !books.isEmpty else { return [] }
        let imbalances = books.flatMap(\.imbalances)
        var lines: [String] = []
        if imbalances.isEmpty {
            lines.append(self.style.paint("Books", .bold) + "  balanced")
        } else {
            lines.append(self.style.paint("Books", .bold) + "  " + self.style.paint("NOT BALANCED", .red))
            lines += imbalances.flatMap { self.paragraph("! \($0)", indent: 2, hanging: 2) }
        }
        for book in books {
            let (head, texts) = ("  \(book.name)  ", book.equationTexts)
            var line = head
            for equation in texts {
                if line.count > head.count, line.count + 3 + equation.count > self.width {
                    lines.append(line.trimmedAtEnd)
                    line = String(repeating: " ", count: head.count)
                } else if line.count > head.count {
                    line += " · "
                }
                line += equation
            }
            if !texts.isEmpty { lines.append(line) }
        }
        return lines
    }

    /// Losses by cause, with the first example of each; empty without losses.
    var losses: [String] { self.record.ledger.lossText.map { self.paragraph($0, indent: 2, hanging: 2) } ?? [] }

    /// The name of the watched server and its use, such as `mosquitto 2.0.11` and `CPU 0.98 cores`.
    var serverParts: [String] {
        self.record.serverFacts.map { $0.name.hasPrefix("server") ? $0.value : "\($0.name) \($0.value)" }
    }
}

extension Books {
    /// `offered 12 = sent 12 + not sent 0`, and the others that can be written down.
    fileprivate var equationTexts: [String] {
        self.equations.compactMap { whole, parts in
            // Few runs have these: they are printed where they are not zero.
            let parts = parts.filter { !["excused", "outstanding"].contains($0.name) || $0.count ?? 0 > 0 }
            let terms = parts.compactMap { name, count in count.map { "\(name) \(Words.count($0))" } }
            guard let total = whole.count, terms.count == parts.count else { return nil }
            // If they differ, the line above reports it; here both figures are printed.
            let sum = parts.compactMap(\.count).reduce(0, &+)
            return "\(whole.name) \(Words.count(total)) \(sum == total ? "=" : "≠") \(terms.joined(separator: " + "))"
        }
    }
}

/// Cells of the summary's tables.
package enum Cell {
    static func count(_ value: UInt64?) -> String? { value.map(Words.count) }
    static func number(_ value: Double?) -> String? { value.map(Words.number) }

    /// Nothing where there is none.
    static func some(_ value: Double?) -> String? { self.number(value.flatMap { $0 > 0 ? $0 : nil }) }

    /// A percentile of too few samples is a dash.
    package static func durations(_ metric: Metric?, _ fields: [KeyPath<DurationReading, Double>]) -> [String?] {
        fields.map { field in
            guard let reading = metric?.duration else { return nil }
            if let percent = self.percent(field), !self.isCarried(percent, by: reading.count) { return Words.unknown }
            return self.duration(reading, field)
        }
    }

    /// A figure with what is known of it: `≥ 6.00 ms` for a lower bound, and `< ±1.00 ms` below the clocks' error.
    package static func duration(_ reading: DurationReading, _ field: KeyPath<DurationReading, Double>) -> String {
        let value = reading[keyPath: field]
        if reading.isBound(field) { return Words.atLeast(Words.duration(value)) }
        guard let error = reading.clockError, value < error else { return Words.duration(value) }
        return "< ±\(Words.duration(error))"
    }

    /// Whether `count` samples carry a percentile: with fewer than 1 ÷ (1 - p) it equals the maximum.
    package static func isCarried(_ percent: Double, by count: UInt64) -> Bool {
        // 100 - 99.9 is a little below 0.1.
        Double(count) * min(percent, 100 - percent) > 99.999
    }

    /// `p99.9`, `max`.
    static func name(_ field: KeyPath<DurationReading, Double>) -> String {
        self.percent(field).map { "p\(Words.plain($0))" } ?? "max"
    }

    private static func percent(_ field: KeyPath<DurationReading, Double>) -> Double? {
        DurationReading.percentiles.first { $0.field == field }?.percent
    }
}

extension RunRecord {
    /// The lanes of a decoder benchmark, in the order of the design, not of the alphabet.
    package var decodeLanes: [Metric] {
        let paths = ["memory", "socket"]
        let forms = ["pipelined", "segments", "fragments", "cuts"]
        func place(_ metric: Metric) -> (Int, Int) {
            (
                paths.firstIndex(of: metric.labels["path"] ?? "") ?? paths.count,
                forms.firstIndex(of: metric.labels["form"] ?? "") ?? forms.count
            )
        }
        return self.metrics(named: .decodePackets).sorted { place($0) < place($1) }
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
