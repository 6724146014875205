/// The errors of one kind, over all loops of a group.
struct GroupError {
    let group: String?
    let kind: String
    let tally: ErrorTally

    func counter(_ count: UInt64, rate: Double?) -> Metric {
        let labels: Labels = ["kind": self.kind]
        return Metric(
            name: "errors",
            labels: labels.of(group: self.group, metric: "errors"),
            reading: .counter(CounterReading(value: Double(count), rate: rate))
        )
    }
}

/// The values of a gauge at the ends of the intervals so far.
struct Level: Sendable {
    private var last = 0.0
    private var lowest = Double.infinity
    private var highest = -Double.infinity
    private var sum = 0.0
    private var intervals = 0

    mutating func add(_ value: Double) {
        self.last = value
        self.lowest = min(self.lowest, value)
        self.highest = max(self.highest, value)
        self.sum += value
        self.intervals += 1
    }

    var reading: GaugeReading? {
        guard self.intervals > 0 else { return nil }
        let mean = self.sum / Double(self.intervals)
        return GaugeReading(value: self.last, min: self.lowest, mean: mean, max: self.highest)
    }
}
