/// Base64 that has one text for each run of bytes (RFC 4648 §4, §3.5): with padding, without anything else.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: self.digits(bytes), as: UTF8.self)
    }

    /// The text as ASCII.
    package static func digits(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var group: UInt32 = 0
        var held = 0
        for byte in bytes {
            group = group << 8 | UInt32(byte)
            held += 1
            if held == 3 {
                self.append(group, digits: 4, to: &text)
                (group, held) = (0, 0)
            }
        }
        if held > 0 {
            self.append(group << UInt32(24 - 8 * held), digits: held + 1, to: &text)
            for _ in held..<3 { text.append(UInt8(ascii: "=")) }
        }
        return text
    }

    /// The bytes; nothing for a text that ``encode(_:)`` would not have written.
    package static func decode(_ digits: some Collection<UInt8>) -> [UInt8]? {
        // Texts and arrays have one; a collection of any type costs a call per digit.
        digits.withContiguousStorageIfAvailable(Self.decode(contiguous:))
            ?? Array(digits).withUnsafeBufferPointer(Self.decode(contiguous:))
    }

    private static func decode(contiguous digits: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard digits.count.isMultiple(of: 4) else { return nil }
        let padding = digits.suffix(2).count { $0 == UInt8(ascii: "=") }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 4 * 3)
        var group: UInt32 = 0
        var bits: UInt32 = 0
        for digit in digits.dropLast(padding) {
            guard let value = self.value(of: digit) else { return nil }
            group = group << 6 | value
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: group >> bits))
                group &= 1 << bits - 1
            }
        }
        // §3.5: the bits that fill up the last digit are 0.
        return group == 0 ? bytes : nil
    }

    private static func append(_ group: UInt32, digits: Int, to text: inout [UInt8]) {
        for position in 0..<digits { text.append(self.alphabet[Int(group >> UInt32(18 - 6 * position)) & 63]) }
    }

    private static func value(of digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
