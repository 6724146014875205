/// A day of the Gregorian calendar, which is extended to all years.
package struct CivilDate: Hashable, Sendable {
    package let year: Int64
    /// From 1.
    package let month: Int64
    /// From 1.
    package let day: Int64

    /// `nil` for a day that does not exist.
    package init?(year: Int64, month: Int64, day: Int64) {
        guard (1...12).contains(month), (1...Self.days(in: month, of: year)).contains(day) else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    // Both directions count years from March on, so that the leap day is the last. There are 719,468 days from 1 March
    // of year 0 to 1970; 146,097 days are 400 years.

    package init(daysSince1970: Int64) {
        let shifted = daysSince1970 + 719_468
        let era = Self.floor(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let march = (5 * dayOfYear + 2) / 153
        self.month = march < 10 ? march + 3 : march - 9
        self.year = yearOfEra + era * 400 + (self.month <= 2 ? 1 : 0)
        self.day = dayOfYear - (153 * march + 2) / 5 + 1
    }

    package var daysSince1970: Int64 {
        let year = self.month <= 2 ? self.year - 1 : self.year
        let era = Self.floor(year, 400)
        let yearOfEra = year - era * 400
        let march = self.month <= 2 ? self.month + 9 : self.month - 3
        let dayOfYear = (153 * march + 2) / 5 + self.day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func days(in month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func floor(_ number: Int64, _ divisor: Int64) -> Int64 {
        number >= 0 ? number / divisor : (number - divisor + 1) / divisor
    }
}
