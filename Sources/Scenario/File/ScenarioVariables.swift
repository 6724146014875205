/// `${RATE:-5000}` in the values of a scenario file.
///
/// The command line (`--set`) overrides the file (`vars:`), the file the environment, and the environment the default
/// after `:-`.
struct ScenarioVariables {
    private let given: [String: String]
    private let environment: [String: String]
    private(set) var own: [String: String] = [:]
    private(set) var used: Set<String> = []
    /// Whether the value that is resolved is secret, or a part of it.
    fileprivate var isSecret = false
    /// Variables in the values of secret keys, and those that the file's defaults of such variables name.
    private(set) var secrets: Set<String> = []
    private var sources: [String: Set<String>] = [:]
    private var latest: Set<String> = []
    /// Bytes that variables have brought into the file's values, which grow exponentially where they name each other.
    private var expanded = 0
    private static let most = 16 << 20

    init(given: [String: String], environment: [String: String]) {
        self.given = given
        self.environment = environment
    }

    /// Variables of `--set` that no value uses.
    var unused: [String] { self.given.keys.filter { !self.used.contains($0) }.sorted() }

    /// Adds a default of a file, as it was resolved last; a default of the including file overrides it.
    mutating func add(_ name: String, _ value: String) {
        guard self.own[name] == nil else { return }
        self.own[name] = value
        self.sources[name] = self.latest
    }

    private mutating func note(secret name: String) {
        guard self.secrets.insert(name).inserted else { return }
        for source in self.sources[name] ?? [] { self.note(secret: source) }
    }

    static func isName(_ name: some StringProtocol) -> Bool {
        guard let first = name.first, first.isASCII, first.isLetter || first == "_" else { return false }
        return name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
    }

    /// Replaces variables by their values; `$${` is for the signs themselves.
    mutating func resolve(_ text: String) throws(QuantityError) -> String {
        self.latest = []
        let outer = self.isSecret
        defer { self.isSecret = outer }
        if Redaction.mayHaveSecret(text) { self.isSecret = true }
        var result = ""
        var rest = text[...]
        while let start = rest.firstRange(of: "${") {
            result += rest[..<start.lowerBound]
            let isEscaped = rest[..<start.lowerBound].last == "$"
            rest = rest[start.lowerBound...]
            if isEscaped {
                result.removeLast()
                result += "${"
                rest = rest.dropFirst(2)
                continue
            }
            guard let end = rest.firstIndex(of: "}") else {
                // Not echoed: it may be a password.
                throw QuantityError("a ${ has no '}'; write ${NAME}, or $${ for the signs themselves")
            }
            let value = try self.value(of: String(rest[...end]))
            self.expanded += value.utf8.count
            guard self.expanded <= Self.most else {
                throw QuantityError("variables expand to more than \(Self.most >> 20) MiB of text")
            }
            result += value
            rest = rest[rest.index(after: end)...]
        }
        return result + rest
    }

    /// `${NAME}` or `${NAME:-value}`.
    private mutating func value(of variable: String) throws(QuantityError) -> String {
        let inner = variable.dropFirst(2).dropLast()
        let parts = inner.firstRange(of: ":-")
        let name = String(parts.map { inner[..<$0.lowerBound] } ?? inner)
        guard Self.isName(name) else {
            throw QuantityError("a variable's name is letters, digits and _; write ${NAME} or ${NAME:-value}")
        }
        self.used.insert(name)
        self.latest.insert(name)
        if self.isSecret { self.note(secret: name) }
        if let value = self.given[name] ?? self.own[name] ?? self.environment[name] { return value }
        if let parts { return String(inner[parts.upperBound...]) }
        throw QuantityError("${\(name)} has no value; give --set \(name)=..., or write ${\(name):-value}")
    }
}

extension ScenarioReader {
    /// Replaces variables by their values.
    mutating func resolved(_ value: ScenarioValue) -> ScenarioValue {
        var value = value
        switch value.content {
        case .nothing: break
        case .text(let text):
            do throws(QuantityError) {
                value.content = .text(try self.variables.resolve(text))
            } catch {
                self.report(value.place, "\(error)")
                // The value read instead is not the intended one.
                self.unresolved.insert(value.place)
            }
        case .list(let values): value.content = .list(values.map { self.resolved($0) })
        case .mapping(let entries):
            value.content = .mapping(
                entries.map { entry in
                    let outer = self.variables.isSecret
                    defer { self.variables.isSecret = outer }
                    if Redaction.secretKeys.contains(entry.key) { self.variables.isSecret = true }
                    return ScenarioValue.Entry(key: entry.key, place: entry.place, value: self.resolved(entry.value))
                }
            )
        }
        return value
    }

    /// Reads the `NAME=VALUE` arguments of an option.
    static func variables(of words: [String], _ option: AnyOptionKey, _ given: inout GivenOptions) -> [String: String] {
        var values: [String: String] = [:]
        for word in words {
            let name = String(word.prefix { $0 != "=" })
            guard ScenarioVariables.isName(name), word.contains("=") else {
                given.refuse(option, "'\(name)' is no NAME=VALUE; write it like \(\.variables, "RATE=5000")")
                continue
            }
            values[name] = String(word.dropFirst(name.count + 1))
        }
        return values
    }
}
