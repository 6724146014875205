import Measurement
import RunResult
import Scenario

/// The help of the program and of its commands, made from the option table.
enum HelpText {
    private static let width = 100
    /// Where descriptions begin.
    private static let indent = 30

    /// The help that a command line asks for, if it does.
    static func asked(by arguments: [String]) -> String? {
        var words = Array(arguments.prefix { $0 != "--" })
        if words.first == "help" { words = Array(words.dropFirst()) + ["--help"] }
        if words.prefix(2) == ["xmpp", "help"] { words = ["xmpp"] + words.dropFirst(2) + ["--help"] }
        guard let index = words.firstIndex(where: { $0 == "--help" || $0 == "--help-all" }) else { return nil }
        let flag = words[index]
        // An option in front of it lacks its value, which the argument parser says.
        let specs = CommandName(arguments: words).map { OptionTable.specs(of: $0) } ?? []
        if index > 0, specs.contains(where: { $0.lacksValue(words[index - 1]) }) { return nil }
        words.removeAll { $0 == flag }
        // Behind the options of `capacity` there is another command, which may be the one that is asked about.
        if words.first == "capacity", let load = words.dropFirst().firstIndex(where: { Self.loads.contains($0) }) {
            words = Array(words[load...])
        }
        if words.first == "xmpp", CommandName(arguments: words) == nil { return self.group }
        return CommandName(arguments: words).map { self.text(of: $0, isWhole: flag == "--help-all") } ?? self.root
    }

    private static let loads: Set = ["conn", "pub", "sub", "pubsub", "xmpp"]

    // MARK: - The program

    static var root: String {
        var lines = [
            "Clamor: a load generator for MQTT brokers and XMPP servers.", "",
            "Usage: clamor COMMAND [options]", "Help:  clamor COMMAND --help", "",
            "A first run needs no server:", "  \(CommandName.pubsub.example)", "",
            "-h is the host, as in emqtt_bench and mosquitto_pub; help is --help.",
        ]
        let commands = CommandName.allCases.filter { !Set<CommandName>.xmpp.contains($0) }
        for title in commands.map(\.title).firstOfEach {
            lines += ["", title]
            lines += commands.filter { $0.title == title }.flatMap { self.entry($0.rawValue, $0.abstract, at: 14) }
            if title == CommandName.conn.title {
                let words = Self.xmpp.map(\.word).joined(separator: ", ")
                lines += self.entry("xmpp ...", "Load on XMPP servers: \(words).", at: 14)
            }
        }
        lines += ["", "Exit codes"]
        lines += Self.exitCodes.flatMap { self.entry("\($0.code.rawValue)", $0.meaning, at: 14) }
        lines += ["", "Shell completions: clamor --generate-completion-script bash, zsh or fish"]
        return lines.joined(separator: "\n")
    }

    static let exitCodes: [(code: ExitStatus, meaning: String)] = [
        (.success, "all held"),
        (.usage, "wrong usage, or a load that this host cannot carry"),
        (.dataError, "wrong scenario or result file"),
        (.unavailable, "no connection"),
        (.cannotCreate, "results cannot be written"),
        (.unreconciled, "unreconciled, with --strict; decode: always"),
        (.generatorLimited, "generator-limited, with --strict"),
        (.thresholdFailed, "a threshold, a comparison, an objective or a check failed"),
        (.interrupted, "interrupted"),
    ]

    private static let xmpp: [CommandName] = [.login, .message, .presence, .ping, .muc, .register]

    private static var group: String {
        let lines = ["Load on XMPP servers.", "", "Usage: clamor xmpp COMMAND [options]", ""]
        return (lines + Self.xmpp.flatMap { self.entry($0.word, $0.abstract, at: 14) }).joined(separator: "\n")
    }

    // MARK: - A command

    /// The help of a command; `isWhole`: with all options, and not the most needed ones alone.
    static func text(of command: CommandName, isWhole: Bool) -> String {
        var lines = [command.abstract, ""]
        lines.append("Usage: \(command.synopsis)")
        lines.append("Example: \(command.example)")
        var left = 0
        for title in OptionTable.sections(of: command) {
            let shown = title.specs.filter {
                !$0.isHidden && !$0.allNames.isEmpty && (isWhole || $0.isBasic || command.showsAll)
            }
            left += title.specs.count { !$0.isHidden } - shown.count
            if shown.isEmpty { continue }
            lines += ["", title.title]
            lines += shown.flatMap { self.lines($0, isWhole: isWhole) }
        }
        if left > 0 { lines += ["", "\(left) more options: clamor \(command.rawValue) --help-all"] }
        if let discussion = command.discussion {
            lines.append("")
            lines += discussion.split(separator: "\n").flatMap { self.wrapped(String($0), at: 0) }
        }
        return lines.joined(separator: "\n")
    }

    private static func lines(_ spec: OptionSpec, isWhole: Bool) -> [String] {
        let all = spec.shownNames
        let names = (isWhole ? all : Array(all.prefix(2))).joined(separator: ", ")
        return self.entry("\(names) \(spec.valueWord)", spec.description(isWhole: isWhole), at: Self.indent)
    }

    /// A name, and its description behind or below it.
    private static func entry(_ name: String, _ words: String, at column: Int) -> [String] {
        let name = "  \(name)"
        let described = self.wrapped(words, at: column)
        guard name.count < column, let first = described.first else { return [name] + described }
        let gap = String(repeating: " ", count: column - name.count)
        return [name + gap + first.dropFirst(column)] + described.dropFirst()
    }

    private static func wrapped(_ text: String, at column: Int) -> [String] {
        let margin = String(repeating: " ", count: column)
        var lines: [String] = []
        var line = margin
        for word in text.split(separator: " ") {
            if line.count > column, line.count + 1 + word.count > Self.width {
                lines.append(line)
                line = margin
            }
            line += line.count > column ? " \(word)" : String(word)
        }
        return lines + [line]
    }
}

extension CommandName {
    /// Whether the command has so few options that its help shows all of them.
    fileprivate var showsAll: Bool { OptionTable.specs(of: self).count <= 16 }
}

extension OptionSpec {
    /// Whether a word is the option with its value still to come.
    fileprivate func lacksValue(_ word: String) -> Bool {
        switch self.shape {
        case .flag, .toggle: false
        case .one, .list, .repeated, .pairs, .words: self.names.contains(word)
        }
    }

    /// Every name, the short ones first.
    var shownNames: [String] {
        self.allNames.filter { !$0.hasPrefix("--") } + self.allNames.filter { $0.hasPrefix("--") }
    }

    /// The help with default and example; `isWhole`: with the default of emqtt_bench as well.
    func description(isWhole: Bool) -> String {
        var words = self.help
        if let usual = self.usual, !usual.isEmpty { words += " (default: \(usual))" }
        if isWhole, let elsewhere = self.elsewhere { words += " (\(elsewhere))" }
        if let example = self.example { words += " Example: \(example)" }
        return words
    }

    /// The value in help: `n/s`, `[true|false]`, or nothing.
    package var valueWord: String {
        switch self.shape {
        case .flag: ""
        case .toggle: "[\(self.unit)]"
        case .one, .list, .repeated, .pairs, .words: self.unit
        }
    }
}
