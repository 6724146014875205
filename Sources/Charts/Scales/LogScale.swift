/// Maps a span of values above 0 to a span of pixels, decade by decade.
package struct LogScale: Sendable {
    package let low: Double
    package let high: Double
    package let begin: Double
    package let end: Double
    private let lowLog: Double
    private let highLog: Double

    /// Values that are not above 0 have no place; a domain without others is 1 to 10.
    package init(_ low: Double, _ high: Double, begin: Double, end: Double) {
        (self.low, self.high) = Self.domain(low, high)
        self.lowLog = Logarithm.log10(self.low)
        self.highLog = Logarithm.log10(self.high)
        self.begin = begin
        self.end = end
    }

    private static func domain(_ low: Double, _ high: Double) -> (Double, Double) {
        guard high > 0, high.isFinite, !low.isNaN else { return (1, 10) }
        let high = min(max(high, 1e-290), 1e290)
        let low = min(low > 0 ? max(low, 1e-295) : high / 1000, high)
        return high / low < 1.05 ? (low / 2, high * 2) : (low, high)
    }

    /// The pixel of a value; what lies outside of the domain is at its end.
    package func pixel(_ value: Double) -> Double {
        guard value > 0 else { return self.begin }
        let place = Logarithm.log10(min(max(value, self.low), self.high))
        return self.begin + (place - self.lowLog) / (self.highLog - self.lowLog) * (self.end - self.begin)
    }

    /// Decades; with 2 and 5 between them if there is room; within one decade the ticks of a linear scale.
    package func ticks(_ count: Int) -> [Double] {
        let count = max(count, 2)
        let first = Int((self.lowLog - 1e-9).rounded(.up))
        let last = Int((self.highLog + 1e-9).rounded(.down))
        let decades = last - first + 1
        if decades < 2 {
            let fine = self.multiples([1, 2, 5], from: first - 1, through: last + 1)
            if fine.count >= 3, fine.count <= count { return fine }
            return Array(LinearScale(self.low, self.high, begin: 0, end: 1).ticks(count).filter { $0 > 0 })
        }
        for factors in [[1.0, 2, 5], [1, 3]] {
            let fine = self.multiples(factors, from: first - 1, through: last)
            if fine.count <= count { return fine }
        }
        let every = (decades + count - 1) / count
        // Counted from 10⁰, so that the labels stay where they are if the domain grows.
        return (first...last).filter { $0 % every == 0 }.map(Logarithm.pow10)
    }

    private func multiples(_ factors: [Double], from first: Int, through last: Int) -> [Double] {
        guard first <= last else { return [] }
        let shown = (self.low * (1 - 1e-9))...(self.high * (1 + 1e-9))
        return (first...last).flatMap { decade -> [Double] in
            let power = Logarithm.pow10(decade)
            return factors.map { $0 * power }.filter(shown.contains)
        }
    }
}
