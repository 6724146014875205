// Values of a kind, with a problem where they are of another.
extension ScenarioReader {
    /// Reports a problem with a value that nothing stands for.
    mutating func reported<Value>(_ place: ScenarioPlace, _ text: String) -> Value? {
        self.report(place, text)
        return nil
    }

    /// A value that has to be one word or number.
    mutating func text(_ value: ScenarioValue, of key: String) -> String? {
        if case .text(let text) = value.content { return text }
        return self.reported(value.place, "\(key) is \(value.kind); give it one value")
    }

    /// `true` or `false`.
    mutating func flag(_ value: ScenarioValue, of key: String) -> Bool {
        guard let text = self.text(value, of: key) else { return false }
        if !["true", "false"].contains(text) { self.report(value.place, "\(key): '\(text)' is not true or false") }
        return text == "true"
    }

    /// A text that one of the readers of quantities reads.
    mutating func quantity<Value>(
        _ value: ScenarioValue,
        of name: String,
        parse: (String) throws(QuantityError) -> Value
    ) -> Value? {
        guard let text = self.text(value, of: name) else { return nil }
        do throws(QuantityError) {
            return try parse(text)
        } catch {
            return self.reported(value.place, "\(name): \(error)")
        }
    }

    /// A name, as labels of metrics have it; `kind`: what it names.
    mutating func label(_ value: ScenarioValue, of key: String, _ kind: String) -> String? {
        guard let text = self.text(value, of: key) else { return nil }
        if Self.isLabel(text) { return text }
        return self.reported(value.place, "\(key): '\(text)' is no name of a \(kind); use letters, digits, _, - and .")
    }

    static func isLabel(_ text: String) -> Bool {
        !text.isEmpty && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_-.".contains($0)) }
    }

    /// The entries of a mapping; `name` begins the problem of what is none, and `remedy` ends it.
    mutating func mapping(_ value: ScenarioValue, _ name: String, _ remedy: String) -> [ScenarioValue.Entry]? {
        if case .mapping(let entries) = value.content { return entries }
        return self.reported(value.place, "\(name) is \(value.kind); \(remedy)")
    }

    /// The values of a mapping by their keys; reports those that are not known.
    mutating func values(
        _ entries: [ScenarioValue.Entry],
        _ known: [String],
        of name: String? = nil
    ) -> [String: ScenarioValue] {
        var values: [String: ScenarioValue] = [:]
        for entry in entries {
            if known.contains(entry.key) {
                values[entry.key] = entry.value
            } else {
                self.report(entry.place, (name.map { "\($0): " } ?? "") + self.unknown(entry.key, known: known))
            }
        }
        return values
    }
}
