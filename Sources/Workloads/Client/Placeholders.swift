/// What a placeholder is replaced with.
package struct PlaceholderValues: Hashable, Sendable {
    /// For `%i`, from `-n` plus 1 on.
    package var clientNumber: Int
    /// For `%c`.
    package var clientID: [UInt8]
    /// For `%u`.
    package var username: [UInt8]
    /// For `%s`, of this client.
    package var messageNumber: UInt64
    /// For `%t`, since 1970.
    package var nanoseconds: Int64
    /// For `%{column}`: the client's row of it.
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

/// A topic, client id, user name, password or message with placeholders, read once.
///
/// `%i`, `%c`, `%u`, `%s`, `%t`, `%rand_N`: a whole number from 1 to N, as in `emqtt_bench`, and `%{column}`: the cell of
/// the client's row. A message template has the ``names`` of `emqtt_bench` as well. Any other `%` is sent as it is.
package struct Template: Hashable, Sendable {
    private enum Piece: Hashable, Sendable {
        case literal([UInt8])
        case clientNumber, clientID, username, messageNumber, nanoseconds
        case random(UInt64)
        /// Since 1970, in units of so many nanoseconds.
        case timestamp(Int64)
        /// A number that no other message of the group has, up to 2^32 messages of a client.
        case unique
        /// So many bytes of any value, drawn for each message.
        case randomBytes(ClosedRange<Int>)
        /// Its place among the table's columns.
        case column(Int)

        var variesPerClient: Bool {
            switch self {
            case .clientNumber, .clientID, .username, .column: true
            case .literal, .messageNumber, .nanoseconds, .random, .timestamp, .unique, .randomBytes: false
            }
        }

        var variesPerMessage: Bool {
            switch self {
            case .messageNumber, .nanoseconds, .random, .timestamp, .unique, .randomBytes: true
            case .literal, .clientNumber, .clientID, .username, .column: false
            }
        }
    }

    private var pieces: [Piece]

    /// `columns`: those that `%{column}` may name.
    package init(parsing text: String, columns: [String] = []) {
        self.init(parsing: Array(text.utf8), columns: columns)
    }

    /// These bytes and nothing else, whatever they hold.
    package init(literal bytes: [UInt8]) { self.pieces = bytes.isEmpty ? [] : [.literal(bytes)] }

    /// Reads bytes, which need not be UTF-8: a message may be anything.
    ///
    /// `randomSizes`: of a message template, how many bytes `%RANDOM%` is; `nil`: the text has none of the ``names``.
    package init(parsing bytes: [UInt8], columns: [String] = [], randomSizes: ClosedRange<Int>? = nil) {
        self.pieces = []
        var literal: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.first {
            if byte == UInt8(ascii: "%"),
                let (piece, length) = Self.placeholder(at: rest, columns) ?? Self.name(at: rest, randomSizes)
            {
                if !literal.isEmpty { self.pieces.append(.literal(literal)) }
                literal = []
                self.pieces.append(piece)
                rest = rest.dropFirst(length)
            } else {
                literal.append(byte)
                rest = rest.dropFirst()
            }
        }
        if !literal.isEmpty { self.pieces.append(.literal(literal)) }
    }

    private static func placeholder(at bytes: ArraySlice<UInt8>, _ columns: [String]) -> (Piece, length: Int)? {
        let name = bytes.dropFirst()
        switch name.first {
        case UInt8(ascii: "{"):
            let column = name.dropFirst().prefix { $0 != UInt8(ascii: "}") }
            guard column.endIndex < bytes.endIndex,
                let index = columns.firstIndex(where: { $0.utf8.elementsEqual(column) })
            else { return nil }
            return (.column(index), column.count + 3)
        case UInt8(ascii: "i"): return (.clientNumber, 2)
        case UInt8(ascii: "c"): return (.clientID, 2)
        case UInt8(ascii: "u"): return (.username, 2)
        case UInt8(ascii: "s"): return (.messageNumber, 2)
        case UInt8(ascii: "t"): return (.nanoseconds, 2)
        default: break
        }
        let word = Array("rand_".utf8)
        guard name.starts(with: word) else { return nil }
        let digits = name.dropFirst(word.count).prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        var bound: UInt64 = 0
        for digit in digits {
            let (product, overflow) = bound.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(digit - UInt8(ascii: "0")))
            if overflow || carry { return nil }
            bound = sum
        }
        return bound > 0 ? (.random(bound), 1 + word.count + digits.count) : nil
    }
}

// MARK: - The names of emqtt_bench

extension Template {
    /// The placeholders that `emqtt_bench` has in message templates, with its meanings.
    package static let names = [
        "%TIMESTAMP%", "%TIMESTAMPMS%", "%TIMESTAMPUS%", "%TIMESTAMPNS%", "%UNIQUE%", Self.randomName,
    ]
    package static let randomName = "%RANDOM%"

    /// A word in capitals between two `%`, of three letters or more: two may be a byte of a URL.
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

    /// The words of a message template that have the form of the ``names`` and are none of them.
    ///
    /// Read as a template is: the second `%` of a placeholder begins no other one.
    package static func unknownNames(in bytes: [UInt8]) -> [String] {
        self.words(in: bytes).filter { !self.names.contains($0) }
    }

    /// All words between two `%`, in their order.
    private static func words(in bytes: [UInt8]) -> [String] {
        var words: [String] = []
        var rest = bytes[...]
        while let start = rest.firstIndex(of: UInt8(ascii: "%")) {
            rest = rest[start...]
            if let (_, length) = self.placeholder(at: rest, []) {
                rest = rest.dropFirst(length)
            } else if let word = self.word(at: rest) {
                words.append(String(decoding: word, as: UTF8.self))
                rest = rest.dropFirst(word.count)
            } else {
                rest = rest.dropFirst()
            }
        }
        return words
    }

    /// Whether the bytes, as a message template, hold any of the ``names``.
    package static func hasNames(in bytes: [UInt8]) -> Bool {
        self.words(in: bytes).contains { self.names.contains($0) }
    }

    /// Whether the bytes, as a message template, hold ``randomName``.
    package static func hasRandomBytes(in bytes: [UInt8]) -> Bool { self.words(in: bytes).contains(self.randomName) }
}

extension Template {
    /// The same bytes for every client and message.
    package var isConstant: Bool { !self.variesPerClient && !self.variesPerMessage }

    /// Holds `%i`, `%c`, `%u` or `%{column}`.
    package var variesPerClient: Bool { self.pieces.contains { $0.variesPerClient } }

    /// Holds what is another text in each message, such as `%s`, `%t` or `%rand_N`.
    package var variesPerMessage: Bool { self.pieces.contains { $0.variesPerMessage } }

    /// The columns that it names, by their place among them.
    package var columns: Set<Int> {
        self.pieces.reduce(into: []) { if case .column(let index) = $1 { $0.insert(index) } }
    }

    /// Bytes that are not placeholders, and those of `%RANDOM%` at most.
    package var literalBytes: Int {
        self.pieces.reduce(0) { sum, piece in
            switch piece {
            case .literal(let bytes): sum + bytes.count
            case .randomBytes(let sizes): sum + sizes.upperBound
            default: sum
            }
        }
    }

    /// Holds `%c` or `%u`, which have to be rendered first.
    package var needsIdentity: Bool { self.pieces.contains { $0 == .clientID || $0 == .username } }

    /// Appends the text; allocates nothing beyond what `bytes` has to grow.
    package func render(
        _ values: PlaceholderValues,
        random: inout some RandomNumberGenerator,
        into bytes: inout [UInt8]
    ) {
        for piece in self.pieces { Self.render(piece, values, random: &random, into: &bytes) }
    }

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
        case .clientNumber: self.append(UInt64(values.clientNumber.magnitude), to: &bytes)
        case .clientID: bytes += values.clientID
        case .username: bytes += values.username
        case .messageNumber: self.append(values.messageNumber, to: &bytes)
        case .nanoseconds: self.append(values.nanoseconds.magnitude, to: &bytes)
        case .random(let bound): self.append(.random(in: 1...bound, using: &random), to: &bytes)
        case .timestamp(let unit): self.append((values.nanoseconds / unit).magnitude, to: &bytes)
        case .unique:
            // The client in the upper half, its message in the lower one.
            self.append(UInt64(values.clientNumber.magnitude) << 32 | values.messageNumber & 0xFFFF_FFFF, to: &bytes)
        case .randomBytes(let sizes):
            for _ in 0..<Int.random(in: sizes, using: &random) {
                bytes.append(.random(in: .min ... .max, using: &random))
            }
        case .column(let column):
            if let rows = values.rows {
                bytes += rows.cell(row: rows.row(ofClient: values.clientNumber), column: column)
            }
        }
    }

    /// Appends a number in decimal, without a `String` between.
    private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        let start = bytes.count
        var rest = number
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        bytes[start...].reverse()
    }
}

// MARK: - The filter that reads a topic

extension Template {
    /// The filter that reads what one client publishes to this topic: levels that vary per message become `+`.
    package func filter(ofClient values: PlaceholderValues) -> String {
        self.filter { level in level.contains { $0.variesPerMessage } ? nil : values }
    }

    /// The filter that reads what all clients publish to this topic: every level with a placeholder becomes `+`.
    package var filterOfAllClients: String {
        let none = PlaceholderValues(clientNumber: 0)
        return self.filter { level in
            level.contains { $0.variesPerMessage || $0.variesPerClient } ? nil : none
        }
    }

    private func filter(values: ([Piece]) -> PlaceholderValues?) -> String {
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
        // Levels that are kept hold no `%rand_N`, so nothing is drawn from it.
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
