import NIOCore

/// Encoded PUBLISH packets that wait for one client, in order, in one buffer.
///
/// 24 bytes per message in addition to the packet.
struct MessageQueue {
    /// The header of one waiting PUBLISH, before its bytes.
    struct Header {
        static let byteCount = 24
        var count: UInt32
        var packetIDOffset: UInt32
        /// Offset of the value of the Message Expiry Interval; 0 without one.
        var expiryOffset: UInt32
        var qos: UInt8
        var tally: Tally
        /// Expiry time in nanoseconds; 0 means never.
        var expiry: UInt64

        init(_ writer: PublishWriter, tally: Tally, now: NIODeadline) {
            self.count = UInt32(writer.count)
            self.packetIDOffset = UInt32(writer.packetIDOffset)
            self.qos = writer.qos
            self.tally = tally
            self.expiryOffset = 0
            self.expiry = 0
            guard let seconds = RawProperties.messageExpirySeconds(in: writer.message.properties) else { return }
            self.expiry = (now + .seconds(Int64(seconds))).uptimeNanoseconds
            self.expiryOffset = UInt32(writer.expiryOffset ?? 0)
        }

        fileprivate init(from buffer: inout ByteBuffer) {
            let words =
                buffer.readMultipleIntegers(as: (UInt32, UInt32, UInt32, UInt8, UInt8, UInt8, UInt8, UInt64).self)
                ?? (0, 0, 0, 0, 0, 0, 0, 0)
            self.count = words.0
            self.packetIDOffset = words.1
            self.expiryOffset = words.2
            self.qos = words.3
            self.tally = Tally(kind: Tally.Kind(rawValue: words.4) ?? .copy, qos: words.5)
            self.expiry = words.7
        }

        func isExpired(at now: NIODeadline) -> Bool { self.expiry != 0 && self.expiry <= now.uptimeNanoseconds }

        /// [MQTT-3.3.2-6]: the remaining interval; a started second counts in full.
        func remaining(at now: NIODeadline) -> UInt32 {
            guard self.expiry > now.uptimeNanoseconds else { return 0 }
            return UInt32(clamping: (self.expiry - now.uptimeNanoseconds + 999_999_999) / 1_000_000_000)
        }
    }

    private var buffer = ByteBuffer()
    private(set) var count = 0

    var isEmpty: Bool { self.count == 0 }
    var byteCount: Int { self.buffer.readableBytes }

    mutating func append(_ writer: PublishWriter, _ header: Header) {
        self.write(header)
        let count = Int(header.count)
        self.buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { memory in
            if let base = memory.baseAddress { writer.write(to: base, packetID: 0) }
            return count
        }
    }

    mutating func append(_ bytes: ByteBuffer, _ header: Header) {
        self.write(header)
        self.buffer.writeImmutableBuffer(bytes)
    }

    private mutating func write(_ header: Header) {
        self.count += 1
        self.buffer.writeMultipleIntegers(
            header.count,
            header.packetIDOffset,
            header.expiryOffset,
            header.qos,
            header.tally.kind.rawValue,
            header.tally.qos,
            UInt8(0),
            header.expiry
        )
    }

    /// The first message; its bytes are shared with the queue until it is dropped.
    mutating func popFirst() -> (header: Header, bytes: ByteBuffer)? {
        guard self.count > 0 else { return nil }
        let header = Header(from: &self.buffer)
        let bytes = self.buffer.readSlice(length: Int(header.count)) ?? ByteBuffer()
        self.count -= 1
        // An idle client keeps no buffer; a busy one frees the part already read.
        if self.count == 0 {
            self.buffer = ByteBuffer()
        } else if self.buffer.readerIndex > 1 << 20, self.buffer.readerIndex > self.buffer.readableBytes {
            self.buffer.discardReadBytes()
        }
        return (header, bytes)
    }
}
