/// Bytes from hex text; blanks and line ends between the digits are for the reader.
///
/// A broken text ends the test run: it is a mistake in the test, not in what it tests.
package func hex(_ text: String) -> [UInt8] {
    let digits = text.filter { !$0.isWhitespace }.map { digit in
        guard let value = digit.hexDigitValue else { preconditionFailure("not a hex digit: \(digit)") }
        return UInt8(value)
    }
    precondition(digits.count % 2 == 0, "half a byte in \(text)")
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

extension [UInt8] {
    /// As hex text, for messages.
    package var hexText: String {
        self.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// The bytes in two pieces, cut at each place, both ends included.
    package var everyCut: [(head: [UInt8], tail: [UInt8])] {
        (0...self.count).map { (Array(self[..<$0]), Array(self[$0...])) }
    }

    /// The bytes in pieces of `size`, the last one shorter.
    package func pieces(of size: Int) -> [[UInt8]] {
        stride(from: 0, to: self.count, by: size).map { Array(self[$0..<Swift.min($0 + size, self.count)]) }
    }

    /// The bytes in pieces of 1 to `largest`, by `generator`.
    package func pieces(upTo largest: Int, using generator: inout SeededGenerator) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var start = 0
        while start < self.count {
            let end = Swift.min(start + Int.random(in: 1...largest, using: &generator), self.count)
            pieces.append(Array(self[start..<end]))
            start = end
        }
        return pieces
    }
}

/// The same numbers from the same seed, on every machine (SplitMix64).
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { self.state = seed }

    package mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

extension Array {
    /// The same shuffle from the same seed.
    package func shuffled(seed: UInt64) -> [Element] {
        var generator = SeededGenerator(seed: seed)
        return self.shuffled(using: &generator)
    }
}
