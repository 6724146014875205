import DataEncodings

/// What a message has beyond the placeholders of other texts: `%{int 10..90}` and its like.
package struct MessageParts: Sendable {
    /// The bytes that `%{ledger}` takes.
    package var ledgerSize: Int
    /// The lines of each file that `%{line FILE}` names.
    package var lines: [String: RowTable]

    package init(ledgerSize: Int, lines: [String: RowTable] = [:]) {
        self.ledgerSize = ledgerSize
        self.lines = lines
    }
}

/// A text that varies per message; numbers and choices are drawn by the seed of the run.
enum MessageVariable: Hashable, Sendable {
    /// A fraction with this many digits after its point; the bounds are in units of the last one.
    case number(ClosedRange<Int64>, digits: Int)
    case choice([[UInt8]])
    /// Version 4 (RFC 9562 §5.4).
    case uuid
    /// ISO 8601 in UTC, with milliseconds.
    case date
    /// One line for each message: client 1 begins with the first line, client 2 with the second.
    case line(RowTable)
    /// The place of the ledger's header.
    case ledger(Int)

    /// The longest text, where it is long.
    var longest: Int {
        switch self {
        case .number, .uuid, .date: 0
        case .choice(let texts): texts.map(\.count).max() ?? 0
        case .line(let rows): rows.longest
        case .ledger(let size): size
        }
    }
}

extension Template {
    /// The words that begin a variable of a message.
    package static let variableWords = ["int", "float", "choice", "uuid", "time", "line", "ledger"]

    /// Whether the text between `%{` and `}` is a variable of a message.
    package static func isVariable(_ text: String) -> Bool {
        self.variableWords.contains { text == $0 || text.hasPrefix($0 + " ") }
    }

    /// The texts between `%{` and `}`, in order.
    package static func names(in text: String) -> [String] {
        let parts = text.replacing("%%", with: "").split(separator: "%{", omittingEmptySubsequences: false)
        return parts.dropFirst().compactMap { part in part.firstIndex(of: "}").map { String(part[..<$0]) } }
    }

    /// The files of `%{line FILE}` in a message.
    package static func lineFiles(in text: String) -> [String] {
        self.names(in: text).filter { $0.hasPrefix("line ") }.map { String($0.dropFirst("line ".count)) }
    }

    package static func hasLedger(in text: String) -> Bool { self.names(in: text).contains("ledger") }

    /// Why a variable of a message cannot be replaced; `columns` are none.
    package static func variableProblem(in text: String, columns: [String] = []) -> String? {
        let names = self.names(in: text).filter { self.isVariable($0) && !columns.contains($0) }
        if names.count(where: { $0 == "ledger" }) > 1 { return "%{ledger} is there twice; leave one" }
        let none = RowTable(columns: ["line"], cells: [[]], digest: "")
        for name in names {
            let files = self.lineFiles(in: "%{\(name)}").map { ($0, none) }
            let parts = MessageParts(ledgerSize: 0, lines: Dictionary(files) { $1 })
            guard self.variable(name[...], parts) == nil else { continue }
            let word = name.prefix { $0 != " " }
            let form =
                switch word {
                case "int": "%{int 10..90}"
                case "float": "%{float 18.5..24.0 2}, with 0 to 9 digits"
                case "choice": "%{choice a,b,c}"
                case "time": "%{time iso}, %{time ms} or %{time s}"
                case "line": "%{line FILE}"
                default: "%{\(word)}"
                }
            return "%{\(name)} is not like \(form)"
        }
        return nil
    }

    /// The piece for the text between `%{` and `}`; `nil` if it is no variable.
    static func variable(_ text: Substring, _ parts: MessageParts) -> Piece? {
        let word = text.prefix { $0 != " " }
        let rest = text.dropFirst(word.count + 1)
        switch (word, rest.isEmpty) {
        case ("ledger", true): return .variable(.ledger(parts.ledgerSize))
        case ("uuid", true): return .variable(.uuid)
        case ("int", false): return self.bounds(rest, digits: 0).map { .variable(.number($0, digits: 0)) }
        case ("float", false):
            let words = rest.split(separator: " ")
            guard words.count == 2, let digits = Int(words[1]), (0...9).contains(digits) else { return nil }
            return self.bounds(words[0], digits: digits).map { .variable(.number($0, digits: digits)) }
        case ("choice", false):
            let texts = rest.split(separator: ",", omittingEmptySubsequences: false)
            return .variable(.choice(texts.map { Array($0.utf8) }))
        case ("time", false):
            switch rest {
            case "iso": return .variable(.date)
            case "ms": return .timestamp(1_000_000)
            case "s": return .timestamp(1_000_000_000)
            default: return nil
            }
        case ("line", false): return parts.lines[String(rest)].map { .variable(.line($0)) }
        default: return nil
        }
    }

    /// `18.5..24.0`, in units of the last of so many digits after the point.
    private static func bounds(_ text: Substring, digits: Int) -> ClosedRange<Int64>? {
        let parts = text.split(separator: "..", omittingEmptySubsequences: false)
        guard parts.count == 2, let low = self.units(parts[0], digits), let high = self.units(parts[1], digits),
            low <= high
        else { return nil }
        return low...high
    }

    private static func units(_ text: Substring, _ digits: Int) -> Int64? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let fraction = parts.count > 1 ? parts[1] : ""
        let isDigits = fraction.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard parts.count <= 2, digits > 0 || parts.count == 1, fraction.utf8.count <= digits, isDigits,
            text.last != "."
        else { return nil }
        return Int64(parts[0] + fraction + String(repeating: "0", count: digits - fraction.utf8.count))
    }

    // MARK: - Rendering

    static func render(
        _ variable: MessageVariable,
        _ values: PlaceholderValues,
        random: inout some RandomNumberGenerator,
        into bytes: inout [UInt8]
    ) {
        switch variable {
        case .number(let bounds, let digits):
            let number = Int64.random(in: bounds, using: &random)
            if number < 0 { bytes.append(UInt8(ascii: "-")) }
            let unit = self.powers[digits]
            self.append(number.magnitude / unit, to: &bytes)
            guard digits > 0 else { return }
            bytes.append(UInt8(ascii: "."))
            self.append(number.magnitude % unit, to: &bytes, width: digits)
        case .choice(let texts): bytes += texts[Int.random(in: texts.indices, using: &random)]
        case .uuid: self.appendUUID(random.next(), random.next(), to: &bytes)
        case .date: self.appendDate(values.nanoseconds, to: &bytes)
        case .line(let rows):
            let client = UInt64(max(0, values.clientNumber - 1))
            bytes += rows.cell(row: Int((client &+ values.messageNumber) % UInt64(rows.count)), column: 0)
        case .ledger(let size):
            for _ in 0..<size { bytes.append(UInt8(ascii: "0")) }
        }
    }

    private static let powers: [UInt64] = (0...9).map { (0..<$0).reduce(1) { power, _ in power * 10 } }
    private static let hex: StaticString = "0123456789abcdef"

    private static func appendUUID(_ high: UInt64, _ low: UInt64, to bytes: inout [UInt8]) {
        let version = high & ~0xF000 | 0x4000
        let variant = low & (.max >> 2) | 1 << 63
        for index in 0..<32 {
            if index == 8 || index == 12 || index == 16 || index == 20 { bytes.append(UInt8(ascii: "-")) }
            let half = index < 16 ? version : variant
            bytes.append(self.hex.utf8Start[Int(half >> UInt64(60 - 4 * (index & 15)) & 15)])
        }
    }

    /// `2026-11-30T16:20:00.125Z`.
    private static func appendDate(_ nanoseconds: Int64, to bytes: inout [UInt8]) {
        let milliseconds = max(0, nanoseconds) / 1_000_000
        let date = CivilDate(daysSince1970: milliseconds / 86_400_000)
        let time = UInt64(milliseconds % 86_400_000)
        func add(_ number: UInt64, _ width: Int, _ end: Unicode.Scalar) {
            self.append(number, to: &bytes, width: width)
            bytes.append(UInt8(ascii: end))
        }
        add(date.year.magnitude, 4, "-")
        add(date.month.magnitude, 2, "-")
        add(date.day.magnitude, 2, "T")
        add(time / 3_600_000, 2, ":")
        add(time / 60_000 % 60, 2, ":")
        add(time / 1_000 % 60, 2, ".")
        add(time % 1_000, 3, "Z")
    }
}
