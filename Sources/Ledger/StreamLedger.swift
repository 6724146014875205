/// Which sequences of one publisher arrived at one subscription, exactly.
///
/// A stream in order costs 32 bytes and one comparison a message. The first irregularity allocates
/// ``Disorder``: a ring of bits for the latest sequences and a run-length list of what is missing below it.
package struct StreamLedger: Sendable {
    package enum Arrival: UInt8, Sendable {
        /// First arrival, above all seen so far.
        case new
        /// First arrival, below the highest seen: reordered.
        case newLate
        case duplicate
    }

    /// The bounds beyond which a ledger says so instead of guessing.
    package struct Limits: Hashable, Sendable {
        /// Sequences that the ring of bits covers: a power of two, at least 128.
        package let window: Int
        /// Runs of missing sequences below the ring, 16 bytes each.
        package let gaps: Int

        package static let standard = Limits()

        package init(window: Int = 1024, gaps: Int = 262_144) {
            precondition(window >= 128 && window.nonzeroBitCount == 1, "the window is a power of two, at least 128")
            precondition(gaps >= 0)
            self.window = window
            self.gaps = gaps
        }
    }

    /// Sequences from here on are no message's; what carries one is damaged.
    package static let sequenceLimit: UInt64 = 1 << 50

    /// All below is missing, and not in the gap list: the stream was joined here.
    private var start: UInt64 = 0
    /// One past the highest sequence seen; 0 before the first arrival.
    package private(set) var next: UInt64 = 0
    /// Empty while every arrival was the next one, else one element: an array, for value semantics at 8 bytes.
    private var disorder: [Disorder] = []
    /// Missing sequences that the ring holds now; at 0 an arrival in order needs no look at the ring.
    private var windowMissing: UInt32 = 0
    /// The bounds were passed, or an impossible sequence came: what this ledger says is no longer exact.
    package private(set) var overflowed = false
    /// The QoS of the publisher, from the header of the first arrival.
    package let qos: UInt8

    package init(qos: UInt8 = 0) {
        self.qos = qos
    }

    /// A stream that has ended, as it was told of: nothing arrives there any more.
    ///
    /// `next` is one past the highest sequence seen, at most ``sequenceLimit``; `missing` is below it.
    package init(qos: UInt8, next: UInt64, missing: SequenceRanges, overflowed: Bool) {
        self.qos = qos
        self.next = next
        self.overflowed = overflowed
        var runs = missing.clamped(to: 0..<next).runs[...]
        if let first = runs.first, first.lowerBound == 0 {
            self.start = first.upperBound
            runs = runs.dropFirst()
        }
        if !runs.isEmpty { self.disorder.append(Disorder(Array(runs), below: next)) }
    }

    /// Takes one arrival.
    package mutating func arrived(_ sequence: UInt64, limits: Limits = .standard) -> Arrival {
        self.arrivedInOrder(sequence) ? .new : self.arrivedIrregularly(sequence, limits)
    }

    /// Takes an arrival that needs no look at the ring; `false`, and nothing taken, if it does.
    @inline(always)
    mutating func arrivedInOrder(_ sequence: UInt64) -> Bool {
        guard sequence == self.next, self.windowMissing == 0 else { return false }
        self.next &+= 1
        return true
    }

    @inline(never)
    private mutating func arrivedIrregularly(_ sequence: UInt64, _ limits: Limits) -> Arrival {
        guard sequence < Self.sequenceLimit else {
            self.overflowed = true
            return .duplicate
        }
        if self.next == 0 {
            self.start = sequence
            self.next = sequence + 1
            return .new
        }
        if self.disorder.isEmpty {
            // A second arrival of one in order needs no memory: nothing is missing, so it is a duplicate.
            if sequence >= self.start, sequence < self.next { return .duplicate }
            self.disorder.append(Disorder(startingAt: self.next, limits))
        }
        if sequence < self.start { self.discloseStart() }
        if sequence < self.next { return self.arrivedLate(sequence) }
        let next = self.next
        self.next = sequence + 1
        self.disorder[0].advance(from: next, over: sequence, missing: &self.windowMissing)
        self.overflowed = self.overflowed || self.disorder[0].overflowed
        return .new
    }

    /// Turns what lies below the first sequence seen into an ordinary gap, now that one of it arrived.
    private mutating func discloseStart() {
        self.disorder[0].insertFirst(0..<self.start)
        self.start = 0
    }

    private mutating func arrivedLate(_ sequence: UInt64) -> Arrival {
        let isNew = self.disorder[0].take(sequence, below: self.next, missing: &self.windowMissing)
        self.overflowed = self.overflowed || self.disorder[0].overflowed
        return isNew ? .newLate : .duplicate
    }
}

extension StreamLedger {
    /// Runs in the gap list: what ``Limits/gaps`` bounds.
    package var gapRuns: Int { self.disorder.first?.runCount ?? 0 }

    /// Different sequences that arrived; not exact once ``overflowed``.
    package var distinct: UInt64 {
        self.next - self.start - UInt64(self.windowMissing) - (self.disorder.first?.listedMissing ?? 0)
    }

    /// What is missing below the highest sequence seen: sorted, disjoint and not touching.
    package var missing: [Range<UInt64>] {
        var ranges: [Range<UInt64>] = []
        if self.start > 0 { ranges.append(0..<self.start) }
        self.disorder.first?.appendMissing(to: &ranges, below: self.next)
        return ranges
    }

    /// Missing sequences between the lowest and the highest seen: what a subscriber can know by itself.
    package var gaps: UInt64 {
        guard let disorder = self.disorder.first else { return 0 }
        let leading = self.start == 0 ? disorder.leadingGap : 0
        return UInt64(self.windowMissing) + disorder.listedMissing - leading
    }
}
