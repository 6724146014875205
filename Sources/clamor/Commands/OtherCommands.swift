import ArgumentParser

/// What goes wrong on purpose in the embedded broker; the same flags stand in `--broker '...'`.
struct FaultFlags: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("Share of outgoing PUBLISH that is lost.", valueName: "percent"))
    var drop: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Every nth outgoing PUBLISH of a subscription is sent twice.", valueName: "n")
    )
    var duplicate: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Every nth outgoing PUBLISH of a subscription is swapped with the next.", valueName: "n")
    )
    var reorder: String?
    @Option(name: .long, help: ArgumentHelp("Outgoing PUBLISH is held this long.", valueName: "duration"))
    var delay: String?
    @Option(name: .long, help: ArgumentHelp("Only every nth is held. (default: 1)", valueName: "n"))
    var delayEvery: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Neither reads nor writes, once: 2s@10s is for 2s, from 10s after the first CONNECT.",
            valueName: "duration@time"
        )
    )
    var stall: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Resets one connection each time, round robin over all.", valueName: "duration")
    )
    var disconnectEvery: String?
    @Option(name: .long, help: ArgumentHelp("PUBLISH read per second over all clients.", valueName: "n/s"))
    var maxRate: String?
    @Option(name: .long, help: ArgumentHelp("Bytes per write, such as 1-7.", valueName: "min-max"))
    var fragment: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Answers every CONNECT with this code, such as 0x87 or 5.", valueName: "code")
    )
    var refuse: String?
}

struct BrokerCommand: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "broker",
        abstract: "Serves the embedded broker (MQTT 3.1, 3.1.1 and 5), with injected faults if asked."
    )

    @Option(
        name: [.customShort("h", allowingJoined: true), .long, .customLong("hostname")],
        help: ArgumentHelp("Address to listen on. (default: 127.0.0.1)", valueName: "address")
    ) var host: String?
    @Option(
        name: [.customShort("p", allowingJoined: true), .long],
        help: ArgumentHelp("Port; 0: any free one. The first line says which. (default: 1883)", valueName: "port")
    ) var port: String?
    @Flag(name: .long, help: "Nothing on stdout but the first line.") var quiet = false
    @Flag(name: .customLong("child"), help: .hidden) var isChild = false
    @OptionGroup(title: "Faults") var faults: FaultFlags

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = BrokerOptions()
        reader.read(self, into: &options)
        return .broker(options)
    }
}

struct ReportCommand: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Prints the summary of a finished run, and rebuilds it from a killed one (DIR.partial)."
    )

    @Argument(help: ArgumentHelp("The result directory of a run.", valueName: "dir")) var directory: String
    @Flag(name: .long, help: "Only run.json's text on stdout.") var json = false

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = ReportOptions(directory: self.directory)
        options.json = self.json
        reader.check(directory: self.directory)
        return .report(options)
    }
}
