import Foundation
import Measurement
import Report
import TestSupport
import Testing

@Suite("The dashboard for Grafana")
struct GrafanaDashboardTests {
    /// Names of all samples that a page can have.
    static let names: Set<String> = {
        var info = PrometheusInfo(command: "clamor pub", version: "1")
        info.phase = "measure"
        info.startedAt = 1_000_000
        let facts = PrometheusParser(PrometheusPage(info: info, series: []).text(.text), .text)
        return Set(facts.samples.map(\.name) + MetricDefinition.all.flatMap { PrometheusName($0).samples })
    }()

    @Test("asks only for metrics that a page has", arguments: GrafanaDashboard.queries)
    func names(_ query: String) {
        let names = query.matches(of: /clamor_[a-z0-9_]+/).map { String($0.0) }
        #expect(!names.isEmpty)
        #expect(Set(names).isSubset(of: Self.names))
    }

    @Test("panels have numbers and places of their own")
    func panels() throws {
        struct Dashboard: Decodable {
            struct Panel: Decodable {
                struct Place: Decodable, Hashable { var x, y, w, h: Int }
                var id: Int
                var title: String
                var gridPos: Place
            }
            var panels: [Panel]
        }
        let panels = try JSONDecoder().decode(Dashboard.self, from: Data(GrafanaDashboard.text.utf8)).panels
        #expect(Set(panels.map(\.id)).count == panels.count)
        #expect(Set(panels.map(\.title)).count == panels.count)
        #expect(Set(panels.map(\.gridPos)).count == panels.count)
        #expect(panels.allSatisfy { $0.gridPos.x + $0.gridPos.w <= 24 && $0.gridPos.x % $0.gridPos.w == 0 })
    }

    @Test(
        "promtool takes the scrape configuration",
        .enabled(if: PrometheusServer.isInstalled, Comment(rawValue: PrometheusServer.missing)),
        arguments: [nil, "load-7.example:9000", "[::1]:9464"]
    )
    func scrapeConfiguration(_ address: String?) throws {
        let text = address.map { GrafanaDashboard.scrapeConfiguration(address: $0) }
        let folder = try TemporaryFolder()
        try folder.write(text ?? GrafanaDashboard.scrapeConfiguration(), to: "prometheus.yml")
        let ending = try RunningProgram.run(
            "/usr/bin/env",
            ["promtool", "check", "config", folder.path + "/prometheus.yml"]
        )
        #expect(ending.status == 0, "\(ending.errors)")
        #expect((text ?? GrafanaDashboard.scrapeConfiguration()).contains("\"\(address ?? "127.0.0.1:9464")\""))
    }
}
