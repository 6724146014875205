import LiveServer
import Measurement
import NIOCore
import Report
import Synchronization
import TestSupport
import Testing

@Suite(
    "Prometheus scrapes the live server",
    .enabled(if: PrometheusServer.isInstalled, Comment(rawValue: PrometheusServer.missing)),
    .timeLimit(.minutes(10))
)
struct ScrapeTests {
    /// A page with all metrics, which have grown with each scrape; `step` is its number.
    static func page(_ step: Int) -> PrometheusPage {
        var histogram = Histogram()
        histogram.record(2_000_000, count: UInt64(step) * 100)
        let series = MetricHelp.all.map { help in
            let value: PrometheusSeries.Value =
                switch help.kind {
                case .duration: .duration(histogram)
                case .counter: .counter(Double(step) * 1000)
                case .gauge: .gauge(0.5)
                }
            return PrometheusSeries(name: help.name, labels: ["qos": "1"], unit: help.unit, value: value)
        }
        let info = PrometheusInfo(
            name: "night \"run\"",
            command: "clamor pub",
            version: "1",
            phase: "measure",
            startedAt: 1_795_225_029_000_000_000
        )
        return PrometheusPage(info: info, series: series)
    }

    /// Serves `page` and has it scraped once a second, until `scrapes` of them are stored.
    static func scraped<Result>(
        page: @escaping @Sendable (_ scrape: Int) -> PrometheusPage,
        scrapes: Int,
        _ body: (PrometheusServer) async throws -> Result
    ) async throws -> Result {
        let count = Atomic(0)
        let metrics: @Sendable (LiveRequest) async -> LiveResponse = { request in
            let format = PrometheusFormat(accept: request.accept)
            let number = count.add(1, ordering: .relaxed).newValue
            return LiveResponse(contentType: format.contentType, body: page(number).text(format))
        }
        return try await LiveServer.with(["/metrics": .response(metrics)]) { server in
            let address = "127.0.0.1:\(server.address.port ?? 0)"
            let configuration = GrafanaDashboard.scrapeConfiguration(address: address)
            return try await PrometheusServer.with(configuration: configuration) { prometheus in
                // One more: what the one before brought is stored when the next begins.
                while server.requests(of: "/metrics") <= scrapes {
                    try #require(await server.nextRequest(of: "/metrics", within: .minutes(1)))
                }
                return try await body(prometheus)
            }
        }
    }

    @Test("and has the counts of the page")
    func counts() async throws {
        try await Self.scraped(page: { _ in Self.page(7) }, scrapes: 1) { prometheus in
            let sent = try await prometheus.query("clamor_publish_sent_total")
            #expect(sent.map(\.value) == [7000])
            #expect(sent.first?.labels["qos"] == "1")
            #expect(try await prometheus.query("up").map(\.value) == [1])
            let name = "clamor_publish_ack_duration_seconds"
            let buckets = [("0.001", 0.0), ("0.0025", 700), ("60.0", 700), ("+Inf", 700)]
            for (bound, count) in buckets {
                #expect(try await prometheus.query("\(name)_bucket{le=\"\(bound)\"}").map(\.value) == [count])
            }
            #expect(try await prometheus.query("\(name)_count").map(\.value) == [700])
            let info = try await prometheus.query("clamor_run_info")
            #expect(info.first?.labels["name"] == "night \"run\"")
        }
    }

    @Test("and each query of the dashboard has a number for its answer")
    func dashboard() async throws {
        try await Self.scraped(page: { Self.page($0) }, scrapes: 2) { prometheus in
            for query in GrafanaDashboard.queries {
                let answer = try await prometheus.query(query)
                #expect(!answer.isEmpty, "\(query)")
                #expect(answer.allSatisfy { $0.value.isFinite }, "\(query)")
            }
        }
    }
}
