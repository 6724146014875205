/// A histogram of durations in nanoseconds: the HDR layout from 1 ns to 10 min with 3 significant digits.
///
/// The counts, 248 KiB, are allocated by the first record; later records allocate nothing. The exact minimum and
/// maximum bound the used part of them, so that merging, clearing and percentiles cost only as much as was used.
/// Percentiles, mean and deviation are HdrHistogram's own: they come from the counts, so that a decoded histogram gives
/// the same figures.
///
/// It is a value: a copy shares the counts until one of the two changes.
public struct Histogram: Sendable {
    /// 10 minutes: longer durations are recorded as this value and counted in `clamped`.
    @inlinable public static var highest: Int64 { 600_000_000_000 }

    /// One count per bucket of ``HistogramLayout``; nil until the first record.
    private var storage: HistogramCounts?
    /// Its memory, from the moment that it is not shared until the next ``handOn()``.
    ///
    /// It makes repeated records fast: there is no reference to count and nothing to check.
    @usableFromInline nonisolated(unsafe) var memory: UnsafeMutablePointer<UInt64>?
    @usableFromInline var total: UInt64 = 0
    @usableFromInline var clampedTotal: UInt64 = 0
    @usableFromInline var lowestValue = Int64.max
    @usableFromInline var highestValue: Int64 = 0

    /// An empty histogram, which has no memory yet.
    @inlinable public init() {}

    /// The number of recorded values.
    package var count: UInt64 { self.total }

    /// The number of values above `highest`.
    package var clamped: UInt64 { self.clampedTotal }
    package var isEmpty: Bool { self.total == 0 }

    /// The smallest value: exact, unless the histogram was decoded.
    ///
    /// Nil if the histogram is empty.
    package var min: Int64? { self.total == 0 ? nil : self.lowestValue }

    /// The largest value: exact, unless the histogram was decoded.
    ///
    /// Nil if the histogram is empty.
    package var max: Int64? { self.total == 0 ? nil : self.highestValue }

    /// Records a duration that occurred `count` times.
    ///
    /// A duration below 1 ns is recorded as 1 ns.
    package mutating func record(_ nanoseconds: Int64, count: UInt64 = 1) {
        self.recordUnshared(nanoseconds, count: count)
        self.handOn()
    }

    /// Records a duration, for an owner that makes no copies before ``handOn()``.
    @inlinable
    @inline(always)
    mutating func recordUnshared(_ nanoseconds: Int64, count: UInt64) {
        var value = nanoseconds
        // One comparison checks both ends.
        if UInt64(bitPattern: value &- 1) >= UInt64(bitPattern: Self.highest) {
            value = self.bounded(value, count: count)
        }
        let counts = self.memory ?? self.own()
        counts[HistogramLayout.index(of: value)] &+= count
        self.total &+= count
        if value < self.lowestValue, count > 0 { self.lowestValue = value }
        if value > self.highestValue, count > 0 { self.highestValue = value }
    }

    /// Must be called before a copy is made.
    mutating func handOn() { self.memory = nil }

    /// The value that represents one outside the range.
    @usableFromInline @inline(never) mutating func bounded(_ value: Int64, count: UInt64) -> Int64 {
        if value < 1 { return 1 }
        if value > Self.highest { self.clampedTotal &+= count }
        return Self.highest
    }

    /// Makes sure that the counts exist and are not shared.
    ///
    /// Kept out of line, since it runs only once after each ``handOn()``.
    @usableFromInline @inline(never) mutating func own() -> UnsafeMutablePointer<UInt64> {
        let memory: UnsafeMutablePointer<UInt64>
        if isKnownUniquelyReferenced(&self.storage), let storage = self.storage {
            memory = storage.memory
        } else {
            let storage = HistogramCounts()
            memory = storage.memory
            let range = self.touched
            self.withCounts { theirs in
                for index in range { memory[index] = theirs[index] }
            }
            self.storage = storage
        }
        self.memory = memory
        return memory
    }

    /// Passes all counts to `body`; `nil`, without a call, if there are none.
    package func withCounts<Result>(_ body: (UnsafeBufferPointer<UInt64>) -> Result) -> Result? {
        guard let storage = self.storage else { return nil }
        return withExtendedLifetime(storage) {
            body(UnsafeBufferPointer(start: storage.memory, count: HistogramLayout.size))
        }
    }

    /// The count of each bucket of ``HistogramLayout``; empty before the first record.
    package var buckets: [UInt64] { self.withCounts { Array($0) } ?? [] }

    /// The count of one bucket.
    func count(at index: Int) -> UInt64 { self.withCounts { $0[index] } ?? 0 }

    /// The buckets between the smallest and the largest value; all others are zero.
    var touched: Range<Int> {
        guard self.total > 0 else { return 0..<0 }
        return HistogramLayout.index(of: self.lowestValue)..<HistogramLayout.index(of: self.highestValue) + 1
    }

    /// Adds the values of `other`, as if they had been recorded here.
    package mutating func merge(_ other: Histogram) {
        let range = other.touched
        guard !range.isEmpty else { return }
        let ours = self.own()
        other.withCounts { theirs in
            for index in range { ours[index] &+= theirs[index] }
        }
        self.handOn()
        self.total &+= other.total
        self.clampedTotal &+= other.clampedTotal
        self.lowestValue = Swift.min(self.lowestValue, other.lowestValue)
        self.highestValue = Swift.max(self.highestValue, other.highestValue)
    }

    /// Takes the values of `other` out, which are among those recorded here.
    ///
    /// The extremes become those of their buckets, unless nothing is left there to change them.
    package mutating func subtract(_ other: Histogram) {
        let range = other.touched
        guard !range.isEmpty, self.total > 0 else { return }
        let (ours, before) = (self.own(), self.touched)
        var taken: UInt64 = 0
        other.withCounts { theirs in
            for index in range.clamped(to: before) {
                let count = Swift.min(ours[index], theirs[index])
                ours[index] -= count
                taken += count
            }
        }
        self.handOn()
        self.total -= taken
        self.clampedTotal -= Swift.min(self.clampedTotal, other.clampedTotal)
        guard self.total > 0, let first = before.first(where: { self.count(at: $0) > 0 }),
            let last = before.last(where: { self.count(at: $0) > 0 })
        else { return self.clear() }
        if first != before.lowerBound { self.lowestValue = HistogramLayout.lowest(at: first) }
        if last != before.upperBound - 1 { self.highestValue = HistogramLayout.highest(at: last) }
    }

    /// The lowest values, so many of them, with the largest value of their buckets.
    func lowest(_ count: UInt64) -> Histogram {
        var (lowest, missing) = (Histogram(), count)
        for index in self.touched where missing > 0 {
            let taken = Swift.min(self.count(at: index), missing)
            if taken > 0 { lowest.record(HistogramLayout.highest(at: index), count: taken) }
            missing -= taken
        }
        return lowest
    }

    /// Moves the extremes to the edges of their buckets, which is all that an encoding preserves of them.
    mutating func widenExtremes() {
        guard self.total > 0 else { return }
        self.lowestValue = HistogramLayout.lowest(at: HistogramLayout.index(of: self.lowestValue))
        self.highestValue = HistogramLayout.highest(at: HistogramLayout.index(of: self.highestValue))
    }

    /// Restores the exact extremes, which an encoding rounds to buckets.
    ///
    /// A figure outside the outermost bucket is ignored.
    package mutating func restoreExtremes(min: Int64, max: Int64, clamped: UInt64) {
        let range = self.touched
        guard !range.isEmpty else { return }
        guard min >= 1, max >= min, max <= Self.highest else { return }
        if HistogramLayout.index(of: min) == range.lowerBound { self.lowestValue = min }
        if HistogramLayout.index(of: max) == range.upperBound - 1 { self.highestValue = max }
        self.clampedTotal = clamped
    }

    /// Frees the memory of an empty histogram.
    mutating func release() {
        if self.storage != nil, self.isEmpty { self = Histogram() }
    }

    /// Empties the histogram.
    ///
    /// It keeps its memory, or allocates a new one if a copy shares it.
    package mutating func clear() {
        let range = self.touched
        if isKnownUniquelyReferenced(&self.storage) {
            self.storage?.memory.advanced(by: range.lowerBound).update(repeating: 0, count: range.count)
        } else if self.storage != nil {
            self.storage = HistogramCounts()
        }
        self.handOn()
        self.total = 0
        self.clampedTotal = 0
        self.lowestValue = Int64.max
        self.highestValue = 0
    }
}

/// The counts of a histogram.
///
/// Raw memory, because the checks of an array cost more than the record. Only a histogram that is the sole owner writes
/// to it, so it is safe to send.
final class HistogramCounts: Sendable {
    nonisolated(unsafe) let memory: UnsafeMutablePointer<UInt64>

    init() {
        self.memory = .allocate(capacity: HistogramLayout.size)
        self.memory.initialize(repeating: 0, count: HistogramLayout.size)
    }

    deinit { self.memory.deallocate() }
}

/// The buckets of values: HdrHistogram's layout for a lowest value of 1 and 3 significant digits.
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

    /// The smallest value of a bucket.
    package static func lowest(at index: Int) -> Int64 {
        index < 2048 ? Int64(index) : Int64(index % 1024 + 1024) << Int64(index / 1024 - 1)
    }

    /// The number of values that share a bucket.
    package static func width(at index: Int) -> Int64 { index < 2048 ? 1 : 1 << Int64(index / 1024 - 1) }

    /// The largest value of a bucket.
    package static func highest(at index: Int) -> Int64 { self.lowest(at: index) + self.width(at: index) - 1 }

    /// The value that represents a bucket in means: HdrHistogram's median equivalent value.
    package static func middle(at index: Int) -> Int64 { self.lowest(at: index) + self.width(at: index) / 2 }
}
