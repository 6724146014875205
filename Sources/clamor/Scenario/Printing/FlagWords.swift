/// A command line as flags with their values, as the argument parser takes it.
struct FlagWords {
    struct Word {
        /// As it was typed.
        var flag: String
        /// `nil` where the flag stands alone.
        var value: String?
    }

    /// Their value is what comes next, whatever it looks like.
    private static let unconditional: Set = ["--broker", "--threshold"]

    private(set) var words: [Word] = []

    /// `arguments`: behind the command, and taken by the argument parser.
    init(_ arguments: some Sequence<String>) {
        var rest = Array(arguments)[...]
        while let argument = rest.popFirst() {
            let (flag, joined) = Self.parts(of: argument)
            var word = Word(flag: flag, value: joined)
            if joined == nil, let next = rest.first,
                next == "-" || !next.hasPrefix("-") || Self.unconditional.contains(flag)
            {
                word.value = rest.popFirst()
            }
            self.words.append(word)
        }
    }

    /// `--size=64`, or `-s64`.
    private static func parts(of argument: String) -> (String, String?) {
        let end =
            argument.hasPrefix("--")
            ? argument.firstIndex(of: "=")
            : argument.index(
                argument.startIndex,
                offsetBy: 2,
                limitedBy: argument.endIndex
            )
        guard let end, end < argument.endIndex else { return (argument, nil) }
        let isEqual = argument[end] == "="
        return (String(argument[..<end]), String(isEqual ? argument[end...].dropFirst() : argument[end...]))
    }
}
