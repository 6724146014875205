/// The exact set of one publisher's sequence numbers that arrived at one subscription.
///
/// A stream in order costs 32 bytes, and one comparison per message. The first irregularity allocates ``Disorder``: a
/// ring of bits for the latest sequence numbers, and a run-length list of the missing ones below it.
package struct StreamLedger: Sendable {
    package enum Arrival: UInt8, Sendable {
        /// First arrival, above all others so far.
        case new
        /// First arrival, below the highest seen: reordered.
        case newLate
        case duplicate
        /// A further copy for a further matching filter of the client (MQTT 5.0 §3.3.4).
        case overlap
    }

    /// The limits beyond which a ledger reports that it is not exact.
    package struct Limits: Hashable, Sendable {
        /// Sequence numbers that the ring of bits covers: a power of two, at least 128.
        package let window: Int
        /// Runs of missing sequence numbers below the ring, 16 bytes each.
        package let gaps: Int

        package static let standard = Limits()

        package init(window: Int = 1024, gaps: Int = 262_144) {
            precondition(window >= 128 && window.nonzeroBitCount == 1, "the window is a power of two, at least 128")
            precondition(gaps >= 0)
            self.window = window
            self.gaps = gaps
        }
    }

    /// No message has a sequence number from here on; a header with one is damaged.
    package static let sequenceLimit: UInt64 = 1 << 50

    /// Lower numbers are missing and not in the gap list: the subscriber joined the stream here.
    private var start: UInt64 = 0
    /// One past the highest sequence number seen; 0 before the first arrival.
    package private(set) var next: UInt64 = 0
    /// Empty while every arrival was in order, else one element.
    ///
    /// An array has value semantics at 8 bytes.
    private var disorder: [Disorder] = []
    /// Missing numbers in the ring now; at 0 an arrival in order does not need the ring.
    private var windowMissing: UInt32 = 0
    /// The limits were exceeded, or an impossible sequence number arrived: the ledger is no longer exact.
    package private(set) var overflowed = false
    /// The publisher's QoS, from the header of the first arrival.
    package let qos: UInt8

    package init(qos: UInt8 = 0) { self.qos = qos }

    /// A stream that has ended, rebuilt from a record; it accepts no more arrivals.
    ///
    /// `next` is one past the highest sequence number seen, at most ``sequenceLimit``; `missing` is below it.
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

    /// Records one arrival.
    package mutating func arrived(_ sequence: UInt64, limits: Limits = .standard) -> Arrival {
        self.arrivedInOrder(sequence) ? .new : self.arrivedIrregularly(sequence, limits)
    }

    /// Records an arrival that does not need the ring; `false` without any effect if it does.
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
            // A second arrival in an ordered stream needs no memory: nothing is missing, so it is a duplicate.
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

    /// Turns the numbers below the first one seen into an ordinary gap, after one of them arrived.
    private mutating func discloseStart() {
        self.disorder[0].insertFirst(0..<self.start)
        self.start = 0
    }

    private mutating func arrivedLate(_ sequence: UInt64) -> Arrival {
        let isNew = self.disorder[0].take(sequence, below: self.next, missing: &self.windowMissing)
        self.overflowed = self.overflowed || self.disorder[0].overflowed
        return isNew ? .newLate : .duplicate
    }

    /// Runs in the gap list, limited by ``Limits/gaps``.
    package var gapRuns: Int { self.disorder.first?.runCount ?? 0 }

    /// Distinct sequence numbers that arrived; not exact if ``overflowed``.
    package var distinct: UInt64 {
        self.next - self.start - UInt64(self.windowMissing) - (self.disorder.first?.listedMissing ?? 0)
    }

    /// The lowest sequence number that arrived; ``next`` before the first arrival.
    var first: UInt64 {
        guard self.start == 0 else { return self.start }
        return self.disorder.first?.leadingGap ?? 0
    }

    /// Missing numbers below the highest one seen: sorted, disjoint and not touching.
    package var missing: [Range<UInt64>] {
        var ranges: [Range<UInt64>] = []
        if self.start > 0 { ranges.append(0..<self.start) }
        self.disorder.first?.appendMissing(to: &ranges, below: self.next)
        return ranges
    }

    /// Missing numbers between the lowest and the highest one seen, which a subscriber can determine by itself.
    package var gaps: UInt64 {
        guard let disorder = self.disorder.first else { return 0 }
        let leading = self.start == 0 ? disorder.leadingGap : 0
        return UInt64(self.windowMissing) + disorder.listedMissing - leading
    }
}
