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
        let series = MetricDefinition.all.map { help in
            let value: PrometheusSeries.Value =
                switch help.kind {
                case .duration: .duration(histogram)
                case .counter: .counter(Double(step) * 1000)
                case .gauge: .gauge(0.5)
                }
            return PrometheusSeries(name: help.name, labels: ["qos": "1"], unit: help.unit, value: value)
        }
        var info = PrometheusInfo(command: "clamor pub", version: "1")
        info.name = "night \"run\""
        info.phase = "measure"
        info.startedAt = 1_795_225_029_000_000_000
        return PrometheusPage(info: info, series: series)
    }

    /// Serves `page`, which is scraped once a second, and runs `body` until it returns a result.
    ///
    /// A scrape that takes longer than its second, as on a busy machine, leaves its series stale until the next. So each
    /// `nil` is followed by a further scrape, up to a minute of them.
    static func scraped<Result>(
        page: @escaping @Sendable (_ scrape: Int) -> PrometheusPage,
        _ body: (PrometheusServer) async throws -> Result?
    ) async throws -> Result? {
        let count = Atomic(0)
        let (scrapes, scrape) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let metrics: @Sendable (LiveRequest) async -> LiveResponse = { request in
            let format = PrometheusFormat(accept: request.accept)
            let number = count.add(1, ordering: .relaxed).newValue
            scrape.yield()
            return LiveResponse(contentType: format.contentType, body: page(number).text(format))
        }
        return try await LiveServer.with(["/metrics": .response(metrics)]) { server in
            let address = "127.0.0.1:\(server.address.port ?? 0)"
            let configuration = GrafanaDashboard.scrapeConfiguration(address: address)
            return try await PrometheusServer.with(configuration: configuration) { prometheus in
                var next = scrapes.makeAsyncIterator()
                for _ in 0..<60 {
                    await next.next()
                    if let result = try await body(prometheus) { return result }
                }
                return nil
            }
        }
    }

    @Test("and has the counts of the page")
    func counts() async throws {
        let name = "clamor_publish_ack_duration_seconds"
        let expected = [
            "clamor_publish_sent_total{qos=\"1\"}": 7000.0, "up": 1, "\(name)_count": 700,
            "\(name)_bucket{le=\"0.001\"}": 0, "\(name)_bucket{le=\"0.0025\"}": 700,
            "\(name)_bucket{le=\"60.0\"}": 700, "\(name)_bucket{le=\"+Inf\"}": 700,
        ]
        var answers: [String: Double] = [:]
        var runs: Set<String> = []
        let isThere: Void? = try await Self.scraped(page: { _ in Self.page(7) }) { prometheus in
            for query in expected.keys {
                let values = try await prometheus.query(query).map(\.value)
                answers[query] = values.count == 1 ? values[0] : nil
            }
            runs = Set(try await prometheus.query("clamor_run_info").compactMap { $0.labels["name"] })
            return answers.count == expected.count && !runs.isEmpty ? () : nil
        }
        #expect(isThere != nil)
        #expect(answers == expected)
        #expect(runs == ["night \"run\""])
    }

    @Test("and each query of the dashboard has a number for its answer")
    func dashboard() async throws {
        var silent = Set(GrafanaDashboard.queries)
        _ = try await Self.scraped(page: { Self.page($0) }) { prometheus in
            for query in silent {
                let answer = try await prometheus.query(query)
                guard !answer.isEmpty else { continue }
                #expect(answer.allSatisfy { $0.value.isFinite }, "\(query)")
                silent.remove(query)
            }
            return silent.isEmpty ? () : nil
        }
        #expect(silent == [])
    }
}
