package import NIOCore

/// How the value of a fault is written, within which bounds, and what is said of one that is written otherwise.
///
/// The forms are the grammar of `clamor broker` and `clamor proxy`: an option names its form, and both read alike.
package struct FaultForm<Value: Sendable>: Sendable {
    /// The name of the value in help.
    package let unit: String
    private let rule: String
    private let value: @Sendable (_ text: String) -> Value?

    /// - Parameters:
    ///   - unit: the name of the value in help.
    ///   - rule: what a wrong text is not, and how a right one is written.
    ///   - value: reads a text; `nil` for a wrong one.
    package init(_ unit: String, _ rule: String, value: @escaping @Sendable (_ text: String) -> Value?) {
        self.unit = unit
        self.rule = rule
        self.value = value
    }

    package func read(_ text: String) throws(FaultTextError) -> Value {
        guard let value = self.value(text) else { throw FaultTextError("'\(text)' \(self.rule)") }
        return value
    }
}

/// A text that is no value of a fault; `description` is one line that names it and the correct form.
package struct FaultTextError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

extension FaultForm<UInt64> {
    /// Parts per billion.
    package static var share: Self {
        Self("percent", "is not a share above 0%; write it like 0.1%") { text in
            guard text.hasSuffix("%"), let share = number(text.dropLast()), share > 0, share <= 100 else { return nil }
            return UInt64((share * 1e7).rounded())
        }
    }

    /// The N of "every Nth".
    package static var every: Self {
        Self("n", "is not a whole number of 1 or more; write it like 100") { text in
            UInt64(text).flatMap { $0 > 0 ? $0 : nil }
        }
    }
}

extension FaultForm where Value == TimeAmount {
    package static var span: FaultForm<TimeAmount> {
        Self("duration", "is not a time above 0; write it like 5ms or 1m30s") { text in
            time(text).flatMap { $0 > .zero ? $0 : nil }
        }
    }
}

extension FaultForm<FaultStall> {
    package static var stall: Self {
        Self("duration@time", "is not LENGTH@AFTER, each a time; write it like 2s@10s") { text in
            let parts = text.split(separator: "@", omittingEmptySubsequences: false).map { time(String($0)) }
            guard parts.count == 2, let length = parts[0], length > .zero, let after = parts[1] else { return nil }
            return FaultStall(length: length, after: after)
        }
    }
}

extension FaultForm<Double> {
    /// Messages per second.
    package static var rate: Self {
        Self("n/s", "is not a rate above 0, at most 1000000000/s; write it like 1000/s") { text in
            number(text.hasSuffix("/s") ? text.dropLast(2) : text[...]).flatMap { $0 > 0 && $0 <= 1e9 ? $0 : nil }
        }
    }
}

extension FaultForm<ClosedRange<Int>> {
    /// Bytes per write.
    package static var fragment: Self {
        Self("min-max", "is not a range of 1 to 65536 bytes; write it like 1-7") { text in
            let parts = text.split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count <= 2, let low = Int(parts[0]), let high = Int(parts[parts.count - 1]) else { return nil }
            return low >= 1 && low <= high && high <= 65_536 ? low...high : nil
        }
    }
}

/// A time as the options of all commands are read: `5ms`, `1m30s`, 0; a year at most.
private func time(_ text: String) -> TimeAmount? {
    let units: [Substring: Double] = [
        "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3_600e9, "d": 86_400e9,
    ]
    var total = 0.0
    var rest = text == "0" ? "0s" : text[...]
    repeat {
        let digits = rest.prefix { $0.isNumber || $0 == "." }
        let unit = rest[digits.endIndex...].prefix { !$0.isNumber && $0 != "." }
        guard let value = number(digits), let factor = units[unit] else { return nil }
        total += value * factor
        rest = rest[unit.endIndex...]
    } while !rest.isEmpty
    return total <= 365 * 86_400e9 ? .nanoseconds(Int64(total.rounded())) : nil
}

/// A number in digits: `Double` also reads signs, `nan`, `inf` and hexadecimal.
private func number(_ text: Substring) -> Double? {
    text.allSatisfy { $0.isASCII && ($0.isNumber || $0 == ".") } ? Double(text) : nil
}
