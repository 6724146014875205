/// Maps a span of values to a span of pixels in equal steps.
package struct LinearScale: Sendable {
    package let low: Double
    package let high: Double
    package let begin: Double
    package let end: Double

    /// Values that are not finite, or in the wrong order, give the domain 0 to 1; a single value gets room around it.
    package init(_ low: Double, _ high: Double, begin: Double, end: Double) {
        (self.low, self.high) = Self.domain(low, high)
        self.begin = begin
        self.end = end
    }

    /// The widest domain whose length and ticks still are numbers.
    static let limit = 1e300

    static func domain(_ low: Double, _ high: Double) -> (Double, Double) {
        guard low.isFinite, high.isFinite, low <= high else { return (0, 1) }
        let low = abs(low) < 1 / self.limit ? 0 : max(low, -self.limit)
        let high = abs(high) < 1 / self.limit ? 0 : min(high, self.limit)
        let magnitude = max(abs(low), abs(high))
        guard high - low <= magnitude * 1e-9 else { return (low, high) }
        return magnitude == 0 ? (0, 1) : (low - magnitude / 2, high + magnitude / 2)
    }

    /// The pixel of a value; what lies outside of the domain is at its end.
    package func pixel(_ value: Double) -> Double {
        guard !value.isNaN else { return self.begin }
        let share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)
    }

    /// Multiples of 1, 2 or 5 times a power of ten within the domain: at most `count`, but two at least.
    package func ticks(_ count: Int) -> [Double] {
        // One tick says where a value is, and not how far the next one.
        for finer in max(count, 2)...max(count, 2) + 8 {
            let ticks = Self.ticks(self.low, self.high, step: self.step(finer))
            if ticks.count > 1 { return ticks }
        }
        return Self.ticks(self.low, self.high, step: self.step(count))
    }

    /// The distance of the ticks.
    package func step(_ count: Int) -> Double { Self.step(self.high - self.low, count) }

    static func step(_ length: Double, _ count: Int) -> Double {
        let smallest = length / Double(max(count, 1))
        let power = Logarithm.pow10(Int(Logarithm.log10(smallest).rounded(.down)))
        // Two ticks at both ends are one more than there are steps.
        let factors = [1.0, 2, 5, 10, 20]
        return power * (factors.first { length / (power * $0) + 1e-9 < Double(max(count, 2)) } ?? 50)
    }

    static func ticks(_ low: Double, _ high: Double, step: Double) -> [Double] {
        guard step > 0, step.isFinite else { return [] }
        let first = (low / step - 1e-9).rounded(.up)
        let last = (high / step + 1e-9).rounded(.down)
        guard first <= last, last - first < 1000 else { return [] }
        return (0...Int(last - first)).map { (first + Double($0)) * step + 0 }
    }
}
