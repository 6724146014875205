/// A sentence about options, which names each as its place has it: by its flag, or by its key in a scenario file.
package struct OptionWords: ExpressibleByStringInterpolation, Sendable {
    package enum Part: Sendable {
        case text(String)
        case name(AnyOptionKey, value: String?)
    }

    package let parts: [Part]

    package init(parts: [Part]) { self.parts = parts }
    package init(stringLiteral text: String) { self.parts = [.text(text)] }
    package init(stringInterpolation words: StringInterpolation) { self.parts = words.parts }
    package init(_ text: String) { self.parts = [.text(text)] }

    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var parts: [Part] = []

        package init(literalCapacity: Int, interpolationCount: Int) {}

        package mutating func appendLiteral(_ text: String) { self.parts.append(.text(text)) }
        package mutating func appendInterpolation(_ text: some StringProtocol) {
            self.parts.append(.text(String(text)))
        }
        package mutating func appendInterpolation(_ number: some BinaryInteger) {
            self.parts.append(.text("\(number)"))
        }
        package mutating func appendInterpolation(_ words: OptionWords) { self.parts += words.parts }

        /// Names an option: `--rate`, or `publish.rate`.
        package mutating func appendInterpolation(_ name: AnyOptionKey) { self.parts.append(.name(name, value: nil)) }

        /// Names an option with a value: `-q 1`, or `publish.qos: 1`.
        package mutating func appendInterpolation(_ name: AnyOptionKey, _ value: String) {
            self.parts.append(.name(name, value: value))
        }
    }

    package func text(_ name: (AnyOptionKey, _ value: String?) -> String) -> String {
        self.parts.map { part in
            switch part {
            case .text(let text): text
            case .name(let own, let value): name(own, value)
            }
        }.joined()
    }
}

extension OptionWords {
    /// The sentence in the words of the command line, or of a scenario file's groups, whatever they do.
    package func text(isFile: Bool) -> String {
        self.text { option, value in
            let spec = OptionTable[option]
            let key = isFile ? spec.key.map { $0.hasPrefix("*.") ? String($0.dropFirst(2)) : $0 } : nil
            let name = key ?? spec.name
            return value.map { "\(name)\(key == nil ? "" : ":") \($0)" } ?? name
        }
    }
}

/// How messages of a run name options: a scenario file has keys for them, a command line flags.
package enum OptionNames: Sendable {
    case keys, flags

    package func text(_ words: OptionWords) -> String { words.text(isFile: self == .keys) }
}
