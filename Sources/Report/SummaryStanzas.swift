import Measurement

// Stanzas that XMPP clients sent and received.
extension Summary {
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
