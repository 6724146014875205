import Glibc

/// An IPv4 or IPv6 address.
///
/// IPv4 is stored as an IPv4-mapped IPv6 address, so both spellings are equal.
package struct IPAddress: Hashable, Sendable {
    private var value: UInt128

    private static let mapped: UInt128 = 0xFFFF_0000_0000

    private init(value: UInt128) { self.value = value }

    /// Parses `127.0.0.1`, `::1` or `::ffff:127.0.0.1`; `nil` for anything else.
    package init?(_ text: String) {
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self.value = Self.mapped | UInt128(UInt32(bigEndian: four.s_addr))
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            self.value = withUnsafeBytes(of: &six) { $0.reduce(0) { $0 << 8 | UInt128($1) } }
        } else {
            return nil
        }
    }

    /// Parses an address of /proc/net/tcp or tcp6: 32-bit words in the machine's byte order, as hexadecimal digits.
    init?(procNet digits: some Sequence<UInt8>) {
        var value: UInt128 = 0
        var word: UInt32 = 0
        var count = 0
        for digit in digits {
            guard let nibble = Hexadecimal.value(digit) else { return nil }
            word = word << 4 | UInt32(nibble)
            count += 1
            if count.isMultiple(of: 8) { value = value << 32 | UInt128(UInt32(bigEndian: word)) }
        }
        guard count == 8 || count == 32 else { return nil }
        self.value = count == 8 ? Self.mapped | value : value
    }

    private var isIPv4: Bool { self.value >> 32 == Self.mapped >> 32 }

    /// 127.0.0.0/8 or ::1.
    package var isLoopback: Bool { self.isIPv4 ? (self.value >> 24) & 0xFF == 127 : self.value == 1 }

    /// The source address that the kernel chooses without a routing table: 127.0.0.1 for all of 127.0.0.0/8, and ::1
    /// for itself.
    package var sourceOnLoopback: IPAddress? {
        guard self.isLoopback else { return nil }
        return self.isIPv4 ? IPAddress(value: Self.mapped | 0x7F00_0001) : self
    }
}

enum Hexadecimal {
    static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    static func number(_ digits: some Sequence<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for digit in digits {
            guard let nibble = Self.value(digit) else { return nil }
            value = value << 4 | UInt64(nibble)
        }
        return value
    }
}
