extension StreamLedger {
    /// The part of a ledger that exists only once something was lost, repeated or overtaken.
    ///
    /// A sequence at or above `windowStart` and within the last `window` ones is described by its bit, every
    /// other one by the gap list. A bit that leaves the window while its sequence is missing goes into the list,
    /// always at the end, for the window moves upwards only.
    struct Disorder: Sendable {
        /// A ring of bits by sequence; 1 is missing.
        private var ring: [UInt64]
        private var windowStart: UInt64
        /// Missing below the window, sorted and disjoint.
        ///
        /// A run that filled up stays as an empty range until ``compact()``, so that filling one costs a search and
        /// no move of the list.
        private var runs: [Range<UInt64>] = []
        private var emptyRuns = 0
        private let runLimit: Int
        private(set) var overflowed = false

        init(startingAt windowStart: UInt64, _ limits: StreamLedger.Limits) {
            self.ring = [UInt64](repeating: 0, count: limits.window / 64)
            self.windowStart = windowStart
            self.runLimit = limits.gaps
        }

        private var window: UInt64 { UInt64(self.ring.count) * 64 }

        private func word(of sequence: UInt64) -> Int {
            Int(truncatingIfNeeded: sequence >> 6) & (self.ring.count - 1)
        }

        private func bit(of sequence: UInt64) -> UInt64 { 1 << (sequence & 63) }

        private func isInWindow(_ sequence: UInt64, below next: UInt64) -> Bool {
            sequence >= self.windowStart && next - sequence <= self.window
        }
    }
}

// MARK: - Upwards

extension StreamLedger.Disorder {
    /// Moves the window over `sequence`, which arrived; all from `next` up to it are missing.
    mutating func advance(from next: UInt64, over sequence: UInt64, missing: inout UInt32) {
        if sequence - next > self.window / 2 {
            self.evictAll(below: next, missing: &missing)
            self.append(next..<sequence)
            self.windowStart = sequence
            return
        }
        for skipped in next..<sequence {
            self.evict(at: skipped, missing: &missing)
            self.ring[self.word(of: skipped)] |= self.bit(of: skipped)
            missing += 1
        }
        self.evict(at: sequence, missing: &missing)
    }

    /// Frees the bit of `sequence` from the one that is a whole window below it.
    private mutating func evict(at sequence: UInt64, missing: inout UInt32) {
        let word = self.word(of: sequence)
        let bit = self.bit(of: sequence)
        guard self.ring[word] & bit != 0 else { return }
        self.ring[word] &= ~bit
        missing -= 1
        let old = sequence - self.window
        self.append(old..<old + 1)
    }

    private mutating func evictAll(below next: UInt64, missing: inout UInt32) {
        guard missing > 0 else { return }
        for old in self.windowRange(below: next) where self.ring[self.word(of: old)] & self.bit(of: old) != 0 {
            self.append(old..<old + 1)
        }
        for word in self.ring.indices { self.ring[word] = 0 }
        missing = 0
    }

    private func windowRange(below next: UInt64) -> Range<UInt64> {
        max(self.windowStart, next > self.window ? next - self.window : 0)..<next
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

    /// Puts a run in front of all others.
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
}

// MARK: - Below the highest

extension StreamLedger.Disorder {
    /// Marks `sequence` as arrived; false if it had arrived before.
    mutating func take(_ sequence: UInt64, below next: UInt64, missing: inout UInt32) -> Bool {
        guard self.isInWindow(sequence, below: next) else { return self.takeFromRuns(sequence) }
        let word = self.word(of: sequence)
        let bit = self.bit(of: sequence)
        guard self.ring[word] & bit != 0 else { return false }
        self.ring[word] &= ~bit
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
        } else if self.runs.count < self.runLimit {
            self.runs[index] = run.lowerBound..<sequence
            self.runs.insert(sequence + 1..<run.upperBound, at: index + 1)
        } else {
            self.split(around: sequence)
        }
        return true
    }

    /// The same when the list is full: there may be empty runs to drop first.
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
        var low = 0
        var high = self.runs.count
        while low < high {
            let middle = (low + high) / 2
            if self.runs[middle].upperBound > sequence { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

// MARK: - At the end

extension StreamLedger.Disorder {
    var runCount: Int { self.runs.count - self.emptyRuns }

    var listedMissing: UInt64 { self.runs.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }

    /// Length of the gap that begins at sequence 0.
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
        for sequence in self.windowRange(below: next)
        where self.ring[self.word(of: sequence)] & self.bit(of: sequence) != 0 {
            add(sequence..<sequence + 1)
        }
    }
}
