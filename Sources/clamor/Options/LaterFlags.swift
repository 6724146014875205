/// What the design has and this build has not.
enum LaterFlags {
    private static let flags: Set = ["--prometheus"]

    /// Why this build refuses the command line, in one line.
    static func refusal(of arguments: [String]) -> String? {
        guard let first = arguments.first else { return nil }
        if first == "-h" || first == "--host" {
            return "clamor: -h is the host and belongs behind a command; for help: clamor --help"
        }
        for argument in arguments {
            if argument == "--" { return nil }
            let isShort = argument.hasPrefix("-") && !argument.hasPrefix("--")
            // A short flag may have its value joined to it.
            let name = isShort ? argument.prefix(2) : argument.prefix { $0 != "=" }
            if self.flags.contains(String(name)) { return "clamor \(first): \(name) is not in this build" }
        }
        if arguments.count == 2, arguments[1] == "-h" {
            return "clamor \(first): -h is the host and needs a value; for help: clamor \(first) --help"
        }
        return nil
    }
}
