/// Why a text is not the quantity it should be; says what to write instead.
package struct QuantityError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// A span of time with its unit: `10s`, `250ms`, `2m`, `1m30s`, `1.5h`.
package enum DurationText {
    private static let units: [String: Double] = [
        "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3_600e9, "d": 86_400e9,
    ]

    /// Reads a span; a bare number is refused, except 0, unless `bareUnit` gives it a unit.
    ///
    /// - Returns: nanoseconds, 0 or more; at most 365 days.
    package static func parse(_ text: String, bareUnit: String? = nil) throws(QuantityError) -> Int64 {
        let wrong = QuantityError("'\(text)' is not a duration; write it like 10s, 250ms or 2m")
        if text == "0" { return 0 }
        var rest = text[...]
        var total = 0.0
        while !rest.isEmpty {
            let number = rest.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
            rest = rest[number.endIndex...]
            let unit = rest.prefix { !$0.isNumber && $0 != "." }
            rest = rest[unit.endIndex...]
            guard let value = Double(number) else { throw wrong }
            guard let factor = self.units[unit.isEmpty ? bareUnit ?? "" : String(unit)] else { throw wrong }
            total += value * factor
        }
        guard !text.isEmpty else { throw wrong }
        guard total <= 365 * 86_400e9 else { throw QuantityError("'\(text)' is longer than a year") }
        return Int64(total.rounded())
    }

    /// The shortest exact text for a span, for help and messages.
    package static func text(_ nanoseconds: Int64) -> String {
        let units: [(String, Int64)] = [
            ("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000),
        ]
        for (name, size) in units where nanoseconds != 0 && nanoseconds % size == 0 {
            return "\(nanoseconds / size)\(name)"
        }
        return nanoseconds == 0 ? "0s" : "\(nanoseconds)ns"
    }
}

/// Something per second: `500/s` or `500`.
package enum RateText {
    /// One a nanosecond: what is due is counted in 64 bits, for a year as well.
    private static let most = 1e9

    /// - Returns: per second, above 0 and at most 10⁹.
    package static func parse(_ text: String) throws(QuantityError) -> Double {
        let number = text.hasSuffix("/s") ? String(text.dropLast(2)) : text
        guard isPlainNumber(number), let value = Double(number), value.isFinite else {
            throw QuantityError("'\(text)' is not a rate; write it like 500/s")
        }
        guard value > 0 else { throw QuantityError("'\(text)' is not above 0; leave it out for no limit") }
        guard value <= Self.most else {
            throw QuantityError("'\(text)' is more than 1000000000/s; leave it out for no limit")
        }
        return value
    }
}

/// Bytes: `256`, `64KiB` (1,024), `1MB` (1,000,000).
package enum SizeText {
    private static let units: [String: Int] = [
        "": 1, "B": 1, "KB": 1_000, "MB": 1_000_000, "KiB": 1_024, "MiB": 1_048_576,
    ]

    package static func parse(_ text: String) throws(QuantityError) -> Int {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let value = Int(digits), let factor = self.units[String(text[digits.endIndex...])],
            case let (bytes, overflow) = value.multipliedReportingOverflow(by: factor), !overflow
        else { throw QuantityError("'\(text)' is not a size; write it like 256, 64KiB or 1MB") }
        return bytes
    }
}

/// A size, or from one to another: `256`, `64..1KiB`.
package enum SizeRangeText {
    package static func parse(_ text: String) throws(QuantityError) -> ClosedRange<Int> {
        guard let dots = text.firstRange(of: "..") else {
            let size = try SizeText.parse(text)
            return size...size
        }
        let low = try SizeText.parse(String(text[..<dots.lowerBound]))
        let high = try SizeText.parse(String(text[dots.upperBound...]))
        guard low <= high else { throw QuantityError("'\(text)' begins above its end; write it like 64..1024") }
        return low...high
    }
}

/// A share: `30%` or `0.1%`.
package enum PercentText {
    /// - Returns: 0 to 1.
    package static func parse(_ text: String) throws(QuantityError) -> Double {
        let number = String(text.dropLast())
        guard text.hasSuffix("%"), isPlainNumber(number), let value = Double(number), (0...100).contains(value) else {
            throw QuantityError("'\(text)' is not a share; write it like 0.1%, from 0% to 100%")
        }
        return value / 100
    }
}

/// `Double` also reads `nan`, `inf` and hexadecimal, which are errors here.
private func isPlainNumber(_ text: String) -> Bool {
    !text.isEmpty && text.allSatisfy { $0.isASCII && ($0.isNumber || $0 == ".") }
}
