import DataEncodings

/// The needs of a message's variables, such as `%{int 10..90}`, which other texts do not have.
package struct MessageParts: Sendable {
    /// The bytes that `%{ledger}` takes.
    package var ledgerSize: Int
    /// The lines of each file that `%{line FILE}` names.
    package var lines: [String: RowTable]
    /// The files have not been read: each stands for an empty line.
    var isDraft = false

    package init(ledgerSize: Int, lines: [String: RowTable] = [:]) {
        self.ledgerSize = ledgerSize
        self.lines = lines
    }

    fileprivate init(ledgerSize: Int, isDraft: Bool) {
        self.init(ledgerSize: ledgerSize)
        self.isDraft = isDraft
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
    /// Since 1970, in units of so many nanoseconds.
    case time(unit: Int64)
    /// One line for each message: client 1 begins with the first line, client 2 with the second.
    case line(RowTable)
    /// The place of the ledger's header.
    case ledger(Int)

    /// The longest text, where it is long.
    var longest: Int {
        switch self {
        case .number, .uuid, .date, .time: 0
        case .choice(let texts): texts.map(\.count).max() ?? 0
        case .line(let rows): rows.longest
        case .ledger(let size): size
        }
    }
}

extension Template {
    /// The facts of a message that are known before its files are read.
    package struct Draft {
        /// Why a variable cannot be replaced.
        package var problem: String?
        /// The files of `%{line FILE}`.
        package var files: [String] = []
        package var hasLedger = false
        /// Whether it contains any of the ``Template/names``, and ``Template/randomName``.
        package var hasNames = false
        package var hasRandomBytes = false
        /// Words that have the form of the names, and are none.
        package var unknown: [String] = []

        package init() {}
    }

    /// The words that begin a variable of a message.
    private static let variableWords = ["int", "float", "choice", "uuid", "time", "line", "ledger"]

    /// Whether the text between `%{` and `}` is a variable of a message.
    package static func isVariable(_ text: String) -> Bool {
        self.variableWords.contains { text == $0 || text.hasPrefix($0 + " ") }
    }

    /// The texts between `%{` and `}`, in order.
    package static func names(in text: String) -> [String] {
        let parts = text.replacing("%%", with: "").split(separator: "%{", omittingEmptySubsequences: false)
        return parts.dropFirst().compactMap { part in part.firstIndex(of: "}").map { String(part[..<$0]) } }
    }

    /// Parses a message as ``init(parsing:columns:randomSizes:message:)`` does.
    package static func draft(_ bytes: [UInt8], columns: [String] = [], randomSizes: ClosedRange<Int>? = nil) -> Draft {
        var draft = Draft()
        let parts = MessageParts(ledgerSize: 0, isDraft: true)
        let (pieces, wrong, unknown) = self.pieces(of: bytes, columns, randomSizes, parts)
        draft.unknown = unknown
        var ledgers = 0
        for piece in pieces {
            switch piece {
            case .variable(.ledger): ledgers += 1
            case .variable(.line(let rows)): draft.files.append(rows.columns[0])
            case .timestamp, .unique: draft.hasNames = true
            case .randomBytes: (draft.hasNames, draft.hasRandomBytes) = (true, true)
            default: break
            }
        }
        draft.hasLedger = ledgers > 0
        if let name = wrong.first {
            draft.problem = "%{\(name)} is not like \(self.form(of: name))"
        } else if ledgers > 1 {
            draft.problem = "%{ledger} is there twice; leave one"
        }
        return draft
    }

    private static func form(of name: String) -> String {
        let word = name.prefix { $0 != " " }
        switch word {
        case "int": return "%{int 10..90}"
        case "float": return "%{float 18.5..24.0 2}, with 0 to 9 digits"
        case "choice": return "%{choice a,b,c}"
        case "time": return "%{time iso}, %{time ms} or %{time s}"
        case "line": return "%{line FILE}"
        default: return "%{\(word)}"
        }
    }

    /// The piece for the text between `%{` and `}`; `nil` if it is no variable.
    static func variable(_ text: Substring, _ parts: MessageParts) -> Piece? {
        // It was meant to end before the next one.
        guard !text.utf8.contains(UInt8(ascii: "{")) else { return nil }
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
            case "ms": return .variable(.time(unit: 1_000_000))
            case "s": return .variable(.time(unit: 1_000_000_000))
            default: return nil
            }
        case ("line", false):
            let draft = parts.isDraft ? RowTable(columns: [String(rest)], cells: [[]], digest: "") : nil
            return (draft ?? parts.lines[String(rest)]).map { .variable(.line($0)) }
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
        case .time(let unit): self.append((values.nanoseconds / unit).magnitude, to: &bytes)
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
