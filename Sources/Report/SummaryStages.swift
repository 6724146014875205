import Measurement

// A run in parts: the answers of each.
extension Summary {
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
}
