import ArgumentParser

struct RunFile: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Runs a scenario file: groups of MQTT and XMPP clients on one timeline.",
        discussion: """
            The keys are those of the short commands in words; clamor run FILE --check says what would run, or everything \
            that is wrong with the file, each with its line and column (exit 65). Flags go before what the file says.

            With --against the scenario and what it is held against run in turn, A B A B, each run a process of its own \
            with a directory of its own, DIR/a/1, DIR/b/1 and so on, and are compared at the end as clamor compare \
            DIR/a DIR/b does it: exit 99 if a figure regressed. The order of the sides is that of compare: the file is the base.
            """
    )

    @Argument(help: ArgumentHelp("The scenario, YAML.", valueName: "file")) var file: String
    @Flag(name: .long, help: "Say what would run, and connect nothing.") var check = false
    @Option(
        name: .long,
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Gives ${NAME} in the file a value, such as RATE=5000. Repeatable.", valueName: "name=value")
    ) var set: [String] = []
    @Option(
        name: .long,
        help: ArgumentHelp(
            "In the place of target: of the file, such as host:1884 or mqtts://host.",
            valueName: "server"
        )
    ) var target: String?
    @OptionGroup(title: "Run") var run: RunFlags
    @OptionGroup(title: "Several runs") var series: SeriesFlags

    func invocation(_ reader: inout OptionReader) -> Invocation {
        switch reader.scenario(self, ScenarioSource(self)) {
        case .wrong(let lines): return .wrong(lines)
        case .scenario(var options):
            reader.checkSegments(options, of: self)
            guard self.series.isAsked else {
                reader.checkAlone(self.series)
                options.isCheck = self.check
                return .scenario(options)
            }
            return reader.series(self, options)
        case nil: return .text("")
        }
    }
}

/// Runs one after the other, and what they are held against.
struct SeriesFlags: ParsableArguments {
    @Option(
        name: .customLong("repeat"),
        help: ArgumentHelp(
            "Runs one after the other; with --against of each side. (default: 5 with --against)",
            valueName: "n"
        )
    ) var repeats: String?
    @Option(
        name: .long,
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            """
            What the scenario is held against: another file, another server for this one (host:1884), or another value \
            of a variable (RATE=2000; with --allow-different plan, if that changes the plan). Repeatable.
            """,
            valueName: "other"
        )
    ) var against: [String] = []
    @OptionGroup var comparison: ComparisonFlags

    var isAsked: Bool { self.repeats != nil || !self.against.isEmpty }
}

/// One side: a file, and what it is told.
struct ScenarioSource {
    var file: String
    var set: [String]
    /// Variables behind `--against`, which go before those of `--set`.
    var against: [String] = []
    var target: String?
    /// As what is wrong with the file or the target is told.
    var fileFlag: String
    var targetFlag = "--target"
}

extension ScenarioSource {
    init(_ command: RunFile) {
        self.init(file: command.file, set: command.set, target: command.target, fileFlag: command.file)
    }
}
