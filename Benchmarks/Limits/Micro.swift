import CPosix
import Glibc
import Ledger
import MQTTCodec
import Measurement
import NIOCore

/// Work in memory, each piece in a process of its own, bound to the clients' core: `limits --micro NAME`.
enum Micro {
    static func perform(_ arguments: [String]) throws {
        switch arguments.first {
        case "decode": print(try Self.decode(arguments.dropFirst().first ?? ""))
        case "xml": print(try Self.xml(arguments.dropFirst().first ?? ""))
        case "record": print(Self.record())
        case "ledger": print(Self.ledger())
        case "store": print(try StoreBenchmark.run(Array(arguments.dropFirst())))
        default: throw Refusal("--micro is decode FORM, xml FORM, record, ledger or store FORM PATH")
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

    /// CPU nanoseconds of `body`: the middle one of its rounds, which last a second, behind one that warms the caches.
    ///
    /// `clamor decode` takes the middle one too: a neighbour that has the core for a while makes single rounds longer, and
    /// none shorter.
    static func time(_ body: () throws -> Void) rethrows -> (nanoseconds: Double, rounds: Int, bytes: UInt64?) {
        try body()
        var took: [Int64] = []
        took.reserveCapacity(1 << 20)
        let bytes = Self.allocated()
        let start = clamor_thread_cpu_nanoseconds()
        var last = start
        while last - start < 1_000_000_000, took.count < took.capacity {
            try body()
            let now = clamor_thread_cpu_nanoseconds()
            took.append(now - last)
            last = now
        }
        let after = Self.allocated()
        took.sort()
        return (Double(took[took.count / 2]), took.count, bytes.flatMap { before in after.map { $0 - before } })
    }

    // MARK: Decoding

    /// Adds up what the sink of `clamor decode` does, so that the two figures are of the same work.
    private struct AddingSink: PacketSink {
        private var packets: UInt64 = 0
        private var topicBytes: UInt64 = 0
        private var topicEnds: UInt64 = 0
        private var payloadBytes: UInt64 = 0
        private var identifiers: UInt64 = 0

        var sum: Int {
            let bytes = self.topicBytes ^ self.topicEnds ^ self.payloadBytes
            return Int(truncatingIfNeeded: self.packets ^ self.identifiers ^ bytes)
        }

        mutating func publish(_ view: PublishView) -> Bool {
            self.packets &+= 1
            self.topicBytes &+= UInt64(truncatingIfNeeded: view.topic.count)
            if let last = view.topic.last { self.topicEnds &+= UInt64(last) }
            self.payloadBytes &+= UInt64(truncatingIfNeeded: view.payload.count)
            self.identifiers &+= UInt64(view.packetID)
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
        let payload = ByteBuffer(bytes: (0..<64).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) })
        var packet = ByteBuffer()
        Publish(topic: "limits/decode/topic1", payload: payload).encode(as: .v311, into: &packet)
        let stream = Array(repeatElement(Array(packet.readableBytesView), count: self.packets).joined())
        guard stream.count == self.packets * 88 else { throw Mismatch("a packet has not 88 bytes") }
        let ends = try Self.cut(stream.count, form)
        // On the heap, as a connection's is.
        let decoder = UnsafeMutablePointer<PacketDecoder>.allocate(capacity: 1)
        decoder.initialize(to: PacketDecoder(role: .client(.v311)))
        defer {
            decoder.deinitialize(count: 1)
            decoder.deallocate()
        }
        var sum = 0
        let result = try stream.withUnsafeBytes { bytes in
            try ends.withUnsafeBufferPointer { ends in
                try Self.time { sum &+= try Self.walks(bytes, ends, &decoder.pointee) }
            }
        }
        let measured = Double(result.rounds * self.walks * self.packets)
        guard decoder.pointee.packets == UInt64((result.rounds + 1) * self.walks * self.packets), sum != 0 else {
            throw Mismatch("the decoder lost packets")
        }
        let figure = result.nanoseconds / Double(self.walks * self.packets)
        let allocated = result.bytes.map { ",\"bytes\":\(Double($0) / measured)" } ?? ""
        // The reference has two figures for the one decoder of ours.
        return "{\"messages\":\(Int(measured)),\"checked_ns\":\(figure),\"parse_only_ns\":\(figure)\(allocated)}"
    }

    /// Walks of the stream between two looks at the clock, which is a system call.
    private static let walks = 64

    /// A function of its own: what a closure captures is reached by way of memory, for each packet.
    @inline(never)
    private static func walks(
        _ bytes: UnsafeRawBufferPointer,
        _ ends: UnsafeBufferPointer<UInt32>,
        _ decoder: inout PacketDecoder
    ) throws -> Int {
        var sink = AddingSink()
        for _ in 0..<Self.walks {
            var from = 0
            for end in ends {
                try decoder.decode(UnsafeRawBufferPointer(rebasing: bytes[from..<Int(end)]), into: &sink)
                from = Int(end)
            }
        }
        return sink.sum
    }

    static func cut(_ size: Int, _ form: String) throws -> [UInt32] {
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
        let count = rounds * values.count
        return "{\"messages\":\(result.rounds * count),\"record_ns\":\(result.nanoseconds / Double(count))}"
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
        let count = 100 * subscriptions
        precondition(ledger.counts[0].received == sequence * UInt64(subscriptions), "the ledger lost entries")
        return "{\"messages\":\(result.rounds * count),\"ledger_ns\":\(result.nanoseconds / Double(count))}"
    }
}
