/// Logarithms and powers without a C library, so that a chart has the same bytes on every platform.
enum Logarithm {
    private static let ln2 = 0.693_147_180_559_945_3
    private static let ln10 = 2.302_585_092_994_046

    /// - Returns: NaN for what is not finite or not above 0.
    static func ln(_ value: Double) -> Double {
        guard value.isFinite, value > 0 else { return .nan }
        var exponent = Double(value.exponent)
        var significand = value.significand
        if significand > 1.414_213_562_373_095_1 {
            significand /= 2
            exponent += 1
        }
        // ln m = 2 artanh((m − 1) / (m + 1)); the argument is below 0.172, so that twelve terms are exact.
        let z = (significand - 1) / (significand + 1)
        let square = z * z
        var sum = 0.0
        for odd in stride(from: 23.0, through: 1, by: -2) { sum = sum * square + 1 / odd }
        return exponent * self.ln2 + 2 * z * sum
    }

    static func log10(_ value: Double) -> Double {
        guard value.isFinite, value > 0 else { return .nan }
        let result = self.ln(value) / self.ln10
        // Decades are exact: ticks and buckets begin there.
        let nearest = result.rounded()
        return abs(result - nearest) < 1e-9 && self.pow10(Int(nearest)) == value ? nearest : result
    }

    static func pow10(_ exponent: Int) -> Double {
        let power = (0..<min(abs(exponent), 330)).reduce(1.0) { value, _ in value * 10 }
        return exponent < 0 ? 1 / power : power
    }

    static func pow10(_ exponent: Double) -> Double {
        guard exponent.isFinite else { return exponent }
        let whole = max(-330, min(330, exponent.rounded(.down)))
        let x = max(0, min(1, exponent - whole)) * self.ln10
        // A quarter of the argument is below 0.576: eighteen terms are exact, and the power of four undoes it.
        let quarter = x / 4
        var sum = 1.0
        for term in stride(from: 18.0, through: 1, by: -1) { sum = 1 + quarter / term * sum }
        let square = sum * sum
        return self.pow10(Int(whole)) * square * square
    }
}
