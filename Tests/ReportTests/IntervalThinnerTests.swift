import Measurement
import Report
import Testing

@Suite("Intervals without their histograms")
struct IntervalThinnerTests {
    private static func interval(_ second: Int) -> TimelineInterval {
        var histogram = Histogram()
        for value in 1...10 { histogram.record(Int64(value * (second + 1)) * 1_000) }
        var interval = TimelineInterval(second: second, phase: "measure", seconds: 1, metrics: [], lanes: [])
        if let reading = DurationReading(histogram) {
            interval.metrics.append(Metric(name: "d", labels: [:], unit: "seconds", reading: .duration(reading)))
        }
        interval.metrics.append(
            Metric(
                name: "c",
                labels: [:],
                unit: "",
                reading: .counter(CounterReading(value: Double(second), rate: nil))
            )
        )
        interval.lanes.append(
            TimelineInterval.Lane(
                name: "d",
                labels: [:],
                measured: true,
                count: histogram.count,
                max: Double(histogram.max ?? 0) / 1e9,
                histogram: histogram.encodedV2()
            )
        )
        return interval
    }

    @Test("counters come each second, and durations of all seconds every n-th", arguments: [1, 2, 5, 10])
    func thins(_ every: Int) {
        var thinner = IntervalThinner(every: every)
        let sent = (0..<20).map { thinner.next(Self.interval($0)) }
        #expect(sent.map { $0.metrics.first { $0.name == "c" }?.counter?.value } == (0..<20).map(Double.init))
        let whole = sent.filter { !$0.lanes.isEmpty }
        #expect(whole.count == 20 / every)
        #expect(whole.map(\.second) == (1...20 / every).map { $0 * every - 1 })
        #expect(sent.allSatisfy { $0.lanes.isEmpty == !$0.metrics.contains { $0.duration != nil } })
        #expect(whole.reduce(0) { $0 + $1.lanes.reduce(0) { $0 + $1.count } } == 200)
        #expect(whole.allSatisfy { $0.metrics.first?.duration?.count == UInt64(10 * every) })
        #expect(whole.last?.lanes.first?.max == 200e-6)
    }
}
