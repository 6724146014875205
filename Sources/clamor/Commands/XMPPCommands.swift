import ArgumentParser
import Workloads

/// Load on XMPP servers; all work is in its subcommands.
struct XMPPCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "xmpp",
        abstract: "The same for XMPP servers: login, message, ping, muc, presence, register.",
        subcommands: [
            XMPPLogin.self, XMPPMessage.self, XMPPPing.self, XMPPMUC.self, XMPPPresence.self, XMPPRegister.self,
        ],
        helpNames: [.long]
    )

    static var commandNames: [String] { self.configuration.subcommands.compactMap { $0.configuration.commandName } }
}

let xmppUsers = """
    Placeholders in the parts of --jid but its domain, in --password, --nick and -m: %i client number, %rand_N a number from \
    1 to N; in -m also %s message number of the client and %t nanoseconds since 1970.
    """

struct XMPPLogin: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "login",
        abstract: "Logs clients in and holds them; login latency by phase.",
        discussion: xmppUsers
    )

    @OptionGroup(title: "Connection") var connection: XMPPConnectionFlags
    @OptionGroup(title: "Run") var run: RunFlags
    @OptionGroup(title: "Run") var scenario: ScenarioFlag

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = XMPPOptions(kind: .login)
        reader.read(self.connection, into: &options)
        reader.read(self.run, into: &options)
        return .xmpp(options)
    }
}

struct XMPPMessage: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "message",
        abstract: "Chat messages from each client to its peer; end-to-end latency, loss, duplicates, order.",
        discussion: """
            Messages go to the peer's full JID, so nobody needs a roster or a presence. In closed loop a client sends as \
            many as -F before any comes, and then one for each that comes to it.
            \(xmppUsers)
            """
    )

    @Option(
        name: .long,
        help: ArgumentHelp(
            "neighbour (1 and 2, 3 and 4, ...), random (a ring over all) or hotspot (all to the first). (default: neighbour)",
            valueName: "shape"
        )
    ) var pairing: String?
    @OptionGroup(title: "Messages") var messages: StanzaFlags
    @OptionGroup(title: "Connection") var connection: XMPPConnectionFlags
    @OptionGroup(title: "Run") var run: RunFlags
    @OptionGroup(title: "Run") var scenario: ScenarioFlag

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = XMPPOptions(kind: .message)
        reader.read(self.connection, into: &options)
        reader.read(self.messages, into: &options)
        reader.read(pairing: self.pairing, into: &options)
        reader.read(self.run, into: &options)
        return .xmpp(options)
    }
}

struct XMPPPing: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "ping",
        abstract: "IQ pings from each client to the server (XEP-0199); response and service time.",
        discussion: xmppUsers
    )

    @OptionGroup(title: "Pings") var pace: PaceFlags
    @OptionGroup(title: "Pings") var window: WindowFlag
    @OptionGroup(title: "Connection") var connection: XMPPConnectionFlags
    @OptionGroup(title: "Run") var run: RunFlags
    @OptionGroup(title: "Run") var scenario: ScenarioFlag

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = XMPPOptions(kind: .ping)
        reader.read(self.connection, into: &options)
        reader.read(self.pace, into: &options.common)
        reader.read(self.window, into: &options)
        reader.read(self.run, into: &options)
        return .xmpp(options)
    }
}

/// When clients say something, what it carries, and how much of it is under way.
struct StanzaFlags: ParsableArguments {
    @OptionGroup var pace: PaceFlags
    @OptionGroup var payload: PayloadFlags
    @OptionGroup var window: WindowFlag
}

struct WindowFlag: ParsableArguments {
    @Option(
        name: [.customShort("F", allowingJoined: true), .long],
        help: ArgumentHelp(
            "Messages, or pings (1024 at most), under way per client. (default: 16 messages; pings, in rooms and of presence 1)",
            valueName: "n"
        )
    ) var inflight: String?
}

/// Shared by all commands that connect XMPP clients.
struct XMPPConnectionFlags: ParsableArguments {
    @Option(
        name: [.customShort("h", allowingJoined: true), .long, .customLong("hostname")],
        help: ArgumentHelp(
            "Hosts, comma-separated, taken in turn. (default: where the domain of --jid is served, by DNS)",
            valueName: "host,..."
        )
    ) var host: String?

    @Option(
        name: [.customShort("p", allowingJoined: true), .long],
        help: ArgumentHelp(
            "Port. (default: 5222; with --tls direct 5223, with --ws 443 or 80)",
            valueName: "port"
        )
    ) var port: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Whom to log in as, such as 'user%i@example.org/clamor'.", valueName: "jid")
    ) var jid: String?

    @OptionGroup var password: PasswordFlags

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Users in the place of --jid and --password: lines of JID,PASSWORD; client %i has line %i.",
            valueName: "file.csv"
        )
    ) var users: String?

    @Flag(
        name: .long,
        help: "Create accounts that are not there before the run (XEP-0077), and remove those it created behind it."
    ) var register = false

    @Flag(name: .long, help: "Leave the accounts that were created.") var keep = false

    @Option(
        name: .long,
        help: ArgumentHelp(
            "required (STARTTLS), preferred (if offered), allowed (if the server requires it), direct (from the first byte), off. (default: required)",
            valueName: "policy"
        )
    ) var tls: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "The only SASL mechanism, such as SCRAM-SHA-256 or PLAIN. (default: the strongest that is offered)",
            valueName: "name"
        )
    ) var mechanism: String?

    @Flag(name: .long, help: "Stream management (XEP-0198): every write is acknowledged.") var sm = false

    @Option(
        name: .long,
        help: ArgumentHelp("The name server that is asked, without -h. (default: the system's)", valueName: "host:port")
    ) var resolver: String?

    @OptionGroup var clients: ClientFlags
    @OptionGroup(title: "Leaving and coming back") var departures: DepartureFlags
    @OptionGroup(title: "Transport") var certificates: CertificateFlags
    @OptionGroup(title: "Transport") var webSocket: WebSocketFlags
}
