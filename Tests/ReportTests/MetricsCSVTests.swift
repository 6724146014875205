import Measurement
import Report
import Testing

@Suite("metrics.csv, timeline.csv and clients.csv")
struct MetricsCSVTests {
    static let metrics = [
        Samples.duration("publish_ack_duration", ["qos": "1", "leg": "puback"], Samples.ramp(1000, step: 1000)),
        Samples.counter("publish_acked", ["qos": "1"], 12_345_678_901, rate: 1234.5),
        Samples.counter("publish_not_sent", ["qos": "1"], 0),
        Samples.counter("decode_time", ["protocol": "mqtt"], 0.000_012_8, rate: 0.000_001_28, unit: "seconds"),
        Metric(
            name: "clients",
            labels: ["state": "connected"],
            reading: .gauge(GaugeReading(value: 20, min: 0, mean: 18.25, max: 20))
        ),
        Metric(
            name: "decode_packet_time",
            labels: ["form": "cuts", "path": "memory"],
            unit: "seconds",
            reading: .gauge(GaugeReading(value: 2.6e-9, min: 2.5e-9, mean: 2.7e-9, median: 2.52e-9, max: 4e-9))
        ),
        Metric(name: "generator_memory_bytes", unit: "bytes", reading: .gauge(GaugeReading(value: 48_300_000))),
    ].compactMap(\.self)

    @Test("every metric is a row, what is unknown an empty cell")
    func metrics() throws { try Golden.check(MetricsCSV.text(Self.metrics), "metrics.csv") }

    @Test("an interval's metrics are rows behind second and phase")
    func timeline() throws {
        let text = SimulatedRun().intervals.reduce(MetricsCSV.timelineHeader) { $0 + MetricsCSV.rows($1) }
        try Golden.check(text, "timeline.csv")
        let rows = text.split(separator: "\n").map { CSV.cells(of: $0)?.count }
        #expect(rows.allSatisfy { $0 == 23 })
    }

    @Test("clients have what they do, and nothing of what they do not")
    func clients() throws {
        var tally = ClientTally()
        tally.connectNanoseconds = 1_234_567
        (tally.sent, tally.acked, tally.received) = (100, 99, 50)
        (tally.bytes, tally.packets, tally.reads) = (12_000, 150, 60)
        tally.longestAckNanoseconds = 2_500_000
        func row(
            _ id: String,
            _ qos: Int?,
            _ tally: ClientTally,
            _ does: (Bool, Bool, Bool),
            _ seconds: Double?
        ) -> ClientRow {
            ClientRow(
                id: id,
                qos: qos,
                tally: tally,
                publishes: does.0,
                acknowledged: does.1,
                subscribes: does.2,
                seconds: seconds,
                decodeSeconds: seconds.map { $0 * 1e-6 }
            )
        }
        let rows = [
            row("clamor-pub-1", 1, tally, (true, true, false), 10),
            row("clamor-pub-2", 0, tally, (true, false, false), 10),
            row("clamor-sub-1", 2, tally, (false, false, true), 10),
            row("never, up", nil, ClientTally(), (true, true, true), nil),
        ]
        try Golden.check(ClientsCSV.text(rows), "clients.csv")
    }
}
