import Measurement
import Report
import Testing

@Suite("Times of result files")
struct WallClockTests {
    @Test(
        "a time is read to the nanosecond, and what is none is refused",
        arguments: [
            ("2026-11-21T01:37:10.123456Z", 1_795_225_030_123_456_000),
            ("2026-11-21T02:37:10+01:00", 1_795_225_030_000_000_000),
            ("2255-03-14T16:00:00Z", 9_000_000_000_000_000_000),
            ("2255-03-14T16:00:01Z", nil), ("9999-12-31T23:59:59Z", nil), ("1969-12-31T23:59:59Z", nil),
            ("2026-06-31T00:00:00Z", nil), ("2026-11-21T01:37:10", nil), ("2026-11-21T01:37:10.Z", nil),
            ("soon", nil), ("", nil),
        ] as [(String, Int64?)]
    )
    func read(text: String, nanoseconds: Int64?) {
        #expect(WallClock.nanoseconds(text) == nanoseconds)
    }
}
