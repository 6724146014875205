package import Measurement

/// The metrics of one lane of the decoder benchmark, under the identifiers that it records by.
package struct DecodeMetrics: Sendable {
    package let lane: DecodeLane
    package let catalog: MetricCatalog
    let packets: CounterID
    let bytes: CounterID
    let reads: CounterID
    /// CPU time of the thread that decodes, over a socket of reading too; in nanoseconds.
    let time: CounterID
    /// Monotonic time per 1,000 packets, one a round: one packet takes a few nanoseconds, and a histogram has no
    /// parts of one.
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

    /// All that a run of these lanes has, for thresholds to be checked by.
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
