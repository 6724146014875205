package import Measurement

extension Summary {
    typealias Figures = [KeyPath<DurationReading, Double>]

    static var tail: Figures { [\.p50, \.p99, \.p999, \.max] }
    private static var whole: Figures { [\.p50, \.p90, \.p99, \.p999, \.max] }

    /// The phases of a connect, in the order in which they happen.
    var connect: [String] {
        self.phases("Connect", .connect) + self.phases("Reconnect", .reconnect) + self.connections
    }

    private func phases(_ title: String, _ kind: MetricDefinition) -> [String] {
        var table = TextTable(title, [\.p50, \.p90, \.p99, \.max])
        for metric in self.record.metrics(named: kind).sorted(by: { $0.labels.phasePlace < $1.labels.phasePlace }) {
            table.add(metric.labels["phase"] ?? "all", metric)
        }
        return self.section(table)
    }

    /// Connections that ended before their time, and those that came back.
    private var connections: [String] {
        var parts: [String] = []
        for (kind, key) in [(MetricDefinition.reconnects, ""), (.disconnects, "reason"), (.departuresMissed, "reason")]
        {
            for metric in self.record.metrics(named: kind) {
                guard let value = metric.counter?.value, value > 0 else { continue }
                parts.append(
                    [kind.name, metric.labels[key], Words.number(value)].compactMap(\.self).joined(separator: " ")
                )
            }
        }
        return parts.isEmpty ? [] : self.paragraph(parts.joined(separator: " · "), indent: 2)
    }

    /// Response time and service time: the time since the operation was due, and since it was written.
    var acknowledgements: [String] {
        let fields = Self.tail
        let names = fields.map(Cell.name)
        let legs = ["puback", "pubrec", "pubcomp"]
        var table = TextTable(["Latency"] + names + ["│"] + names)
        // At QoS 0 nothing answers: that the write returned is all there is to know.
        for metric in self.record.metrics(named: .publishWrite) where metric.labels["qos"] == "0" {
            table.add([self.operation(metric.labels, "") + " write"] + Cell.durations(metric, fields) + ["│"])
        }
        for kind in MetricDefinition.all(.answer) {
            let metrics = self.record.metrics(named: kind).sorted {
                ($0.labels["qos"] ?? "", legs.place(of: $0.labels["leg"])) < (
                    $1.labels["qos"] ?? "", legs.place(of: $1.labels["leg"])
                )
            }
            for metric in metrics {
                let written = kind.twin.flatMap { self.record.metric($0, metric.labels) }
                let cells = Cell.durations(metric, fields) + ["│"] + Cell.durations(written, fields)
                table.add([self.operation(metric.labels, "leg", or: kind.title)] + cells)
            }
        }
        guard !table.isEmpty else { return [] }
        let lines = table.lines()
        // The titles are printed on both sides of the bar between the two times.
        let left = lines[0].prefix { $0 != "│" }.count
        let title = "response time, from due".paddedLeft(to: left - 2) + "  │  service time, from write"
        return [self.style.paint(title, .bold), self.style.paint(lines[0], .bold)] + lines.dropFirst()
    }

    /// Messages delayed by the window or the socket: the server is the cause.
    var blocked: [String] {
        var table = TextTable("Blocked by window or socket", Self.tail)
        // Less than a microsecond is no wait.
        for metric in self.record.metrics(named: .publishBlocked, .stanzaBlocked)
        where metric.duration?.max ?? 0 >= 1e-6 {
            table.add(self.operation(metric.labels, ""), metric)
        }
        return self.section(table)
    }

    /// Requests with one answer, timed from their write, such as SUBSCRIBE and PINGREQ.
    var requests: [String] {
        var table = TextTable("Requests", Self.tail)
        for kind in [MetricDefinition.subscribe, .ping, .mucJoin, .presenceSetup, .subscriptionChurn] {
            for metric in self.record.metrics(named: kind) {
                table.add([kind.title, metric.labels["leg"]].compactMap(\.self).joined(separator: " "), metric)
            }
        }
        return self.section(table) + self.subscriptionChurn
    }

    /// The results of the subscription churn.
    private var subscriptionChurn: [String] {
        let churn = "subscription_churn_"
        let counters = self.record.metrics.filter { $0.name.hasPrefix(churn) && $0.counter != nil }
        let words = counters.map { "\($0.name.dropFirst(churn.count)) \(Words.number($0.counter?.value ?? 0))" }
        return words.isEmpty ? [] : self.paragraph("subscriptions \(words.joined(separator: " · "))", indent: 2)
    }

    var endToEnd: [String] {
        var table = TextTable("End to end", Self.whole)
        for metric in self.record.metrics(named: .delivery, .request) {
            table.add(self.operation(metric.labels, ""), metric)
        }
        for metric in self.record.metrics(named: .message, .presence) {
            table.add("from write", metric)
        }
        return self.section(table)
    }

    /// `QoS 2 pubrec`, `message`, with the stage where there are stages, and the stream where there are several.
    func operation(_ labels: Labels, _ key: String, or title: String = "QoS ?") -> String {
        let name = labels["stanza"] ?? labels["request"] ?? labels["qos"].map { "QoS \($0)" } ?? title
        return [name, labels[key], labels["stage"], labels[Labels.stream]].compactMap { $0 }.joined(separator: " ")
    }

    /// A stanza to a whole group: when the first had it, and when the last.
    var fanOut: [String] {
        var table = TextTable("Fan-out", Self.whole)
        for metric in self.record.metrics(named: .mucFanout, .presenceFanout) {
            table.add("\(metric.labels["receiver"] ?? "?") receiver", metric)
        }
        let unfinished = self.record.metrics(named: .mucFanoutUnfinished, .presenceFanoutUnfinished)
            .reduce(0.0) { $0 + ($1.counter?.value ?? 0) }
        let rest = "\(Words.number(unfinished)) did not reach every receiver"
        return self.section(table) + (unfinished > 0 ? self.paragraph(rest, indent: 2) : [])
    }

    private static let answers: [MetricDefinition] = [.publishAck, .iq, .delivery, .request]

    /// Stage by stage, in their order; what has more than one kind of answer has a row for each.
    var stages: [String] {
        var table = TextTable(["Stages", "", "count"] + Self.whole.map(Cell.name))
        for stage in self.record.stages {
            let own = self.stageMetrics.filter { $0.labels[Labels.stage] == stage.name }
            for kind in Self.answers {
                let rows = own.filter { $0.isOf(kind) && $0.labels["leg"] != "pubrec" && $0.duration != nil }
                for metric in rows.sorted(by: { $0.labels < $1.labels }) {
                    let labels = metric.labels.removing(Labels.stage).all.map { "\($0.key)=\($0.value)" }
                    table.add(
                        [
                            stage.name, "\(kind.name) \(labels.joined(separator: ","))",
                            Cell.count(metric.duration?.count),
                        ]
                            + Cell.durations(metric, Self.whole)
                    )
                }
            }
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

extension [String] {
    /// The position of a word; unknown words come last.
    fileprivate func place(of word: String?) -> Int {
        word.flatMap { self.firstIndex(of: $0) } ?? self.count
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
