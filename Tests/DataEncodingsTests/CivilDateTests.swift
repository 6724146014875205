import DataEncodings
import Testing

@Suite("Days of the calendar")
struct CivilDateTests {
    @Test(
        "a day has a number, and a number a day",
        arguments: [
            (0, 1970, 1, 1), (-1, 1969, 12, 31), (11_016, 2000, 2, 29), (11_017, 2000, 3, 1), (-25_509, 1900, 2, 28),
            (-25_508, 1900, 3, 1), (-719_528, 0, 1, 1), (-719_468, 0, 3, 1), (-719_469, 0, 2, 29),
            (2_932_896, 9999, 12, 31),
        ] as [(Int64, Int64, Int64, Int64)]
    )
    func days(_ number: Int64, _ year: Int64, _ month: Int64, _ day: Int64) throws {
        let date = try #require(CivilDate(year: year, month: month, day: day))
        #expect(date.daysSince1970 == number)
        #expect(CivilDate(daysSince1970: number) == date)
    }

    @Test("each day follows the one before, over 800 years")
    func everyDay() {
        var before = CivilDate(daysSince1970: -200_000)
        for number in Int64(-199_999)...92_194 {
            let date = CivilDate(daysSince1970: number)
            let follows =
                date.year == before.year && date.month == before.month && date.day == before.day + 1
                || date.year == before.year && date.month == before.month + 1 && date.day == 1 && before.day > 27
                || date.year == before.year + 1 && date.month == 1 && date.day == 1 && before.month == 12
                    && before.day == 31
            guard follows, date.daysSince1970 == number else {
                Issue.record("day \(number): \(date) behind \(before)")
                return
            }
            before = date
        }
    }

    @Test(
        "a day that does not exist is none",
        arguments: [
            (2026, 2, 29), (1900, 2, 29), (2026, 4, 31), (2026, 0, 1), (2026, 13, 1), (2026, 1, 0), (2026, 1, 32),
        ]
            as [(Int64, Int64, Int64)]
    )
    func none(_ year: Int64, _ month: Int64, _ day: Int64) {
        #expect(CivilDate(year: year, month: month, day: day) == nil)
    }
}
