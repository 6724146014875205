/// Parses the frames of a WebSocket, for any division into reads (RFC 6455 §5).
///
/// Pure and streaming: the data of a frame is returned as it arrives. Only the up to 125 bytes of a control frame are
/// collected. MQTT ignores frame boundaries ([MQTT-6.0.0-2]), and limits its packets itself. XMPP needs them (RFC 7395
/// §3.3.3), and gets the end of each message. The reader of the text checks that it is UTF-8. A reader takes about 48
/// bytes per connection.
package struct WebSocketReader {
    package enum Event: Hashable {
        /// These bytes are data; `key` unmasks them, 0 if they are plain, see ``WebSocketMask``.
        case data(Range<Int>, key: UInt32)
        case ping([UInt8])
        case pong
        /// A text message is complete: it is the data since the last end. Binary data has no such ends.
        case endOfMessage
        /// A Close frame, with its code if it has one; no event follows it.
        case close(UInt16?)
    }

    private enum Stage: UInt8 {
        case first, second, length, key, payload, closed
    }

    private enum Opcode {
        static let continuation: UInt8 = 0
        static let text: UInt8 = 1
        static let binary: UInt8 = 2
        static let close: UInt8 = 8
        static let ping: UInt8 = 9
        static let pong: UInt8 = 10
    }

    /// The peer masks its frames: it is a client.
    private let isMasked: Bool
    private let content: WebSocketContent
    private var stage = Stage.first
    private var opcode: UInt8 = 0
    /// FIN of the current frame.
    private var isLast = false
    /// Missing bytes of the length or the key.
    private var missing: UInt8 = 0
    /// The current message continues in further fragments.
    private var isInMessage = false
    /// The current message has ended, and the event is still to be returned.
    private var isAtEnd = false
    private var lengthSize: UInt8 = 0
    /// The masking key, first byte lowest.
    private var key: UInt32 = 0
    private var left: UInt64 = 0
    /// Bytes of the current message, over all its fragments so far.
    private var messageSize: UInt64 = 0
    private let limit: Int
    private var control: [UInt8] = []

    /// - Parameters:
    ///   - isMasked: whether the peer must mask its frames (a client) or must not (a server).
    ///   - content: the required kind of messages.
    ///   - limit: the largest message in bytes, with all its fragments.
    package init(isMasked: Bool, content: WebSocketContent = .binary, limit: Int) {
        self.isMasked = isMasked
        self.content = content
        self.limit = limit
    }

    private var isControl: Bool { self.opcode & 0x08 != 0 }

    /// Parses from `offset` to the next event.
    ///
    /// - Returns: `nil` if all bytes are parsed.
    package mutating func next(
        _ bytes: UnsafeRawBufferPointer,
        from offset: inout Int
    ) throws(WebSocketViolation) -> Event? {
        while true {
            if self.isAtEnd {
                self.isAtEnd = false
                return .endOfMessage
            }
            if self.stage == .payload {
                if let event = try self.takePayload(bytes, from: &offset) { return event }
                if self.stage == .payload { return nil }
                if self.isAtEnd { continue }
            }
            guard offset < bytes.count else { return nil }
            // Bytes after a Close frame are ignored (§5.5.1).
            guard self.stage != .closed else {
                offset = bytes.count
                return nil
            }
            let byte = bytes[offset]
            offset += 1
            try self.takeHeader(byte)
        }
    }

    private mutating func takeHeader(_ byte: UInt8) throws(WebSocketViolation) {
        switch self.stage {
        case .first:
            try self.takeFirst(byte)
            self.stage = .second
        case .second:
            try self.takeSecond(byte)
        case .length:
            self.left = self.left << 8 | UInt64(byte)
            self.missing -= 1
            guard self.missing == 0 else { return }
            // The shortest form is required, and the highest bit of an eight-byte length is 0 (§5.2).
            let isShortest = self.lengthSize == 2 ? self.left >= 126 : self.left >= 65_536
            guard isShortest, self.left >> 63 == 0 else { throw WebSocketViolation(.length) }
            try self.lengthIsKnown()
        case .key:
            self.key |= UInt32(byte) << (8 * UInt32(4 - self.missing))
            self.missing -= 1
            if self.missing == 0 { self.stage = .payload }
        case .payload, .closed: break
        }
    }

    private mutating func takeFirst(_ byte: UInt8) throws(WebSocketViolation) {
        guard byte & 0x70 == 0 else { throw WebSocketViolation(.reservedBits) }
        self.isLast = byte & 0x80 != 0
        self.opcode = byte & 0x0F
        switch self.opcode {
        case Opcode.continuation:
            guard self.isInMessage else { throw WebSocketViolation(.fragments) }
        case Opcode.binary, Opcode.text:
            switch self.content {
            case .binary: guard self.opcode == Opcode.binary else { throw WebSocketViolation(.text) }
            case .text: guard self.opcode == Opcode.text else { throw WebSocketViolation(.binary) }
            }
            guard !self.isInMessage else { throw WebSocketViolation(.fragments) }
            self.isInMessage = true
            self.messageSize = 0
        case Opcode.close, Opcode.ping, Opcode.pong:
            guard self.isLast else { throw WebSocketViolation(.fragmentedControl) }
        default:
            throw WebSocketViolation(.reservedOpcode(self.opcode))
        }
    }

    private mutating func takeSecond(_ byte: UInt8) throws(WebSocketViolation) {
        guard (byte & 0x80 != 0) == self.isMasked else {
            throw WebSocketViolation(self.isMasked ? .unmasked : .masked)
        }
        let length = byte & 0x7F
        guard length >= 126 else {
            self.left = UInt64(length)
            return try self.lengthIsKnown()
        }
        guard !self.isControl else { throw WebSocketViolation(.longControl) }
        self.lengthSize = length == 126 ? 2 : 8
        self.missing = self.lengthSize
        self.left = 0
        self.stage = .length
    }

    private mutating func lengthIsKnown() throws(WebSocketViolation) {
        if !self.isControl {
            let (size, overflow) = self.messageSize.addingReportingOverflow(self.left)
            guard !overflow, size <= UInt64(self.limit) else {
                throw WebSocketViolation(.messageTooLarge(limit: self.limit))
            }
            self.messageSize = size
        }
        self.key = 0
        self.missing = 4
        self.stage = self.isMasked ? .key : .payload
    }

    /// Takes the available part of the payload; an empty frame is complete at once.
    private mutating func takePayload(
        _ bytes: UnsafeRawBufferPointer,
        from offset: inout Int
    ) throws(WebSocketViolation) -> Event? {
        let count = Int(min(self.left, UInt64(bytes.count - offset)))
        let range = offset..<(offset + count)
        let key = self.key
        offset += count
        self.left -= UInt64(count)
        self.key = WebSocketMask.rotated(key, by: count)
        guard self.isControl else {
            if self.left == 0 {
                if self.isLast {
                    self.isInMessage = false
                    self.isAtEnd = self.content == .text
                }
                self.stage = .first
            }
            return count == 0 ? nil : .data(range, key: key)
        }
        for (index, byte) in bytes[range].enumerated() {
            self.control.append(byte ^ WebSocketMask.byte(key, at: index))
        }
        guard self.left == 0 else { return nil }
        let payload = self.control
        self.control = []
        self.stage = .first
        switch self.opcode {
        case Opcode.ping: return .ping(payload)
        case Opcode.pong: return .pong
        default:
            self.stage = .closed
            return .close(try Self.closeCode(payload))
        }
    }

    /// The payload of a Close frame: empty, or a code and a reason (§5.5.1, §7.4).
    private static func closeCode(_ payload: [UInt8]) throws(WebSocketViolation) -> UInt16? {
        guard !payload.isEmpty else { return nil }
        guard payload.count >= 2 else { throw WebSocketViolation(.closeCode) }
        let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: break
        default: throw WebSocketViolation(.closeCode)
        }
        guard String(validating: payload[2...], as: UTF8.self) != nil else { throw WebSocketViolation(.closeReason) }
        return code
    }
}

/// The masking of a client's payload (RFC 6455 §5.3).
///
/// A key's first byte is its lowest; the key 0 changes nothing.
package enum WebSocketMask {
    /// The key rotated for data `count` bytes further on.
    static func rotated(_ key: UInt32, by count: Int) -> UInt32 {
        let bits = UInt32(truncatingIfNeeded: count & 3) * 8
        return key &>> bits | key &<< (32 &- bits)
    }

    static func byte(_ key: UInt32, at index: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: key &>> (UInt32(truncatingIfNeeded: index & 3) * 8))
    }

    /// Copies `source` to `target`, masked, eight bytes at a time.
    package static func copy(_ source: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer, key: UInt32) {
        guard let base = source.baseAddress, source.count > 0 else { return }
        guard key != 0 else { return target.copyMemory(from: base, byteCount: source.count) }
        // In the order of the bytes in memory, for either endianness.
        let word = (UInt64(key) << 32 | UInt64(key)).littleEndian
        let words = source.count & ~7
        var offset = 0
        while offset < words {
            let value = base.loadUnaligned(fromByteOffset: offset, as: UInt64.self) ^ word
            target.storeBytes(of: value, toByteOffset: offset, as: UInt64.self)
            offset += 8
        }
        while offset < source.count {
            let value = base.load(fromByteOffset: offset, as: UInt8.self) ^ Self.byte(key, at: offset)
            target.storeBytes(of: value, toByteOffset: offset, as: UInt8.self)
            offset += 1
        }
    }
}
