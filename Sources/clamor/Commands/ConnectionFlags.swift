import ArgumentParser

/// Shared by all commands that connect MQTT clients.
///
/// Texts only: ``OptionReader`` gives them meaning, so that one
/// wrong value does not hide the next.
struct ConnectionFlags: ParsableArguments {
    @Option(
        name: [.customShort("h", allowingJoined: true), .long, .customLong("hostname")],
        help: ArgumentHelp(
            "Hosts, comma-separated, taken in turn; 'embedded' starts a broker of our own. (default: 127.0.0.1)",
            valueName: "host,..."
        )
    ) var host: String?

    @Option(
        name: [.customShort("p", allowingJoined: true), .long],
        help: ArgumentHelp("Port. (default: 1883; with -S 8883, with --ws 80 or 443)", valueName: "port")
    ) var port: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Instead of -h -p -u -P -S --ws --path: mqtt://user:password@host:port, mqtts://, ws:// or wss://host/path",
            valueName: "url"
        )
    )
    var url: String?

    @Option(
        name: .long,
        parsing: .unconditional,
        help: ArgumentHelp(
            "Faults and users of '-h embedded', the flags of 'clamor broker' in one argument: '--drop 0.1% --delay 5ms'.",
            valueName: "faults"
        )
    ) var broker: String?

    @OptionGroup var version: VersionFlag

    @Option(
        name: [.customShort("u", allowingJoined: true), .long],
        help: ArgumentHelp("User name; placeholders allowed.", valueName: "name")
    ) var username: String?

    @OptionGroup var password: PasswordFlags

    @Option(
        name: .long,
        help: ArgumentHelp(
            "CSV with the names of its columns in the first line: %{column} in a text is the cell of the client's row, %i the row.",
            valueName: "file"
        )
    ) var rows: String?

    @Option(
        name: [.customShort("k", allowingJoined: true), .long],
        help: ArgumentHelp("Keep-alive in seconds, 0 is off. (default: 300)", valueName: "s")
    ) var keepalive: String?

    @Option(
        name: [.customShort("C", allowingJoined: true), .long],
        defaultAsFlag: "true",
        parsing: .next,
        help: ArgumentHelp("Clean session. (default: true)", valueName: "true|false")
    ) var clean: String?

    @Flag(name: .customLong("no-clean"), help: "The same as -C false.") var noClean = false

    @Option(
        name: [
            .customShort("x", allowingJoined: true), .customLong("session-expiry"),
            .customLong("session-expiry-interval"),
        ],
        help: ArgumentHelp("Session expiry in seconds, MQTT 5 only. (default: 0)", valueName: "s")
    ) var sessionExpiry: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Client ids: PREFIX-pub-%i, -sub-%i or -conn-%i; emqtt_bench: PREFIX_bench_pub_%i. (default: clamor-XXXX; emqtt_bench: HOST_bench_pub_RANDOM)",
            valueName: "prefix"
        )
    )
    var prefix: String?

    @Option(
        name: .customLong("shortids"),
        defaultAsFlag: "true",
        parsing: .next,
        help: ArgumentHelp(
            "Short client ids: PREFIX, if given, p, s or c for pub, sub or conn, and %i, such as p1; emqtt_bench: PREFIX and %i.",
            valueName: "true|false"
        )
    ) var shortIDs: String?

    @Option(
        name: .customLong("client-id"),
        help: ArgumentHelp("The whole client identifier, with %i in it.", valueName: "id")
    )
    var clientID: String?

    @OptionGroup var clients: ClientFlags
    @OptionGroup(title: "Leaving and coming back") var departures: DepartureFlags
    @OptionGroup(title: "Leaving and coming back") var churn: SubscriptionChurnFlags
    @OptionGroup(title: "Transport") var transport: TransportFlags
    @OptionGroup(title: "Transport") var certificates: CertificateFlags
    @OptionGroup(title: "Transport") var webSocket: WebSocketFlags
    @OptionGroup(title: "Authentication") var auth: AuthFlags
    @OptionGroup(title: "Will") var will: WillFlags
    @OptionGroup(title: "MQTT 5 properties of CONNECT") var properties: ConnectPropertyFlags
}

struct VersionFlag: ParsableArguments {
    @Option(
        name: [.customShort("V", allowingJoined: true), .customLong("mqtt-version")],
        help: ArgumentHelp(
            "MQTT 3 (3.1), 4 (3.1.1) or 5; 3.1, 3.1.1 and 5.0 as well. (default: 5)",
            valueName: "version"
        )
    ) var version: String?
}

/// The password of all clients, whatever they speak.
struct PasswordFlags: ParsableArguments {
    @Option(
        name: [.customShort("P", allowingJoined: true), .long],
        help: ArgumentHelp("Password; else the environment's CLAMOR_PASSWORD. Shown nowhere.", valueName: "password")
    ) var password: String?

    @Option(
        name: .long,
        help: ArgumentHelp("A file that holds the password (a last newline is dropped).", valueName: "file")
    ) var passwordFile: String?

    var isGiven: Bool { self.password != nil || self.passwordFile != nil }
}

/// How many clients connect, from where and how fast; whatever they speak.
struct ClientFlags: ParsableArguments {
    @Option(
        name: [.customShort("c", allowingJoined: true), .long],
        help: ArgumentHelp("Clients. (default: 1; emqtt_bench: 200)", valueName: "n")
    ) var count: String?

    @Option(
        name: [.customShort("n", allowingJoined: true), .customLong("startnumber")],
        help: ArgumentHelp("Start number: %i runs from n+1 to n+count. (default: 0)", valueName: "n")
    ) var startNumber: String?

    @Option(
        name: [.customShort("R", allowingJoined: true), .customLong("connrate")],
        help: ArgumentHelp(
            "Connects per second, open loop. (default: 0, no limit, 64 pending per target; emqtt_bench: see -i)",
            valueName: "n/s"
        )
    ) var connectRate: String?

    @Option(
        name: [.customShort("i", allowingJoined: true), .long],
        help: ArgumentHelp("Milliseconds between connects, instead of -R. (emqtt_bench: 10)", valueName: "ms")
    ) var interval: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Local addresses to connect from, comma-separated.", valueName: "address,...")
    )
    var ifaddr: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "From resolve to CONNACK, or to the end of an XMPP login. (default: 10s)",
            valueName: "duration"
        )
    )
    var connectTimeout: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Further attempts of a first connect that failed. (default: 0)", valueName: "n")
    )
    var numRetryConnect: String?

    @Option(
        name: [.long, .customLong("maximum-reconnect-times")],
        help: ArgumentHelp("Reconnects of each client at most, 0 is off. (default: 0)", valueName: "n")
    ) var reconnect: String?

    @Option(name: .long, help: ArgumentHelp("Milliseconds before a reconnect. (default: 1000)", valueName: "ms"))
    var reconnectPeriod: String?
}

/// The phases of a run, the generator, its results.
struct RunFlags: ParsableArguments {
    @Option(
        name: [.customShort("d", allowingJoined: true), .long],
        help: ArgumentHelp(
            "The measured phase; a number without a unit is seconds; 0: until SIGINT. (default: 10s; emqtt_bench: until SIGINT)",
            valueName: "duration"
        )
    )
    var duration: String?

    @Option(name: .long, help: ArgumentHelp("Left out of durations and rates. (default: 0s)", valueName: "duration"))
    var warmup: String?

    @Option(
        name: .long,
        help: ArgumentHelp("How long open flows are awaited at the end. (default: 10s)", valueName: "duration")
    )
    var drain: String?

    @Option(name: .long, help: ArgumentHelp("Event loops. (default: cores, on loopback cores - 1)", valueName: "n"))
    var threads: String?

    @Option(name: .long, help: ArgumentHelp("Bytes of one read at most, 1 to 65536. (default: 65536)", valueName: "n"))
    var readSize: String?

    @Option(name: .long, help: ArgumentHelp("Makes every random choice repeatable.", valueName: "n"))
    var seed: String?

    @Flag(name: .long, help: "Also write clients.csv.") var perClient = false
    @OptionGroup(title: "Run") var results: ResultFlags
    @OptionGroup(title: "Several processes") var segments: SegmentFlags
}

/// One load over several processes.
struct SegmentFlags: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Do only part I of N of the load, which needs --seed; 'auto' asks the environment (a Kubernetes job, a Slurm array, Open MPI). clamor merge adds the results.",
            valueName: "i/n"
        )
    )
    var segment: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "When the first connect is due, such as 2026-11-21T01:37:10Z, or in seconds since 1970. (default: now)",
            valueName: "time"
        )
    )
    var startAt: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Divide the load among so many processes on this host, with --threads each, and merge their results.",
            valueName: "n"
        )
    )
    var processes: String?

    @Flag(name: .customLong("child"), help: .hidden) var child = false
}

struct ValidateFlag: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp("Refuse what MQTT forbids before it is sent. (default: on)", valueName: "on|off")
    )
    var validate: String?
}

/// Where the figures go, and how they are judged.
struct ResultFlags: ParsableArguments {
    @Option(
        name: .long,
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Such as 'connect_duration p99 < 250ms'; exit 99 when it fails. Repeatable.",
            valueName: "sentence"
        )
    ) var threshold: [String] = []

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Result directory. (default: results/runs/<time>-<command, or the scenario's name>)",
            valueName: "dir"
        )
    )
    var out: String?

    @OptionGroup var files: ReportFlags

    @Flag(name: .long, help: "Only run.json's text on stdout.") var json = false
    @Flag(name: .long, help: "Nothing on stdout.") var quiet = false
    @Flag(name: .customLong("no-tty"), help: "Print plain lines even on a terminal.") var noTTY = false
    @Flag(name: .long, help: "Exit 97 or 98 when the verdict is 'unreconciled' or 'generator-limited'.") var strict =
        false
}
