package struct PlaceholderValues: Hashable, Sendable {
    /// For `%i`; the first client has `-n` plus 1.
    package var clientNumber: Int
    /// For `%c`.
    package var clientID: [UInt8]
    /// For `%u`.
    package var username: [UInt8]
    /// For `%s`: the message's number within its client.
    package var messageNumber: UInt64
    /// For `%t`: nanoseconds since 1970.
    package var nanoseconds: Int64
    /// For `%{column}`: the table with the client's row.
    package var rows: RowTable?

    package init(
        clientNumber: Int,
        clientID: [UInt8] = [],
        username: [UInt8] = [],
        messageNumber: UInt64 = 0,
        nanoseconds: Int64 = 0,
        rows: RowTable? = nil
    ) {
        self.clientNumber = clientNumber
        self.clientID = clientID
        self.username = username
        self.messageNumber = messageNumber
        self.nanoseconds = nanoseconds
        self.rows = rows
    }
}

/// A parsed template with placeholders: topic, client id, user name, password or message.
///
/// The placeholders of `emqtt_bench`: `%i`, `%c`, `%u`, `%s`, `%t`, and `%rand_N`, a whole number from 1 to N. In
/// addition `%06i`, padded with zeros, `%{column}`, the cell of the client's row, and `%%`, a percent sign. A message
/// template also has the ``names`` of `emqtt_bench`. Any other `%` is sent literally.
package struct Template: Hashable, Sendable {
    enum Piece: Hashable, Sendable {
        case literal([UInt8])
        /// Padded with zeros to this many digits.
        case clientNumber(width: Int)
        case clientID, username, messageNumber, nanoseconds
        case random(UInt64)
        /// Time since 1970 in units of this many nanoseconds.
        case timestamp(Int64)
        /// A number unique among the group's messages, up to 2^32 messages per client.
        case unique
        /// Random bytes; their number is drawn for each message.
        case randomBytes(ClosedRange<Int>)
        /// The column's index in the table.
        case column(Int)
        case variable(MessageVariable)

        var variesPerClient: Bool {
            switch self {
            case .clientNumber, .clientID, .username, .column: true
            case .literal, .messageNumber, .nanoseconds, .random, .timestamp, .unique, .randomBytes, .variable: false
            }
        }

        var variesPerMessage: Bool {
            switch self {
            case .messageNumber, .nanoseconds, .random, .timestamp, .unique, .randomBytes: true
            // The header is written behind the rendering.
            case .literal, .clientNumber, .clientID, .username, .column, .variable(.ledger): false
            case .variable: true
            }
        }
    }

    private var pieces: [Piece]

    /// `columns`: the names that `%{column}` accepts.
    package init(parsing text: String, columns: [String] = []) {
        self.init(parsing: Array(text.utf8), columns: columns)
    }

    /// These bytes as they are, without placeholders.
    package init(literal bytes: [UInt8]) { self.pieces = bytes.isEmpty ? [] : [.literal(bytes)] }

    /// Parses bytes, which need not be UTF-8, since a message may hold anything.
    ///
    /// - Parameters:
    ///   - bytes: of the text.
    ///   - columns: the names that `%{column}` accepts.
    ///   - randomSizes: for a message template, the sizes of `%RANDOM%`. `nil`: the text has none of the ``names``.
    ///   - message: for a message, what its variables need; `nil`: the text has none.
    package init(
        parsing bytes: [UInt8],
        columns: [String] = [],
        randomSizes: ClosedRange<Int>? = nil,
        message: MessageParts? = nil
    ) {
        self.pieces = Self.pieces(of: bytes, columns, randomSizes, message).pieces
    }

    /// The pieces, what begins like a variable and is none, and what has the form of the ``names`` and is none.
    ///
    /// The second `%` of an unknown name begins no other.
    static func pieces(
        of bytes: [UInt8],
        _ columns: [String],
        _ randomSizes: ClosedRange<Int>?,
        _ message: MessageParts?
    ) -> (pieces: [Piece], wrong: [String], unknown: [String]) {
        var (pieces, wrong, unknown) = ([Piece](), [String](), [String]())
        var literal: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.first {
            if byte == UInt8(ascii: "%"),
                let (piece, length) = self.placeholder(at: rest, columns, message) ?? self.name(at: rest, randomSizes)
            {
                if !literal.isEmpty { pieces.append(.literal(literal)) }
                literal = []
                pieces.append(piece)
                rest = rest.dropFirst(length)
            } else if byte == UInt8(ascii: "%"), randomSizes != nil, let word = self.word(at: rest) {
                unknown.append(String(decoding: word, as: UTF8.self))
                literal += word
                rest = rest.dropFirst(word.count)
            } else {
                if message != nil, let text = self.braced(at: rest), self.isVariable(text) { wrong.append(text) }
                literal.append(byte)
                rest = rest.dropFirst()
            }
        }
        if !literal.isEmpty { pieces.append(.literal(literal)) }
        return (pieces, wrong, unknown)
    }

    /// The text between `%{` and `}` in front.
    private static func braced(at bytes: ArraySlice<UInt8>) -> String? {
        let text = bytes.dropFirst(2).prefix { $0 != UInt8(ascii: "}") }
        guard bytes.starts(with: "%{".utf8), text.endIndex < bytes.endIndex else { return nil }
        return String(decoding: text, as: UTF8.self)
    }

    private static func placeholder(
        at bytes: ArraySlice<UInt8>,
        _ columns: [String],
        _ message: MessageParts? = nil
    ) -> (Piece, length: Int)? {
        let name = bytes.dropFirst()
        switch name.first {
        case UInt8(ascii: "{"):
            guard let text = self.braced(at: bytes) else { return nil }
            let column = columns.firstIndex { $0.utf8.elementsEqual(text.utf8) }
            let piece = column.map { .column($0) } ?? message.flatMap { Self.variable(text[...], $0) }
            let length = bytes.prefix { $0 != UInt8(ascii: "}") }.count + 1
            return piece.map { ($0, length) }
        case UInt8(ascii: "%"): return (.literal([UInt8(ascii: "%")]), 2)
        case UInt8(ascii: "i"): return (.clientNumber(width: 0), 2)
        case UInt8(ascii: "0"):
            guard let (width, length) = Self.number(name), (1...19).contains(width),
                name.dropFirst(length).first == UInt8(ascii: "i")
            else { return nil }
            return (.clientNumber(width: Int(width)), length + 2)
        case UInt8(ascii: "c"): return (.clientID, 2)
        case UInt8(ascii: "u"): return (.username, 2)
        case UInt8(ascii: "s"): return (.messageNumber, 2)
        case UInt8(ascii: "t"): return (.nanoseconds, 2)
        default: break
        }
        let word = Array("rand_".utf8)
        guard name.starts(with: word) else { return nil }
        guard let (bound, length) = Self.number(name.dropFirst(word.count)), bound > 0 else { return nil }
        return (.random(bound), 1 + word.count + length)
    }

    /// The number in front, and its digits; `nil` beyond 64 bits.
    private static func number(_ bytes: ArraySlice<UInt8>) -> (UInt64, length: Int)? {
        let digits = bytes.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return UInt64(String(decoding: digits, as: UTF8.self)).map { ($0, digits.count) }
    }

    // MARK: - The names of emqtt_bench

    /// The placeholders of `emqtt_bench`'s message templates, with its meanings.
    package static let names = [
        "%TIMESTAMP%", "%TIMESTAMPMS%", "%TIMESTAMPUS%", "%TIMESTAMPNS%", "%UNIQUE%", Self.randomName,
    ]
    package static let randomName = "%RANDOM%"

    /// A word of three or more capitals between two `%`.
    ///
    /// Two characters may be an escaped byte of a URL.
    private static func word(at bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let letters = bytes.dropFirst().prefix { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
        guard letters.count >= 3, letters.endIndex < bytes.endIndex, bytes[letters.endIndex] == UInt8(ascii: "%") else {
            return nil
        }
        return bytes[bytes.startIndex...letters.endIndex]
    }

    private static func name(at bytes: ArraySlice<UInt8>, _ sizes: ClosedRange<Int>?) -> (Piece, length: Int)? {
        guard let sizes, let word = self.word(at: bytes) else { return nil }
        let piece: Piece
        switch String(decoding: word, as: UTF8.self) {
        // As in emqtt_bench both are milliseconds.
        case "%TIMESTAMP%", "%TIMESTAMPMS%": piece = .timestamp(1_000_000)
        case "%TIMESTAMPUS%": piece = .timestamp(1_000)
        case "%TIMESTAMPNS%": piece = .timestamp(1)
        case "%UNIQUE%": piece = .unique
        case Self.randomName: piece = .randomBytes(sizes)
        default: return nil
        }
        return (piece, word.count)
    }

    // MARK: - Rendering

    /// A text of which no placeholder is replaced, such as the password of a file.
    package static func escaped(_ text: String) -> String { text.replacing("%", with: "%%") }

    /// Contains `%i`.
    package var hasClientNumber: Bool { self.pieces.contains { if case .clientNumber = $0 { true } else { false } } }

    /// Renders to the same bytes for every client and message.
    package var isConstant: Bool { !self.variesPerClient && !self.variesPerMessage }

    /// Contains `%i`, `%c`, `%u` or `%{column}`.
    package var variesPerClient: Bool { self.pieces.contains { $0.variesPerClient } }

    /// Renders differently for each message, because of `%s`, `%t`, `%rand_N` and the like.
    package var variesPerMessage: Bool { self.pieces.contains { $0.variesPerMessage } }

    /// The same with a number in place of `%s`.
    package func numbered(_ number: Int) -> Template {
        var template = self
        template.pieces = self.pieces.map { $0 == .messageNumber ? .literal(Array("\(number)".utf8)) : $0 }
        return template
    }

    /// Contains `%s`.
    package var hasMessageNumber: Bool { self.pieces.contains(.messageNumber) }

    /// Contains a time, so that it is not the same when it is rendered again.
    package var variesByTime: Bool {
        self.pieces.contains { if case .timestamp = $0 { true } else { $0 == .nanoseconds } }
    }

    /// Indices of the columns that the template names.
    package var columns: Set<Int> {
        self.pieces.reduce(into: []) { if case .column(let index) = $1 { $0.insert(index) } }
    }

    /// Literal bytes, plus the largest size of `%RANDOM%`.
    package var literalBytes: Int {
        self.pieces.reduce(0) { sum, piece in
            switch piece {
            case .literal(let bytes): sum + bytes.count
            case .randomBytes(let sizes): sum + sizes.upperBound
            case .variable(let variable): sum + variable.longest
            default: sum
            }
        }
    }

    /// Contains `%c` or `%u`, which must be rendered first.
    package var needsIdentity: Bool { self.pieces.contains { $0 == .clientID || $0 == .username } }

    /// Appends the rendered text, and returns the place of `%{ledger}` in `bytes`.
    ///
    /// Allocates only to grow `bytes`.
    @discardableResult
    package func render(
        _ values: PlaceholderValues,
        random: inout some RandomNumberGenerator,
        into bytes: inout [UInt8]
    ) -> Int? {
        var ledger: Int?
        for piece in self.pieces {
            if case .variable(.ledger) = piece { ledger = bytes.count }
            Self.render(piece, values, random: &random, into: &bytes)
        }
        return ledger
    }

    /// Contains `%{ledger}`.
    package var hasLedger: Bool { self.pieces.contains { if case .variable(.ledger) = $0 { true } else { false } } }

    package func rendered(_ values: PlaceholderValues, random: inout some RandomNumberGenerator) -> [UInt8] {
        var bytes: [UInt8] = []
        self.render(values, random: &random, into: &bytes)
        return bytes
    }

    private static func render(
        _ piece: Piece,
        _ values: PlaceholderValues,
        random: inout some RandomNumberGenerator,
        into bytes: inout [UInt8]
    ) {
        switch piece {
        case .literal(let literal): bytes += literal
        case .clientNumber(let width): self.append(UInt64(values.clientNumber.magnitude), to: &bytes, width: width)
        case .clientID: bytes += values.clientID
        case .username: bytes += values.username
        case .messageNumber: self.append(values.messageNumber, to: &bytes)
        case .nanoseconds: self.append(values.nanoseconds.magnitude, to: &bytes)
        case .random(let bound): self.append(.random(in: 1...bound, using: &random), to: &bytes)
        case .timestamp(let unit): self.append((values.nanoseconds / unit).magnitude, to: &bytes)
        case .unique:
            // Upper half: the client. Lower half: its message.
            self.append(UInt64(values.clientNumber.magnitude) << 32 | values.messageNumber & 0xFFFF_FFFF, to: &bytes)
        case .randomBytes(let sizes):
            for _ in 0..<Int.random(in: sizes, using: &random) {
                bytes.append(.random(in: .min ... .max, using: &random))
            }
        case .column(let column):
            if let rows = values.rows {
                bytes += rows.cell(row: rows.row(ofClient: values.clientNumber), column: column)
            }
        case .variable(let variable): self.render(variable, values, random: &random, into: &bytes)
        }
    }

    /// Appends a number in decimal without an intermediate `String`.
    static func append(_ number: UInt64, to bytes: inout [UInt8], width: Int = 0) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var (rest, place) = (number, digits.count)
            repeat {
                place -= 1
                digits[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0 || digits.count - place < width
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[place...]))
        }
    }

    // MARK: - The filter that reads a topic

    /// The filter that matches one client's publishes to this topic: levels that vary per message become `+`.
    package func filter(ofClient values: PlaceholderValues) -> String {
        self.filter { level in level.contains { $0.variesPerMessage } ? nil : values }
    }

    /// The filter that matches all clients' publishes to this topic: every level with a placeholder becomes `+`.
    package var filterOfAllClients: String {
        let none = PlaceholderValues(clientNumber: 0)
        return self.filter { level in
            level.contains { $0.variesPerMessage || $0.variesPerClient } ? nil : none
        }
    }

    /// The levels of a topic that vary per message.
    package var varyingLevels: [Int] {
        self.levels.indices.filter { self.levels[$0].contains { $0.variesPerMessage } }
    }

    private var levels: [[Piece]] {
        var levels: [[Piece]] = [[]]
        for piece in self.pieces {
            guard case .literal(let bytes) = piece else {
                levels[levels.count - 1].append(piece)
                continue
            }
            let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            for (index, part) in parts.enumerated() {
                if index > 0 { levels.append([]) }
                if !part.isEmpty { levels[levels.count - 1].append(.literal(Array(part))) }
            }
        }
        return levels
    }

    private func filter(values: ([Piece]) -> PlaceholderValues?) -> String {
        let levels = self.levels
        // The remaining levels have no `%rand_N`, so this generator is never used.
        var random = SystemRandomNumberGenerator()
        let texts = levels.map { level in
            guard let values = values(level) else { return "+" }
            var bytes: [UInt8] = []
            for piece in level { Self.render(piece, values, random: &random, into: &bytes) }
            return String(decoding: bytes, as: UTF8.self)
        }
        return texts.joined(separator: "/")
    }
}
