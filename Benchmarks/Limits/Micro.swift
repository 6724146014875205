import CPosix
import Glibc
import MQTTCodec
import Measurement

/// What runs in memory, each in a process of its own, bound to the clients' core: `limits --micro NAME`.
enum Micro {
    static func perform(_ arguments: [String]) throws {
        switch arguments.first {
        case "decode": print(try Self.decode(arguments.dropFirst().first ?? ""))
        case "record": print(Self.record())
        case "ledger": print(Self.ledger())
        default: throw Refusal("--micro is decode FORM, record or ledger")
        }
    }

    /// Bytes this thread has allocated, as jemalloc counts them; nothing without it.
    private static func allocated() -> UInt64? {
        typealias Control =
            @convention(c) (
                UnsafePointer<CChar>?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>?, UnsafeMutableRawPointer?,
                Int
            ) -> Int32
        guard let symbol = dlsym(nil, "mallctl") else { return nil }
        var bytes: UInt64 = 0
        var size = MemoryLayout<UInt64>.size
        let control = unsafeBitCast(symbol, to: Control.self)
        return control("thread.allocated", &bytes, &size, nil, 0) == 0 ? bytes : nil
    }

    /// CPU nanoseconds of `body`, which is repeated for about a second after one round that warms the caches.
    private static func time(_ body: () throws -> Void) rethrows -> (nanoseconds: Double, rounds: Int, bytes: UInt64?) {
        try body()
        let bytes = Self.allocated()
        let start = clamor_thread_cpu_nanoseconds()
        var rounds = 0
        while clamor_thread_cpu_nanoseconds() - start < 1_000_000_000 {
            try body()
            rounds += 1
        }
        let nanoseconds = Double(clamor_thread_cpu_nanoseconds() - start)
        let after = Self.allocated()
        return (nanoseconds, rounds, bytes.flatMap { before in after.map { $0 - before } })
    }

    // MARK: Decoding

    /// Adds up what it is given, so that no delivery can be left out.
    private struct AddingSink: PacketSink {
        var sum = 0

        mutating func publish(_ view: PublishView) -> Bool {
            self.sum &+= view.topic.count &+ view.payload.count &+ Int(view.topic[view.topic.count - 1])
            return true
        }

        mutating func acknowledgement(
            _ type: PacketType,
            id: UInt16,
            reason: UInt8,
            rawProperties: UnsafeRawBufferPointer
        ) -> Bool { false }

        mutating func control(_ packet: Packet) -> Bool { false }
    }

    private static let packets = 4096

    /// The C program's stream, cut at the same places.
    private static func decode(_ form: String) throws -> String {
        let template = PublishTemplate(
            topic: "limits/decode/topic1",
            payload: (0..<64).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) },
            qos: .atMostOnce,
            version: .v311
        )
        let stream = Array(repeatElement(template.bytes, count: self.packets).joined())
        guard stream.count == self.packets * 88 else { throw Mismatch("a packet has not 88 bytes") }
        let ends = try Self.cut(stream.count, form)
        var decoder = PacketDecoder(role: .client(.v311))
        var sink = AddingSink()
        let result = try stream.withUnsafeBytes { bytes in
            try ends.withUnsafeBufferPointer { ends in
                try Self.time {
                    var from = 0
                    for end in ends {
                        let piece = UnsafeRawBufferPointer(rebasing: bytes[from..<Int(end)])
                        try decoder.decode(piece, into: &sink)
                        from = Int(end)
                    }
                }
            }
        }
        let measured = Double(result.rounds * self.packets)
        guard decoder.packets == UInt64((result.rounds + 1) * self.packets), sink.sum != 0 else {
            throw Mismatch("the decoder lost packets")
        }
        let figure = result.nanoseconds / measured
        let allocated = result.bytes.map { ",\"bytes\":\(Double($0) / measured)" } ?? ""
        // The reference has two figures for the one decoder of ours.
        return "{\"messages\":\(Int(measured)),\"checked_ns\":\(figure),\"parse_only_ns\":\(figure)\(allocated)}"
    }

    private static func cut(_ size: Int, _ form: String) throws -> [UInt32] {
        var ends: [UInt32] = []
        var random: UInt64 = 0x9E37_79B9_7F4A_7C15
        var at = 0
        while at < size {
            switch form {
            case "contiguous": at += 65536
            case "segments": at += 1460
            case "fragments":
                random ^= random << 13
                random ^= random >> 7
                random ^= random << 17
                at += 1 + Int(UInt32(truncatingIfNeeded: random >> 32) % 7)
            default: throw Refusal("\(form) is no form")
            }
            ends.append(UInt32(min(at, size)))
        }
        return ends
    }

    // MARK: Measuring

    /// Through the meter of an event loop, as every latency is; values from 10 µs to 10 ms, evenly in the logarithm.
    private static func record() -> String {
        var catalog = MetricCatalog()
        let metric = catalog.duration("publish_ack_duration", ["qos": "1"])
        let meter = LoopMeter(catalog: catalog, loop: 0)
        var random: UInt64 = 1
        let values = (0..<4096).map { _ -> Int64 in
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int64(pow(10, 4 + 3 * Double(random >> 11) / 9_007_199_254_740_992))
        }
        let rounds = 256
        let result = Self.time {
            for _ in 0..<rounds { for value in values { meter.record(metric, value) } }
        }
        let count = Double(result.rounds * rounds * values.count)
        return "{\"messages\":\(Int(count)),\"record_ns\":\(result.nanoseconds / count)}"
    }

    /// One publisher's messages at 1,000 subscriptions in turn, in order.
    private static func ledger() -> String {
        let subscriptions = 1000
        var ledger = SubscriberLedger(publishers: 1)
        ledger.reserve(subscriptions: subscriptions, streams: subscriptions)
        for number in 0..<subscriptions { _ = ledger.addSubscription(UInt32(number)) }
        var sequence: UInt64 = 0
        let result = Self.time {
            for _ in 0..<100 {
                for subscription in 0..<subscriptions {
                    _ = ledger.arrived(subscription: subscription, publisher: 0, qos: 0, sequence: sequence)
                }
                sequence += 1
            }
        }
        let count = Double(result.rounds * 100 * subscriptions)
        precondition(ledger.counts[0].received == sequence * UInt64(subscriptions), "the ledger lost entries")
        return "{\"messages\":\(Int(count)),\"ledger_ns\":\(result.nanoseconds / count)}"
    }
}
