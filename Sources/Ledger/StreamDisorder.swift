extension StreamLedger {
    /// The part of a ledger that exists only after a message was lost, repeated or overtaken.
    ///
    /// The ring has the words of 64 bits up to the one with the highest sequence number. A number in one of these
    /// words, at or above `windowStart`, is represented by its bit; every other one by the gap list. A word that leaves
    /// the ring appends its missing numbers to the end of the list, since the window moves upwards only.
    struct Disorder: Sendable {
        /// A ring of bits by sequence number; 1 means missing.
        private var ring: [UInt64]
        private var windowStart: UInt64
        /// Missing sequence numbers below the window, sorted and disjoint.
        ///
        /// A run that filled up stays as an empty range until ``compact()``, so that filling one costs a search and
        /// does not move the list.
        private var runs: [Range<UInt64>] = []
        private var emptyRuns = 0
        private let runLimit: Int
        private(set) var overflowed = false

        init(startingAt windowStart: UInt64, _ limits: StreamLedger.Limits) {
            self.ring = [UInt64](repeating: 0, count: limits.window / 64)
            self.windowStart = windowStart
            self.runLimit = limits.gaps
        }

        /// All missing numbers as runs, with an empty ring, for a stream that has ended.
        init(_ runs: [Range<UInt64>], below next: UInt64) {
            self.ring = [0]
            self.windowStart = next
            self.runs = runs
            self.runLimit = runs.count
        }

        private var words: UInt64 { UInt64(self.ring.count) }
        private func slot(ofWord word: UInt64) -> Int { Int(truncatingIfNeeded: word) & (self.ring.count - 1) }

        private func isInWindow(_ sequence: UInt64, below next: UInt64) -> Bool {
            sequence >= self.windowStart && ((next - 1) >> 6) - (sequence >> 6) < self.words
        }
    }
}

// MARK: - Upwards

extension StreamLedger.Disorder {
    /// Moves the window up to `sequence`, which arrived; all numbers from `next` up to it are missing.
    mutating func advance(from next: UInt64, over sequence: UInt64, missing: inout UInt32) {
        if sequence - next > self.words * 32 {
            // More than half the window: a run is shorter than its bits.
            self.evictAll(below: next, missing: &missing)
            self.append(next..<sequence)
            self.windowStart = sequence
            return
        }
        var word = (next - 1) >> 6
        while word < sequence >> 6 {
            word += 1
            self.evict(at: word, missing: &missing)
        }
        self.mark(next..<sequence, missing: &missing)
    }

    /// Frees the slot of `word`, which has the word one ring length below it.
    private mutating func evict(at word: UInt64, missing: inout UInt32) {
        let slot = self.slot(ofWord: word)
        let bits = self.ring[slot]
        guard bits != 0 else { return }
        self.ring[slot] = 0
        missing -= UInt32(bits.nonzeroBitCount)
        Self.forEachRun(in: bits, ofWord: word - self.words) { self.append($0) }
    }

    private mutating func evictAll(below next: UInt64, missing: inout UInt32) {
        guard missing > 0 else { return }
        for word in self.windowWords(below: next) {
            Self.forEachRun(in: self.ring[self.slot(ofWord: word)], ofWord: word) { self.append($0) }
            self.ring[self.slot(ofWord: word)] = 0
        }
        missing = 0
    }

    private mutating func mark(_ sequences: Range<UInt64>, missing: inout UInt32) {
        var sequence = sequences.lowerBound
        while sequence < sequences.upperBound {
            let end = min(sequences.upperBound, (sequence | 63) + 1)
            let bits = (UInt64.max >> (64 - (end - sequence))) << (sequence & 63)
            self.ring[self.slot(ofWord: sequence >> 6)] |= bits
            sequence = end
        }
        missing += UInt32(sequences.upperBound - sequences.lowerBound)
    }

    private func windowWords(below next: UInt64) -> ClosedRange<UInt64> {
        let highest = (next - 1) >> 6
        return (highest < self.words ? 0 : highest - self.words + 1)...highest
    }

    private static func forEachRun(in bits: UInt64, ofWord word: UInt64, _ body: (Range<UInt64>) -> Void) {
        var bits = bits
        var position = word << 6
        while bits != 0 {
            let skipped = bits.trailingZeroBitCount
            bits >>= skipped
            let length = (~bits).trailingZeroBitCount
            let lower = position + UInt64(skipped)
            position = lower + UInt64(length)
            body(lower..<position)
            // A shift by 64 gives 0.
            bits >>= length
        }
    }

    private mutating func append(_ run: Range<UInt64>) {
        while let last = self.runs.last, last.isEmpty {
            self.runs.removeLast()
            self.emptyRuns -= 1
        }
        if let last = self.runs.last, last.upperBound == run.lowerBound {
            self.runs[self.runs.count - 1] = last.lowerBound..<run.upperBound
        } else if self.hasRoom() {
            self.runs.append(run)
        }
    }

    /// Inserts a run before all others.
    mutating func insertFirst(_ run: Range<UInt64>) {
        if self.hasRoom() { self.runs.insert(run, at: 0) }
    }

    /// Whether one more run fits; if not, the ledger is no longer exact.
    private mutating func hasRoom() -> Bool {
        if self.runs.count >= self.runLimit { self.compact() }
        guard self.runs.count < self.runLimit else {
            self.overflowed = true
            return false
        }
        return true
    }

    private mutating func compact() {
        guard self.emptyRuns > 0 else { return }
        self.runs.removeAll(where: \.isEmpty)
        self.emptyRuns = 0
    }

    // MARK: - Below the highest

    /// Marks `sequence` as arrived; false if it had arrived before.
    mutating func take(_ sequence: UInt64, below next: UInt64, missing: inout UInt32) -> Bool {
        guard self.isInWindow(sequence, below: next) else { return self.takeFromRuns(sequence) }
        let slot = self.slot(ofWord: sequence >> 6)
        let bit: UInt64 = 1 << (sequence & 63)
        guard self.ring[slot] & bit != 0 else { return false }
        self.ring[slot] &= ~bit
        missing -= 1
        return true
    }

    private mutating func takeFromRuns(_ sequence: UInt64) -> Bool {
        let index = self.firstRun(endingAbove: sequence)
        guard index < self.runs.count, self.runs[index].contains(sequence) else { return false }
        let run = self.runs[index]
        if run.lowerBound == sequence {
            self.runs[index] = sequence + 1..<run.upperBound
            if run.count == 1 { self.dropEmpty() }
        } else if run.upperBound == sequence + 1 {
            self.runs[index] = run.lowerBound..<sequence
        } else {
            self.split(around: sequence)
        }
        return true
    }

    /// Splits a run; of a full list the empty runs are dropped first.
    private mutating func split(around sequence: UInt64) {
        guard self.hasRoom() else { return }
        let index = self.firstRun(endingAbove: sequence)
        let run = self.runs[index]
        self.runs[index] = run.lowerBound..<sequence
        self.runs.insert(sequence + 1..<run.upperBound, at: index + 1)
    }

    private mutating func dropEmpty() {
        self.emptyRuns += 1
        if self.emptyRuns > 64, self.emptyRuns > self.runs.count / 2 { self.compact() }
    }

    private func firstRun(endingAbove sequence: UInt64) -> Int {
        self.runs.partitionPoint { $0.upperBound > sequence }
    }

    // MARK: - At the end

    var runCount: Int { self.runs.count - self.emptyRuns }
    var listedMissing: UInt64 { self.runs.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }

    /// Length of the gap that begins at sequence number 0.
    var leadingGap: UInt64 {
        guard let first = self.runs.first(where: { !$0.isEmpty }), first.lowerBound == 0 else { return 0 }
        return first.upperBound
    }

    func appendMissing(to ranges: inout [Range<UInt64>], below next: UInt64) {
        func add(_ run: Range<UInt64>) {
            if let last = ranges.last, last.upperBound == run.lowerBound {
                ranges[ranges.count - 1] = last.lowerBound..<run.upperBound
            } else {
                ranges.append(run)
            }
        }
        for run in self.runs where !run.isEmpty { add(run) }
        for word in self.windowWords(below: next) {
            Self.forEachRun(in: self.ring[self.slot(ofWord: word)], ofWord: word) { add($0) }
        }
    }
}
