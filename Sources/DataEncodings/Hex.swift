extension Sequence<UInt8> {
    /// Two digits a byte.
    package var hex: String { self.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }
}
