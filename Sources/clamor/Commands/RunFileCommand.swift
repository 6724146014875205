import ArgumentParser

struct RunFile: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Runs a scenario file: groups of MQTT and XMPP clients on one timeline.",
        discussion: """
            The keys are those of the short commands in words; clamor run FILE --check says what would run, or everything \
            that is wrong with the file, each with its line and column (exit 65). Flags go before what the file says.
            """
    )

    @Argument(help: ArgumentHelp("The scenario, YAML.", valueName: "file")) var file: String
    @Flag(name: .long, help: "Say what would run, and connect nothing.") var check = false
    @Option(
        name: .long,
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Gives ${NAME} in the file a value, such as RATE=5000. Repeatable.", valueName: "name=value")
    ) var set: [String] = []
    @OptionGroup(title: "Run") var run: RunFlags

    func invocation(_ reader: inout OptionReader) -> Invocation {
        guard let bytes = reader.contents(of: self.file, flag: self.file) else { return .text("") }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            reader.report(self.file, "is not text in UTF-8; save it as that")
            return .text("")
        }
        let outcome = ScenarioReader.read(
            text,
            path: self.file,
            given: self.set,
            flags: self.run,
            environment: reader.environment,
            checks: reader.checks,
            flagReader: &reader
        )
        switch outcome {
        case .wrong(let lines): return .wrong(lines)
        case .scenario(var options):
            options.isCheck = self.check
            return .scenario(options)
        }
    }
}
