import Report
import Testing

@Suite("Formats that Prometheus reads")
struct PrometheusFormatTests {
    @Test(
        "OpenMetrics only if a client prefers it to the text format",
        arguments: [
            (nil, PrometheusFormat.text),
            ("", .text),
            ("*/*", .text),
            ("text/html,application/xhtml+xml,*/*;q=0.8", .text),
            ("text/plain;version=0.0.4", .text),
            ("application/openmetrics-text", .openMetrics),
            ("application/openmetrics-text; version=1.0.0; charset=utf-8", .openMetrics),
            ("Application/OpenMetrics-Text;version=\"1.0.0\"", .openMetrics),
            // Prometheus 2.42 and 2.0.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                    + "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                .openMetrics
            ),
            ("text/plain;version=0.0.4;q=1,*/*;q=0.1", .text),
            ("application/openmetrics-text;version=0.0.1", .text),
            ("application/openmetrics-text;q=0", .text),
            ("application/openmetrics-text;q=0.3,text/plain;q=0.9", .text),
            ("application/openmetrics-text;q=broken", .text),
            (";;,,;q=1", .text),
        ] as [(String?, PrometheusFormat)]
    )
    func accept(_ header: String?, _ format: PrometheusFormat) {
        #expect(PrometheusFormat(accept: header) == format)
    }

    static let head = "# HELP a_total x\n# TYPE a_total counter\n"
    static let histogram = "# HELP h x\n# TYPE h histogram\n"

    @Test(
        "the reader of these tests sees a broken rule",
        arguments: [
            "a_total 1\n",
            head + "a_total 1",
            head + "a_total 1\na_total 1\n",
            head + "a_total -1\n",
            head + "a_total NaN\n",
            head + "b_total 1\n",
            head + "a_total{b=\"1\",b=\"2\"} 1\n",
            head + "a_total{b=\"\\x\"} 1\n",
            head + "a_total{b-c=\"1\"} 1\n",
            head + "a_total{b=\"1} 1\n",
            head + "a_total  1\n",
            head + "# HELP b x\na_total 1\n",
            head + head + "a_total 1\n",
            "# TYPE a_total counter\na_total 1\n",
            "# HELP a x\n# TYPE a counter\na 1\n",
            histogram + "h_bucket{le=\"1.0\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n",
            histogram + "h_bucket{le=\"1.0\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 2\n",
            histogram + "h_bucket{le=\"1.0\"} 1\nh_sum 1\nh_count 1\n",
            histogram + "h_sum 1\nh_count 1\n",
        ]
    )
    func brokenPage(_ text: String) {
        #expect(!PrometheusParser(Array(text.utf8), .text).problems.isEmpty)
    }

    @Test("the reader of these tests takes a right page, and wants the end of OpenMetrics")
    func rightPage() {
        #expect(PrometheusParser(Array((Self.head + "a_total{b=\"\\\"\"} 1\n").utf8), .text).problems == [])
        let open = "# HELP a x\n# TYPE a counter\na_total 1\n"
        #expect(PrometheusParser(Array((open + "# EOF\n").utf8), .openMetrics).problems == [])
        #expect(!PrometheusParser(Array(open.utf8), .openMetrics).problems.isEmpty)
    }
}
