/// A duration of one stage.
///
/// Counts as long as the stage goes on; from its end on what a file holds of it, some KiB in the place of 248.
struct StageDuration: Sendable {
    private var open = Histogram()
    private var closed: DurationReading?

    /// Takes in what was recorded; of a stage that has ended, what came late.
    mutating func merge(_ other: Histogram) {
        if other.isEmpty { return }
        if self.closed != nil {
            self.open = self.histogram
            self.closed = nil
        }
        self.open.merge(other)
    }

    /// Encodes what is not yet encoded.
    mutating func close() {
        guard !self.open.isEmpty else { return }
        self.closed = self.reading
        self.open = Histogram()
    }

    /// As files have it; nothing where nothing was recorded.
    var reading: DurationReading? {
        if let closed = self.closed { return closed }
        return self.open.isEmpty ? nil : DurationReading(self.open, encoded: self.open.encodedV2())
    }

    /// The same counts, and the same minimum and maximum, closed or not.
    var histogram: Histogram {
        guard let closed = self.closed else { return self.open }
        guard let histogram = closed.decodedHistogram() else {
            preconditionFailure("what was encoded here can be read here")
        }
        return histogram
    }

    var isEmpty: Bool { self.closed == nil && self.open.isEmpty }
    /// Whether it holds counts, all of them.
    var isOpen: Bool { !self.open.isEmpty }
}
