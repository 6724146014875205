/// Reads fields from the front of bytes; a missing byte throws, and nothing is read beyond the end.
struct ByteReader {
    private(set) var rest: UnsafeRawBufferPointer
    /// The error for a field that runs past the end: packet and properties have different rules.
    let shortage: DecodeError
    /// Whether control characters and non-characters are refused too (§1.5.4 allows either).
    let refusesControlCharacters: Bool

    init(_ bytes: UnsafeRawBufferPointer, shortage: DecodeError = .truncated, refusesControlCharacters: Bool = false) {
        self.rest = bytes
        self.shortage = shortage
        self.refusesControlCharacters = refusesControlCharacters
    }

    var isAtEnd: Bool { self.rest.isEmpty }

    mutating func bytes(_ count: Int) throws(DecodeError) -> UnsafeRawBufferPointer {
        guard count <= self.rest.count else { throw self.shortage }
        let taken = UnsafeRawBufferPointer(rebasing: self.rest.prefix(count))
        self.rest = UnsafeRawBufferPointer(rebasing: self.rest.dropFirst(count))
        return taken
    }

    mutating func byte() throws(DecodeError) -> UInt8 { try self.bytes(1)[0] }

    mutating func twoBytes() throws(DecodeError) -> UInt16 {
        let bytes = try self.bytes(2)
        return UInt16(bytes[0]) << 8 | UInt16(bytes[1])
    }

    mutating func fourBytes() throws(DecodeError) -> UInt32 {
        let bytes = try self.bytes(4)
        return bytes.reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// §1.5.5: at most four bytes, in the shortest form.
    mutating func variableInteger() throws(DecodeError) -> UInt32 {
        var value: UInt32 = 0
        for index in 0..<4 {
            let byte = try self.byte()
            value |= UInt32(byte & 0x7F) << UInt32(7 * index)
            guard byte & 0x80 == 0 else { continue }
            if byte == 0, index > 0 { throw .variableIntegerNotMinimal }
            return value
        }
        throw .variableIntegerTooLong
    }

    mutating func binary() throws(DecodeError) -> UnsafeRawBufferPointer { try self.bytes(Int(try self.twoBytes())) }

    /// A checked string, as bytes (§1.5.4).
    mutating func text() throws(DecodeError) -> UnsafeRawBufferPointer {
        let bytes = try self.binary()
        try Text.check(bytes, refusesControlCharacters: self.refusesControlCharacters)
        return bytes
    }

    mutating func string() throws(DecodeError) -> String { String(decoding: try self.text(), as: UTF8.self) }

    mutating func packetID() throws(DecodeError) -> PacketID {
        guard let id = PacketID(rawValue: try self.twoBytes()) else { throw .packetIDZero }
        return id
    }

    func expectEnd() throws(DecodeError) {
        if !self.rest.isEmpty { throw .trailingBytes(self.rest.count) }
    }
}

extension UnsafeRawBufferPointer {
    /// No bytes at no address: represents absent properties.
    @inlinable
    static var none: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }
}
