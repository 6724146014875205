import Measurement

/// Numbers for machines: plain decimals, no exponent, no grouping; the shortest text that reads back the same.
package enum PlainNumber {
    package static func text(_ value: Double) -> String {
        guard value.isFinite else { return "" }
        if value == value.rounded(), abs(value) < 1e15 { return String(Int64(bounded: value)) }
        let text = value.description
        guard let mark = text.firstIndex(of: "e"), let exponent = Int(text[text.index(after: mark)...]) else {
            return text
        }
        return self.expanded(mantissa: text[..<mark], exponent: exponent)
    }

    /// Seconds, to the billionth: durations are counted in nanoseconds, and further digits are rounding errors.
    package static func seconds(_ value: Double) -> String {
        let nanoseconds = (value * 1e9).rounded()
        guard nanoseconds.isFinite, abs(nanoseconds) < 9e15 else { return self.text(value) }
        return self.text(nanoseconds / 1e9)
    }

    /// `digits` decimals, 1 to 12; for values that are not negative.
    package static func fixed(_ value: Double, digits: Int) -> String {
        let scale = (0..<digits).reduce(UInt64(1)) { scale, _ in scale * 10 }
        let scaled = (value * Double(scale)).rounded()
        guard scaled >= 0, scaled < 1.8e19 else { return self.text(value) }
        let units = UInt64(scaled)
        return "\(units / scale).\(String(units % scale + scale).dropFirst())"
    }

    private static func expanded(mantissa: Substring, exponent: Int) -> String {
        let sign = mantissa.hasPrefix("-") ? "-" : ""
        let parts = mantissa.drop { $0 == "-" }.split(separator: ".", omittingEmptySubsequences: false)
        let whole = parts[0]
        // Swift writes 1e-05 and 1.5e+20; a fraction of a lone zero carries nothing.
        let fraction = parts.count > 1 && parts[1] != "0" ? parts[1] : ""
        if exponent < 0 {
            return sign + "0." + String(repeating: "0", count: -exponent - 1) + whole + fraction
        }
        let zeros = max(0, exponent - fraction.count)
        let digits = whole + fraction + String(repeating: "0", count: zeros)
        return sign + digits
    }
}
