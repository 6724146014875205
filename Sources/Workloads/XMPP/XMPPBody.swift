package import Ledger

/// The ledger's header as text at the front of a `<body>`, or in place of `%{ledger}`, in base64, which needs no escaping
/// in XML.
///
/// 32 bytes give 43 characters and one of padding. The parts that vary per message begin at byte 12: flags, sequence
/// number and due time. The upper 30 bits of the flags are the message's delay from due to written.
package enum XMPPBody {
    /// Characters.
    package static let headerSize = 44
    private static let groups = 11
    /// The base64 group where the flags begin.
    private static let firstPatchedGroup = 4
    private static let flagsOffset = 12
    private static let longestDelay: UInt32 = (1 << 30) - 1

    private static let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    /// The six bits of each character; 255 for a character outside the alphabet.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 255, count: 256)
        for index in 0..<64 { values[Int(Self.alphabet.utf8Start[index])] = UInt8(index) }
        return values
    }()

    /// The table for a loop, which reads it without reference counting.
    ///
    /// The caller deallocates it.
    static func makeDecodingTable() -> UnsafeMutablePointer<UInt8> {
        let table = UnsafeMutablePointer<UInt8>.allocate(capacity: 256)
        table.initialize(from: Self.values, count: 256)
        return table
    }

    /// Stores the message's delay from due to written, in microseconds; 18 minutes at most.
    static func setDelay(_ delay: UInt32, in header: UnsafeMutableRawPointer) {
        let flags = min(delay, Self.longestDelay) << 2
        header.storeBytes(of: flags.bigEndian, toByteOffset: Self.flagsOffset, as: UInt32.self)
    }

    /// Time from due to written, in microseconds.
    static func delay(of header: PayloadHeader) -> UInt32 { header.flags >> 2 }

    /// Writes all 44 characters of a 32-byte header.
    package static func encode(_ header: UnsafeRawPointer, to text: UnsafeMutableRawPointer) {
        self.encode(header, to: text, from: 0)
    }

    /// Writes only the characters that vary per message.
    package static func patch(_ header: UnsafeRawPointer, to text: UnsafeMutableRawPointer) {
        self.encode(header, to: text, from: Self.firstPatchedGroup)
    }

    @inline(__always)
    private static func encode(_ header: UnsafeRawPointer, to text: UnsafeMutableRawPointer, from first: Int) {
        let alphabet = Self.alphabet.utf8Start
        func byte(_ index: Int) -> UInt32 { UInt32(header.load(fromByteOffset: index, as: UInt8.self)) }
        for group in first..<Self.groups {
            let isLast = group == Self.groups - 1
            // There is no 33rd byte.
            let bits = byte(group * 3) << 16 | byte(group * 3 + 1) << 8 | (isLast ? 0 : byte(group * 3 + 2))
            let place = group * 4
            text.storeBytes(of: alphabet[Int(bits >> 18)], toByteOffset: place, as: UInt8.self)
            text.storeBytes(of: alphabet[Int(bits >> 12 & 63)], toByteOffset: place + 1, as: UInt8.self)
            text.storeBytes(of: alphabet[Int(bits >> 6 & 63)], toByteOffset: place + 2, as: UInt8.self)
            let last = isLast ? UInt8(ascii: "=") : alphabet[Int(bits & 63)]
            text.storeBytes(of: last, toByteOffset: place + 3, as: UInt8.self)
        }
    }

    /// Reads the header of a body; for infrequent callers.
    package static func header(of body: UnsafeRawBufferPointer) -> PayloadHeader? {
        self.values.withUnsafeBufferPointer { table in
            table.baseAddress.flatMap { self.header(of: body, table: $0) }
        }
    }

    /// Reads the header of a body; `nil` for a body without one.
    ///
    /// Elsewhere than at the front it is searched, at about 1 ns for each byte before it.
    static func header(of body: UnsafeRawBufferPointer, table: UnsafePointer<UInt8>) -> PayloadHeader? {
        var rest = body
        while rest.count >= Self.headerSize {
            if let header = self.first(in: rest, table: table) { return header }
            guard let place = rest.dropFirst().firstIndex(of: self.firstCharacter) else { return nil }
            rest = UnsafeRawBufferPointer(rebasing: rest[place...])
        }
        return nil
    }

    /// Of the magic number at the front of the header.
    private static let firstCharacter = UInt8(ascii: "Q")

    private static func first(in body: UnsafeRawBufferPointer, table: UnsafePointer<UInt8>) -> PayloadHeader? {
        guard body[0] == self.firstCharacter, body[1] == UInt8(ascii: "0"), body[2] == UInt8(ascii: "x") else {
            return nil
        }
        return withUnsafeTemporaryAllocation(byteCount: 33, alignment: 8) { bytes -> PayloadHeader? in
            for group in 0..<Self.groups {
                let place = group * 4
                let isLast = group == Self.groups - 1
                let (one, two) = (table[Int(body[place])], table[Int(body[place + 1])])
                let three = table[Int(body[place + 2])]
                let four = isLast ? 0 : table[Int(body[place + 3])]
                guard (one | two | three | four) & 0x80 == 0 else { return nil }
                let bits = UInt32(one) << 18 | UInt32(two) << 12 | UInt32(three) << 6 | UInt32(four)
                bytes[group * 3] = UInt8(truncatingIfNeeded: bits >> 16)
                bytes[group * 3 + 1] = UInt8(truncatingIfNeeded: bits >> 8)
                bytes[group * 3 + 2] = UInt8(truncatingIfNeeded: bits)
            }
            return PayloadHeader.read(UnsafeRawBufferPointer(bytes))
        }
    }
}
