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

/// Who may connect to the embedded broker; these too stand in `--broker '...'`.
struct AccessFlags: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Lines of NAME:PASSWORD; who is none of them is refused. (default: everybody may connect)",
            valueName: "file"
        )
    )
    var users: String?
    @Flag(name: .customLong("allow-anonymous"), help: "Beside --users, clients without a user name may connect too.")
    var allowAnonymous = false
    @Option(
        name: .long,
        help: ArgumentHelp(
            "scram-sha-256 or scram-sha-1: the only way in for the --users. (default: these and a password)",
            valueName: "method"
        )
    )
    var auth: String?
}

/// The text of `--broker '...'`.
struct EmbeddedFlags: ParsableArguments {
    @OptionGroup var faults: FaultFlags
    @OptionGroup var access: AccessFlags
}

/// Where the broker listens beside plain TCP.
struct ListenerFlags: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("Port for TLS too; 0: any free one.", valueName: "port"))
    var tlsPort: String?
    @Option(name: .long, help: ArgumentHelp("Port for WebSocket too; 0: any free one.", valueName: "port"))
    var wsPort: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Port for WebSocket over TLS too; 0: any free one.", valueName: "port")
    )
    var wssPort: String?
    @Option(name: .long, help: ArgumentHelp("The broker's certificate and its chain, PEM.", valueName: "file"))
    var certfile: String?
    @Option(name: .long, help: ArgumentHelp("The certificate's key, PEM.", valueName: "file"))
    var keyfile: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Clients have to show a certificate signed by one of these, PEM.", valueName: "file")
    )
    var cacertfile: String?
    @Option(
        name: .long,
        help: ArgumentHelp("A key that clients share with the broker, not a certificate.", valueName: "identity:hex")
    )
    var psk: String?
    @Option(
        name: .long,
        help: ArgumentHelp("Path of the WebSocket listeners. (default: any)", valueName: "path")
    )
    var path: String?
    @Flag(
        name: .customLong("proxy-protocol"),
        help: "Every connection begins with a PROXY header, v1 or v2, or is closed."
    )
    var proxyProtocol = false
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
    @OptionGroup(title: "Listeners") var listeners: ListenerFlags
    @OptionGroup(title: "Access") var access: AccessFlags
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
