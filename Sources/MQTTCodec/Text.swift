/// Checks of UTF-8 strings.
///
/// Spec: MQTT 5.0 §1.5.4, MQTT 3.1.1 §1.5.3.
@usableFromInline
enum Text {
    /// Whether all bytes are ASCII without U+0000, `+` and `#`: what nearly every topic is.
    ///
    /// Eight bytes a step. With the top bits clear, adding 0x7F sets the top bit of each byte that is not 0 and
    /// carries into no other.
    @inlinable
    @inline(always)
    static func isPlainTopic(_ base: UnsafeRawPointer, count: Int) -> Bool {
        guard count >= 8 else { return Self.isPlainShortTopic(base, count: count) }
        var offset = 0
        let last = count - 8
        while true {
            let word = (base + offset).loadUnaligned(as: UInt64.self)
            let add: UInt64 = 0x7F7F_7F7F_7F7F_7F7F
            let noNull = word &+ add
            let noPlus = (word ^ 0x2B2B_2B2B_2B2B_2B2B) &+ add
            let noHash = (word ^ 0x2323_2323_2323_2323) &+ add
            guard word & 0x8080_8080_8080_8080 == 0,
                noNull & noPlus & noHash & 0x8080_8080_8080_8080 == 0x8080_8080_8080_8080
            else { return false }
            if offset == last { return true }
            // The last step reads eight whole bytes too, some of them for the second time.
            offset = min(offset + 8, last)
        }
    }

    @inlinable
    static func isPlainShortTopic(_ base: UnsafeRawPointer, count: Int) -> Bool {
        for offset in 0..<count {
            let byte = (base + offset).load(as: UInt8.self)
            if byte == 0 || byte >= 0x80 || byte == 0x2B || byte == 0x23 { return false }
        }
        return true
    }

    /// Whether two runs of `count` bytes, at least 8, are equal.
    ///
    /// Overlapping words cover counts that are no multiple of eight; up to 32 bytes need no loop.
    @inlinable
    @inline(always)
    static func equal(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, count: Int) -> Bool {
        if count > 32 { return Self.equalLong(left, right, count: count) }
        let ends = Self.difference(left, right, at: 0) | Self.difference(left, right, at: count &- 8)
        if count <= 16 || ends != 0 { return ends == 0 }
        return Self.difference(left, right, at: 8) | Self.difference(left, right, at: count &- 16) == 0
    }

    @inlinable
    static func equalLong(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, count: Int) -> Bool {
        var offset = 0
        let last = count - 16
        while true {
            if Self.difference(left, right, at: offset) | Self.difference(left, right, at: offset + 8) != 0 {
                return false
            }
            if offset == last { return true }
            offset = min(offset + 16, last)
        }
    }

    @inlinable
    @inline(always)
    static func difference(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, at offset: Int) -> UInt64 {
        (left + offset).loadUnaligned(as: UInt64.self) ^ (right + offset).loadUnaligned(as: UInt64.self)
    }

    /// Throws unless `bytes` is well-formed UTF-8 without U+0000.
    static func check(_ bytes: UnsafeRawBufferPointer, refusesControlCharacters: Bool) throws(DecodeError) {
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            let length: Int
            if byte < 0x80 {
                if byte == 0 { throw .nullCharacter }
                if refusesControlCharacters, byte < 0x20 || byte == 0x7F { throw .controlCharacter }
                length = 1
            } else {
                length = Self.wellFormedLength(bytes, at: index)
                if length == 0 { throw .notUTF8 }
                if refusesControlCharacters, Self.isDiscouraged(bytes, at: index, length: length) {
                    throw .controlCharacter
                }
            }
            index += length
        }
    }

    /// How many bytes the character of several bytes at `index` has; 0 if it is ill-formed.
    ///
    /// The Unicode Standard, table 3-7: the first continuation byte alone decides about overlong forms, surrogates
    /// and code points past U+10FFFF.
    private static func wellFormedLength(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Int {
        let length: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch bytes[index] {
        case 0xC2...0xDF: length = 2
        case 0xE0: (length, second) = (3, 0xA0...0xBF)
        case 0xED: (length, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: length = 3
        case 0xF0: (length, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: length = 4
        case 0xF4: (length, second) = (4, 0x80...0x8F)
        default: return 0
        }
        guard index + length <= bytes.count, second.contains(bytes[index + 1]) else { return 0 }
        for offset in 2..<max(length, 2) where bytes[index + offset] & 0xC0 != 0x80 { return 0 }
        return length
    }

    /// U+0080...U+009F, U+FDD0...U+FDEF, and the last two code points of each plane.
    private static func isDiscouraged(_ bytes: UnsafeRawBufferPointer, at index: Int, length: Int) -> Bool {
        var scalar = UInt32(bytes[index]) & (0xFF >> UInt32(length + 1))
        for offset in 1..<length { scalar = scalar << 6 | UInt32(bytes[index + offset] & 0x3F) }
        return scalar < 0xA0 || (0xFDD0...0xFDEF).contains(scalar) || scalar & 0xFFFE == 0xFFFE
    }
}
