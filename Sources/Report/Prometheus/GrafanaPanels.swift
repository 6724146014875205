import Measurement

struct GrafanaPanel: Sendable {
    enum Kind: String, Sendable {
        case course = "timeseries"
        /// The last value, shown by its name.
        case state = "stat"
    }

    struct Query: Sendable {
        let expression: String
        /// The name of each series; `{{label}}` is that label's value.
        let legend: String

        init(_ expression: String, _ legend: String) {
            self.expression = expression
            self.legend = legend
        }
    }

    let title: String
    /// Grafana's name of the unit.
    let unit: String
    let kind: Kind
    let queries: [Query]

    private init(_ title: String, _ unit: String, _ queries: Query..., kind: Kind = .course) {
        self.init(title: title, unit: unit, kind: kind, queries: queries)
    }

    private init(title: String, unit: String, kind: Kind = .course, queries: [Query]) {
        self.title = title
        self.unit = unit
        self.kind = kind
        self.queries = queries
    }

    static var all: [GrafanaPanel] { self.traffic + self.times + self.backlog + self.losses + self.machines }

    private static var traffic: [GrafanaPanel] {
        [
            Self("Phase", "none", Query("clamor_run_phase == 1", "{{phase}}"), kind: .state),
            Self("Clients by state", "short", self.sum(.clients, by: "state")),
            Self(
                "MQTT messages per second",
                "ops",
                self.rate(.publishOffered, "offered"),
                self.rate(.publishSent, "sent"),
                self.rate(.publishAcked, "acknowledged")
            ),
            Self(
                "XMPP stanzas per second",
                "ops",
                self.rate(.stanzaOffered, "offered"),
                self.rate(.stanzaSent, "sent"),
                self.rate(.stanzaConfirmed, "confirmed")
            ),
            Self("Received per second", "ops", self.rate(.received, "received")),
            Self("Bytes per second", "Bps", self.rate(.bytesSent, "sent"), self.rate(.bytesReceived, "received")),
        ]
    }

    private static var times: [GrafanaPanel] {
        let last = "99th percentile of the last 5 seconds"
        let run = "percentiles of the run"
        return [
            Self("Acknowledgement, \(last)", "s", self.p99(.publishAck, by: "qos, leg", "QoS {{qos}} {{leg}}")),
            Self("Acknowledgement, \(run) (the worst QoS and leg)", "s", self.quantiles(.publishAck)),
            Self("Delivery, \(last)", "s", self.p99(.delivery, by: "qos, stanza", "{{qos}}{{stanza}}")),
            Self("Delivery, \(run) (the worst series)", "s", self.quantiles(.delivery)),
        ]
    }

    private static var losses: [GrafanaPanel] {
        [
            // Without an error there is no such metric; a run in sight has 0 of them then.
            Self(
                "Errors by kind",
                "short",
                Query("sum by (kind) (clamor_errors_total) or sum(0 * clamor_run_finished)", "{{kind}}")
            ),
            Self(
                title: "Deliveries that went wrong",
                unit: "short",
                queries: ([.deliveryLost] + MetricDefinition.irregularities).map { kind in
                    // Without such an event there is no such metric; a run in sight has 0 of them then.
                    let zero = kind.isRare ? " or sum(0 * clamor_run_finished)" : ""
                    return Query("sum(\(PrometheusName(kind).sample))\(zero)", kind.title)
                }
            ),
        ]
    }

    private static var backlog: [GrafanaPanel] {
        MetricDefinition.all(.backlog).map { kind in
            let title = kind.title.prefix(1).uppercased() + kind.title.dropFirst() + " operation, by group"
            let query = Query("max by (group) (\(PrometheusName(kind).sample))", "{{group}}")
            return GrafanaPanel(title: title, unit: "s", queries: [query])
        }
    }

    private static var machines: [GrafanaPanel] {
        [
            Self(
                "Generator CPU by event loop",
                "percentunit",
                Query("max by (instance, loop) (clamor_generator_cpu)", "loop {{loop}}")
            ),
            Self(
                "Generator's own delay, 99th percentile of the last 5 seconds",
                "s",
                self.p99(.loopLag, by: "loop", "loop {{loop}}"),
                self.p99(.scheduleLag, by: "group", "schedule {{group}}")
            ),
            Self("Generator memory", "bytes", self.sum(.generatorMemory, by: "instance")),
            Self("Server CPU by process, in cores", "short", self.sum(.serverCPU, by: "process")),
            Self("Server memory by process", "bytes", self.sum(.serverMemory, by: "process")),
        ]
    }

    // Names come from the table of metrics, as the page has them; 5 seconds hold several scrapes of one a second.

    private static func sum(_ metric: MetricDefinition, by label: String) -> Query {
        Query("sum by (\(label)) (\(PrometheusName(metric).sample))", "{{\(label)}}")
    }

    private static func rate(_ metric: MetricDefinition, _ legend: String) -> Query {
        Query("sum(rate(\(PrometheusName(metric).sample)[5s]))", legend)
    }

    private static func p99(_ metric: MetricDefinition, by labels: String, _ legend: String) -> Query {
        let buckets = PrometheusName(metric).family + "_bucket"
        return Query("histogram_quantile(0.99, sum by (le, \(labels)) (rate(\(buckets)[5s])))", legend)
    }

    private static func quantiles(_ metric: MetricDefinition) -> Query {
        Query("max by (q) (\(PrometheusName(metric).quantiles))", "q {{q}}")
    }
}
