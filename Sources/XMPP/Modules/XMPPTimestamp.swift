import CPosix
import DataEncodings

/// A moment as XMPP writes it: `2026-11-21T01:37:10.5Z`.
///
/// Spec: XEP-0082 §3.2.
public struct XMPPTimestamp: Hashable, Sendable {
    /// Whole seconds since the beginning of 1970, UTC; negative before it.
    public let seconds: Int64
    /// The rest of the second, 0 to 999,999,999.
    public let nanoseconds: Int32

    private static let oldest: Int64 = -62_167_219_200
    private static let newest: Int64 = 253_402_300_799

    /// A moment of the years 0 to 9999; `nil` for numbers outside their ranges.
    ///
    /// - Parameters:
    ///   - seconds: since the beginning of 1970, UTC.
    ///   - nanoseconds: 0 to 999,999,999.
    public init?(seconds: Int64, nanoseconds: Int32 = 0) {
        guard (Self.oldest...Self.newest).contains(seconds), (0..<1_000_000_000).contains(nanoseconds) else {
            return nil
        }
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    private init(realtime: Int64) {
        self.seconds = realtime / 1_000_000_000
        self.nanoseconds = Int32(truncatingIfNeeded: realtime % 1_000_000_000)
    }

    /// The time of this computer.
    public static var now: XMPPTimestamp { XMPPTimestamp(realtime: max(0, clamor_realtime_nanoseconds())) }

    /// Reads a date with a time and a zone; `nil` for everything else.
    ///
    /// Digits behind the ninth of a fraction are ignored. A leap second is the first second of the next minute.
    public init?(_ text: String) {
        var reader = TimestampReader(text)
        guard let year = reader.number(4), reader.take("-"), let month = reader.number(2), reader.take("-"),
            let day = reader.number(2), reader.take("T"), let hour = reader.number(2), reader.take(":"),
            let minute = reader.number(2), reader.take(":"), let second = reader.number(2),
            let fraction = reader.fraction(), let offset = reader.offset(), reader.isAtEnd,
            let date = CivilDate(year: year, month: month, day: day), hour < 24, minute < 60, second <= 60
        else { return nil }
        let time = (hour * 60 + minute) * 60 + second
        self.init(seconds: date.daysSince1970 * 86_400 + time - offset * 60, nanoseconds: fraction)
    }
}

extension XMPPTimestamp: CustomStringConvertible, Comparable {
    /// The moment in UTC, with as many digits of the fraction as it takes.
    public var description: String {
        let days = self.seconds >= 0 ? self.seconds / 86_400 : (self.seconds - 86_399) / 86_400
        let time = self.seconds - days * 86_400
        let date = CivilDate(daysSince1970: days)
        let texts = [date.month, date.day, time / 3600, time / 60 % 60, time % 60].map { Self.pad($0, 2) }
        var fraction = self.nanoseconds == 0 ? "" : "." + Self.pad(Int64(self.nanoseconds), 9)
        while fraction.last == "0" { fraction.removeLast() }
        return "\(Self.pad(date.year, 4))-\(texts[0])-\(texts[1])T\(texts[2]):\(texts[3]):\(texts[4])\(fraction)Z"
    }

    /// Orders by time.
    public static func < (left: XMPPTimestamp, right: XMPPTimestamp) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }

    private static func pad(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

/// Takes a date and time apart, from the front.
private struct TimestampReader {
    private var rest: Substring.UTF8View

    init(_ text: String) { self.rest = text[...].utf8 }

    var isAtEnd: Bool { self.rest.isEmpty }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard self.rest.first == UInt8(ascii: character) else { return false }
        self.rest.removeFirst()
        return true
    }

    /// Exactly so many digits.
    mutating func number(_ count: Int) -> Int64? {
        var value: Int64 = 0
        for _ in 0..<count {
            guard let digit = self.digit() else { return nil }
            value = value * 10 + digit
        }
        return value
    }

    private mutating func digit() -> Int64? {
        guard let byte = self.rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
        self.rest.removeFirst()
        return Int64(byte - UInt8(ascii: "0"))
    }

    /// Nanoseconds; 0 without a fraction.
    mutating func fraction() -> Int32? {
        guard self.take(".") else { return 0 }
        var (value, weight) = (0 as Int64, 100_000_000 as Int64)
        guard let first = self.digit() else { return nil }
        value = first * weight
        while let digit = self.digit() {
            weight /= 10
            value += digit * weight
        }
        return Int32(truncatingIfNeeded: value)
    }

    /// Minutes east of UTC: of `Z`, `+01:00` or `-05:30`.
    mutating func offset() -> Int64? {
        if self.take("Z") { return 0 }
        let isEast = self.take("+")
        guard isEast || self.take("-"), let hours = self.number(2), self.take(":"), let minutes = self.number(2),
            hours < 24, minutes < 60
        else { return nil }
        return (isEast ? 1 : -1) * (hours * 60 + minutes)
    }
}
