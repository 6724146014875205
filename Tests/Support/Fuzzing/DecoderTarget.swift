import CFuzzing
import MQTTCodec
import NIOCore

/// The decoder in every role, version and fragmentation.
///
/// The first byte of the settings chooses role and version, the second the cuts, the third the maximum packet size,
/// the fourth after how many packets the sink has had enough.
package final class DecoderTarget: FuzzTarget {
    package static var layout: FuzzInput.Layout { .stream }
    package private(set) var reached = Reached()
    package private(set) var signature: UInt64 = 0

    private let memory: GuardedMemory
    private var whole = PacketLog()
    private var cut = PacketLog()
    private var again = PacketLog()
    private var encoded = ByteBuffer()

    package static let limits = [268_435_460, 268_435_460, 16, 40, 128, 300, 4_096, 65_536]

    package init() { self.memory = GuardedMemory() }

    package func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
        self.reached.inputs += 1
        guard input.count > FuzzInput.settingsCount else { return }
        let settings = Settings(input)
        let stream = UnsafeRawBufferPointer(rebasing: input[FuzzInput.settingsCount...])

        var first = settings.decoder()
        self.whole.begin(limit: settings.sinkLimit)
        let error = self.memory.decode(stream, with: &first, into: &self.whole)

        var second = settings.decoder()
        self.cut.begin(limit: settings.sinkLimit)
        var pieces = Pieces(stream, seed: settings.cuts)
        var cutError: DecodeError?
        while cutError == nil, let piece = pieces.next() {
            cutError = self.memory.decode(piece, with: &second, into: &self.cut)
        }

        try Finding.unless(
            error == cutError,
            "whole: \(String(describing: error)), cut: \(String(describing: cutError))"
        )
        try Finding.unless(self.whole.packets == self.cut.packets, "other packets when cut")
        try Finding.unless(self.whole.problem == nil, self.whole.problem ?? "")
        try Finding.unless(
            first.packets - settings.before == UInt64(self.whole.packets.count)
                && second.packets == first.packets,
            "packets are miscounted"
        )
        if error == nil {
            try Finding.unless(first.version == second.version, "other version when cut")
            let hasStopped = self.whole.packets.count >= settings.sinkLimit
            try Finding.unless(
                hasStopped || first.isAtPacketBoundary == second.isAtPacketBoundary,
                "another place when cut"
            )
        } else {
            // After an error nothing is taken.
            self.again.begin(limit: .max)
            let late = self.memory.decode(stream, with: &first, into: &self.again)
            try Finding.unless(late == nil && self.again.packets.isEmpty, "goes on after an error")
        }
        if error == nil, !first.isAtPacketBoundary || !second.isAtPacketBoundary {
            try self.checkMemory(stream, settings)
        }
        try self.checkEncoding(version: first.version, settings)
        self.note(error)
    }

    private func note(_ error: DecodeError?) {
        var types: UInt64 = 0
        for packet in self.whole.packets {
            self.reached.packets[Int(packet.type.rawValue)] += 1
            types |= 1 << UInt64(packet.type.rawValue)
        }
        if !self.whole.packets.isEmpty { self.reached.withPacket += 1 }
        if let error { self.reached.note(error) }
        let kind = error.map { ErrorKind($0).rawValue + 1 } ?? 0
        self.signature = types << 16 | UInt64(kind) << 8 | UInt64(min(self.whole.packets.count, 7))
    }

    /// The memory kept for a cut packet is bounded by the bytes received and by the limit, never by its declared
    /// length.
    ///
    /// The heap belongs to the whole process, so this holds in a process that runs nothing else.
    private func checkMemory(_ stream: UnsafeRawBufferPointer, _ settings: Settings) throws(Finding) {
        var decoder = settings.decoder()
        var sink = Nowhere(left: settings.sinkLimit)
        var pieces = Pieces(stream, seed: settings.cuts)
        let before = clamor_heap_bytes()
        while let piece = pieces.next() { try? decoder.decode(piece, into: &sink) }
        let taken = Int(clamor_heap_bytes()) - Int(before)
        // Twice, for what it grew out of may lie in malloc's own cache.
        let bound = 2 * max(256, min(decoder.maximumPacketSize, stream.count)) + 512
        // Packets that are objects may leave something in that cache too.
        if decoder.packets > settings.before { return }
        try Finding.unless(taken <= bound, "\(taken) bytes kept, \(bound) allowed")
    }

    /// A decoded packet encodes to bytes that decode to the same packet, and its checker accepts it.
    private func checkEncoding(version: ProtocolVersion, _ settings: Settings) throws(Finding) {
        for packet in self.whole.packets {
            self.encoded.clear()
            packet.encode(as: version, into: &self.encoded)
            var decoder =
                settings.isServer && packet.type != .connect
                ? Prelude.server(version) : PacketDecoder(role: settings.isServer ? .server : .client(version))
            self.again.begin(limit: .max)
            let error = self.encoded.withUnsafeReadableBytes { bytes -> DecodeError? in
                do throws(DecodeError) {
                    try decoder.decode(bytes, into: &self.again)
                    return nil
                } catch {
                    return error
                }
            }
            try Finding.unless(error == nil, "\(packet) encodes to what is refused: \(String(describing: error))")
            try Finding.unless(self.again.packets == [packet], "\(packet) encodes to \(self.again.packets)")
            try Finding.unless(decoder.isAtPacketBoundary, "\(packet) encodes to more than a packet")
            if let problem = packet.problem(as: version, fromServer: !settings.isServer) {
                throw Finding("\(packet) decodes, and its checker says \(problem)")
            }
        }
    }
}

extension DecoderTarget {
    private struct Settings {
        let role: Int
        let cuts: UInt8
        let limit: Int
        let refusesControlCharacters: Bool
        let sinkLimit: Int

        init(_ input: UnsafeRawBufferPointer) {
            self.role = Int(input[0] & 0x7F) % 7
            self.refusesControlCharacters = input[0] & 0x80 != 0
            self.cuts = input[1]
            self.limit = DecoderTarget.limits[Int(input[2]) % DecoderTarget.limits.count]
            self.sinkLimit = input[3] < 16 ? Int(input[3]) + 1 : .max
        }

        var isServer: Bool { self.role >= 3 }
        /// Packets of the prelude.
        var before: UInt64 { (3...5).contains(self.role) ? 1 : 0 }

        func decoder() -> PacketDecoder {
            var decoder =
                switch self.role {
                case 0...2: PacketDecoder(role: .client(ProtocolVersion.allCases[self.role]))
                case 3...5: Prelude.server(ProtocolVersion.allCases[self.role - 3])
                default: PacketDecoder(role: .server)
                }
            decoder.maximumPacketSize = self.limit
            decoder.refusesControlCharacters = self.refusesControlCharacters
            return decoder
        }
    }
}

/// A server's decoder that has seen a CONNECT.
enum Prelude {
    static let connects: [[UInt8]] = ProtocolVersion.allCases.map { version in
        var buffer = ByteBuffer()
        Connect(version: version, clientID: "c").encode(as: version, into: &buffer)
        return Array(buffer.readableBytesView)
    }

    static func server(_ version: ProtocolVersion) -> PacketDecoder {
        var decoder = PacketDecoder(role: .server)
        var sink = Nowhere(left: .max)
        self.connects[Int(version.rawValue) - 3].withUnsafeBytes { bytes in
            try? decoder.decode(bytes, into: &sink)
        }
        return decoder
    }
}

/// Memory with an unreadable page after it; each piece is placed at its very end.
struct GuardedMemory {
    static let pages = 16
    private let end: UnsafeMutableRawPointer

    init() {
        guard let end = clamor_guarded_memory_end(Self.pages) else { preconditionFailure("mmap failed") }
        self.end = end
    }

    /// The same bytes, at the very end.
    func place(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let start = self.end - bytes.count
        if let base = bytes.baseAddress { start.copyMemory(from: base, byteCount: bytes.count) }
        return UnsafeRawBufferPointer(start: start, count: bytes.count)
    }

    func decode(
        _ bytes: UnsafeRawBufferPointer,
        with decoder: inout PacketDecoder,
        into sink: inout PacketLog
    ) -> DecodeError? {
        do throws(DecodeError) {
            try decoder.decode(self.place(bytes), into: &sink)
            return nil
        } catch {
            return error
        }
    }
}

/// A stream in pieces, by a seed.
struct Pieces {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0
    private var state: UInt64
    private let largest: Int

    init(_ bytes: UnsafeRawBufferPointer, seed: UInt8) {
        self.bytes = bytes
        self.state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1
        self.largest = [1, 2, 3, 7, 7, 20, 60, 200][Int(seed) & 7]
    }

    mutating func next() -> UnsafeRawBufferPointer? {
        guard self.offset < self.bytes.count else { return nil }
        self.state ^= self.state << 13
        self.state ^= self.state >> 7
        self.state ^= self.state << 17
        let end = min(self.offset + 1 + Int(self.state % UInt64(self.largest)), self.bytes.count)
        defer { self.offset = end }
        return UnsafeRawBufferPointer(rebasing: self.bytes[self.offset..<end])
    }
}

/// Keeps packets as objects.
struct PacketLog: PacketSink {
    var packets: [Packet] = []
    /// An output that is not a packet.
    var problem: String?
    private var limit = Int.max

    mutating func begin(limit: Int) {
        self.packets.removeAll(keepingCapacity: true)
        self.problem = nil
        self.limit = limit
    }

    mutating func publish(_ view: PublishView) -> Bool {
        do {
            return self.control(.publish(try Publish(view)))
        } catch {
            self.problem = "properties of a PUBLISH were checked and do not read: \(error)"
            return false
        }
    }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        guard let packet = Packet(acknowledgement: type, id: id, reason: reason, rawProperties: rawProperties) else {
            self.problem = "\(type) with id \(id) and reason \(reason) was checked and is none"
            return false
        }
        return self.control(packet)
    }

    mutating func control(_ packet: Packet) -> Bool {
        self.packets.append(packet)
        return self.packets.count < self.limit
    }
}

struct Nowhere: PacketSink {
    var left: Int

    mutating func publish(_ view: PublishView) -> Bool { self.take() }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool { self.take() }

    mutating func control(_ packet: Packet) -> Bool { self.take() }

    private mutating func take() -> Bool {
        self.left -= 1
        return self.left > 0
    }
}

extension Packet {
    /// The sender's check, where both sides have the same rules.
    fileprivate func problem(as version: ProtocolVersion, fromServer: Bool) -> PacketProblem? {
        switch self {
        case .connect(let packet):
            switch packet.problem() {
            // Rules that a server answers in CONNACK, so the decoder lets them pass.
            case .clientIDEmpty, .clientIDTooLong: nil
            case let problem: problem
            }
        case .publish(let packet): packet.problem(as: version, toServer: !fromServer)
        // Before 5.0 shared subscriptions are up to the server.
        case .subscribe(let packet): version == .v5 ? packet.problem(as: version) : nil
        case .unsubscribe(let packet): version == .v5 ? packet.problem(as: version) : nil
        default: nil
        }
    }
}
