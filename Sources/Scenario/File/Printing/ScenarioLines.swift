/// Keys and values as YAML that reads back unchanged.
struct ScenarioLines {
    enum Value {
        case text(String)
        /// A text with `${NAME}` in it, unquoted.
        case variable(String)
        case list([String])
    }

    private(set) var lines: [String] = []

    mutating func comment(_ text: String) {
        let shown = text.map { $0.isNewline || $0.unicodeScalars.contains { $0.value < 0x20 } ? " " : String($0) }
        self.lines.append("# \(shown.joined())")
    }

    mutating func add(_ key: String, _ value: Value, depth: Int = 0) {
        self.lines.append(Self.indent(depth) + "\(key): \(Self.words(value))")
    }

    /// A key with others below it, or with none.
    mutating func open(_ key: String, depth: Int, isEmpty: Bool = false) {
        self.lines.append(Self.indent(depth) + (isEmpty ? "\(key): {}" : "\(key):"))
    }

    mutating func item(_ words: String, depth: Int) { self.lines.append(Self.indent(depth) + "- \(words)") }
    var text: String { self.lines.joined(separator: "\n") }
    private static func indent(_ depth: Int) -> String { String(repeating: "  ", count: depth) }

    static func words(_ value: Value) -> String {
        switch value {
        case .text(let text): Self.scalar(text)
        case .variable(let text): text
        case .list(let texts): "[\(texts.map(Self.quoted).joined(separator: ", "))]"
        }
    }

    /// Plain where nothing in it could be taken for something else.
    private static func scalar(_ text: String) -> String {
        let isPlain =
            text.first.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "/") } == true && text.last != ":"
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_./%+-@:".contains($0)) }
        return isPlain && text != "null" ? text : Self.quoted(text)
    }

    /// YAML 1.2 §7.3.1; numbers stay without quotes.
    static func quoted(_ text: String) -> String {
        if !text.isEmpty, text.count < 10, text.allSatisfy({ $0.isASCII && $0.isNumber }) { return text }
        return "\"\(self.escaped(text))\""
    }

    /// The text followed by a variable.
    static func quoted(_ text: String, then variable: String) -> String { "\"\(self.escaped(text))\(variable)\"" }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.replacing("${", with: "$${").unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case _ where Self.isShown(scalar): result.unicodeScalars.append(scalar)
            default:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                result += "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
            }
        }
        return result
    }

    private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator, .surrogate: false
        default: true
        }
    }
}
