import Measurement
import Testing

@Suite("Levels and counts of intervals as totals")
struct MetricTotalsTests {
    private func counter(_ value: Double, rate: Double?) -> Metric {
        Metric(name: "c", unit: "seconds", reading: .counter(CounterReading(value: value, rate: rate)))
    }

    private func gauge(_ value: Double) -> Metric { Metric(name: "g", reading: .gauge(GaugeReading(value: value))) }

    @Test("a counter is the sum, and its rate that of the measured phase")
    func counters() {
        var totals = MetricTotals()
        totals.add([self.counter(1, rate: 1)], isMeasured: false)
        totals.add([self.counter(2, rate: 2)], isMeasured: true)
        totals.add([self.counter(4, rate: 4)], isMeasured: true)
        let metric = totals.metrics(measuredSeconds: 2).first
        #expect(metric?.counter == CounterReading(value: 7, rate: 3))
        #expect(metric?.unit == "seconds")
        #expect(totals.metrics(measuredSeconds: nil).first?.counter == CounterReading(value: 7, rate: nil))
    }

    @Test("an increase without a rate makes that of the total unknown")
    func late() {
        var totals = MetricTotals()
        totals.add([self.counter(2, rate: 2)], isMeasured: true)
        totals.add([self.counter(0, rate: nil)], isMeasured: true)
        #expect(totals.metrics(measuredSeconds: 2).first?.counter == CounterReading(value: 2, rate: 1))
        totals.add([self.counter(9, rate: nil)], isMeasured: false)
        #expect(totals.metrics(measuredSeconds: 2).first?.counter == CounterReading(value: 11, rate: nil))
    }

    @Test("a gauge has its last, lowest, mean and highest value; a duration is left out")
    func gauges() {
        var totals = MetricTotals()
        var histogram = Histogram()
        histogram.record(1)
        let duration = DurationReading(histogram).map { Metric(duration: "d", labels: [:], reading: $0) }
        for value in [-3.0, -1, -2] {
            totals.add([self.gauge(value)] + [duration].compactMap(\.self), isMeasured: true)
        }
        let metrics = totals.metrics(measuredSeconds: 3)
        #expect(metrics.map(\.name) == ["g"])
        #expect(metrics.first?.gauge == GaugeReading(value: -2, min: -3, mean: -2, max: -1))
    }
}
