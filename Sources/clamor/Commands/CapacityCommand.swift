import ArgumentParser

struct CapacityCommand: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "capacity",
        abstract: "Searches the largest load that holds an objective, and states it with an interval.",
        discussion: """
            Behind its own flags stands the load, a command as it would be run; what varies is its --rate, or -c of conn, \
            sub and xmpp login: clamor capacity --slo 'publish_ack_duration p99 < 50ms' pub -h embedded -c 50 -q 1. Each \
            step is a run of its own. The load doubles until it breaks an objective, then the gap is halved to 5 %, then \
            both edges are tried again. Where the generator is the limit it says so and names no number for the server. \
            Exit 99 when nothing holds, 98 when the generator was the limit (with --strict).
            """
    )

    @Option(
        name: .long,
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A threshold that has to hold, such as 'delivery_lost == 0'. Repeatable.",
            valueName: "sentence"
        )
    ) var slo: [String] = []
    @Option(name: .long, help: ArgumentHelp("How long each step measures. (default: 20s)", valueName: "duration"))
    var hold: String?
    @Option(name: .long, help: ArgumentHelp("What is offered first. (default: 1000/s, or 100 clients)", valueName: "n"))
    var first: String?
    @Option(name: .long, help: ArgumentHelp("Nothing above is offered. (default: none)", valueName: "n/s"))
    var maxRate: String?
    @Option(name: .long, help: ArgumentHelp("The same of clients.", valueName: "n")) var maxClients: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Result directory. (default: results/runs/<time>-capacity)", valueName: "dir")
    ) var out: String?
    @Flag(name: .long, help: "Only capacity.json's text on stdout.") var json = false
    @Flag(name: .long, help: "Nothing on stdout.") var quiet = false
    @Flag(name: .long, help: "Exit 98 when the generator was the limit.") var strict = false
    @Argument(
        parsing: .captureForPassthrough,
        help: ArgumentHelp("The load: a command and its flags.", valueName: "command")
    ) var load: [String] = []

    func invocation(_ reader: inout OptionReader) -> Invocation {
        // What is passed through is passed by the argument parser, its own --help with it.
        if self.load.first == "--help" { return .text(Clamor.helpMessage(for: Self.self)) }
        if self.load.last == "--help" { return Invocation.parse(self.load) }
        var options = CapacityOptions()
        reader.read(self, into: &options)
        return .capacity(options)
    }
}
