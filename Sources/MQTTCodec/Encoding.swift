package import NIOCore

extension ByteBuffer {
    /// Writes a packet, and once its body is written the remaining length in front of it.
    ///
    /// `bodyHint` is how long the body may become; a wrong guess costs one move of the body.
    mutating func writePacket(
        _ type: PacketType,
        flags: UInt8? = nil,
        bodyHint: Int = 0,
        body: (inout ByteBuffer) -> Void
    ) {
        self.writeInteger(type.firstByte(flags: flags ?? type.reservedFlags))
        self.writeVariableLengthPrefixed(hint: bodyHint, body: body)
    }

    /// Writes what `body` writes, with its length as a variable byte integer in front.
    mutating func writeVariableLengthPrefixed(hint: Int = 0, body: (inout ByteBuffer) -> Void) {
        let start = self.writerIndex
        let reserved = VariableByteInteger(UInt64(hint)).count
        self.writeRepeatingByte(0, count: reserved)
        body(&self)
        let bodyStart = start + reserved
        let length = VariableByteInteger(UInt64(self.writerIndex - bodyStart))
        if length.count != reserved { self.moveBody(from: bodyStart, by: length.count - reserved) }
        length.forEachByte { offset, byte in self.setInteger(byte, at: start + offset) }
    }

    private mutating func moveBody(from start: Int, by distance: Int) {
        let count = self.writerIndex - start
        if distance > 0 { self.writeRepeatingByte(0, count: distance) }
        self.withUnsafeMutableReadableBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            let source = base + (bytes.count - max(distance, 0) - count)
            (source + distance).copyMemory(from: source, byteCount: count)
        }
        if distance < 0 { self.moveWriterIndex(to: self.writerIndex + distance) }
    }

    /// Writes a variable byte integer; past 28 bits it gets a fifth byte, which no decoder takes.
    mutating func writeVariableByteInteger(_ value: UInt32) {
        VariableByteInteger(UInt64(value)).forEachByte { _, byte in self.writeInteger(byte) }
    }

    /// Writes a string after its two-byte length; bytes beyond 65,535 are cut off.
    mutating func writeText(_ text: String) {
        let utf8 = text.utf8
        if utf8.count <= Int(UInt16.max) {
            self.writeInteger(UInt16(utf8.count))
            self.writeString(text)
        } else {
            self.writeInteger(UInt16.max)
            self.writeBytes(utf8.prefix(Int(UInt16.max)))
        }
    }

    /// Writes bytes after their two-byte length; bytes beyond 65,535 are cut off.
    mutating func writeBinary(_ bytes: [UInt8]) {
        let part = bytes.prefix(Int(UInt16.max))
        self.writeInteger(UInt16(part.count))
        self.writeBytes(part)
    }
}

/// Seven bits a byte, the lowest first (§1.5.5).
struct VariableByteInteger {
    let value: UInt64

    init(_ value: UInt64) { self.value = value }

    /// Bytes of the shortest form.
    var count: Int { max(1, (64 - self.value.leadingZeroBitCount + 6) / 7) }

    func forEachByte(_ write: (_ offset: Int, _ byte: UInt8) -> Void) {
        var rest = self.value
        for offset in 0..<self.count {
            let byte = UInt8(rest & 0x7F)
            rest >>= 7
            write(offset, rest == 0 ? byte : byte | 0x80)
        }
    }
}

extension Properties {
    /// The properties as encoded in a packet, after their length.
    package var wireForm: [UInt8] {
        var buffer = ByteBuffer()
        self.encodeEntries(into: &buffer)
        return Array(buffer.readableBytesView)
    }

    /// Appends the property length and the properties.
    package func encode(into buffer: inout ByteBuffer) {
        buffer.writeVariableLengthPrefixed { self.encodeEntries(into: &$0) }
    }

    private func encodeEntries(into buffer: inout ByteBuffer) {
        for property in self.entries {
            buffer.writeInteger(property.id.rawValue)
            switch property.value {
            case .byte(let value): buffer.writeInteger(value)
            case .twoBytes(let value): buffer.writeInteger(value)
            case .fourBytes(let value): buffer.writeInteger(value)
            case .variable(let value): buffer.writeVariableByteInteger(value)
            case .text(let value): buffer.writeText(value)
            case .binary(let value): buffer.writeBinary(value)
            case .pair(let name, let value):
                buffer.writeText(name)
                buffer.writeText(value)
            }
        }
    }
}
