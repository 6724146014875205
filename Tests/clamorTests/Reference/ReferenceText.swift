import Scenario
import clamor

/// Words of the option table as Markdown and as plain text.
enum ReferenceText {
    /// A table; a column that is empty in every row is left out.
    static func table(_ head: [String], _ rows: [[String]]) -> [String] {
        let shown = head.indices.filter { column in rows.contains { !$0[column].isEmpty } }
        let line = { (cells: [String]) in "| " + shown.map { cells[$0] }.joined(separator: " | ") + " |" }
        return [line(head), line(head.map { _ in "---" })] + rows.map(line)
    }

    /// A span of code in a cell, where `|` would end the cell.
    static func code(_ text: String) -> String { "`\(text.replacing("|", with: "\\|"))`" }

    static func list(_ words: some Sequence<String>) -> String { words.map { self.code($0) }.joined(separator: ", ") }

    /// The target of a link to a heading.
    static func anchor(_ heading: String) -> String {
        heading.lowercased().replacing(" ", with: "-").filter { $0.isLetter || $0.isNumber || "-_".contains($0) }
    }

    /// A help text as Markdown: options, placeholders and quoted words are code.
    static func markdown(_ text: String) -> String {
        self.pieces(text).map { piece in
            let word = piece.isCode ? self.code(piece.word) : self.escaped(piece.word)
            return piece.before + word + piece.after
        }.joined(separator: " ")
    }

    private static func escaped(_ word: String) -> String {
        word.replacing("|", with: "\\|").replacing("<", with: "\\<").replacing("*", with: "\\*")
    }

    /// A help text with other names of options; one is quoted, so that ``markdown(_:)`` makes it code.
    static func renamed(_ text: String, _ name: (_ option: String) -> String?) -> String {
        self.pieces(text).map { piece in
            let word = piece.isQuoted ? "'\(piece.word)'" : name(piece.word).map { "'\($0)'" } ?? piece.word
            return piece.before + word + piece.after
        }.joined(separator: " ")
    }

    // MARK: - Words

    private struct Piece {
        var before: String
        var word: String
        var after: String
        var isQuoted = false

        var isCode: Bool {
            if self.isQuoted { return true }
            let letters = Array(self.word)
            if letters.count > 1, letters[0] == "-", letters[1].isLetter || letters[1] == "-" { return true }
            let isPlaceholder = letters.indices.dropLast().contains { index in
                letters[index] == "%" && (letters[index + 1].isLetter || "{@%0".contains(letters[index + 1]))
            }
            return isPlaceholder || ["$", "@"].contains(letters.first)
                || ["://", "<", "_", "|"].contains { self.word.contains($0) }
        }
    }

    /// The words of a text, each without the punctuation around it; a quoted phrase is one word.
    private static func pieces(_ text: String) -> [Piece] {
        var words = text.split(separator: " ").map(String.init)[...]
        var pieces: [Piece] = []
        while var word = words.popFirst() {
            if word.drop(while: { $0 == "(" }).hasPrefix("'") {
                while !self.bare(word).core.hasSuffix("'"), let next = words.popFirst() { word += " \(next)" }
            }
            let (before, core, after) = self.bare(word)
            let isQuoted = core.count > 2 && core.hasPrefix("'") && core.hasSuffix("'")
            let shown = isQuoted ? core.dropFirst().dropLast() : core
            pieces.append(Piece(before: before, word: String(shown), after: after, isQuoted: isQuoted))
        }
        return pieces
    }

    private static func bare(_ word: String) -> (before: String, core: Substring, after: String) {
        let before = word.prefix { $0 == "(" }
        var core = word.dropFirst(before.count)
        while let last = core.last, ".,;:)".contains(last) { core.removeLast() }
        let after = word.dropFirst(before.count + core.count)
        return (String(before), core, String(after))
    }
}

extension Set<CommandName> {
    /// The commands in few words: `all loads`, `` `pub`, `pubsub` ``.
    var audience: String {
        var left = self
        var words: [String] = []
        for (name, group) in [("all loads", Self.loads), ("MQTT loads", .mqtt), ("XMPP loads", .xmpp)] {
            let missing = group.subtracting(left)
            guard missing.isEmpty || missing.count == 1 && group.count > 5 else { continue }
            words.append(name + (missing.first.map { " but `\($0.rawValue)`" } ?? ""))
            left.subtract(group)
        }
        return (words + CommandName.allCases.filter(left.contains).map { "`\($0.rawValue)`" }).joined(separator: ", ")
    }
}
