/// A histogram of durations in nanoseconds: the HDR layout from 1 ns to 10 min with 3 significant digits.
///
/// The counts, 248 KiB, are allocated by the first record and by nothing after it. The exact minimum and
/// maximum bound the touched part of them, so that merging, clearing and percentiles cost what was used.
/// Percentiles, mean and deviation are HdrHistogram's own: they come from the counts, so that a decoded
/// histogram gives the same figures.
public struct Histogram: Sendable {
    /// 10 minutes: what lies above is recorded as this and counted in `clamped`.
    public static let highest: Int64 = 600_000_000_000

    /// One count per bucket of `HistogramLayout`; empty until the first record.
    @usableFromInline var counts: [UInt64] = []
    /// What is counted in each bucket of ``HistogramLayout``; empty before the first record.
    package var buckets: [UInt64] { self.counts }
    @usableFromInline var total: UInt64 = 0
    @usableFromInline var clampedTotal: UInt64 = 0
    @usableFromInline var lowestValue = Int64.max
    @usableFromInline var highestValue: Int64 = 0

    /// An empty histogram, which owns no memory yet.
    @inlinable public init() {}

    /// How many values were recorded.
    package var count: UInt64 { self.total }

    /// How many of them lay above `highest`.
    package var clamped: UInt64 { self.clampedTotal }

    package var isEmpty: Bool { self.total == 0 }

    /// The smallest value: exact, unless the histogram was decoded.
    ///
    /// Nothing when it is empty.
    package var min: Int64? { self.total == 0 ? nil : self.lowestValue }

    /// The largest value: exact, unless the histogram was decoded.
    ///
    /// Nothing when it is empty.
    package var max: Int64? { self.total == 0 ? nil : self.highestValue }

    /// Records a duration that was seen `count` times.
    ///
    /// Below 1 ns is recorded as 1 ns.
    @inlinable public mutating func record(_ nanoseconds: Int64, count: UInt64 = 1) {
        var value = nanoseconds
        if value < 1 { value = 1 }
        if value > Self.highest {
            value = Self.highest
            self.clampedTotal &+= count
        }
        let index = HistogramLayout.index(of: value)
        if self.counts.isEmpty { self.allocate() }
        self.counts[index] &+= count
        self.total &+= count
        if value < self.lowestValue, count > 0 { self.lowestValue = value }
        if value > self.highestValue, count > 0 { self.highestValue = value }
    }

    /// Kept out of line: it runs once in the life of a histogram.
    @usableFromInline @inline(never) mutating func allocate() {
        self.counts = [UInt64](repeating: 0, count: HistogramLayout.size)
    }

    /// The buckets between the smallest and the largest value: the only ones that can be above zero.
    var touched: Range<Int> {
        guard self.total > 0 else { return 0..<0 }
        return HistogramLayout.index(of: self.lowestValue)..<HistogramLayout.index(of: self.highestValue) + 1
    }

    /// Adds what `other` holds: the same as recording all of it here.
    package mutating func merge(_ other: Histogram) {
        let range = other.touched
        guard !range.isEmpty else { return }
        if self.counts.isEmpty { self.allocate() }
        other.counts.withUnsafeBufferPointer { theirs in
            self.counts.withUnsafeMutableBufferPointer { ours in
                for index in range { ours[index] &+= theirs[index] }
            }
        }
        self.total &+= other.total
        self.clampedTotal &+= other.clampedTotal
        self.lowestValue = Swift.min(self.lowestValue, other.lowestValue)
        self.highestValue = Swift.max(self.highestValue, other.highestValue)
    }

    /// Moves the extremes to the edges of their buckets: all that is known of them after an encoding.
    mutating func widenExtremes() {
        guard self.total > 0 else { return }
        self.lowestValue = HistogramLayout.lowest(at: HistogramLayout.index(of: self.lowestValue))
        self.highestValue = HistogramLayout.highest(at: HistogramLayout.index(of: self.highestValue))
    }

    /// Puts back the exact extremes that an encoding rounds to its buckets; a figure that does not belong to
    /// the outermost bucket is left out.
    mutating func restoreExtremes(min: Int64, max: Int64, clamped: UInt64) {
        let range = self.touched
        guard !range.isEmpty else { return }
        guard min >= 1, max >= min, max <= Self.highest else { return }
        if HistogramLayout.index(of: min) == range.lowerBound { self.lowestValue = min }
        if HistogramLayout.index(of: max) == range.upperBound - 1 { self.highestValue = max }
        self.clampedTotal = clamped
    }

    /// Empties it and keeps its memory.
    package mutating func clear() {
        let range = self.touched
        if !range.isEmpty {
            self.counts.withUnsafeMutableBufferPointer { $0[range].update(repeating: 0) }
        }
        self.total = 0
        self.clampedTotal = 0
        self.lowestValue = Int64.max
        self.highestValue = 0
    }
}

/// Where a value is counted: HdrHistogram's layout for a lowest value of 1 and 3 significant digits.
///
/// 2,048 buckets of width 1, then 1,024 buckets for each further power of two.
public enum HistogramLayout {
    /// Powers of two that reach 10 minutes: 2,048 × 2^29 is the first above 6 × 10^11.
    package static let powers = 30
    package static let size = (powers + 1) * 1024

    /// The bucket of a value between 1 and `Histogram.highest`.
    @inlinable public static func index(of value: Int64) -> Int {
        let power = 53 &- (value | 2047).leadingZeroBitCount
        return power &* 1024 &+ Int(truncatingIfNeeded: value &>> Int64(truncatingIfNeeded: power))
    }

    /// The smallest value that is counted in a bucket.
    package static func lowest(at index: Int) -> Int64 {
        index < 2048 ? Int64(index) : Int64(index % 1024 + 1024) << Int64(index / 1024 - 1)
    }

    /// How many values share a bucket.
    package static func width(at index: Int) -> Int64 {
        index < 2048 ? 1 : 1 << Int64(index / 1024 - 1)
    }

    /// The largest value that is counted in a bucket.
    package static func highest(at index: Int) -> Int64 {
        self.lowest(at: index) + self.width(at: index) - 1
    }

    /// The value that stands for a bucket in means: HdrHistogram's median equivalent value.
    package static func middle(at index: Int) -> Int64 {
        self.lowest(at: index) + self.width(at: index) / 2
    }
}
