import Measurement

/// Numbers for people: grouped, three significant digits, units that fit; what is unknown is a dash.
package enum Human {
    package static let unknown = "–"

    /// Of a figure that is only known to be at least so much: `≥ 6.00 ms`.
    package static func atLeast(_ text: String) -> String { "≥ \(text)" }

    /// `12,345`.
    package static func count(_ value: UInt64) -> String {
        let digits = String(value).utf8
        let count = digits.count
        return String(unsafeUninitializedCapacity: count + (count - 1) / 3) { bytes in
            var end = 0
            for (position, digit) in digits.enumerated() {
                if position > 0, (count - position) % 3 == 0 {
                    bytes[end] = UInt8(ascii: ",")
                    end += 1
                }
                bytes[end] = digit
                end += 1
            }
            return end
        }
    }

    /// A count that a file may carry as a fraction; grouped from 1,000 on, three digits below.
    package static func number(_ value: Double) -> String {
        guard value.isFinite else { return self.unknown }
        if value < 0 { return "-" + self.number(-value) }
        guard value < 9e15 else { return PlainNumber.text(value) }
        if value >= 1000 || value == value.rounded() { return self.count(UInt64(bounded: value.rounded())) }
        return self.significant(value)
    }

    /// `1 client`, `12,345 clients`.
    package static func counted(_ value: Double, _ noun: String) -> String {
        "\(self.number(value)) \(noun)\(value == 1 ? "" : "s")"
    }

    package static func rate(_ perSecond: Double) -> String { self.number(perSecond) + "/s" }

    package static func percent(_ share: Double) -> String { self.significant(share * 100) + " %" }

    /// `812 ns`, `1.23 ms`, `12.3 s`; what is measured finer than by nanoseconds: `2.41 ns`.
    package static func duration(_ seconds: Double) -> String {
        let nanoseconds = seconds * 1e9
        if nanoseconds < 99.95, nanoseconds > 0, abs(nanoseconds - nanoseconds.rounded()) > 1e-4 {
            return "\(self.significant(nanoseconds)) ns"
        }
        return self.scaled(nanoseconds, by: 1000, units: ["ns", "µs", "ms", "s"])
    }

    /// A time that is known to the millisecond: `2 ms`, `1.20 s`.
    package static func coarse(_ seconds: Double) -> String {
        seconds < 0.0995 ? "\(UInt64(bounded: max(1, (seconds * 1000).rounded()))) ms" : self.duration(seconds)
    }

    /// Decimal units, as disks and networks have them: `1.20 GB`.
    package static func bytes(_ count: Double) -> String {
        self.scaled(count, by: 1000, units: ["B", "kB", "MB", "GB", "TB", "PB"])
    }

    private static func scaled(_ value: Double, by step: Double, units: [String]) -> String {
        guard value.isFinite else { return self.unknown }
        if value < 0 { return "-" + self.scaled(-value, by: step, units: units) }
        var value = value
        var unit = 0
        // 999.6 would be written as 1000: rounding decides which unit fits.
        while unit < units.count - 1, value >= 999.5 {
            value /= step
            unit += 1
        }
        // The smallest unit is counted in whole pieces.
        let number = unit == 0 ? self.count(UInt64(bounded: value.rounded())) : self.significant(value)
        return "\(number) \(units[unit])"
    }

    /// Three significant digits from 0 to 999, whole and grouped above.
    package static func significant(_ value: Double) -> String {
        guard value.isFinite else { return self.unknown }
        if value < 0 { return "-" + self.significant(-value) }
        if value >= 9e15 { return PlainNumber.text(value) }
        if value >= 99.95 { return self.count(UInt64(bounded: value.rounded())) }
        if value == 0 { return "0" }
        return self.fixed(value, digits: value >= 9.995 ? 1 : value >= 0.0995 ? 2 : value >= 0.00995 ? 3 : 4)
    }

    /// Grouped, with `digits` decimals, even for a whole number.
    package static func fixed(_ value: Double, digits: Int) -> String {
        let text = PlainNumber.fixed(value, digits: digits)
        guard let point = text.firstIndex(of: "."), let whole = UInt64(text[..<point]) else { return text }
        return self.count(whole) + text[point...]
    }
}

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
