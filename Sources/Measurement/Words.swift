/// Formats numbers for sentences, without Foundation.
package enum Words {
    /// `28232` as `28,232`.
    package static func count(_ value: some BinaryInteger) -> String {
        let digits = String(value.magnitude)
        var text = value < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { text.append(",") }
            text.append(digit)
        }
        return text
    }

    /// `1 client`, `28,232 clients`.
    package static func count(_ value: some BinaryInteger, _ noun: String) -> String {
        "\(self.count(value)) \(noun)\(value == 1 ? "" : "s")"
    }

    /// A number with at most `digits` decimals, without trailing zeros, with thousands separators.
    package static func decimal(_ value: Double, digits: Int = 2) -> String {
        guard value.isFinite, value.magnitude < 1e15 else { return "\(value)" }
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        let scaled = (value.magnitude * scale).rounded()
        let whole = Int64(scaled / scale)
        var fraction = String(Int64(scaled - Double(whole) * scale))
        fraction = String(repeating: "0", count: max(0, digits - fraction.count)) + fraction
        while fraction.hasSuffix("0") { fraction.removeLast() }
        let sign = value < 0 && scaled > 0 ? "-" : ""
        return sign + Self.count(whole) + (fraction.isEmpty ? "" : "." + fraction)
    }

    package static func percent(_ share: Double, digits: Int = 2) -> String {
        Self.decimal(share * 100, digits: digits) + " %"
    }

    package static func milliseconds(_ nanoseconds: Int64) -> String {
        Self.decimal(Double(nanoseconds) / 1e6) + " ms"
    }

    /// Bytes as KiB, MiB or GiB, whichever is most readable.
    package static func bytes(_ bytes: UInt64) -> String {
        if bytes < 1 << 20 { return Self.decimal(Double(bytes) / 1024, digits: 1) + " KiB" }
        let mebibytes = Double(bytes) / 1_048_576
        return mebibytes < 1024
            ? Self.decimal(mebibytes, digits: 1) + " MiB" : Self.decimal(mebibytes / 1024, digits: 1) + " GiB"
    }
}
