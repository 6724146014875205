/// The means to show a run in Grafana: a dashboard, and the configuration with which Prometheus scrapes it.
package enum GrafanaDashboard {
    /// The dashboard in JSON, to be imported.
    package static var text: String { String(decoding: PackageResources.grafana_json, as: UTF8.self) }

    /// The text of a `prometheus.yml` for one run; `address` is host and port of its page.
    package static func scrapeConfiguration(address: String = "127.0.0.1:9464") -> String {
        String(decoding: PackageResources.prometheus_yml, as: UTF8.self).replacing("127.0.0.1:9464", with: address)
    }
}
