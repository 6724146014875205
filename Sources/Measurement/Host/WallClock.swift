/// Times in the form of result files: `2026-11-21T01:37:10.123456Z` (RFC 3339, UTC).
package enum WallClock {
    /// `nanoseconds`: since 1970, not negative.
    package static func rfc3339(_ nanoseconds: Int64) -> String {
        let seconds = nanoseconds / 1_000_000_000
        let micros = nanoseconds % 1_000_000_000 / 1000
        let (year, month, day) = Self.date(daysSince1970: seconds / 86400)
        let time = seconds % 86400
        return "\(Self.pad(year, 4))-\(Self.pad(month, 2))-\(Self.pad(day, 2))"
            + "T\(Self.pad(time / 3600, 2)):\(Self.pad(time / 60 % 60, 2)):\(Self.pad(time % 60, 2))"
            + ".\(Self.pad(micros, 6))Z"
    }

    /// The Gregorian date, computed with years that begin in March, so that the leap day is the last.
    private static func date(daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
        // There are 719,468 days from 1 March of year 0 to 1970; 146,097 days are 400 years.
        let shifted = daysSince1970 + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let march = (5 * dayOfYear + 2) / 153
        let month = march < 10 ? march + 3 : march - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * march + 2) / 5 + 1)
    }

    private static func pad(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
