import ArgumentParser

struct DoctorCommand: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "What this host allows for a load, and what to change; without -c, how many clients at most.",
        discussion: """
            A line per check: ok, warn (the load runs, but may measure this host) or fail. Exit 64 when the load cannot \
            run; the same checks guard every run. -h embedded and loopback count the server's needs too.
            """
    )

    @Option(
        name: [.customShort("c", allowingJoined: true), .long],
        help: ArgumentHelp("Clients, or publishers of pubsub. (default: as many as there can be)", valueName: "n")
    ) var count: String?
    @Option(name: .long, help: ArgumentHelp("Subscribers beside them. (default: 0)", valueName: "n"))
    var subscribers: String?
    @Option(name: .long, help: ArgumentHelp("Messages per second of all clients together.", valueName: "n/s"))
    var rate: String?
    @Option(
        name: [.customShort("h", allowingJoined: true), .long, .customLong("hostname")],
        help: ArgumentHelp("Hosts, comma-separated, or 'embedded'. (default: 127.0.0.1)", valueName: "host,...")
    ) var host: String?
    @Option(
        name: [.customShort("p", allowingJoined: true), .long],
        help: ArgumentHelp("Port. (default: 1883)", valueName: "port")
    ) var port: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Local addresses to connect from, comma-separated.", valueName: "address,...")
    ) var ifaddr: String?
    @Option(name: .long, help: ArgumentHelp("Event loops. (default: cores, on loopback cores - 1)", valueName: "n"))
    var threads: String?
    @Flag(name: .long, help: "Only JSON on stdout.") var json = false
    @Flag(name: .long, help: "Nothing on stdout.") var quiet = false

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = DoctorOptions()
        reader.read(self, into: &options)
        return .doctor(options)
    }
}
