/// The labels of a metric, sorted by key: `leg=puback;qos=1`.
package struct Labels: Hashable, Sendable {
    package struct Label: Hashable, Sendable {
        package let key: String
        package let value: String
    }

    package private(set) var all: [Label]

    package init() { self.all = [] }

    package init(_ values: [String: String]) {
        self.all = values.map { Label(key: $0.key, value: $0.value) }.sorted { $0.key < $1.key }
    }

    /// Parses the form of `description`; nil if a part is not `key=value` or a key occurs twice.
    package init?(parsing text: String, separator: Character = ";") {
        var values: [String: String] = [:]
        for part in text.split(separator: separator) {
            guard let equals = part.firstIndex(of: "=") else { return nil }
            let key = String(part[..<equals])
            guard !key.isEmpty, values[key] == nil else { return nil }
            values[key] = String(part[part.index(after: equals)...])
        }
        self.init(values)
    }

    package var isEmpty: Bool { self.all.isEmpty }

    package subscript(key: String) -> String? {
        self.all.first { $0.key == key }?.value
    }

    /// These labels with one more, or with another value for it.
    package func adding(_ key: String, _ value: String) -> Labels {
        var copy = self
        copy.all.removeAll { $0.key == key }
        let place = copy.all.firstIndex { $0.key > key } ?? copy.all.endIndex
        copy.all.insert(Label(key: key, value: value), at: place)
        return copy
    }

    package func removing(_ key: String) -> Labels {
        var copy = self
        copy.all.removeAll { $0.key == key }
        return copy
    }

    /// Whether these labels include every label of `other` with the same value.
    package func contains(_ other: Labels) -> Bool { other.all.allSatisfy { self[$0.key] == $0.value } }
}

extension Labels: CustomStringConvertible {
    package var description: String { self.all.map { "\($0.key)=\($0.value)" }.joined(separator: ";") }
}

extension Labels: Comparable {
    package static func < (left: Labels, right: Labels) -> Bool {
        left.all.lexicographicallyPrecedes(right.all) { ($0.key, $0.value) < ($1.key, $1.value) }
    }
}

extension Labels: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, String)...) {
        self.init(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
}

/// Encoded in JSON as an object: `{"leg": "puback", "qos": "1"}`.
extension Labels: Codable {
    package init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode([String: String].self))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Dictionary(uniqueKeysWithValues: self.all.map { ($0.key, $0.value) }))
    }
}
