import Measurement
import Testing

@Suite("Counts up to a bound")
struct CumulativeCountsTests {
    @Test(
        "a value that equals a bound is below it",
        arguments: [1, 2047, 2048, 100_000, 1_000_000, 2_500_000_000, 600_000_000_000]
    )
    func equal(_ value: Int64) {
        let histogram = Histogram(of: [value])
        #expect(histogram.cumulativeCounts(upTo: [value - 1, value, value + 1]) == [0, 1, 1])
    }

    @Test("counts are exact for bounds up to 2,047 ns")
    func exact() {
        let histogram = Histogram(of: 1...3000)
        #expect(histogram.cumulativeCounts(upTo: [-1, 0, 1, 999, 1000, 2047]) == [0, 0, 1, 999, 1000, 2047])
    }

    @Test("a bound within a bucket counts the whole of it: 100 µs also counts values up to 100,031 ns")
    func withinBucket() {
        let histogram = Histogram(of: [99_967, 99_968, 100_000, 100_031, 100_032, 200_000])
        #expect(histogram.cumulativeCounts(upTo: [99_967, 100_000, 100_032]) == [1, 4, 5])
    }

    @Test("every value up to a bound is counted, and none that exceeds it by 1/1,024", arguments: Distribution.all)
    func error(_ distribution: Distribution) {
        let values = distribution.values(20_000).sorted()
        let powers: [Int64] = (0...38).map { 1 << Int64($0) }
        let bounds: [Int64] = (powers + powers.map { $0 / 2 * 3 + 1 }).sorted()
        let counts = Histogram(of: values).cumulativeCounts(upTo: bounds)
        for (bound, count) in zip(bounds, counts) {
            #expect(count >= values.count { $0 <= bound })
            let beyond = bound + bound / 1024 + 1
            #expect(count <= values.count { $0 < beyond })
        }
        #expect(counts == counts.sorted())
    }

    @Test("an empty histogram has none, and bounds beyond the range count all")
    func edges() {
        #expect(Histogram().cumulativeCounts(upTo: [0, 1, .max]) == [0, 0, 0])
        #expect(Histogram(of: [5, 700_000_000_000]).cumulativeCounts(upTo: [.min, .max]) == [0, 2])
        #expect(Histogram(of: [5]).cumulativeCounts(upTo: []) == [])
    }

    @Test("the sum is the mean times the count")
    func sum() {
        #expect(Histogram().sum == 0)
        let histogram = Histogram(of: [10, 20, 1000])
        #expect(histogram.sum == 1030)
        #expect(histogram.mean == 1030.0 / 3)
    }
}
