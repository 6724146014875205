/// A sentence about options, which names each as its place has it: by its flag, or by its key in a scenario file.
struct OptionWords: ExpressibleByStringInterpolation, Sendable {
    enum Part: Sendable {
        case text(String)
        case option(AnyOptionKey, value: String?)
    }

    var parts: [Part]

    init(stringLiteral text: String) { self.parts = [.text(text)] }
    init(stringInterpolation words: StringInterpolation) { self.parts = words.parts }
    init(_ text: String) { self.parts = [.text(text)] }

    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var parts: [Part] = []

        init(literalCapacity: Int, interpolationCount: Int) {}

        mutating func appendLiteral(_ text: String) { self.parts.append(.text(text)) }
        mutating func appendInterpolation(_ text: some StringProtocol) { self.parts.append(.text(String(text))) }
        mutating func appendInterpolation(_ number: some BinaryInteger) { self.parts.append(.text("\(number)")) }
        mutating func appendInterpolation(_ words: OptionWords) { self.parts += words.parts }

        /// Names an option: `--rate`, or `publish.rate`.
        mutating func appendInterpolation(_ option: AnyOptionKey) {
            self.parts.append(.option(option, value: nil))
        }

        /// Names an option with a value: `-q 1`, or `publish.qos: 1`.
        mutating func appendInterpolation(_ option: AnyOptionKey, _ value: String) {
            self.parts.append(.option(option, value: value))
        }
    }

    /// The sentence in the words of the command line, or of a scenario file's groups, whatever they do.
    func text(isFile: Bool) -> String {
        self.text { option, value in
            let key = isFile ? option.key.map { $0.hasPrefix("*.") ? String($0.dropFirst(2)) : $0 } : nil
            let name = key ?? option.name
            return value.map { "\(name)\(key == nil ? "" : ":") \($0)" } ?? name
        }
    }

    /// The sentence, with the options in the words of `name`.
    func text(_ name: (_ option: OptionSpec, _ value: String?) -> String) -> String {
        self.parts.map { part in
            switch part {
            case .text(let text): text
            case .option(let option, let value): name(OptionTable[option], value)
            }
        }.joined()
    }
}
