import Measurement

/// The resident memory of the process, sampled once a second.
struct MemoryLevel {
    private var level = GaugeLevel()

    mutating func add(_ bytes: Double) { self.level.add(bytes) }

    var reading: GaugeReading? { self.level.reading }

    static func metric(_ reading: GaugeReading) -> Metric {
        Metric(name: "generator_memory_bytes", unit: "bytes", reading: .gauge(reading))
    }
}
