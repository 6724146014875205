import Foundation

/// How well times fit a Poisson process of a known rate, by chi-square.
package struct PoissonFit: Sendable {
    /// Seconds, rising.
    private let times: [Double]
    private let perSecond: Double
    /// Of as many classes of gaps with the same weight.
    private static let classes = 50

    package init(times: [Double], perSecond: Double) {
        self.times = times
        self.perSecond = perSecond
    }

    /// Gaps are exponential: chi-square over classes that would each hold the same number of them.
    package var gaps: Double {
        var counts = [Double](repeating: 0, count: Self.classes)
        for (time, before) in zip(self.times.dropFirst(), self.times) {
            let share = 1 - exp(-(time - before) * self.perSecond)
            counts[min(Self.classes - 1, max(0, Int(share * Double(Self.classes))))] += 1
        }
        let expected = Double(self.times.count - 1) / Double(Self.classes)
        return counts.reduce(0) { $0 + ($1 - expected) * ($1 - expected) / expected }
    }

    /// The bounds of ``gaps`` for a Poisson process.
    package static var gapBounds: ClosedRange<Double> { Self.bounds(Double(Self.classes - 1)) }

    /// The spread of the counts in that many slots of a length: close to the number of slots for a Poisson process.
    package func spread(slots: Int, of length: Double) -> Double {
        let origin = self.times.first ?? 0
        var counts = [Double](repeating: 0, count: slots)
        for time in self.times where Int((time - origin) / length) < slots {
            counts[Int((time - origin) / length)] += 1
        }
        let mean = self.perSecond * length
        return counts.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / mean
    }

    /// So far out that a right generator is refused once in some 100,000 times.
    package static func bounds(_ degrees: Double) -> ClosedRange<Double> {
        degrees - 4.5 * (2 * degrees).squareRoot()...degrees + 4.5 * (2 * degrees).squareRoot()
    }
}
