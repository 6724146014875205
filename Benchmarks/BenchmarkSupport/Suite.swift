package import Benchmark
package import BenchmarkWork
import Foundation

/// Settings that all suites share.
package enum Suites {
    /// In the environment: each benchmark runs once, to see that it builds, runs and ends; its figures mean nothing.
    package static let isSmoke = ProcessInfo.processInfo.environment["CLAMOR_BENCH_SMOKE"] != nil

    /// Bytes asked of the allocator per operation.
    package static let allocated = BenchmarkMetric.custom("Allocated (bytes)", useScalingFactor: true)

    static func configuration(for work: Work) -> Benchmark.Configuration {
        .init(
            metrics: [.wallClock, .throughput, self.allocated],
            warmupIterations: self.isSmoke ? 0 : 3,
            // Work of nanoseconds is repeated a thousand times an iteration: long enough for the clock.
            scalingFactor: work.operations == 1 ? .one : .kilo,
            maxDuration: self.isSmoke ? .milliseconds(1) : .milliseconds(500),
            maxIterations: self.isSmoke ? 1 : 10_000
        )
    }

    /// A whole load a time, against a server on this machine.
    package static var loopbackConfiguration: Benchmark.Configuration {
        .init(
            metrics: [.wallClock, .cpuTotal],
            warmupIterations: 0,
            scalingFactor: .one,
            maxDuration: self.isSmoke ? .milliseconds(1) : .seconds(10),
            maxIterations: self.isSmoke ? 1 : 5
        )
    }
}

/// Makes a benchmark of each piece of work of a suite: time and allocated bytes, per operation.
package func addBenchmarks(_ suite: Work.Suite) {
    for work in Work.all(of: suite) {
        Benchmark(work.name, configuration: Suites.configuration(for: work)) { benchmark, body in
            let (rounds, rest) = benchmark.scaledIterations.count.quotientAndRemainder(dividingBy: work.operations)
            precondition(rest == 0, "figures per operation want whole rounds")
            let allocated = AllocatedBytes()
            let before = allocated?.total ?? 0
            benchmark.startMeasurement()
            measuredRounds(rounds, body)
            benchmark.stopMeasurement()
            if let allocated {
                benchmark.measurement(Suites.allocated, Int(allocated.total - before))
            }
        } setup: {
            let body = work.make()
            // Buffers grow in the first rounds.
            for _ in 0..<3 { body() }
            return body
        }
    }
}
