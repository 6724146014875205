/// Values of the faults of `clamor proxy`; those of the embedded broker are read by `FaultPlan`.
enum FaultText {
    /// - Returns: nanoseconds, above 0.
    static func span(_ text: String) throws(QuantityError) -> Int64 {
        let span = try DurationText.parse(text)
        guard span > 0 else { throw QuantityError("'\(text)' is no time; write it like 5ms") }
        return span
    }

    /// - Returns: nanoseconds.
    static func stall(_ text: String) throws(QuantityError) -> (length: Int64, after: Int64) {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2 else { throw QuantityError("'\(text)' is not a stall; write it like 2s@10s") }
        return (try self.span(parts[0]), try DurationText.parse(parts[1]))
    }

    static func fragment(_ text: String) throws(QuantityError) -> ClosedRange<Int> {
        let bounds = text.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        guard (1...2).contains(bounds.count), bounds.allSatisfy({ $0 >= 1 }), bounds[0] <= bounds[bounds.count - 1]
        else {
            throw QuantityError("'\(text)' is not a span of bytes; write it like 1-7")
        }
        return bounds[0]...bounds[bounds.count - 1]
    }

    /// Bytes a second: `64KiB/s`, `1000/s`.
    static func bytesPerSecond(_ text: String) throws(QuantityError) -> Double {
        let size = text.hasSuffix("/s") ? String(text.dropLast(2)) : text
        let bytes = try? SizeText.parse(size)
        guard let bytes, (1...1_000_000_000_000).contains(bytes) else {
            throw QuantityError("'\(text)' is no rate of bytes; write it like 64KiB/s or 1MB/s")
        }
        return Double(bytes)
    }
}
