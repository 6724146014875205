import Glibc
import Measurement
import Report

/// Runs of a server that does not exist, with latencies whose distribution is known.
struct SyntheticRuns {
    /// The median, in seconds.
    var median = 0.001
    /// The deviation between runs of the same build, of a logarithm.
    var betweenRuns = 0.02
    /// The deviation between blocks of one run.
    var betweenBlocks = 0.02
    /// The most that the host takes of the CPU for others in a run, and the least.
    var stolen: ClosedRange<Double>?
    /// The growth of a latency's logarithm with that share.
    var cost = 3.0
    /// Acknowledgements per second.
    var rate = 200.0
    var seconds = 20
    var random: SplitMix64

    init(seed: UInt64) { self.random = SplitMix64(seed: seed) }

    mutating func runs(_ count: Int, slower: Double = 1) -> [ComparedRun] {
        (0..<count).map { self.run("run-\($0)", slower: slower) }
    }

    mutating func run(_ path: String, slower: Double = 1) -> ComparedRun {
        let blocks = self.seconds / 5
        let stolen = self.stolen.map { Double.random(in: $0, using: &self.random) }
        let centre = log(self.median * slower * 1e9) + self.normal() * self.betweenRuns + self.cost * (stolen ?? 0)
        let pace = self.rate / slower * exp(self.normal() * self.betweenRuns)
        var whole = Histogram()
        var acked = 0.0
        for _ in 0..<blocks {
            let shift = self.normal() * self.betweenBlocks
            let own = (pace * exp(self.normal() * self.betweenBlocks)).rounded()
            var histogram = Histogram()
            for _ in 0..<Int(own * 5) { histogram.record(Int64(exp(centre + shift + self.normal() * 0.4))) }
            whole.merge(histogram)
            acked += own * 5
        }
        var record = self.record(whole, acked: acked)
        record.generator.hostSteal = stolen
        return ComparedRun(path: path, record: record)
    }

    private func record(_ histogram: Histogram, acked: Double) -> RunRecord {
        var record = Samples.begun(["clamor", "pub", "-q", "1"])
        record.verdict = .valid
        record.durationSeconds = Double(self.seconds)
        record.stages = [
            StageRecord(name: "measure", start: 0, durationSeconds: Double(self.seconds), measured: true)
        ]
        record.metrics = [
            Samples.duration("publish_ack_duration", ["leg": "puback", "qos": "1"], histogram),
            Samples.counter("publish_acked", ["qos": "1"], acked, rate: acked / Double(self.seconds)),
        ].compactMap(\.self)
        return record
    }

    /// Box and Muller.
    mutating func normal() -> Double {
        let first = Double.random(in: Double.leastNonzeroMagnitude..<1, using: &self.random)
        let second = Double.random(in: 0..<1, using: &self.random)
        return (-2 * log(first)).squareRoot() * cos(2 * Double.pi * second)
    }
}
