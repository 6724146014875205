/// How long delayed messages were really held.
///
/// Log-linear, 1,024 to 2,048 buckets an octave: a percentile is within 0.1 % of the true one. Up to 2^40 ns
/// (18 minutes), 256 KiB once the first hold is recorded.
package struct HoldTimes: Sendable {
    package struct Summary: Hashable, Sendable, Codable {
        package var count: UInt64 = 0
        /// Nanoseconds; absent without a hold.
        package var min: Int64?
        package var p50: Int64?
        package var max: Int64?

        package init(count: UInt64 = 0, min: Int64? = nil, p50: Int64? = nil, max: Int64? = nil) {
            self.count = count
            self.min = min
            self.p50 = p50
            self.max = max
        }
    }

    private static let linear = 2_048
    private static let perOctave = 1_024
    private static let top = Int64(1) << 40

    private var counts: [UInt64] = []
    private var count: UInt64 = 0
    private var minimum = Int64.max
    private var maximum = Int64.min

    package init() {}

    package mutating func record(_ nanoseconds: Int64) {
        if self.counts.isEmpty { self.counts = Array(repeating: 0, count: Self.linear + 29 * Self.perOctave) }
        self.count += 1
        self.minimum = Swift.min(self.minimum, nanoseconds)
        self.maximum = Swift.max(self.maximum, nanoseconds)
        self.counts[Self.bucket(Swift.min(Swift.max(nanoseconds, 0), Self.top - 1))] += 1
    }

    package var summary: Summary {
        guard self.count > 0 else { return Summary() }
        var seen: UInt64 = 0
        let wanted = (self.count + 1) / 2
        var median = self.maximum
        for (bucket, count) in self.counts.enumerated() {
            seen += count
            if seen >= wanted {
                median = Swift.min(Swift.max(Self.middle(bucket), self.minimum), self.maximum)
                break
            }
        }
        return Summary(count: self.count, min: self.minimum, p50: median, max: self.maximum)
    }

    private static func bucket(_ value: Int64) -> Int {
        guard value >= Int64(Self.linear) else { return Int(value) }
        // 11 significant bits: the octave, then the 1,024 steps in it.
        let shift = 63 - value.leadingZeroBitCount - 10
        return Self.linear + (shift - 1) * Self.perOctave + Int(value >> Int64(shift)) - Self.perOctave
    }

    private static func middle(_ bucket: Int) -> Int64 {
        guard bucket >= Self.linear else { return Int64(bucket) }
        let shift = (bucket - Self.linear) / Self.perOctave + 1
        let step = (bucket - Self.linear) % Self.perOctave + Self.perOctave
        return Int64(step) << Int64(shift) + (Int64(1) << Int64(shift)) / 2
    }
}
