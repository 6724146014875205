/// A level that is read once a second: the last, lowest, highest and mean value.
package struct GaugeLevel: Sendable {
    private var last = 0.0
    private var lowest = Double.infinity
    private var highest = -Double.infinity
    private var sum = 0.0
    private var count = 0.0

    package init() {}

    package mutating func add(_ value: Double) {
        self.last = value
        self.lowest = min(self.lowest, value)
        self.highest = max(self.highest, value)
        self.sum += value
        self.count += 1
    }

    /// Whether a level counts for its run: after the load the clients leave, and how many there were is of the load.
    package static func counts(_ name: String, in phase: String) -> Bool {
        phase != "drain" || name != MetricDefinition.clients.name
    }

    package var reading: GaugeReading? {
        guard self.count > 0 else { return nil }
        return GaugeReading(value: self.last, min: self.lowest, mean: self.sum / self.count, max: self.highest)
    }
}
