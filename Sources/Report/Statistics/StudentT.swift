import Glibc

/// Student's t distribution.
package struct StudentT: Hashable, Sendable {
    /// Beyond this many degrees it differs from the normal distribution in no digit that is printed.
    private static let mostDegrees = 100_000.0

    package let degrees: Double

    /// `degrees` above 0; infinity is the normal distribution.
    package init(degrees: Double) { self.degrees = Swift.min(Swift.max(degrees, 0.5), Self.mostDegrees) }

    /// The probability of a value above `t`.
    package func upperTail(_ t: Double) -> Double {
        guard t.isFinite else { return t > 0 ? 0 : 1 }
        let tail = 0.5 * Self.incompleteBeta(self.degrees / 2, 0.5, self.degrees / (self.degrees + t * t))
        return t > 0 ? tail : 1 - tail
    }

    /// The value that is exceeded with probability `tail`, above 0 and up to a half.
    package func quantile(upperTail tail: Double) -> Double {
        var (low, high) = (0.0, 1.0)
        while self.upperTail(high) > tail, high < 1e9 { high *= 2 }
        // 60 halvings leave less than one part in 10^18 of where it began.
        for _ in 0..<60 {
            let middle = (low + high) / 2
            if self.upperTail(middle) > tail { low = middle } else { high = middle }
        }
        return (low + high) / 2
    }

    /// The regularised incomplete beta function by its continued fraction, after Lentz.
    private static func incompleteBeta(_ a: Double, _ b: Double, _ x: Double) -> Double {
        guard x > 0 else { return 0 }
        guard x < 1 else { return 1 }
        // The fraction converges fast on this side; the other follows by symmetry.
        guard x <= (a + 1) / (a + b + 2) else { return 1 - self.incompleteBeta(b, a, 1 - x) }
        let logFront = self.logGamma(a + b) - self.logGamma(a) - self.logGamma(b) + a * log(x) + b * log(1 - x)
        var upper = 1.0
        var lower = 1 / self.awayFromZero(1 - (a + b) * x / (a + 1))
        var fraction = lower
        for step in 1...2_000 {
            let m = Double(step)
            let even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
            lower = 1 / self.awayFromZero(1 + even * lower)
            upper = self.awayFromZero(1 + even / upper)
            fraction *= lower * upper
            let odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
            lower = 1 / self.awayFromZero(1 + odd * lower)
            upper = self.awayFromZero(1 + odd / upper)
            fraction *= lower * upper
            if abs(lower * upper - 1) < 1e-14 { break }
        }
        return exp(logFront) * fraction / a
    }

    private static func awayFromZero(_ value: Double) -> Double { abs(value) < 1e-300 ? 1e-300 : value }

    /// Lanczos' approximation with g = 7, good to 15 digits for arguments from a half on.
    private static func logGamma(_ x: Double) -> Double {
        let terms = [
            676.520_368_121_885_1, -1259.139_216_722_402_8, 771.323_428_777_653_13, -176.615_029_162_140_59,
            12.507_343_278_686_905, -0.138_571_095_265_720_12, 9.984_369_578_019_571_6e-6, 1.505_632_735_149_311_6e-7,
        ]
        guard x >= 0.5 else { return self.logGamma(x + 1) - log(x) }
        let shifted = x - 1
        var sum = 0.999_999_999_999_809_93
        for (number, term) in terms.enumerated() { sum += term / (shifted + Double(number + 1)) }
        let base = shifted + 7.5
        return 0.5 * log(2 * Double.pi) + (shifted + 0.5) * log(base) - base + log(sum)
    }
}
