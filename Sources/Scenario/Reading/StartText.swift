import Measurement
import Report

/// A moment to begin at: `2026-11-21T01:37:10Z`, or seconds since 1970.
package enum StartText {
    private static let year = 365 * 86_400 * 1_000_000_000 as Int64

    /// - Returns: CLOCK_REALTIME nanoseconds, after `now` and within a year.
    package static func parse(_ text: String, now: Int64) throws(QuantityError) -> Int64 {
        guard let time = self.moment(text) else {
            throw QuantityError("'\(text)' is no moment; write it like 2026-11-21T01:37:10Z, or in seconds since 1970")
        }
        guard time > now else {
            throw QuantityError(
                "\(WallClock.rfc3339(time)) is past, it is \(WallClock.rfc3339(now)); give a moment to come"
            )
        }
        guard time - now <= self.year else { throw QuantityError("'\(text)' is more than a year away") }
        return time
    }

    private static func moment(_ text: String) -> Int64? {
        if text.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." }) {
            guard let seconds = Double(text), seconds > 0, seconds < 9e9 else { return nil }
            return Int64((seconds * 1e9).rounded())
        }
        return WallClock.nanoseconds(text)
    }
}
