package import Measurement

/// The metrics of one lane of the decoder benchmark.
package struct DecodeMetrics: Sendable {
    package let lane: DecodeLane
    package let catalog: MetricCatalog
    let packets: CounterID
    let bytes: CounterID
    let reads: CounterID
    /// CPU time of the decoding thread, in nanoseconds; over a socket this includes reading.
    let time: CounterID
    /// Monotonic time per 1,000 packets, one value per round.
    ///
    /// A packet takes a few nanoseconds, and histograms hold whole nanoseconds.
    let thousand: DurationID

    package init(_ lane: DecodeLane) {
        var catalog = MetricCatalog()
        let labels = lane.labels
        self.lane = lane
        self.packets = catalog.counter("decode_packets", labels, ratesAddUp: false)
        self.bytes = catalog.counter("decode_bytes", labels, unit: "bytes", ratesAddUp: false)
        self.reads = catalog.counter("reads", labels, ratesAddUp: false)
        self.time = catalog.counter("decode_time", labels, unit: "seconds", ratesAddUp: false)
        self.thousand = catalog.duration("decode_thousand_duration", labels)
        self.catalog = catalog
    }

    package static let packetTime = "decode_packet_time"
    package static let packetAllocation = "decode_packet_allocated_bytes"

    /// All metrics of a run with these lanes, for the check of thresholds.
    package static func known(_ lanes: [DecodeLane]) -> MetricCatalog {
        var known = MetricCatalog()
        for lane in lanes {
            known.add(DecodeMetrics(lane).catalog)
            _ = known.gauge(self.packetTime, lane.labels, unit: "seconds", merge: .none)
            _ = known.gauge(self.packetAllocation, lane.labels, unit: "bytes", merge: .none)
        }
        _ = known.gauge("generator_memory_bytes", unit: "bytes")
        return known
    }
}
