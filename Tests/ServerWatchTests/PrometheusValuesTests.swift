import Measurement
import ServerWatch
import Testing

@Suite("Metrics of an exporter")
struct PrometheusValuesTests {
    private static func counter(_ value: Double) -> PrometheusSample {
        PrometheusSample(name: "a_total", labels: "x=1", kind: .counter, value: value)
    }

    @Test("counters: the increase of the interval, with its rate between scrapes; a fall is a restart")
    func counters() throws {
        var values = PrometheusValues()
        values.take([Self.counter(100)], at: 1_000_000_000)
        #expect(values.look().isEmpty)
        values.take([Self.counter(150)], at: 2_000_000_000)
        let first = try #require(values.look().first)
        #expect(first.name == "server_metric")
        #expect(first.labels == ["series": "a_total", "of": "x=1"])
        #expect(first.counter == CounterReading(value: 50, rate: 50))
        // No scrape, nothing known.
        #expect(values.look().isEmpty)
        values.take([Self.counter(160)], at: 4_000_000_000)
        values.take([Self.counter(170)], at: 4_500_000_000)
        #expect(values.look().first?.counter == CounterReading(value: 20, rate: 8))
        values.take([Self.counter(30)], at: 5_500_000_000)
        #expect(values.look().first?.counter == CounterReading(value: 30, rate: 30))
    }

    @Test("the first 200 series of a run are kept, whatever comes and goes")
    func bound() {
        var values = PrometheusValues()
        for round in 0..<50 {
            let samples = (0..<10).map { number in
                PrometheusSample(name: "a", labels: "id=\(round * 10 + number)", kind: .counter, value: 1)
            }
            values.take(samples, at: Int64(round))
            #expect(values.hasDropped == (round >= 20))
            #expect(values.look().isEmpty)
        }
        for kind in [PrometheusSample.Kind.counter, .gauge] {
            values.take([PrometheusSample(name: "a", labels: "id=200", kind: kind, value: 2)], at: 100)
            #expect(values.look().isEmpty)
        }
        values.take([PrometheusSample(name: "a", labels: "id=199", kind: .counter, value: 3)], at: 100)
        #expect(values.look().value("server_metric", ["of": "id=199"]) == 2)
    }

    @Test("with several pages each series names its own")
    func page() {
        var values = PrometheusValues(page: "h:80/b")
        values.take([PrometheusSample(name: "g", labels: "x=1", kind: .gauge, value: 3)], at: 1)
        #expect(values.look().map(\.labels) == [["page": "h:80/b", "series": "g", "of": "x=1"]])
    }

    @Test(
        "pages are named by host and port, with the path where two have the same; an address counts once",
        arguments: [
            (["http://h"], [nil]), (["http://h", "http://h:80/metrics"], [nil]),
            (["http://h", "http://g:1/x"], ["h:80", "g:1"]), (["http://h/a", "http://h/b"], ["h:80/a", "h:80/b"]),
            (["http://h/a?t=1", "http://h/a?t=2", "http://g"], ["h:80/a", "h:80/a 2", "g:80"]),
            (["http://h;x", "http://[::1]:2"], ["h_x:80", "[::1]:2"]), ([], []),
        ] as [([String], [String?])]
    )
    func pages(addresses: [String], pages: [String?]) throws {
        let settings = try addresses.map { PrometheusSettings(address: try #require(ExporterAddress($0))) }
        #expect(PrometheusSettings.pages(settings).map(\.page) == pages)
    }

    @Test("an address that occurs twice has the patterns of both; without a pattern it has all series")
    func twice() throws {
        let address = try #require(ExporterAddress("http://h"))
        let (a, b) = (try #require(SeriesPattern("a")), try #require(SeriesPattern("b")))
        func patterns(_ all: [SeriesPattern]...) -> [[SeriesPattern]] {
            PrometheusSettings.pages(all.map { PrometheusSettings(address: address, patterns: $0) })
                .map(\.settings.patterns)
        }
        #expect(patterns([a], [b]) == [[a, b]])
        #expect(patterns([a], []) == [[]])
        #expect(patterns([], [b]) == [[]])
    }

    @Test("gauges: the last value of the interval, never repeated")
    func gauges() {
        var values = PrometheusValues()
        for value in [3.0, -4] { values.take([PrometheusSample(name: "g", kind: .gauge, value: value)], at: 1) }
        #expect(values.look().value("server_metric", ["series": "g"]) == -4)
        #expect(values.look().isEmpty)
    }
}
