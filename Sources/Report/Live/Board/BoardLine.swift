/// A line of the board: pieces of text with their colours.
struct BoardLine: Hashable, Sendable {
    private struct Piece: Hashable, Sendable {
        var text: String
        var ink: TerminalStyle.Ink?
    }

    private var pieces: [Piece] = []
    /// The width in display columns.
    private(set) var width = 0

    init() {}

    init(_ text: String, _ ink: TerminalStyle.Ink? = nil) { self.add(text, ink) }

    var isEmpty: Bool { self.width == 0 }

    mutating func add(_ text: String, _ ink: TerminalStyle.Ink? = nil) {
        let text = text.oneColumnEach
        guard !text.isEmpty else { return }
        self.width += text.unicodeScalars.count
        if let last = self.pieces.indices.last, self.pieces[last].ink == ink {
            self.pieces[last].text += text
        } else {
            self.pieces.append(Piece(text: text, ink: ink))
        }
    }

    mutating func add(_ other: BoardLine) {
        self.pieces += other.pieces
        self.width += other.width
    }

    mutating func pad(to column: Int) {
        if column > self.width { self.add(String(repeating: " ", count: column - self.width)) }
    }

    /// In the columns up to `column`, to the right.
    mutating func add(_ text: String, endingAt column: Int, _ ink: TerminalStyle.Ink? = nil) {
        self.pad(to: column - text.count)
        self.add(text, ink)
    }

    func adding(_ other: BoardLine) -> BoardLine {
        var line = self
        line.add(other)
        return line
    }

    /// At most `width` columns, the last an ellipsis where some are missing.
    func truncated(to width: Int) -> BoardLine {
        guard self.width > width else { return self }
        var line = BoardLine()
        for piece in self.pieces {
            let room = width - line.width
            guard piece.text.count >= room else {
                line.add(piece.text, piece.ink)
                continue
            }
            // The rest has something: else the whole would have fitted.
            line.add(String(piece.text.prefix(max(0, room - 1))) + (room > 0 ? "…" : ""), piece.ink)
            break
        }
        return line
    }

    /// As written to the terminal, without trailing blanks.
    func text(_ style: TerminalStyle) -> String {
        var pieces = self.pieces
        while let last = pieces.last {
            pieces[pieces.count - 1].text = last.text.trimmedAtEnd
            guard pieces[pieces.count - 1].text.isEmpty else { break }
            pieces.removeLast()
        }
        return pieces.map { piece in piece.ink.map { style.paint(piece.text, $0) } ?? piece.text }.joined()
    }
}

extension String {
    /// The text with each character that may take another number of columns than one, or is none, as `?`.
    ///
    /// Names and errors come from files and servers: their escape sequences must not reach the terminal.
    var oneColumnEach: String {
        // None of these joins with another, so each is a character.
        if self.unicodeScalars.allSatisfy(\.isOneColumn) { return self }
        return String(
            self.map { character in
                let scalars = character.unicodeScalars
                return scalars.count == 1 && scalars.allSatisfy(\.isOneColumn) ? character : "?"
            }
        )
    }
}

extension Unicode.Scalar {
    /// Latin, Greek and Cyrillic, punctuation, arrows, and the signs of the board: one column wide everywhere.
    private static let narrow: [ClosedRange<UInt32>] = [
        0xA1...0xAC, 0xAE...0x2FF, 0x370...0x482, 0x48A...0x52F, 0x2010...0x2027, 0x2030...0x205E,
        0x2190...0x21FF, 0x2200...0x22FF, 0x2500...0x259F, 0x2713...0x2717,
    ]

    fileprivate var isOneColumn: Bool {
        if self.isASCII { return (0x20...0x7E).contains(self.value) }
        return Self.narrow.contains { $0.contains(self.value) }
    }
}
