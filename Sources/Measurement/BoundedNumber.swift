extension FixedWidthInteger {
    /// The whole part of a number that a file, a peer or a leader may give as anything.
    ///
    /// It lies within ±9e15, beyond which a `Double` has no units left, and in the range of this type. What is no number
    /// is 0.
    package init(bounded value: Double) {
        self = value.isNaN ? 0 : Self(clamping: Int64(Swift.min(Swift.max(value, -9e15), 9e15)))
    }
}

extension UInt64 {
    /// Adds one of any number of counts of a file; the sum stays at most 2⁵³.
    package mutating func add(bounded count: UInt64) {
        self = Swift.min(Swift.min(self, 1 << 53) + Swift.min(count, 1 << 53), 1 << 53)
    }
}
