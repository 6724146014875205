/// A duration of one stage.
///
/// It has counts while the stage lasts. After that it has only its encoding for files, some KiB instead of 248.
struct StageDuration: Sendable {
    private var open = Histogram()
    private var unanswered = Unanswered()
    private var closed: DurationReading?

    /// Adds recorded values; for an ended stage, late ones.
    mutating func merge(_ other: Histogram) {
        if other.isEmpty { return }
        self.reopen()
        self.open.merge(other)
    }

    mutating func merge(_ other: Unanswered) {
        if other.isEmpty { return }
        self.reopen()
        self.unanswered.merge(other)
    }

    private mutating func reopen() {
        guard self.closed != nil else { return }
        let values = self.values
        (self.open, self.unanswered) = (values.answered, values.unanswered)
        self.closed = nil
    }

    /// Encodes the open counts.
    mutating func close() {
        guard self.isOpen else { return }
        self.closed = self.reading
        self.open = Histogram()
        self.unanswered = Unanswered()
    }

    /// The form for files; nil if nothing was recorded.
    var reading: DurationReading? { self.closed ?? DurationReading(self.values, isEncoded: true) }

    /// The same counts, minimum and maximum, whether closed or not.
    var values: DurationValues {
        guard let closed = self.closed else {
            return DurationValues(answered: self.open, unanswered: self.unanswered)
        }
        guard let values = closed.decodedValues() else {
            preconditionFailure("what was encoded here can be read here")
        }
        return values
    }

    var isEmpty: Bool { self.closed == nil && !self.isOpen }
    /// Whether its counts are all in memory.
    var isOpen: Bool { !self.open.isEmpty || !self.unanswered.isEmpty }
}
