/// The character classes of XML, checked eight bytes at a time where that pays.
///
/// Spec: XML 1.0 (fifth edition) §2.2, §2.3.
enum Characters {
    static let ones: UInt64 = 0x0101_0101_0101_0101
    static let tops: UInt64 = 0x8080_8080_8080_8080

    /// A bit per character.
    private static let spaces: UInt64 = 1 << 0x09 | 1 << 0x0A | 1 << 0x0D | 1 << 0x20

    @inline(__always)
    static func word(_ base: UnsafeRawPointer, _ at: Int) -> UInt64 {
        UInt64(littleEndian: (base + at).loadUnaligned(as: UInt64.self))
    }

    @inline(__always)
    static func byte(_ base: UnsafeRawPointer, _ at: Int) -> UInt8 { (base + at).load(as: UInt8.self) }

    /// The first byte from `start` on that is one of the three, below U+0020 or not ASCII; `end` if there is none.
    ///
    /// Subtracting borrows from the next byte only where a byte was hit, so the lowest hit is exact.
    @inline(__always)
    static func firstStop(
        _ base: UnsafeRawPointer,
        _ start: Int,
        _ end: Int,
        _ one: UInt8,
        _ two: UInt8,
        _ three: UInt8
    ) -> Int {
        var at = start
        let (ones1, ones2, ones3) = (Self.ones &* UInt64(one), Self.ones &* UInt64(two), Self.ones &* UInt64(three))
        while at &+ 8 <= end {
            let word = Self.word(base, at)
            let hits =
                (word &- Self.ones &* 0x20) | ((word ^ ones1) &- Self.ones) | ((word ^ ones2) &- Self.ones)
                | ((word ^ ones3) &- Self.ones) | word
            if hits & Self.tops != 0 { return at &+ (hits & Self.tops).trailingZeroBitCount &>> 3 }
            at &+= 8
        }
        while at < end {
            let byte = Self.byte(base, at)
            if byte < 0x20 || byte >= 0x80 || byte == one || byte == two || byte == three { return at }
            at &+= 1
        }
        return at
    }

    /// The same for four bytes.
    @inline(__always)
    static func firstStop(
        _ base: UnsafeRawPointer,
        _ start: Int,
        _ end: Int,
        _ one: UInt8,
        _ two: UInt8,
        _ three: UInt8,
        _ four: UInt8
    ) -> Int {
        var at = start
        while at &+ 8 <= end {
            let word = Self.word(base, at)
            let hits =
                (word &- Self.ones &* 0x20) | ((word ^ Self.ones &* UInt64(one)) &- Self.ones)
                | ((word ^ Self.ones &* UInt64(two)) &- Self.ones) | ((word ^ Self.ones &* UInt64(three)) &- Self.ones)
                | ((word ^ Self.ones &* UInt64(four)) &- Self.ones) | word
            if hits & Self.tops != 0 { return at &+ (hits & Self.tops).trailingZeroBitCount &>> 3 }
            at &+= 8
        }
        while at < end {
            let byte = Self.byte(base, at)
            if byte < 0x20 || byte >= 0x80 || byte == one || byte == two || byte == three || byte == four { return at }
            at &+= 1
        }
        return at
    }

    /// How many of the eight bytes are `a` to `z`, up to the first that is not.
    @inline(__always)
    static func smallLetters(_ word: UInt64) -> Int {
        let low = word & ~Self.tops
        let isBelow = ~(low &+ Self.ones &* (0x80 - 0x61))
        let isAbove = low &+ Self.ones &* (0x7F - 0x7A)
        return ((isBelow | isAbove | word) & Self.tops).trailingZeroBitCount &>> 3
    }

    /// Space, tab, carriage return, line feed.
    @inline(__always)
    static func isSpace(_ byte: UInt8) -> Bool { byte <= 0x20 && (Self.spaces >> UInt64(byte)) & 1 == 1 }

    @inline(__always)
    static func isNameStart(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "_") }

    @inline(__always)
    static func isNameByte(_ byte: UInt8) -> Bool {
        Self.isNameStart(byte) || byte &- 0x30 < 10 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
    }

    /// Whether two runs of bytes are the same.
    @inline(__always)
    static func equal(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, _ count: Int) -> Bool {
        if count >= 8 {
            var at = 0
            let last = count &- 8
            while at < last {
                if Self.word(left, at) != Self.word(right, at) { return false }
                at &+= 8
            }
            return Self.word(left, last) == Self.word(right, last)
        }
        if count >= 4 {
            return Self.half(left, 0) == Self.half(right, 0)
                && Self.half(left, count &- 4) == Self.half(right, count &- 4)
        }
        var at = 0
        while at < count {
            if Self.byte(left, at) != Self.byte(right, at) { return false }
            at &+= 1
        }
        return true
    }

    @inline(__always)
    private static func half(_ base: UnsafeRawPointer, _ at: Int) -> UInt32 {
        (base + at).loadUnaligned(as: UInt32.self)
    }

    @inline(__always)
    static func equal(_ bytes: UnsafeRawBufferPointer, _ literal: StaticString) -> Bool {
        guard bytes.count == literal.utf8CodeUnitCount, let base = bytes.baseAddress else {
            return bytes.isEmpty && literal.utf8CodeUnitCount == 0
        }
        return Self.equal(base, UnsafeRawPointer(literal.utf8Start), bytes.count)
    }

    /// Reads the character of several bytes at `at`.
    ///
    /// The Unicode Standard, table 3-7: the first continuation byte alone decides about overlong forms, surrogates and
    /// code points past U+10FFFF. An invalid sequence is reported before its last byte arrives.
    static func decode(_ base: UnsafeRawPointer, _ at: Int, _ end: Int) -> DecodedScalar {
        let first = Self.byte(base, at)
        let count: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch first {
        case 0xC2...0xDF: count = 2
        case 0xE0: (count, second) = (3, 0xA0...0xBF)
        case 0xED: (count, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: count = 3
        case 0xF0: (count, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: count = 4
        case 0xF4: (count, second) = (4, 0x80...0x8F)
        default: return .broken
        }
        var value = UInt32(first) & (0xFF >> UInt32(count + 1))
        for index in 1..<count {
            guard at + index < end else { return .cut }
            let byte = Self.byte(base, at + index)
            guard index == 1 ? second.contains(byte) : byte & 0xC0 == 0x80 else { return .broken }
            value = value << 6 | UInt32(byte & 0x3F)
        }
        return DecodedScalar(state: .whole, value: value, count: count)
    }

    /// Char (XML §2.2).
    static func isLegal(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x20...0xD7FF, 0x09, 0x0A, 0x0D, 0xE000...0xFFFD, 0x10000...0x10FFFF: true
        default: false
        }
    }

    /// NameStartChar beyond ASCII (XML §2.3).
    static func isNameStart(scalar: UInt32) -> Bool {
        switch scalar {
        case 0xC0...0xD6, 0xD8...0xF6, 0xF8...0x2FF, 0x370...0x37D, 0x37F...0x1FFF, 0x200C...0x200D, 0x2070...0x218F,
            0x2C00...0x2FEF, 0x3001...0xD7FF, 0xF900...0xFDCF, 0xFDF0...0xFFFD, 0x10000...0xEFFFF:
            true
        default: false
        }
    }

    /// NameChar beyond ASCII (XML §2.3).
    static func isNameCharacter(scalar: UInt32) -> Bool {
        switch scalar {
        case 0xB7, 0x300...0x36F, 0x203F...0x2040: true
        default: Self.isNameStart(scalar: scalar)
        }
    }
}

/// A character read out of bytes.
struct DecodedScalar {
    enum State { case whole, cut, broken }

    let state: State
    let value: UInt32
    let count: Int

    static let cut = DecodedScalar(state: .cut, value: 0, count: 0)
    static let broken = DecodedScalar(state: .broken, value: 0, count: 0)
}
