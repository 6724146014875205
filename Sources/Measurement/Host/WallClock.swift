import DataEncodings

/// Times in the form of result files: `2026-11-21T01:37:10.123456Z` (RFC 3339, UTC).
package enum WallClock {
    /// `nanoseconds`: since 1970, not negative.
    package static func rfc3339(_ nanoseconds: Int64) -> String {
        let seconds = nanoseconds / 1_000_000_000
        let micros = nanoseconds % 1_000_000_000 / 1000
        let date = CivilDate(daysSince1970: seconds / 86400)
        let time = seconds % 86400
        return "\(Self.pad(date.year, 4))-\(Self.pad(date.month, 2))-\(Self.pad(date.day, 2))"
            + "T\(Self.pad(time / 3600, 2)):\(Self.pad(time / 60 % 60, 2)):\(Self.pad(time % 60, 2))"
            + ".\(Self.pad(micros, 6))Z"
    }

    private static func pad(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
