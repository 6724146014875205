/// How many bytes each write has when a stream is cut into small ones.
package struct FragmentSizes: Sendable {
    private let bounds: ClosedRange<Int>
    private var seed: UInt64 = 0x2545_F491_4F6C_DD1D

    package init(_ bounds: ClosedRange<Int>) { self.bounds = bounds }

    package mutating func next() -> Int {
        // Xorshift from a fixed seed: every run cuts alike.
        self.seed ^= self.seed << 13
        self.seed ^= self.seed >> 7
        self.seed ^= self.seed << 17
        return self.bounds.lowerBound + Int(self.seed % UInt64(self.bounds.count))
    }
}
