import Testing

import Measurement

@Suite("Histogram")
struct HistogramTests {
    static let percents = [0.001, 1, 5, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 99.999, 100]

    @Test("agrees with hdrhistogram-swift on a million values", arguments: Distribution.all)
    func agreesWithOracle(_ distribution: Distribution) throws {
        var histogram = Histogram()
        var oracle = HistogramOracle()
        let values = distribution.values(1_000_000)
        for value in values {
            histogram.record(value)
            oracle.record(value)
        }
        #expect(histogram.count == oracle.count)
        let expected = Self.percents.map(oracle.percentile)
        #expect(histogram.percentiles(Self.percents) == expected)
        #expect(Self.percents.map { histogram.percentile($0) } == expected)
        #expect(histogram.min == values.min())
        #expect(histogram.max == values.max())
        let mean = try #require(histogram.mean)
        #expect(abs(mean - oracle.mean) <= oracle.mean * 1e-9)
        let deviation = try #require(histogram.standardDeviation)
        #expect(abs(deviation - oracle.standardDeviation) <= Swift.max(oracle.standardDeviation * 1e-6, 1e-6))
    }

    @Test("keeps every percentile within 0.1 % of the sorted values", arguments: Distribution.all)
    func threeDigits(_ distribution: Distribution) throws {
        let values = distribution.values(100_000)
        let sorted = values.sorted()
        let histogram = Histogram(of: values)
        for percent in [1.0, 50, 90, 99, 99.9, 99.99] {
            let exact = Double(sorted[Int((percent / 100 * 100_000).rounded()) - 1])
            let found = Double(try #require(histogram.percentile(percent)))
            #expect(found >= exact && found <= exact * 1.001 + 1, "p\(percent)")
        }
    }

    @Test("knows nothing before the first record")
    func empty() {
        let histogram = Histogram()
        #expect(histogram.isEmpty)
        #expect(histogram.min == nil)
        #expect(histogram.max == nil)
        #expect(histogram.mean == nil)
        #expect(histogram.standardDeviation == nil)
        #expect(histogram.percentile(50) == nil)
        #expect(histogram.percentiles([50, 99]).isEmpty)
    }

    @Test("one value is all of its percentiles", arguments: [1, 2047, 2048, 4095, 4096, 999_999_937, 600_000_000_000])
    func single(_ value: Int64) {
        let histogram = Histogram(of: [value])
        #expect(histogram.percentiles([0, 50, 100]) == [value, value, value])
        #expect(histogram.min == value)
        #expect(histogram.max == value)
    }

    @Test("clamps above ten minutes and counts it, and takes nothing below a nanosecond")
    func clamps() {
        var histogram = Histogram()
        histogram.record(600_000_000_000)
        #expect(histogram.clamped == 0)
        histogram.record(600_000_000_001)
        histogram.record(.max, count: 3)
        #expect(histogram.clamped == 4)
        #expect(histogram.max == 600_000_000_000)
        histogram.record(0)
        histogram.record(.min)
        #expect(histogram.min == 1)
        #expect(histogram.count == 7)
    }

    @Test("a count of zero leaves no trace")
    func zeroCount() {
        var histogram = Histogram()
        histogram.record(5, count: 0)
        histogram.record(.max, count: 0)
        #expect(histogram.isEmpty)
        #expect(histogram.min == nil)
        #expect(histogram.encodedV2() == Histogram().encodedV2())
    }

    @Test("merging is recording all", arguments: Distribution.all)
    func merge(_ distribution: Distribution) {
        let values = distribution.values(30_000)
        var merged = Histogram()
        for part in stride(from: 0, to: values.count, by: 7001) {
            merged.merge(Histogram(of: values[part..<Swift.min(part + 7001, values.count)]))
        }
        merged.merge(Histogram())
        let whole = Histogram(of: values)
        #expect(merged.buckets == whole.buckets)
        #expect(merged.count == whole.count)
        #expect(merged.min == whole.min)
        #expect(merged.max == whole.max)
    }

    @Test("clearing leaves no count behind and keeps the memory", arguments: Distribution.all)
    func clear(_ distribution: Distribution) {
        var histogram = Histogram(of: distribution.values(10_000))
        histogram.clear()
        #expect(histogram.isEmpty)
        #expect(histogram.buckets == Array(repeating: 0, count: HistogramLayout.size))
        let values = distribution.values(1000, seed: 7)
        for value in values { histogram.record(value) }
        #expect(histogram.buckets == Histogram(of: values).buckets)
    }

    @Test("the layout's edges meet: each bucket begins where the one below ends")
    func layout() {
        for index in 2..<HistogramLayout.size {
            #expect(HistogramLayout.lowest(at: index) == HistogramLayout.highest(at: index - 1) + 1)
        }
        let last = HistogramLayout.index(of: Histogram.highest)
        #expect(last < HistogramLayout.size)
        for index in stride(from: 1, through: last, by: 13) {
            #expect(HistogramLayout.index(of: HistogramLayout.lowest(at: index)) == index)
            #expect(HistogramLayout.index(of: HistogramLayout.highest(at: index)) == index)
        }
    }
}
