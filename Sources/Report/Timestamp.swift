import Glibc

/// A moment of CLOCK_REALTIME, rendered in UTC.
package struct Timestamp {
    private var fields = tm()
    private let milliseconds: Int64

    /// - Parameter nanoseconds: since 1970.
    package init(_ nanoseconds: Int64) {
        var seconds = time_t(nanoseconds / 1_000_000_000)
        self.milliseconds = nanoseconds / 1_000_000 % 1000
        gmtime_r(&seconds, &self.fields)
    }

    /// `2026-11-21T01:37:09.123Z`.
    package var iso8601: String {
        let date = "\(self.fields.tm_year + 1900)-\(two(self.fields.tm_mon + 1))-\(two(self.fields.tm_mday))"
        let time = "\(two(self.fields.tm_hour)):\(two(self.fields.tm_min)):\(two(self.fields.tm_sec))"
        return "\(date)T\(time).\(String(1000 + self.milliseconds).dropFirst())Z"
    }

    /// `20261121-013709`, the front of a result directory's name.
    package var compact: String {
        let date = "\(self.fields.tm_year + 1900)\(two(self.fields.tm_mon + 1))\(two(self.fields.tm_mday))"
        return "\(date)-\(two(self.fields.tm_hour))\(two(self.fields.tm_min))\(two(self.fields.tm_sec))"
    }

    private func two(_ value: CInt) -> Substring { String(100 + value).dropFirst() }
}
