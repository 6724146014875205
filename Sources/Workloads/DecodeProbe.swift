import CPosix
import MQTTCodec
import NIOCore

/// Copies what one client at a time reads, with its cuts, so that a decoder of its own can be timed on it.
///
/// Decoding in place is too short to time: a clock read costs more than a packet. So each second another client's
/// reads are copied from a packet boundary on, up to 64 KiB, and walked again off the loop.
struct DecodeProbe {
    static let capacity = 65_536

    /// The client whose reads are copied; -1 while none is.
    private(set) var place = -1
    private let clients: Int
    private let version: ProtocolVersion
    private var next = 0
    private var bytes: [UInt8] = []
    private var cuts: [Int32] = []

    init(clients: Int, version: ProtocolVersion) {
        self.clients = clients
        self.version = version
        self.place = clients > 0 ? 0 : -1
    }

    mutating func copy(_ read: UnsafeRawBufferPointer, atBoundary: Bool) {
        if self.bytes.isEmpty, !atBoundary { return }
        guard self.bytes.count + read.count <= Self.capacity else {
            self.place = -1
            return
        }
        self.bytes.append(contentsOf: read)
        self.cuts.append(Int32(self.bytes.count))
    }

    /// The client has a new connection: what was copied of the old one may end inside a packet.
    mutating func restart() {
        self.bytes = []
        self.cuts = []
    }

    /// Hands out what was copied and turns to another client.
    mutating func take() -> DecodeSample? {
        defer {
            self.bytes = []
            self.cuts = []
            if self.clients > 0 {
                // A prime step: neighbours, which may be alike, are far apart in time.
                self.next = (self.next + 7_919) % self.clients
                self.place = self.next
            }
        }
        return self.bytes.isEmpty ? nil : DecodeSample(bytes: self.bytes, cuts: self.cuts, version: self.version)
    }
}

/// The reads of one client in one second, up to 64 KiB.
package struct DecodeSample: Sendable {
    let bytes: [UInt8]
    let cuts: [Int32]
    let version: ProtocolVersion

    /// Walks the bytes as they were cut, and says what it took: CPU time of this thread in nanoseconds.
    ///
    /// A slow client gives a few hundred bytes, less than a clock read costs: they are walked once to warm the caches,
    /// as the loop's are, and then as often as it takes to have walked ``DecodeProbe/capacity``.
    package func measure() -> (nanoseconds: Int64, bytes: Int) {
        let times = max(1, DecodeProbe.capacity / max(1, self.bytes.count))
        self.walk()
        let start = clamor_thread_cpu_nanoseconds()
        for _ in 0..<times { self.walk() }
        // The time of one walk: how often it was repeated gives a small sample no more weight.
        return ((clamor_thread_cpu_nanoseconds() - start) / Int64(times), self.bytes.count)
    }

    private func walk() {
        var decoder = PacketDecoder(role: .client(self.version))
        var sink = EmptySink()
        self.bytes.withUnsafeBytes { all in
            self.cuts.withUnsafeBufferPointer { cuts in
                try? DecodeWalk.walk(all, cuts: cuts, decoder: &decoder, into: &sink)
            }
        }
    }
}

private struct EmptySink: PacketSink {
    mutating func publish(_ view: PublishView) -> Bool { true }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool { true }

    mutating func control(_ packet: Packet) -> Bool { true }
}
