package import Measurement

extension SplitMix64 {
    /// Seeded by a text, so that the same files give the same answer.
    package init(naming text: String) { self.init(seed: text.stableHash) }

    /// A number from 0 to `bound` - 1; the bias of a multiplication is below 2^-32 for any `bound` in use.
    package mutating func below(_ bound: Int) -> Int {
        Int(self.next().multipliedFullWidth(by: UInt64(bound)).high)
    }
}
