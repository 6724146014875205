/// A set of sequence numbers as sorted, disjoint runs that do not touch.
package struct SequenceRanges: Hashable, Sendable {
    package private(set) var runs: [Range<UInt64>] = []

    package init() {}

    /// Accepts runs in any order, overlapping or not.
    package init(_ ranges: some Sequence<Range<UInt64>>) {
        for range in ranges { self.insert(range) }
    }

    package var isEmpty: Bool { self.runs.isEmpty }

    /// How many sequence numbers the set has.
    package var count: UInt64 { self.runs.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }
    package mutating func insert(_ sequence: UInt64) { self.insert(sequence..<sequence + 1) }

    /// Adds a run.
    ///
    /// At or after the last run, the usual place, this needs no search.
    package mutating func insert(_ range: Range<UInt64>) {
        guard !range.isEmpty else { return }
        guard let last = self.runs.last, range.lowerBound <= last.upperBound else {
            self.runs.append(range)
            return
        }
        // All runs that touch or overlap the range are merged into one.
        let first = self.runs.partitionPoint { $0.upperBound >= range.lowerBound }
        let end = self.runs.partitionPoint { $0.lowerBound > range.upperBound }
        guard first < end else {
            self.runs.insert(range, at: first)
            return
        }
        let lower = min(self.runs[first].lowerBound, range.lowerBound)
        let upper = max(self.runs[end - 1].upperBound, range.upperBound)
        self.runs.replaceSubrange(first..<end, with: CollectionOfOne(lower..<upper))
    }

    package func contains(_ sequence: UInt64) -> Bool {
        let index = self.runs.partitionPoint { $0.upperBound > sequence }
        return index < self.runs.count && self.runs[index].contains(sequence)
    }

    /// How many sequence numbers are in both.
    package func intersectionCount(_ other: SequenceRanges) -> UInt64 { self.intersection(other).count }

    /// The sequence numbers that are in both.
    package func intersection(_ other: SequenceRanges) -> SequenceRanges {
        var result = SequenceRanges()
        var (left, right) = (0, 0)
        while left < self.runs.count, right < other.runs.count {
            let (one, two) = (self.runs[left], other.runs[right])
            if one.overlaps(two) { result.runs.append(one.clamped(to: two)) }
            if one.upperBound <= two.upperBound { left += 1 } else { right += 1 }
        }
        return result
    }

    /// The sequence numbers that are not in the other set.
    package func subtracting(_ other: SequenceRanges) -> SequenceRanges {
        guard !other.isEmpty, !self.isEmpty else { return self }
        var result = SequenceRanges()
        var right = 0
        for run in self.runs {
            var lower = run.lowerBound
            while right < other.runs.count, other.runs[right].upperBound <= lower { right += 1 }
            var index = right
            while index < other.runs.count, other.runs[index].lowerBound < run.upperBound {
                if lower < other.runs[index].lowerBound { result.runs.append(lower..<other.runs[index].lowerBound) }
                lower = max(lower, other.runs[index].upperBound)
                index += 1
            }
            if lower < run.upperBound { result.runs.append(lower..<run.upperBound) }
        }
        return result
    }

    /// The sequence numbers at or above `lower` and below `upper`.
    package func clamped(to bounds: Range<UInt64>) -> SequenceRanges {
        var result = SequenceRanges()
        result.runs = self.runs.compactMap { $0.overlaps(bounds) ? $0.clamped(to: bounds) : nil }
        return result
    }
}

extension RandomAccessCollection where Index == Int {
    /// The first place whose element is behind a border, as all elements after it are; the end if there is none.
    @inline(__always)
    func partitionPoint(_ isBehind: (Element) -> Bool) -> Int {
        var (low, high) = (self.startIndex, self.endIndex)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
