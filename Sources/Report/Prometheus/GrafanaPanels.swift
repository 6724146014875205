/// One panel of the dashboard.
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
    var kind = Kind.course
    let queries: [Query]

    static var all: [GrafanaPanel] { self.traffic + self.times + self.losses + self.machines }

    private static var traffic: [GrafanaPanel] {
        [
            GrafanaPanel(
                title: "Phase",
                unit: "none",
                kind: .state,
                queries: [Query("clamor_run_phase == 1", "{{phase}}")]
            ),
            GrafanaPanel(
                title: "Clients by state",
                unit: "short",
                queries: [Query("sum by (state) (clamor_clients)", "{{state}}")]
            ),
            GrafanaPanel(
                title: "MQTT messages per second",
                unit: "ops",
                queries: [
                    self.rate("publish_offered", "offered"), self.rate("publish_sent", "sent"),
                    self.rate("publish_acked", "acknowledged"),
                ]
            ),
            GrafanaPanel(
                title: "XMPP stanzas per second",
                unit: "ops",
                queries: [
                    self.rate("stanza_offered", "offered"), self.rate("stanza_sent", "sent"),
                    self.rate("stanza_confirmed", "confirmed"),
                ]
            ),
            GrafanaPanel(
                title: "Received per second",
                unit: "ops",
                queries: [self.rate("received", "received")]
            ),
            GrafanaPanel(
                title: "Bytes per second",
                unit: "Bps",
                queries: [self.rate("bytes_sent", "sent"), self.rate("bytes_received", "received")]
            ),
        ]
    }

    private static var times: [GrafanaPanel] {
        [
            GrafanaPanel(
                title: "Acknowledgement, 99th percentile of the last 5 seconds",
                unit: "s",
                queries: [self.p99("publish_ack_duration", by: "qos, leg", "QoS {{qos}} {{leg}}")]
            ),
            GrafanaPanel(
                title: "Acknowledgement, percentiles of the run (the worst QoS and leg)",
                unit: "s",
                queries: [self.quantiles("publish_ack_duration")]
            ),
            GrafanaPanel(
                title: "Delivery, 99th percentile of the last 5 seconds",
                unit: "s",
                queries: [self.p99("delivery_duration", by: "qos, stanza", "{{qos}}{{stanza}}")]
            ),
            GrafanaPanel(
                title: "Delivery, percentiles of the run (the worst series)",
                unit: "s",
                queries: [self.quantiles("delivery_duration")]
            ),
        ]
    }

    private static var losses: [GrafanaPanel] {
        [
            GrafanaPanel(
                title: "Errors by kind",
                unit: "short",
                // Without an error there is no such metric; a run in sight has 0 of them then.
                queries: [Query("sum by (kind) (clamor_errors_total) or sum(0 * clamor_run_finished)", "{{kind}}")]
            ),
            GrafanaPanel(
                title: "Lost and duplicated messages",
                unit: "short",
                queries: [
                    Query("sum(clamor_delivery_lost_total)", "lost"),
                    Query("sum(clamor_delivery_duplicated_total)", "duplicated"),
                ]
            ),
        ]
    }

    private static var machines: [GrafanaPanel] {
        [
            GrafanaPanel(
                title: "Generator CPU by event loop",
                unit: "percentunit",
                queries: [Query("max by (instance, loop) (clamor_generator_cpu)", "loop {{loop}}")]
            ),
            GrafanaPanel(
                title: "Generator's own delay, 99th percentile of the last 5 seconds",
                unit: "s",
                queries: [
                    self.p99("loop_lag", by: "loop", "loop {{loop}}"),
                    self.p99("schedule_lag", by: "group", "schedule {{group}}"),
                ]
            ),
            GrafanaPanel(
                title: "Generator memory",
                unit: "bytes",
                queries: [Query("sum by (instance) (clamor_generator_memory_bytes)", "{{instance}}")]
            ),
            GrafanaPanel(
                title: "Server CPU by process, in cores",
                unit: "short",
                queries: [Query("sum by (process) (clamor_server_cpu)", "{{process}}")]
            ),
            GrafanaPanel(
                title: "Server memory by process",
                unit: "bytes",
                queries: [Query("sum by (process) (clamor_server_memory_bytes)", "{{process}}")]
            ),
        ]
    }

    // Names come from the table of metrics, as the page has them; 5 seconds hold several scrapes of one a second.

    private static func name(_ metric: String) -> PrometheusName? { MetricHelp.of(metric).map(PrometheusName.init) }

    private static func rate(_ metric: String, _ legend: String) -> Query {
        Query("sum(rate(\(self.name(metric)?.sample ?? metric)[5s]))", legend)
    }

    private static func p99(_ metric: String, by labels: String, _ legend: String) -> Query {
        let buckets = (self.name(metric)?.family ?? metric) + "_bucket"
        return Query("histogram_quantile(0.99, sum by (le, \(labels)) (rate(\(buckets)[5s])))", legend)
    }

    private static func quantiles(_ metric: String) -> Query {
        Query("max by (q) (\(self.name(metric)?.quantiles ?? metric))", "q {{q}}")
    }
}
