import Measurement

extension Metric {
    /// The resident memory of the process.
    static func memory(_ reading: GaugeReading) -> Metric {
        Metric(name: "generator_memory_bytes", unit: "bytes", reading: .gauge(reading))
    }
}
