package import Foundation

/// A page of the documentation, with as much of Markdown as its tests read.
package struct MarkdownPage: Sendable {
    /// From the root of the repository.
    package let path: String
    package let lines: [Substring]

    package static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    package init(_ path: String) throws {
        self.init(path, text: try String(contentsOf: Self.root.appending(path: path), encoding: .utf8))
    }

    package init(_ path: String, text: String) {
        self.path = path
        self.lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// The pages in a folder, by their paths.
    package static func paths(in folder: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: self.root.appending(path: folder).path)) ?? []
        return names.filter { $0.hasSuffix(".md") }.sorted().map { folder.isEmpty ? $0 : "\(folder)/\($0)" }
    }

    /// The README and the guides of the program.
    package static let guides = ["README.md"] + Self.paths(in: "Sources/clamor/Clamor.docc")

    // MARK: - Code

    package struct Block: Sendable {
        /// The word after the fence; empty for an indented block.
        package var language: Substring
        package var lines: [Substring] = []
        /// The number of its first line in the page.
        package var number: Int
        /// The text of an HTML comment right before it.
        package var comment: Substring?
    }

    /// The code blocks; an indented line is a block of its own.
    package var blocks: [Block] {
        var blocks: [Block] = []
        var fenced: Block?
        var comment: Substring?
        for (index, line) in self.lines.enumerated() {
            if line.hasPrefix("```") {
                if let block = fenced {
                    blocks.append(block)
                    fenced = nil
                } else {
                    fenced = Block(language: line.dropFirst(3), number: index + 2, comment: comment)
                }
            } else if fenced != nil {
                fenced?.lines.append(line)
            } else if line.hasPrefix("    ") {
                blocks.append(Block(language: "", lines: [line], number: index + 1))
            }
            if line.hasPrefix("<!--"), line.hasSuffix("-->") {
                comment = line.dropFirst(4).dropLast(3)
            } else if !line.isEmpty {
                comment = nil
            }
        }
        return blocks
    }

    /// The arguments of a command line that starts the program, installed or as it was built.
    package static func arguments(_ line: Substring) -> [String]? {
        guard line.hasPrefix("clamor ") || line.hasPrefix(".build/release/clamor ") else { return nil }
        return Array(self.words(line).dropFirst())
    }

    /// Words as a shell splits them, with text in single quotes kept together.
    package static func words(_ line: Substring) -> [String] {
        line.split(separator: "'", omittingEmptySubsequences: false).enumerated().flatMap { index, part in
            index % 2 == 1 ? [String(part)] : part.split(separator: " ").map(String.init)
        }
    }

    // MARK: - Text

    /// The lines outside of code, each with its number.
    private var text: [(number: Int, line: Substring)] {
        var isCode = false
        return self.lines.enumerated().compactMap { index, line in
            if line.hasPrefix("```") { isCode.toggle() }
            let isText = !isCode && !line.hasPrefix("```") && !line.hasPrefix("    ") && !line.hasPrefix("<!--")
            return isText ? (index + 1, line) : nil
        }
    }

    /// The fragments of its headings, as GitHub makes them.
    package var anchors: Set<String> {
        var seen: [String: Int] = [:]
        var anchors: Set<String> = []
        for (_, line) in self.text where line.hasPrefix("#") {
            let words = line.drop { $0 == "#" }.drop { $0 == " " }.lowercased()
            let anchor = words.replacing(" ", with: "-").filter { $0.isLetter || $0.isNumber || "-_".contains($0) }
            let count = seen[anchor, default: 0]
            seen[anchor] = count + 1
            anchors.insert(count == 0 ? anchor : "\(anchor)-\(count)")
        }
        return anchors
    }

    package struct Link: Sendable {
        package var target: String
        package var number: Int
    }

    /// Links, pictures and DocC's `<doc:...>`, without those in code.
    package var links: [Link] {
        self.text.flatMap { number, line in
            let line = String(line).replacing(/`[^`]*`/, with: "")
            let inline = line.matches(of: /\]\(([^)\s]*)\)/).map { String($0.1) }
            let symbolic = line.matches(of: /<(doc:[^>]*)>/).map { String($0.1) }
            return (inline + symbolic).map { Link(target: $0, number: number) }
        }
    }

    package struct Sentence: Sendable {
        package var text: String
        /// The number of the first line of its paragraph.
        package var number: Int
        package var words: Int { self.text.split(whereSeparator: \.isWhitespace).count }
    }

    /// The sentences of paragraphs, list items and table cells; code counts as one word.
    package var sentences: [Sentence] {
        var paragraphs: [(number: Int, text: String)] = []
        var isOpen = false
        for (number, line) in self.text {
            let trimmed = line.drop { $0 == " " }
            if trimmed.isEmpty || line.hasPrefix("#") {
                isOpen = false
            } else if line.hasPrefix("|") {
                isOpen = false
                let cells = line.replacing("\\|", with: "/").split(separator: "|")
                paragraphs += cells.map { (number, String($0)) }
            } else {
                let isItem = trimmed.prefixMatch(of: /([-*]|[0-9]+\.)\s/) != nil
                if isOpen, !isItem, let last = paragraphs.indices.last {
                    paragraphs[last].text += " \(trimmed)"
                } else {
                    paragraphs.append((number, String(trimmed)))
                }
                isOpen = true
            }
        }
        return paragraphs.flatMap { paragraph in
            Self.sentences(of: paragraph.text).map { Sentence(text: $0, number: paragraph.number) }
        }
    }

    /// The sentences of a paragraph, with code as one word and of links only their text.
    private static func sentences(of paragraph: String) -> [String] {
        let code = paragraph.split(separator: "`", omittingEmptySubsequences: false)
        let words = code.enumerated().map { $0.offset % 2 == 1 ? "X" : String($0.element) }.joined()
        let links = words.split(separator: "](", omittingEmptySubsequences: false)
        let plain = (links.prefix(1) + links.dropFirst().map { $0.drop { $0 != ")" } }).joined()
        var sentences = [""]
        for word in plain.split(separator: " ") {
            sentences[sentences.count - 1] += " \(word)"
            let end = word.last { !")\"*]".contains($0) }
            if let end, ".!?".contains(end) { sentences.append("") }
        }
        return sentences.filter { !$0.isEmpty }
    }
}
