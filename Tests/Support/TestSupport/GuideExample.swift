import Testing

/// An example of the guides, made small and short, so that a server can hang in its middle.
package struct GuideExample: Hashable, CustomTestStringConvertible {
    package let words: [String]

    package var testDescription: String { self.words.joined(separator: " ") }

    /// The options that shape what is due, with the values that a short run has instead of the guide's.
    private static let shapes: [String: @Sendable (String) -> String] = [
        "-q": { $0 }, "-F": { $0 }, "-C": { $0 }, "-x": { $0 }, "--topology": { $0 }, "--reconnect": { $0 },
        "-c": { "\(min(Int($0) ?? 10, 12))" },
        "--rate": { "\(min(Int($0.prefix { $0.isNumber }) ?? 100, 120))/s" },
        "--rooms": { _ in "2" }, "--room-size": { _ in "4" }, "--contacts": { _ in "3" },
    ]

    init?(_ line: Substring, commands: [String]) {
        guard let all = MarkdownPage.arguments(line), let command = commands.first(where: { line.contains(" \($0) ") })
        else { return nil }
        let isRoom = all.contains("--rooms")
        var kept: [String] = []
        for (name, value) in zip(all, all.dropFirst()) {
            guard let shape = Self.shapes[name], !(isRoom && name == "-c") else { continue }
            kept += [name, shape(value)]
        }
        self.words = command.split(separator: " ").map(String.init) + kept
    }

    package static func all(_ commands: String...) -> [GuideExample] {
        let lines = MarkdownPage.guides.flatMap { (try? MarkdownPage($0).blocks.flatMap(\.lines)) ?? [] }
        var examples: [GuideExample] = []
        for line in lines {
            guard let example = GuideExample(line, commands: commands), !examples.contains(example) else { continue }
            examples.append(example)
        }
        return examples
    }
}
