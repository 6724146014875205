/// A command line, divided into options and their values by the option table.
///
/// Of the program's command line it says which words the argument parser took for which option; `--broker '...'` has no
/// other parser.
package struct CommandLineWords {
    struct Word {
        let spec: OptionSpec
        /// As it was typed.
        let name: String
        let value: String?
        /// The words it takes up.
        let range: Range<Int>
        /// Whether name and value are one word: `--size=64`, `-s64`.
        let isJoined: Bool
    }

    private(set) var options: [Word] = []

    /// `arguments`: behind the program's name; `specs`: the options that the command takes; `passesEnd`: also behind `--`,
    /// where `capacity` has another command.
    package init(_ arguments: [String], _ specs: [OptionSpec], passesEnd: Bool = false) {
        var index = arguments.startIndex
        while index < arguments.endIndex {
            let word = arguments[index]
            let start = index
            index += 1
            if word == "--" {
                if passesEnd { continue }
                return
            }
            guard word.hasPrefix("-"), let (spec, name) = Self.option(word, specs) else { continue }
            if name.count < word.count {
                let value = word.dropFirst(name.count)
                let isEqual = value.hasPrefix("=")
                self.add(spec, name, String(isEqual ? value.dropFirst() : value), start..<index, isJoined: true)
                continue
            }
            guard index < arguments.endIndex, spec.takesValue(name, arguments[index]) else {
                self.add(spec, name, nil, start..<index)
                continue
            }
            let value = arguments[index]
            index += 1
            if spec.shape == .words {
                while index < arguments.endIndex, !arguments[index].hasPrefix("-") { index += 1 }
            }
            self.add(spec, name, value, start..<index)
        }
    }

    private mutating func add(
        _ spec: OptionSpec,
        _ name: String,
        _ value: String?,
        _ range: Range<Int>,
        isJoined: Bool = false
    ) {
        self.options.append(Word(spec: spec, name: name, value: value, range: range, isJoined: isJoined))
    }

    private static func option(_ word: String, _ specs: [OptionSpec]) -> (OptionSpec, String)? {
        let name = word.hasPrefix("--") ? String(word.prefix { $0 != "=" }) : String(word.prefix(2))
        return specs.first { $0.allNames.contains(name) }.map { ($0, name) }
    }

    /// The name with which an option was typed last.
    package func name(of spec: OptionSpec) -> String? { self.options.last { $0.spec.id == spec.id }?.name }
}

extension OptionSpec {
    /// Whether the word behind a name of the option is its value, by the rules of the argument parser.
    fileprivate func takesValue(_ name: String, _ next: String) -> Bool {
        if name == self.negation || self.shape == .flag { return false }
        // The argument parser takes no secret that looks like a flag, but shows the command line that it refuses.
        if case .whole = self.secrecy { return true }
        return next == "-" || !next.hasPrefix("-") || self.isUnconditional
    }
}
