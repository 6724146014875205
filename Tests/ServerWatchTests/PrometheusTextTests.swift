import Measurement
import Report
import ServerWatch
import Testing

@Suite("The text of an exporter")
struct PrometheusTextTests {
    private static func read(_ text: String, _ patterns: String...) -> [PrometheusSample] {
        PrometheusText(Array(text.utf8), patterns: patterns.compactMap { SeriesPattern($0) }).samples
    }

    @Test("format 0.0.4: types, labels with escapes, timestamps, blanks")
    func plain() {
        let text = """
            # HELP http_requests_total The total number of HTTP requests.
            # TYPE http_requests_total counter
            http_requests_total{method="post",code="200"} 1027 1395066363000
            http_requests_total{code="400",} 3 1395066363000

            msdos_file_access_time_seconds{path="C:\\\\DIR\\\\FILE.TXT",error="Cannot find \\"x\\"\\n"} 1.458255915e9
              metric_without_timestamp_and_labels \t 12.47
            something_weird{problem="division by zero"} +Inf -3982045
            # TYPE temperature gauge
            temperature -4.5
            # TYPE sent counter
            sent 7
            other_total 8
            """
        #expect(
            Self.read(text) == [
                PrometheusSample(
                    name: "http_requests_total",
                    labels: "code=200,method=post",
                    kind: .counter,
                    value: 1027
                ),
                PrometheusSample(name: "http_requests_total", labels: "code=400", kind: .counter, value: 3),
                PrometheusSample(
                    name: "msdos_file_access_time_seconds",
                    labels: "error=Cannot find \"x\"_,path=C:\\DIR\\FILE.TXT",
                    kind: .gauge,
                    value: 1_458_255_915
                ),
                PrometheusSample(name: "metric_without_timestamp_and_labels", kind: .gauge, value: 12.47),
                PrometheusSample(name: "temperature", kind: .gauge, value: -4.5),
                PrometheusSample(name: "sent", kind: .counter, value: 7),
                PrometheusSample(name: "other_total", kind: .counter, value: 8),
            ]
        )
    }

    @Test("histograms and summaries: count and sum as counters, no buckets")
    func histograms() {
        let text = """
            # TYPE d histogram
            d_bucket{le="0.05"} 24054
            d_bucket{le="+Inf"} 144320
            d_sum 53423
            d_count 144320
            # TYPE s summary
            s{quantile="0.5"} 4773
            s{quantile="0.9"} NaN
            s_sum 1.7e+07
            s_count 2693
            # TYPE g gaugehistogram
            g_bucket{le="+Inf"} 4
            g_gcount 4
            my_count 5
            """
        #expect(
            Self.read(text) == [
                PrometheusSample(name: "d_sum", kind: .counter, value: 53423),
                PrometheusSample(name: "d_count", kind: .counter, value: 144320),
                PrometheusSample(name: "s", labels: "quantile=0.5", kind: .gauge, value: 4773),
                PrometheusSample(name: "s_sum", kind: .counter, value: 17_000_000),
                PrometheusSample(name: "s_count", kind: .counter, value: 2693),
                PrometheusSample(name: "g_gcount", kind: .gauge, value: 4),
                PrometheusSample(name: "my_count", kind: .gauge, value: 5),
            ]
        )
    }

    @Test("OpenMetrics: exemplars, times of creation, names in quotes, the end")
    func openMetrics() {
        let text = """
            # TYPE acme_http_router_request_seconds summary
            # UNIT acme_http_router_request_seconds seconds
            acme_http_router_request_seconds_sum{path="/api/v1",method="GET"} 9036.32
            acme_http_router_request_seconds_created{path="/api/v1",method="GET"} 1605281325.0
            # TYPE foo counter
            foo_total 17.0 1520879607.789 # {trace_id="KOO5S4vxi0o"} 0.67
            foo_created 1520430000.123
            {"my.dotted metric","region.name"="eu"} 3
            # EOF
            """
        #expect(
            Self.read(text) == [
                PrometheusSample(
                    name: "acme_http_router_request_seconds_sum",
                    labels: "method=GET,path=/api/v1",
                    kind: .counter,
                    value: 9036.32
                ),
                PrometheusSample(name: "foo_total", kind: .counter, value: 17),
                PrometheusSample(name: "my.dotted metric", labels: "region.name=eu", kind: .gauge, value: 3),
            ]
        )
    }

    @Test(
        "a line that breaks the format is left out, the others stand",
        arguments: [
            "a", "a b", "a{", "a{x", "a{x=", "a{x=\"1", "a{x=\"1\" 2", "a{x=\"1\"y=\"2\"} 3", "{} 1", "{x=\"1\"} 1",
            "a{x=1} 2", "-a 1", "a{\"b\"} 1", "a 1e999", "a nan", "#", "# TYPE", "# TYPE a", "é 1", "a{x=\"\\",
            "a\u{0}1",
        ]
    )
    func broken(line: String) {
        #expect(Self.read("ok 1\n\(line)\nok2 2\n").map(\.name) == ["ok", "ok2"])
    }

    @Test("a series that occurs twice has the first value")
    func twice() {
        #expect(Self.read("a{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"1\"} 9\n").map(\.value) == [1])
    }

    @Test(
        "series by pattern: name or family, * and ?, exact labels",
        arguments: [
            ("*", ["emqx_a_total", "emqx_b", "d_sum"]), ("emqx_*", ["emqx_a_total", "emqx_b"]), ("emqx_?", ["emqx_b"]),
            ("*_total", ["emqx_a_total"]), ("*a*t*l", ["emqx_a_total"]), ("d", ["d_sum"]), ("EMQX_*", []),
            ("?", ["d_sum"]),
            ("emqx_*{node=\"n1\"}", ["emqx_a_total"]), ("emqx_*{node=\"n2\"}", []),
            ("emqx_a_total{node=\"n1\",x=\"\"}", ["emqx_a_total"]), ("emqx_b{}", ["emqx_b"]), ("b", []),
        ]
    )
    func patterns(pattern: String, names: [String]) {
        let text = """
            emqx_a_total{node="n1",x=""} 1
            emqx_b 2
            # TYPE d histogram
            d_sum 3
            """
        #expect(Self.read(text, pattern).map(\.name) == names)
    }

    @Test(
        "texts that are no patterns",
        arguments: ["", "{a=\"b\"}", "a{", "a{b=c}", "a{b=\"c\"} 1", "a b", "a}", "\"a\""]
    )
    func noPatterns(text: String) { #expect(SeriesPattern(text) == nil) }

    @Test("a pattern of many stars takes no exponential time")
    func stars() throws {
        let pattern = try #require(SeriesPattern(String(repeating: "*a", count: 200) + "b"))
        #expect(!pattern.matches(String(repeating: "a", count: 2_000)))
    }

    @Test("bounds: 200 kept, 10,000 read, 8 MiB, 64 KiB a line")
    func bounds() {
        let many = (0..<12_000).reduce(into: "") { $0 += "a\($1) 1\n" }
        let read = PrometheusText(Array(many.utf8))
        #expect(read.samples.count == PrometheusText.mostKept)
        #expect(read.matching == PrometheusText.mostParsed)
        #expect(Self.read("a{x=\"\(String(repeating: "y", count: 65_536))\"} 1\nb 2").map(\.name) == ["b"])
        let comment = "#" + String(repeating: "x", count: 60_000) + "\n"
        let long = String(repeating: comment, count: PrometheusText.mostBytes / comment.utf8.count)
        let end = String(repeating: "1", count: 100_000)
        // A number that is cut is another number.
        #expect(Self.read("a 1\n" + long + "b \(end)").map(\.name) == ["a"])
    }

    @Test("any bytes: no trap, bounded results, labels that files bring back")
    func fuzz() throws {
        let seed = """
            # TYPE a counter
            a_total{x="1;2",y="\\n\\"\\\\"} 1.5 123 # {id="1"} 2
            # TYPE h histogram
            h_bucket{le="+Inf"} 4
            h_sum 4
            {"q.r",é="\u{301}\u{600}"} 1e3
            """
        var dice = SplitMix64(seed: 28)
        let bytes = Array(seed.utf8)
        let special = Array("{}\"\\=,#; \n\r\t\u{301}\u{600}eE+-.".utf8)
        let patterns = [SeriesPattern("*"), SeriesPattern("a*{x=\"1;2\"}")].compactMap(\.self)
        for round in 0..<3_000 {
            var text = bytes
            for _ in 0...(dice.next() % 8) {
                let place = Int(dice.next() % UInt64(text.count))
                switch dice.next() % 4 {
                case 0: text[place] = UInt8(truncatingIfNeeded: dice.next())
                case 1: text.insert(special[Int(dice.next() % UInt64(special.count))], at: place)
                case 2: text.removeSubrange(place..<min(text.count, place + Int(dice.next() % 9)))
                default: text.insert(contentsOf: text[(place / 2)..<place], at: place)
                }
                if text.isEmpty { text = bytes }
            }
            let samples = PrometheusText(text, patterns: round % 2 == 0 ? [] : patterns).samples
            var values = PrometheusValues()
            values.take(samples, at: 1)
            values.take(samples, at: 2)
            for metric in values.look() {
                #expect(Labels(parsing: metric.labels.description) == metric.labels)
                #expect((metric.gauge?.value ?? metric.counter?.value)?.isFinite == true)
            }
        }
    }

    @Test("labels come back from the time line, whatever an exporter puts into them")
    func timeline() throws {
        let text = "a{b=\"1,2;3\",c=\"x\\\"y\\n=z\",d=\"\",e=\"\u{301}é\u{600}\"} 5\nplain 6\n"
        var values = PrometheusValues()
        values.take(Self.read(text), at: 1)
        let metrics = values.look()
        #expect(metrics.count == 2)
        let interval = TimelineInterval(second: 0, phase: "measure", seconds: 1, metrics: metrics, lanes: [])
        let timeline = Timeline(text: MetricsCSV.timelineHeader + MetricsCSV.rows(interval))
        #expect(Set(timeline.columns.map(\.labels)) == Set(metrics.map(\.labels)))
        #expect(metrics.first?.labels["of"]?.hasPrefix("b=1,2_3,c=x\"y_=z,d=,e=") == true)
    }
}
