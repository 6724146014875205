import Benchmark
import BenchmarkSupport
import MQTTCodec

/// Messages of one load: long enough that connecting is a small part of it.
private let messages: UInt64 = Suites.isSmoke ? 1_000 : 100_000

// The name is the package's, which finds the benchmarks by it.
let benchmarks: @Sendable () -> Void = {
    for (qos, subscribers) in [(QoS.atMostOnce, 0), (.atLeastOnce, 0), (.exactlyOnce, 0), (.atLeastOnce, 10)] {
        let name = "10 clients, \(messages) messages, QoS \(qos.rawValue), \(subscribers) subscribers"
        Benchmark(name, configuration: Suites.loopbackConfiguration) { benchmark in
            let load = try await LoopbackLoad(qos: qos, publishers: 10, subscribers: subscribers, messages: messages)
            benchmark.startMeasurement()
            await load.perform()
            benchmark.stopMeasurement()
            await load.end()
        }
    }
}
