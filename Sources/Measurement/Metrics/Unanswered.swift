/// How an operation without an answer ended.
package enum UnansweredEnd: Hashable, Sendable {
    /// Refused, reset or timed out.
    case failed
    /// Neither answered nor failed when the drain ended.
    case outstanding
}

/// The operations of a duration that were not answered, each at its age.
///
/// An age is a lower bound: an answer, had it come, would have taken longer.
package struct Unanswered: Sendable {
    /// The age at the failure, or at the end of the drain.
    package private(set) var ages = Histogram()
    package private(set) var failed: UInt64 = 0
    package private(set) var outstanding: UInt64 = 0

    package var isEmpty: Bool { self.ages.isEmpty }

    package mutating func record(_ age: Int64, count: UInt64 = 1, as end: UnansweredEnd) {
        self.ages.record(age, count: count)
        switch end {
        case .failed: self.failed &+= count
        case .outstanding: self.outstanding &+= count
        }
    }

    /// Brings the extremes, which an encoding has by their buckets, into those of all values.
    fileprivate mutating func narrow(to all: ClosedRange<Int64>) {
        guard let least = self.ages.min, let most = self.ages.max else { return }
        self.ages.restoreExtremes(
            min: Swift.max(least, all.lowerBound),
            max: Swift.min(most, all.upperBound),
            clamped: self.ages.clamped
        )
    }

    package mutating func merge(_ other: Unanswered) {
        self.ages.merge(other.ages)
        self.failed &+= other.failed
        self.outstanding &+= other.outstanding
    }
}

/// The values of a duration: the answered ones, and those that are known from below.
package struct DurationValues: Sendable {
    package var answered: Histogram
    package var unanswered: Unanswered

    package init(answered: Histogram = Histogram(), unanswered: Unanswered = Unanswered()) {
        self.answered = answered
        self.unanswered = unanswered
    }

    /// Restores what a record holds, whose `all` contains the ages.
    package init(all: Histogram, unanswered: Unanswered) {
        self.answered = all
        self.unanswered = unanswered
        guard let least = all.min, let most = all.max else { return }
        self.answered.subtract(unanswered.ages)
        self.unanswered.narrow(to: least...most)
    }

    package var count: UInt64 { self.answered.count + self.unanswered.ages.count }
    package var isEmpty: Bool { self.count == 0 }

    package mutating func merge(_ other: DurationValues) {
        self.answered.merge(other.answered)
        self.unanswered.merge(other.unanswered)
    }

    /// All values, with unanswered operations at their ages.
    package var all: Histogram {
        guard !self.unanswered.isEmpty else { return self.answered }
        var all = self.answered
        all.merge(self.unanswered.ages)
        return all
    }

    /// The interval in which a percentile lies.
    ///
    /// The k-th value is at least the k-th of all. It is at most the k-th of the answered ones, for ages only grow; if
    /// there are fewer than k answered ones, it has no upper limit.
    ///
    /// - Parameter percent: 0 to 100; 0 is the minimum.
    /// - Returns: nanoseconds; `nil` without a value.
    package func percentile(_ percent: Double) -> Bounded<Int64>? { self.percentile(percent, among: self.all) }

    /// `all`: ``all`` of these values, which is made once for several percentiles.
    func percentile(_ percent: Double, among all: borrowing Histogram) -> Bounded<Int64>? {
        guard let low = all.percentile(percent) else { return nil }
        guard !self.unanswered.isEmpty else { return Bounded(low) }
        guard let high = self.answered.value(atRank: all.rank(of: percent)) else { return Bounded(low: low, high: nil) }
        // Two values of one bucket are the same to the histogram.
        let isExact = HistogramLayout.index(of: low) == HistogramLayout.index(of: Swift.max(low, high))
        return isExact ? Bounded(low) : Bounded(low: low, high: high)
    }
}

/// A figure that is known to lie in an interval.
package struct Bounded<Value: Comparable & Sendable>: Sendable {
    package var low: Value
    /// `nil` without an upper limit.
    package var high: Value?

    package var isExact: Bool { self.low == self.high }

    package func map<Other: Comparable & Sendable>(_ transform: (Value) -> Other) -> Bounded<Other> {
        Bounded<Other>(low: transform(self.low), high: self.high.map(transform))
    }
}

extension Bounded {
    /// A figure that is known exactly.
    package init(_ value: Value) { self.init(low: value, high: value) }
}

extension Bounded: Equatable {}
extension Bounded: Hashable where Value: Hashable {}
