package import Measurement

extension Summary {
    /// Messages offered, sent and acknowledged, per QoS and stream.
    var publish: [String] {
        var table = TextTable(
            [
                "Publish", "offered", "sent", "sent/s", "acked", "acked/s", "confirmed", "not sent", "outstanding",
                "resent",
            ]
        )
        let levels = self.levels(of: ["publish_offered", "publish_sent"], by: ["qos", "stage", Labels.stream])
        for labels in levels {
            func counter(_ name: String) -> CounterReading? { self.record.metric(name, labels)?.counter }
            let acked = counter("publish_acked")
            table.add([
                self.operation(labels, ""), Cell.number(counter("publish_offered")?.value),
                Cell.number(counter("publish_sent")?.value), Cell.number(counter("publish_sent")?.rate),
                Cell.number(acked?.value), Cell.number(acked?.rate),
                Cell.number(counter("publish_confirmed")?.value), Cell.number(counter("publish_not_sent")?.value),
                Cell.some(counter("publish_outstanding")?.value), Cell.number(counter("publish_resent")?.value),
            ])
        }
        return self.section(table) + (levels.isEmpty ? [] : self.traffic)
    }

    /// Messages received, and the ledger's account of them, per QoS of the publisher.
    var delivery: [String] {
        var table = TextTable(
            [
                "Delivery", "expected", "received", "received/s", "lost", "outstanding", "missing", "duplicated",
                "overlapping", "reordered",
            ]
        )
        let names = ["delivery_expected", "delivery_lost", "delivery_duplicated", "received"]
        let levels = self.levels(of: names)
        for labels in levels {
            // There is a row for each cause, stream and group of publishers.
            func counters(_ name: String) -> [CounterReading] {
                self.record.metrics(named: name).filter { $0.labels.contains(labels) }.compactMap(\.counter)
            }
            func sum(_ name: String) -> Double? { counters(name).sum { $0.value } }
            let (lost, missing) = (sum("delivery_lost"), sum("delivery_missing"))
            // The ledger's count is of the messages that are expected: requests arrive too.
            let (expected, arrived) = (sum("delivery_expected"), sum("received"))
            let received = expected.flatMap { _ in sum("delivery_received") } ?? arrived
            // The rate is that of all arrivals.
            let rate = received == arrived ? counters("received").sum { $0.rate } : nil
            table.add([
                self.operation(labels, ""), Cell.number(expected), Cell.number(received), Cell.number(rate),
                Cell.number(lost), Cell.some(sum("delivery_outstanding")),
                // Lost messages are missing too.
                missing == lost ? nil : Cell.number(missing), Cell.number(sum("delivery_duplicated")),
                Cell.number(sum("delivery_overlap")), Cell.number(sum("delivery_reordered")),
            ])
        }
        // With publishers in the run their line is up there.
        let isSubscriberOnly = self.levels(of: ["publish_offered", "publish_sent"]).isEmpty
        let ledger = self.record.ledger
        let remark =
            ledger.pending == true
            ? "losses are known only after clamor merge: the other segments hold a part of the ledger"
            : ledger.on
                ? ledger.unfollowedWords
                : self.hasMessages ? ledger.reason.map { "the ledger is off: \($0)" } : nil
        return self.section(table) + (isSubscriberOnly && !levels.isEmpty ? self.traffic : [])
            + (remark.map { self.paragraph($0, indent: 2) } ?? []) + (levels.isEmpty ? [] : self.losses)
    }

    /// Not of a run that only logs in, pings, or makes accounts.
    private var hasMessages: Bool {
        self.record.metrics.contains { metric in
            switch metric.name {
            case "publish_offered": true
            case "received": metric.labels["qos"] != nil
            case "stanza_offered": metric.labels["stanza"] != "iq"
            default: false
            }
        }
    }

    /// Losses by cause, with the first example of each; empty without losses.
    var losses: [String] {
        self.record.ledger.lossText.map { self.paragraph($0, indent: 2, hanging: 2) } ?? []
    }

    /// The bytes of both directions in one line.
    var traffic: [String] {
        func flow(_ name: String) -> String? {
            guard let counter = self.record.metric(name, [:])?.counter, counter.value > 0 else { return nil }
            return counter.rate.map { Human.bytes($0) + "/s" } ?? Human.bytes(counter.value)
        }
        let counts = SummaryCounts(self.record.metrics)
        let isMixed = [counts.sent, counts.acked, counts.arrived].contains {
            self.measuredPart($0.value, $0.rate) != nil
        }
        let parts = [
            flow("payload_bytes_sent").map { "payload out \($0)" },
            flow("payload_bytes_received").map { "payload in \($0)" },
            flow("bytes_sent").map { "wire out \($0)" }, flow("bytes_received").map { "wire in \($0)" },
            isMixed ? "counts: whole run, rates: \(Human.duration(self.measuredSeconds)) measured" : nil,
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
        for packets in self.record.metrics(named: "decode_packets") {
            func value(_ name: String) -> Double? { self.record.metric(name, packets.labels)?.counter?.value }
            let count = packets.counter?.value
            let (bytes, reads, time) = (value("decode_bytes"), value("reads"), value("decode_time"))
            table.add([
                packets.labels["protocol"] ?? "all", Cell.number(count), bytes.map(Human.bytes),
                Cell.number(ratio(count, reads)), Cell.number(ratio(reads, count)),
                Cell.number(ratio(count, time)),
                ratio(bytes, time).map { Human.fixed($0 / 1e9, digits: 2) + " GB/s" },
            ])
        }
        return self.section(table)
    }

    /// The QoS levels, with these labels, that any of `names` has.
    private func levels(of names: [String], by keys: [String] = ["qos", "stage"]) -> [Labels] {
        var levels: [Labels] = []
        for metric in names.flatMap({ self.record.metrics(named: $0) }) where metric.labels["qos"] != nil {
            var labels: [String: String] = [:]
            for key in keys { labels[key] = metric.labels[key] }
            let level = Labels(labels)
            if !levels.contains(level) { levels.append(level) }
        }
        return levels.sorted()
    }

    /// Stanzas offered, sent and confirmed, by kind.
    var stanzas: [String] {
        var table = TextTable(
            [
                "Stanzas", "offered", "sent", "sent/s", "confirmed", "answered", "answered/s", "refused", "not sent",
                "outstanding",
            ]
        )
        let kinds = self.record.metrics(named: "stanza_offered").map(\.labels)
        for labels in kinds {
            func counter(_ name: String) -> CounterReading? { self.record.metric(name, labels)?.counter }
            let answered = counter("stanza_answered")
            table.add([
                self.operation(labels, ""), Cell.number(counter("stanza_offered")?.value),
                Cell.number(counter("stanza_sent")?.value), Cell.number(counter("stanza_sent")?.rate),
                Cell.number(counter("stanza_confirmed")?.value), Cell.number(answered?.value),
                Cell.number(answered?.rate), Cell.number(counter("stanza_refused")?.value),
                Cell.number(counter("stanza_not_sent")?.value), Cell.some(counter("stanza_outstanding")?.value),
            ])
        }
        return self.section(table) + (kinds.isEmpty ? [] : self.traffic)
    }

    /// Stanzas received, and the ledger's account of them.
    var stanzaDelivery: [String] {
        var table = TextTable(
            [
                "Delivery", "expected", "received", "received/s", "lost", "outstanding", "duplicated", "reordered",
                "offline",
            ]
        )
        // Requests are answered, and not delivered.
        let kinds = self.record.metrics(named: "stanza_offered").map(\.labels).filter { $0["stanza"] != "iq" }
        for labels in kinds {
            func counter(_ name: String) -> CounterReading? { self.record.metric(name, labels)?.counter }
            func received(_ isDelayed: String) -> CounterReading? {
                self.record.metric("received", labels.adding("delayed", isDelayed))?.counter
            }
            let came = received("false") ?? self.record.metric("received", labels.adding("from", "contact"))?.counter
            table.add([
                self.operation(labels, ""), Cell.number(counter("delivery_expected")?.value),
                Cell.number(came?.value), Cell.number(came?.rate),
                Cell.number(counter("delivery_lost")?.value), Cell.some(counter("delivery_outstanding")?.value),
                Cell.number(counter("delivery_duplicated")?.value), Cell.number(counter("delivery_reordered")?.value),
                Cell.number(received("true")?.value),
            ])
        }
        return self.section(table) + (kinds.isEmpty ? [] : self.losses)
    }

    /// A stanza to a whole group: when the first had it, and when the last.
    var fanOut: [String] {
        var table = TextTable(["Fan-out", "count", "p50", "p90", "p99", "p99.9", "max"])
        for name in ["muc_fanout", "presence_fanout"] {
            for metric in self.record.metrics(named: "\(name)_duration") {
                let title = "\(metric.labels["receiver"] ?? "?") receiver"
                table.add(title, metric, [\.p50, \.p90, \.p99, \.p999, \.max])
            }
        }
        let unfinished = ["muc_fanout", "presence_fanout"].flatMap { self.record.metrics(named: "\($0)_unfinished") }
            .reduce(0.0) { $0 + ($1.counter?.value ?? 0) }
        guard unfinished > 0 else { return self.section(table) }
        return self.section(table)
            + self.paragraph("\(Human.number(unfinished)) did not reach every receiver", indent: 2)
    }
}

func ratio(_ above: Double?, _ below: Double?) -> Double? {
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

extension [CounterReading] {
    /// The sum of the known values; `nil` if none is known.
    func sum(of field: (CounterReading) -> Double?) -> Double? {
        let known = self.compactMap(field)
        return known.isEmpty ? nil : known.reduce(0, +)
    }
}
