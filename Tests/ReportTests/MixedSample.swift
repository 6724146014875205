import Measurement

extension Samples {
    /// MQTT and XMPP clients side by side; one of the latter never came up.
    static var mixed: RunRecord {
        var record = self.begun(["clamor", "run", "mixed.yaml"])
        record.durationSeconds = 12.345
        record.stages = [
            StageRecord(name: "connect", start: 0, durationSeconds: 2.1, measured: false),
            StageRecord(name: "measure", start: 2.1, durationSeconds: 10, measured: true),
            StageRecord(name: "drain", start: 12.1, durationSeconds: 0.245, measured: false),
        ]
        record.verdict = .valid
        record.groups = [
            GroupRecord(name: "sensors", protocolName: "mqtt", clients: 2000, ledger: LedgerRecord(on: true)),
            GroupRecord(name: "chat", protocolName: "xmpp", clients: 101, ledger: LedgerRecord(on: true)),
        ]
        record.groups?[0].up = 2000
        record.groups?[1].up = 100
        record.ledger = LedgerRecord(on: true)
        self.addSensors(to: &record)
        self.addChat(to: &record)
        record.thresholds = [
            ThresholdResult(expression: "publish_ack_duration{group=sensors} p99 < 50ms", ok: true, value: 0.000_99),
            ThresholdResult(expression: "delivery_lost == 0", ok: true, value: 0),
        ]
        record.generator.eventLoops = 2
        record.generator.cpuSeconds = 6.2
        record.generator.loopCPUShares = [0.487, 0.502]
        return record
    }

    private static func addSensors(to record: inout RunRecord) {
        let own = self.pubsub
        record.metrics += own.metrics.filter { $0.labels["qos"] ?? "1" == "1" }.map { self.metric($0, of: "sensors") }
        record.books += own.books.filter { $0.qos == 1 }.map { books in
            var books = books
            books.group = "sensors"
            return books
        }
        for (name, clients) in own.clients { record.clients["sensors \(name)"] = clients }
    }

    private static func addChat(to record: inout RunRecord) {
        let message: Labels = ["stanza": "message"]
        let metrics: [Metric?] =
            [("tcp", 5000), ("stream", 9000), ("sasl", 12_000), ("bind", 3000), ("total", 29_000)].map { phase, step in
                self.duration("connect_duration", ["phase": phase], self.ramp(100, step: step))
            } + [
                self.counter("stanza_offered", message, 5000, rate: 500),
                self.counter("stanza_sent", message, 5000, rate: 500),
                self.counter("stanza_not_sent", message, 0), self.counter("stanza_confirmed", message, 5000),
                self.counter("received", message.adding("delayed", "false"), 5000, rate: 500),
                self.counter("delivery_expected", message, 5000), self.counter("delivery_lost", message, 0),
                self.counter("delivery_duplicated", message, 0), self.counter("delivery_reordered", message, 0),
                self.duration("delivery_duration", message, self.ramp(1000, step: 2500)),
                self.duration("schedule_lag", [:], self.ramp(1000, step: 700)),
            ]
        record.metrics += metrics.compactMap(\.self).map { self.metric($0, of: "chat") }
        var books = Books(stanza: "message")
        books.group = "chat"
        (books.offered, books.sent, books.notSent) = (5000, 5000, 0)
        (books.confirmed, books.unconfirmed) = (5000, 0)
        (books.expected, books.received, books.lost) = (5000, 5000, 0)
        record.books.append(books)
        record.errors = [
            ErrorRecord(
                kind: "not-authorized",
                count: 1,
                firstAt: "2026-11-21T01:37:09.623456Z",
                example: "the server refused the login: not-authorized",
                group: "chat"
            )
        ]
    }

    private static func metric(_ metric: Metric, of group: String) -> Metric {
        var metric = metric
        metric.labels = metric.labels.of(group: group, metric: metric.name)
        return metric
    }
}
