import Benchmark
import BenchmarkSupport
import BenchmarkWork

// The name is the package's, which finds the benchmarks by it.
let benchmarks: @Sendable () -> Void = { addBenchmarks(.xmppCodec) }
