/// Numbers as text, without a C library.
enum NumberText {
    /// The number with `digits` decimals; grouping is left to those who read it aloud.
    static func fixed(_ value: Double, digits: Int) -> String {
        let factor = Logarithm.pow10(digits)
        let scaled = (abs(value) * factor).rounded()
        guard scaled < 9e15 else { return "0" }
        let whole = Int(scaled)
        let sign = value < 0 && whole > 0 ? "−" : ""
        guard digits > 0 else { return sign + String(whole) }
        let fraction = String(whole % Int(factor))
        let zeros = String(repeating: "0", count: digits - fraction.count)
        return "\(sign)\(whole / Int(factor)).\(zeros)\(fraction)"
    }

    /// The number without zeros at the end of its decimals.
    static func trimmed(_ value: Double, digits: Int) -> String {
        var text = self.fixed(value, digits: digits)
        guard text.contains(".") else { return text }
        while text.hasSuffix("0") { text.removeLast() }
        if text.hasSuffix(".") { text.removeLast() }
        return text
    }

    /// Three significant digits.
    static func significant(_ value: Double) -> String {
        let magnitude = abs(value)
        guard magnitude.isFinite else { return "–" }
        if magnitude >= 1e15 || magnitude < 0.000_999, magnitude > 0 { return self.exponential(value) }
        let digits = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : magnitude >= 0.995 ? 2 : 4
        return self.trimmed(value, digits: digits)
    }

    /// `1.2e18`, `5e-7`.
    static func exponential(_ value: Double) -> String {
        guard value.isFinite, value != 0 else { return "0" }
        var exponent = Int((Logarithm.log10(abs(value)) + 1e-9).rounded(.down))
        var digits = value / Logarithm.pow10(exponent)
        if abs(digits) >= 9.995 {
            digits /= 10
            exponent += 1
        }
        return digits.isFinite ? "\(self.trimmed(digits, digits: 2))e\(exponent)" : "0"
    }

    /// A coordinate in tenths of a pixel, as short as SVG allows: `12.3`, `.5`, `-4`.
    static func coordinate(tenths: Int) -> String {
        let whole = abs(tenths) / 10
        let rest = abs(tenths) % 10
        let sign = tenths < 0 ? "-" : ""
        if rest == 0 { return sign + String(whole) }
        return whole == 0 ? "\(sign).\(rest)" : "\(sign)\(whole).\(rest)"
    }

    static func coordinate(_ value: Double) -> String { self.coordinate(tenths: self.tenths(value)) }

    static func tenths(_ value: Double) -> Int {
        value.isFinite ? Int((min(max(value, -1e6), 1e6) * 10).rounded()) : 0
    }

    /// A number in a data attribute, which a script reads back.
    static func exact(_ value: Double) -> String {
        guard value.isFinite else { return "0" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
    }
}
