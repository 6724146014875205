import Measurement
import Report
import Testing

@Suite("The percentile distribution")
struct PercentileDistributionTests {
    // By hand from the rule: levels 0, 10, ... 50 %, then steps of 5 % up to 75 %, of 2.5 % up to 87.5 %, ...
    @Test("has five rows per halving of the distance to 100 %")
    func golden() throws {
        try Golden.check(PercentileDistribution.text(Samples.ramp(10, step: 1_000_000)), "latency.hgrm")
    }

    @Test("of one value is two rows")
    func oneValue() {
        let lines = PercentileDistribution.text(Samples.ramp(1, step: 1_000_000)).split(separator: "\n")
        #expect(lines.dropFirst().prefix { !$0.hasPrefix("#") }.count == 2)
    }
}
