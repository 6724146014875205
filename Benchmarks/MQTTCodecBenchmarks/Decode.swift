import Benchmark
import MQTTCodec

/// Adds up what it is given, so that no delivery can be left out.
private struct CountingSink: PacketSink {
    var bytes = 0

    mutating func publish(_ view: PublishView) -> Bool {
        self.bytes &+= view.topic.count &+ view.payload.count
        return true
    }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        self.bytes &+= Int(id)
        return true
    }

    mutating func control(_ packet: Packet) -> Bool { true }
}

/// One scaled iteration is one packet: 88 bytes, 20 of topic and 64 of payload.
private func decode(pieces size: Int) -> @Sendable (Benchmark) -> Void {
    { benchmark in
        let template = PublishTemplate(
            topic: "bench/topic/abcdefgh",
            payload: Array(repeating: 7, count: 64),
            qos: .atMostOnce,
            version: .v311
        )
        let packets = benchmark.scaledIterations.count
        let stream = Array(repeatElement(template.bytes, count: packets).joined())
        var decoder = PacketDecoder(role: .client(.v311))
        var sink = CountingSink()
        benchmark.startMeasurement()
        stream.withUnsafeBytes { bytes in
            for start in stride(from: 0, to: bytes.count, by: size) {
                let piece = bytes[start..<min(start + size, bytes.count)]
                try? decoder.decode(UnsafeRawBufferPointer(rebasing: piece), into: &sink)
            }
        }
        benchmark.stopMeasurement()
        blackHole(sink.bytes)
        precondition(decoder.packets == UInt64(packets), "the decoder lost packets")
    }
}

// The name is the package's, which finds the benchmarks by it.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .init(metrics: [.wallClock, .throughput], scalingFactor: .kilo)
    for (name, size) in [("in 64 KiB", 65_536), ("in 1,460 bytes", 1460), ("in 7-byte cuts", 7)] {
        Benchmark("PUBLISH, 88 bytes, decode \(name)", closure: decode(pieces: size))
    }
}
