/// A generator that returns the same numbers for the same seed (Steele, Lea and Flood, 2014).
@frozen public struct SplitMix64: RandomNumberGenerator {
    @usableFromInline var state: UInt64

    /// The generator for any seed.
    @inlinable public init(seed: UInt64) { self.state = seed }

    /// The generator for one message of a client.
    ///
    /// It depends neither on earlier messages nor on the event loop.
    @inlinable public init(seed: UInt64, client: Int, message: UInt64) {
        self.state = Self.mix(Self.mix(seed &+ Self.mix(UInt64(client))) &+ message)
    }

    /// The next number, with all 64 bits.
    @inlinable public mutating func next() -> UInt64 {
        let number = Self.mix(self.state)
        self.state &+= 0x9E37_79B9_7F4A_7C15
        return number
    }

    /// The first number of a seed; the results of neighbouring seeds are unrelated.
    @inlinable public static func mix(_ seed: UInt64) -> UInt64 {
        var mixed = seed &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A value that is longer or shorter by up to a share of it, drawn by the seed.
    package static func jitter(_ value: Double, share: Double, seed: UInt64) -> Double {
        value * (1 + share * (Double(self.mix(seed) >> 11) * 0x1p-53 * 2 - 1))
    }
}

extension StringProtocol {
    /// FNV-1a of the bytes: stable, while Swift's own hash changes from process to process.
    package var stableHash: UInt64 {
        self.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// The same in 16 hexadecimal digits.
    package var stableHex: String {
        let digits = String(self.stableHash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
