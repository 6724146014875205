package import Measurement

extension Summary {
    /// The phases of a connect, in the order in which they happen.
    var connect: [String] {
        self.phases("Connect", "connect_duration") + self.phases("Reconnect", "reconnect_duration") + self.connections
    }

    private func phases(_ title: String, _ name: String) -> [String] {
        var table = TextTable([title, "count", "p50", "p90", "p99", "max"])
        let all = self.record.metrics(named: name)
        let order = ["dns", "tcp", "tls", "websocket", "stream", "register", "sasl", "bind", "session", "total"]
        for metric in all.sorted(by: { order.place(of: $0.labels["phase"]) < order.place(of: $1.labels["phase"]) }) {
            table.add(metric.labels["phase"] ?? "all", metric, [\.p50, \.p90, \.p99, \.max])
        }
        return self.section(table)
    }

    /// Connections that ended before their time, and those that came back.
    private var connections: [String] {
        var parts: [String] = []
        for (name, key) in [("reconnects", ""), ("disconnects", "reason"), ("departures_missed", "reason")] {
            for metric in self.record.metrics(named: name) {
                guard let value = metric.counter?.value, value > 0 else { continue }
                parts.append([name, metric.labels[key], Human.number(value)].compactMap(\.self).joined(separator: " "))
            }
        }
        return parts.isEmpty ? [] : self.paragraph(parts.joined(separator: " · "), indent: 2)
    }

    /// Response time and service time: the time since the operation was due, and since it was written.
    var acknowledgements: [String] {
        let fields: [KeyPath<DurationReading, Double>] = [\.p50, \.p99, \.p999, \.max]
        let legs = ["puback", "pubrec", "pubcomp"]
        var table = TextTable(["Latency", "p50", "p99", "p99.9", "max", "│", "p50", "p99", "p99.9", "max"])
        // At QoS 0 nothing answers: that the write returned is all there is to know.
        for metric in self.record.metrics(named: "publish_write_duration") where metric.labels["qos"] == "0" {
            table.add([self.operation(metric.labels, "") + " write"] + Cell.durations(metric, fields) + ["│"])
        }
        let answers = self.record.metrics(named: "publish_ack_duration").sorted {
            ($0.labels["qos"] ?? "", legs.place(of: $0.labels["leg"])) < (
                $1.labels["qos"] ?? "", legs.place(of: $1.labels["leg"])
            )
        }
        for metric in answers {
            let service = self.record.metric("publish_service_duration", metric.labels)
            let cells = Cell.durations(metric, fields) + ["│"] + Cell.durations(service, fields)
            table.add([self.operation(metric.labels, "leg")] + cells)
        }
        for metric in self.record.metrics(named: "iq_duration") {
            let service = self.record.metric("iq_service_duration", metric.labels)
            let cells = Cell.durations(metric, fields) + ["│"] + Cell.durations(service, fields)
            table.add([self.operation(metric.labels, "")] + cells)
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
        var table = TextTable(["Blocked by window or socket", "count", "p50", "p99", "p99.9", "max"])
        // Less than a microsecond is no wait.
        let all = ["publish_blocked_duration", "stanza_blocked_duration"].flatMap { self.record.metrics(named: $0) }
        for metric in all where metric.duration?.max ?? 0 >= 1e-6 {
            table.add(self.operation(metric.labels, ""), metric, [\.p50, \.p99, \.p999, \.max])
        }
        return self.section(table)
    }

    /// Requests with one answer: SUBSCRIBE and PINGREQ, and the `<r/>` of stream management.
    var requests: [String] {
        var table = TextTable(["Requests", "count", "p50", "p99", "p99.9", "max"])
        let names = [
            ("subscribe_duration", "subscribe"), ("ping_duration", "ping"), ("sm_ack_duration", "stream management"),
            ("muc_join_duration", "entering a room"), ("presence_setup_duration", "contacts"),
            ("subscription_churn_duration", "churn"),
        ]
        for (name, title) in names {
            for metric in self.record.metrics(named: name) {
                let words = [title, metric.labels["leg"]].compactMap(\.self).joined(separator: " ")
                table.add(words, metric, [\.p50, \.p99, \.p999, \.max])
            }
        }
        return self.section(table) + self.subscriptionChurn
    }

    /// The results of the subscription churn.
    private var subscriptionChurn: [String] {
        let churn = "subscription_churn_"
        let counters = self.record.metrics.filter { $0.name.hasPrefix(churn) && $0.counter != nil }
        let words = counters.map { "\($0.name.dropFirst(churn.count)) \(Human.number($0.counter?.value ?? 0))" }
        return words.isEmpty ? [] : self.paragraph("subscriptions \(words.joined(separator: " · "))", indent: 2)
    }

    var endToEnd: [String] {
        var table = TextTable(["End to end", "count", "p50", "p90", "p99", "p99.9", "max"])
        let deliveries = ["delivery_duration", "request_duration"].flatMap { self.record.metrics(named: $0) }
        for metric in deliveries {
            table.add(self.operation(metric.labels, ""), metric, [\.p50, \.p90, \.p99, \.p999, \.max])
        }
        let services = ["message_duration", "presence_duration"].flatMap { self.record.metrics(named: $0) }
        for metric in services {
            table.add("from write", metric, [\.p50, \.p90, \.p99, \.p999, \.max])
        }
        return self.section(table)
    }

    /// `QoS 2 pubrec`, `message`, with the stage where there are stages, and the stream where there are several.
    func operation(_ labels: Labels, _ key: String) -> String {
        let name = labels["stanza"] ?? labels["request"] ?? "QoS \(labels["qos"] ?? "?")"
        return [name, labels[key], labels["stage"], labels[Labels.stream]].compactMap { $0 }.joined(separator: " ")
    }

    private static let answers = ["publish_ack_duration", "iq_duration", "delivery_duration", "request_duration"]

    /// Stage by stage, in their order; what has more than one kind of answer has a row for each.
    var stages: [String] {
        var table = TextTable(["Stages", "", "count", "p50", "p90", "p99", "p99.9", "max"])
        for stage in self.record.stages {
            let own = self.stageMetrics.filter { $0.labels[Labels.stage] == stage.name }
            for name in Self.answers {
                let rows = own.filter { $0.name == name && $0.labels["leg"] != "pubrec" && $0.duration != nil }
                for metric in rows.sorted(by: { $0.labels < $1.labels }) {
                    let labels = metric.labels.removing(Labels.stage).all.map { "\($0.key)=\($0.value)" }
                    table.add(
                        [stage.name, "\(name) \(labels.joined(separator: ","))", Cell.count(metric.duration?.count)]
                            + Cell.durations(metric, [\.p50, \.p90, \.p99, \.p999, \.max])
                    )
                }
            }
        }
        return self.section(table)
    }

    /// The result of `clamor decode`: rate, cost, and the form of the input.
    var decoderBenchmark: [String] {
        let (one, many) = self.decodedWords
        var speed = TextTable(["Decoder", "\(many)/s", "GB/s", "ns/\(one)", "min", "max", "on the wall", "allocated"])
        var reads = TextTable(["Reads", many, "bytes", "reads", "\(many)/read", "reads/\(one)"])
        for packets in self.record.decodeLanes {
            let labels = packets.labels
            let title = [labels["path"], labels["form"]].compactMap(\.self).joined(separator: " ")
            let bytes = self.record.metric("decode_bytes", labels)?.counter
            let time = self.record.metric("decode_packet_time", labels)?.gauge
            let wall = self.record.metric("decode_thousand_duration", labels)?.duration?.p50
            let allocated = self.record.metric("decode_packet_allocated_bytes", labels)?.gauge?.value
            let count = packets.counter?.value
            let readCount = self.record.metric("reads", labels)?.counter?.value
            func nanoseconds(_ seconds: Double?) -> String? { seconds.map { Human.fixed($0 * 1e9, digits: 2) } }
            speed.add([
                title, Cell.number(packets.counter?.rate.map { $0.rounded() }),
                bytes?.rate.map { Human.fixed($0 / 1e9, digits: 3) },
                nanoseconds(time?.median), nanoseconds(time?.min), nanoseconds(time?.max),
                nanoseconds(wall.map { $0 / 1_000 }),
                allocated.map { "\(Human.fixed($0, digits: 2)) B" },
            ])
            reads.add([
                title, Cell.number(count), bytes.map { Human.bytes($0.value) },
                Cell.number(readCount), Cell.number(ratio(count, readCount)), Cell.number(ratio(readCount, count)),
            ])
        }
        return self.section(speed) + self.decoderRemarks + [""] + self.section(reads)
    }

    /// The decoder's output in this protocol, singular and plural.
    private var decodedWords: (String, String) {
        let isXMPP = self.record.metrics(named: "decode_packets").contains { $0.labels["protocol"] == "xmpp" }
        return isXMPP ? ("stanza", "stanzas") : ("packet", "packets")
    }

    private var decoderRemarks: [String] {
        var remarks = [
            "ns/\(self.decodedWords.0): CPU time of the decoding thread, median of the rounds; over a socket with reading. Each row is "
                + "relative to its own time."
        ]
        if self.record.metrics(named: "decode_packet_allocated_bytes").isEmpty,
            let state = self.record.verdict?.state, state != .aborted
        {
            remarks.append(
                "Bytes allocated per \(self.decodedWords.0) are not known: install libjemalloc2, which counts them."
            )
        }
        return remarks.flatMap { self.paragraph($0, indent: 2) }
    }
}

/// Cells of the summary's tables.
package enum Cell {
    static func count(_ value: UInt64?) -> String? { value.map(Human.count) }

    static func number(_ value: Double?) -> String? { value.map(Human.number) }

    /// Nothing where there is none.
    static func some(_ value: Double?) -> String? { self.number(value.flatMap { $0 > 0 ? $0 : nil }) }

    /// A percentile of too few samples is a dash.
    package static func durations(_ metric: Metric?, _ fields: [KeyPath<DurationReading, Double>]) -> [String?] {
        fields.map { field in
            guard let reading = metric?.duration else { return nil }
            if let percent = self.percent(field), !self.isCarried(percent, by: reading.count) { return Human.unknown }
            if reading.isBound(field) { return Human.atLeast(Human.duration(reading[keyPath: field])) }
            return self.duration(reading[keyPath: field], knownTo: reading.clockError)
        }
    }

    /// Whether `count` samples carry a percentile: with fewer than 1 ÷ (1 - p) it equals the maximum.
    package static func isCarried(_ percent: Double, by count: UInt64) -> Bool {
        // 100 - 99.9 is a little below 0.1.
        Double(count) * min(percent, 100 - percent) > 99.999
    }

    private static func percent(_ field: KeyPath<DurationReading, Double>) -> Double? {
        switch field {
        case \.p50: 50
        case \.p90: 90
        case \.p95: 95
        case \.p99: 99
        case \.p999: 99.9
        case \.p9999: 99.99
        default: nil
        }
    }

    /// A value below the clock error is known only to be below it.
    static func duration(_ value: Double, knownTo error: Double?) -> String {
        guard let error, value < error else { return Human.duration(value) }
        return "< ±\(Human.duration(error))"
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
        return self.metrics(named: "decode_packets").sorted { place($0) < place($1) }
    }
}
