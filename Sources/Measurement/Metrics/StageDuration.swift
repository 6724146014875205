/// A duration of one stage.
///
/// It has counts while the stage lasts. After that it has only its encoding for files, some KiB instead of 248.
struct StageDuration: Sendable {
    private var open = Histogram()
    private var closed: DurationReading?

    /// Adds recorded values; for an ended stage, late ones.
    mutating func merge(_ other: Histogram) {
        if other.isEmpty { return }
        if self.closed != nil {
            self.open = self.histogram
            self.closed = nil
        }
        self.open.merge(other)
    }

    /// Encodes the open counts.
    mutating func close() {
        guard !self.open.isEmpty else { return }
        self.closed = self.reading
        self.open = Histogram()
    }

    /// The form for files; nil if nothing was recorded.
    var reading: DurationReading? {
        if let closed = self.closed { return closed }
        return self.open.isEmpty ? nil : DurationReading(self.open, encoded: self.open.encodedV2())
    }

    /// The same counts, minimum and maximum, whether closed or not.
    var histogram: Histogram {
        guard let closed = self.closed else { return self.open }
        guard let histogram = closed.decodedHistogram() else {
            preconditionFailure("what was encoded here can be read here")
        }
        return histogram
    }

    var isEmpty: Bool { self.closed == nil && self.open.isEmpty }
    /// Whether its counts are all in memory.
    var isOpen: Bool { !self.open.isEmpty }
}
