/// Numbers as text, without Foundation.
///
/// People get groups of thousands, three significant digits and units that fit; what is unknown is a dash. Machines get
/// the `plain` forms.
package enum Words {
    package static let unknown = "–"

    /// A figure that is only known to be at least so much, if it is such a bound: `≥ 6.00 ms`.
    package static func atLeast(_ text: String, if isBound: Bool = true) -> String { isBound ? "≥ \(text)" : text }

    // MARK: - Counts

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

    /// The same for an integer of any type, with its sign.
    package static func count(_ value: some BinaryInteger) -> String {
        (value < 0 ? "-" : "") + self.count(UInt64(clamping: value.magnitude))
    }

    /// `1 client`, `28,232 clients`.
    package static func count(_ value: some BinaryInteger, _ noun: String) -> String {
        "\(self.count(value)) \(noun)\(value == 1 ? "" : "s")"
    }

    /// A count that a file may carry as a fraction; grouped from 1,000 on, three digits below.
    package static func number(_ value: Double) -> String {
        guard value.isFinite else { return self.unknown }
        if value < 0 { return "-" + self.number(-value) }
        guard value < 9e15 else { return self.plain(value) }
        if value >= 1000 || value == value.rounded() { return self.count(UInt64(bounded: value.rounded())) }
        return self.significant(value)
    }

    /// `1 client`, `12,345 clients`.
    package static func counted(_ value: Double, _ noun: String) -> String {
        "\(self.number(value)) \(noun)\(value == 1 ? "" : "s")"
    }

    // MARK: - Fractions

    /// Three significant digits from 0 to 999, whole and grouped above.
    package static func significant(_ value: Double) -> String {
        guard value.isFinite else { return self.unknown }
        if value < 0 { return "-" + self.significant(-value) }
        if value >= 9e15 { return self.plain(value) }
        if value >= 99.95 { return self.count(UInt64(bounded: value.rounded())) }
        if value == 0 { return "0" }
        return self.fixed(value, digits: value >= 9.995 ? 1 : value >= 0.0995 ? 2 : value >= 0.00995 ? 3 : 4)
    }

    /// Grouped, with `digits` decimals, even for a whole number; for values that are not negative.
    package static func fixed(_ value: Double, digits: Int) -> String {
        let text = self.plainFixed(value, digits: digits)
        let whole = text.prefix { $0 != "." }
        return UInt64(whole).map { self.count($0) + text.dropFirst(whole.count) } ?? text
    }

    /// Grouped, with at most `digits` decimals, 0 to 4, and no zeros at their end.
    package static func decimal(_ value: Double, digits: Int = 2) -> String {
        guard value.isFinite, value.magnitude < 1e15 else { return "\(value)" }
        var text = self.fixed(value.magnitude, digits: digits)
        while text.utf8.contains(0x2E), text.hasSuffix("0") || text.hasSuffix(".") { text.removeLast() }
        return value < 0 && text != "0" ? "-" + text : text
    }

    package static func rate(_ perSecond: Double) -> String { self.number(perSecond) + "/s" }
    package static func percent(_ share: Double) -> String { self.significant(share * 100) + " %" }

    /// The same with at most `digits` decimals.
    package static func percent(_ share: Double, digits: Int) -> String {
        self.decimal(share * 100, digits: digits) + " %"
    }

    // MARK: - Times and sizes

    /// `812 ns`, `1.23 ms`, `12.3 s`; what is measured finer than by nanoseconds: `2.41 ns`.
    package static func duration(_ seconds: Double) -> String {
        let nanoseconds = seconds * 1e9
        if nanoseconds < 99.95, nanoseconds > 0, abs(nanoseconds - nanoseconds.rounded()) > 1e-4 {
            return "\(self.significant(nanoseconds)) ns"
        }
        return self.scaled(nanoseconds, units: ["ns", "µs", "ms", "s"])
    }

    /// A time that is known to the millisecond: `2 ms`, `1.20 s`.
    package static func coarse(_ seconds: Double) -> String {
        seconds < 0.0995 ? "\(UInt64(bounded: max(1, (seconds * 1000).rounded()))) ms" : self.duration(seconds)
    }

    package static func milliseconds(_ nanoseconds: Int64) -> String {
        self.decimal(Double(nanoseconds) / 1e6) + " ms"
    }

    /// Decimal units, as disks and networks have them: `1.20 GB`.
    package static func bytes(_ count: Double) -> String {
        self.scaled(count, units: ["B", "kB", "MB", "GB", "TB", "PB"])
    }

    /// Binary units, as memory has them: `1.2 GiB`.
    package static func binaryBytes(_ bytes: UInt64) -> String {
        if bytes < 1 << 20 { return self.decimal(Double(bytes) / 1024, digits: 1) + " KiB" }
        let mebibytes = Double(bytes) / 1_048_576
        return mebibytes < 1024
            ? self.decimal(mebibytes, digits: 1) + " MiB" : self.decimal(mebibytes / 1024, digits: 1) + " GiB"
    }

    private static func scaled(_ value: Double, units: [String]) -> String {
        guard value.isFinite else { return self.unknown }
        if value < 0 { return "-" + self.scaled(-value, units: units) }
        var value = value
        var unit = 0
        // 999.6 would be written as 1000: rounding decides which unit fits.
        while unit < units.count - 1, value >= 999.5 {
            value /= 1000
            unit += 1
        }
        // The smallest unit is counted in whole pieces.
        let number = unit == 0 ? self.count(UInt64(bounded: value.rounded())) : self.significant(value)
        return "\(number) \(units[unit])"
    }

    // MARK: - For machines

    /// A plain decimal without exponent and groups: the shortest text that reads back the same.
    package static func plain(_ value: Double) -> String {
        guard value.isFinite else { return "" }
        if value == value.rounded(), abs(value) < 1e15 { return String(Int64(bounded: value)) }
        let text = value.description
        guard let mark = text.firstIndex(of: "e"), let exponent = Int(text[text.index(after: mark)...]) else {
            return text
        }
        return self.expanded(mantissa: text[..<mark], exponent: exponent)
    }

    /// Seconds, to the billionth: durations are counted in nanoseconds, and further digits are rounding errors.
    package static func plainSeconds(_ value: Double) -> String {
        let nanoseconds = (value * 1e9).rounded()
        guard nanoseconds.isFinite, abs(nanoseconds) < 9e15 else { return self.plain(value) }
        return self.plain(nanoseconds / 1e9)
    }

    /// `digits` decimals, 0 to 12; for values that are not negative.
    package static func plainFixed(_ value: Double, digits: Int) -> String {
        let scale = (0..<digits).reduce(UInt64(1)) { scale, _ in scale * 10 }
        let scaled = (value * Double(scale)).rounded()
        guard scaled >= 0, scaled < 1.8e19 else { return self.plain(value) }
        let units = UInt64(scaled)
        return digits == 0 ? "\(units)" : "\(units / scale).\(String(units % scale + scale).dropFirst())"
    }

    private static func expanded(mantissa: Substring, exponent: Int) -> String {
        let sign = mantissa.hasPrefix("-") ? "-" : ""
        let parts = mantissa.drop { $0 == "-" }.split(separator: ".", omittingEmptySubsequences: false)
        let whole = parts[0]
        // Swift writes 1e-05 and 1.5e+20; a fraction of a lone zero carries nothing.
        let fraction = parts.count > 1 && parts[1] != "0" ? parts[1] : ""
        if exponent < 0 { return sign + "0." + String(repeating: "0", count: -exponent - 1) + whole + fraction }
        let zeros = max(0, exponent - fraction.count)
        let digits = whole + fraction + String(repeating: "0", count: zeros)
        return sign + digits
    }
}
