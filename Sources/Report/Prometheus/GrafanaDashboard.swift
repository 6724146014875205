import Measurement

/// The means to show a run in Grafana: a dashboard, and the configuration with which Prometheus scrapes it.
package enum GrafanaDashboard {
    package static var queries: [String] { GrafanaPanel.all.flatMap { $0.queries.map(\.expression) } }

    /// The dashboard in JSON, to be imported.
    package static func text() throws(ResultError) -> String {
        try PrettyJSON.text(self.dashboard, path: "dashboard.json")
    }

    /// The text of a `prometheus.yml` for one run.
    ///
    /// `address`: host and port of the run's page.
    package static func scrapeConfiguration(address: String = "127.0.0.1:9464") -> String {
        """
        # For a run with --prometheus: prometheus --config.file=prometheus.yml
        global:
          scrape_interval: 1s
        scrape_configs:
          - job_name: clamor
            static_configs:
              - targets: ["\(address)"]

        """
    }

    private static var dashboard: JSONValue {
        [
            "title": "Clamor",
            "uid": "clamor",
            "tags": ["clamor"],
            "schemaVersion": 38,
            "version": 1,
            "editable": true,
            "graphTooltip": 1,
            "refresh": "5s",
            "time": ["from": "now-5m", "to": "now"],
            "templating": [
                "list": [
                    ["name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"]
                ]
            ],
            "panels": .array(GrafanaPanel.all.enumerated().map { self.panel($1, number: $0) }),
        ]
    }

    private static let source: JSONValue = ["type": "prometheus", "uid": "${datasource}"]

    /// Panels are in two columns; the grid has 24.
    private static func panel(_ panel: GrafanaPanel, number: Int) -> JSONValue {
        let (width, height) = (12, 8)
        let place: JSONValue = [
            "x": .integer(Int64(number % 2 * width)), "y": .integer(Int64(number / 2 * height)),
            "w": .integer(Int64(width)), "h": .integer(Int64(height)),
        ]
        let options: JSONValue = panel.kind == .state ? ["textMode": "name", "colorMode": "none"] : [:]
        return [
            "id": .integer(Int64(number + 1)),
            "title": .string(panel.title),
            "type": .string(panel.kind.rawValue),
            "datasource": self.source,
            "gridPos": place,
            "fieldConfig": ["defaults": ["unit": .string(panel.unit)], "overrides": []],
            "options": options,
            "targets": .array(panel.queries.enumerated().map { self.target($1, number: $0) }),
        ]
    }

    private static func target(_ query: GrafanaPanel.Query, number: Int) -> JSONValue {
        [
            "refId": .string(String(UnicodeScalar(UInt8(ascii: "A") + UInt8(number)))),
            "datasource": self.source,
            "expr": .string(query.expression),
            "legendFormat": .string(query.legend),
        ]
    }
}
