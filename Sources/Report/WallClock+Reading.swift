import FoundationEssentials
package import Measurement

extension WallClock {
    /// In 2255: an `Int64` holds nanoseconds until 2262.
    private static let lastSecond = 9e9

    /// A moment some whole seconds after `text`, to the second; nothing but `text` itself if that is no moment.
    static func adding(seconds: Int, to text: String) -> String {
        let start = text.prefix(19) + "Z"
        guard let date = try? Date(String(start), strategy: .iso8601) else { return text }
        let later = min(max(0, date.timeIntervalSince1970 + Double(seconds)), Self.lastSecond)
        return self.rfc3339(Int64(later) * 1_000_000_000)
    }

    /// The nanoseconds since 1970 of an RFC 3339 time with a zone; `nil` if it is invalid.
    package static func nanoseconds(_ text: String) -> Int64? {
        // Date and time of day, followed by a fraction and the zone.
        let front = text.prefix(19)
        var rest = text.dropFirst(19)
        guard front.count == 19, let date = try? Date(front + "Z", strategy: .iso8601) else { return nil }
        // Foundation takes the 31st of June for the 1st of July.
        let seconds = Int64(date.timeIntervalSince1970.rounded())
        guard seconds > 0, Double(seconds) <= Self.lastSecond,
            self.rfc3339(seconds * 1_000_000_000).prefix(19) == front
        else { return nil }
        var nanoseconds: Int64 = 0
        if rest.first == "." {
            let digits = rest.dropFirst().prefix { $0.isASCII && $0.isNumber }
            guard let value = Int64((digits.prefix(9) + "00000000").prefix(9)), !digits.isEmpty else { return nil }
            nanoseconds = value
            rest = rest.dropFirst(1 + digits.count)
        }
        guard let zone = self.offset(rest) else { return nil }
        return (seconds - zone) * 1_000_000_000 + nanoseconds
    }

    /// Seconds that a zone is ahead: of `Z`, `+01:00` or `-05:30`.
    private static func offset(_ zone: Substring) -> Int64? {
        if zone == "Z" || zone == "z" { return 0 }
        let parts = zone.dropFirst().split(separator: ":", omittingEmptySubsequences: false)
        guard let sign = zone.first, sign == "+" || sign == "-", parts.count == 2,
            parts.allSatisfy({ $0.count == 2 && $0.allSatisfy { $0.isASCII && $0.isNumber } }),
            let hours = Int64(parts[0]), let minutes = Int64(parts[1]), hours < 24, minutes < 60
        else { return nil }
        return (sign == "-" ? -1 : 1) * (hours * 3_600 + minutes * 60)
    }
}
