import Yams

/// A place in a scenario file, counted from 1.
package struct ScenarioPlace: Hashable, Sendable, Comparable {
    package var line: Int
    package var column: Int
    /// The number of the file among those that make the scenario; 0 is the one that was named.
    package var file = 0

    package static func < (one: Self, other: Self) -> Bool {
        (one.file, one.line, one.column) < (other.file, other.line, other.column)
    }
}

struct ScenarioProblem: Error, Hashable, Sendable {
    var place: ScenarioPlace
    var text: String
}

/// A value of a scenario file, each part with its place.
struct ScenarioValue: Sendable {
    enum Content: Sendable {
        /// A key without a value.
        case nothing
        case text(String)
        case list([ScenarioValue])
        case mapping([Entry])
    }

    struct Entry: Sendable {
        var key: String
        var place: ScenarioPlace
        var value: ScenarioValue
    }

    var place: ScenarioPlace
    var content: Content

    /// The kind of the value, in words.
    var kind: String {
        switch self.content {
        case .nothing: "empty"
        case .text: "a text"
        case .list: "a list"
        case .mapping: "a mapping"
        }
    }
}

extension ScenarioValue {
    /// Aliases may make a small file a large tree.
    private static let most = 100_000

    /// Reads YAML.
    ///
    /// - Throws: the first thing that is no YAML, or more of it than any scenario has.
    init(yaml text: String, file: Int) throws(ScenarioProblem) {
        let node: Node?
        // Editors of Windows put a byte order mark in front.
        let text = text.hasPrefix("\u{FEFF}") ? String(text.dropFirst()) : text
        do {
            node = try compose(yaml: text, .default, .default, .utf8)
        } catch {
            var problem = Self.problem(error, in: text)
            problem.place.file = file
            throw problem
        }
        guard let node else {
            let place = ScenarioPlace(line: 1, column: 1, file: file)
            throw ScenarioProblem(place: place, text: "the file is empty; it needs groups")
        }
        var left = Self.most
        self = try Self.value(node, file, &left)
    }

    private static func value(_ node: Node, _ file: Int, _ left: inout Int) throws(ScenarioProblem) -> ScenarioValue {
        let place = ScenarioPlace(line: node.mark?.line ?? 1, column: node.mark?.column ?? 1, file: file)
        left -= 1
        guard left > 0 else {
            throw ScenarioProblem(place: place, text: "the file has over \(self.most) values; use fewer aliases")
        }
        switch node {
        case .scalar(let scalar):
            let isEmpty = scalar.style == .plain && ["", "~", "null"].contains(scalar.string)
            return ScenarioValue(place: place, content: isEmpty ? .nothing : .text(scalar.string))
        case .sequence(let sequence):
            var values: [ScenarioValue] = []
            for node in sequence { values.append(try self.value(node, file, &left)) }
            return ScenarioValue(place: place, content: .list(values))
        case .mapping(let mapping):
            var entries: [Entry] = []
            for (key, node) in mapping {
                let name = try self.value(key, file, &left)
                guard case .text(let text) = name.content else {
                    throw ScenarioProblem(place: name.place, text: "a key is \(name.kind); keys are words")
                }
                entries.append(Entry(key: text, place: name.place, value: try self.value(node, file, &left)))
            }
            return ScenarioValue(place: place, content: .mapping(entries))
        case .alias:
            throw ScenarioProblem(place: place, text: "the alias leads nowhere; write the value here")
        }
    }

    private static func problem(_ error: any Error, in text: String) -> ScenarioProblem {
        func problem(_ mark: Mark, _ words: String) -> ScenarioProblem {
            ScenarioProblem(place: ScenarioPlace(line: mark.line, column: mark.column), text: words)
        }
        switch error as? YamlError {
        case .scanner(let context, let words, let mark, _), .parser(let context, let words, let mark, _),
            .composer(let context, let words, let mark, _):
            let context = context.map { " \($0.text)" } ?? ""
            // In a mapping on one line YAML reads the braces of a variable.
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            let hasVariable = mark.line <= lines.count && lines[max(0, mark.line - 1)].contains("${")
            let remedy = hasVariable ? "write \"${NAME}\" in quotes" : "check indentation and quotes"
            return problem(mark, "not YAML:\(context) \(words); \(remedy)")
        case .duplicatedKeysInMapping(let names, let context):
            let keys = names.sorted().map { "'\($0)'" }.joined(separator: ", ")
            return problem(context.mark, "\(keys) occurs twice in one mapping; leave one out")
        case .reader(let words, let offset, _, _):
            let before = text.unicodeScalars.prefix(offset ?? 0)
            let line = before.count { $0 == "\n" } + 1
            let column = before.reversed().prefix { $0 != "\n" }.count + 1
            return ScenarioProblem(
                place: ScenarioPlace(line: line, column: column),
                text: "not YAML: \(words); take the character out"
            )
        default:
            return ScenarioProblem(place: ScenarioPlace(line: 1, column: 1), text: "not YAML: \(error)")
        }
    }
}
