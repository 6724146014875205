extension CommandName {
    /// The line about the command in the list of commands.
    package var abstract: String {
        switch self {
        case .conn: "Connect clients and hold them; connect latency by phase."
        case .pub: "Publish; throughput and acknowledgement latency per QoS."
        case .sub: "Subscribe; receive throughput, decoder throughput."
        case .pubsub: "Publish and subscribe in one run; end-to-end latency, loss, duplicates, order."
        case .login: "Log clients in and hold them; login latency by phase."
        case .message: "Send chat messages between clients; end-to-end latency, loss, duplicates, order."
        case .presence: "Change presence; time until the first and the last contact has each change."
        case .ping: "Ping the server (XEP-0199); response and service time."
        case .muc: "Send messages in rooms (XEP-0045); time until the first and the last occupant has each."
        case .register: "Create accounts in-band (XEP-0077) and remove them again; registration latency."
        case .run: "Run a scenario file: groups of MQTT and XMPP clients on one timeline."
        case .coordinate: "Begin, watch, end and merge one run over many machines."
        case .capacity: "Search for the largest load that holds an objective."
        case .decode: "Measure the decoders, in memory and over a loopback socket; no server needed."
        case .calibrate: "Prove the meter on this host, and measure what host and generator can do."
        case .doctor: "Check what this host allows for a load, or how many hosts like it a scenario needs."
        case .broker: "Serve the embedded broker (MQTT 3.1, 3.1.1 and 5), with injected faults if asked."
        case .proxy: "Put faults in front of any TCP server."
        case .report: "Print the summary of a run; rebuild it from a killed one (DIR.partial)."
        case .compare: "Compare two runs, or several of each side; exit 99 if a figure regressed."
        case .merge: "Add the results of all segments of a run, and judge its thresholds."
        case .draft: "Write a ready scenario, or files with which CI, Slurm or Kubernetes run one."
        }
    }

    /// The title under which the root's help lists the command.
    package var title: String {
        switch self {
        case .conn, .pub, .sub, .pubsub, .login, .message, .presence, .ping, .muc, .register: "Load"
        case .run, .coordinate, .draft, .capacity: "Scenarios and searches"
        case .report, .compare, .merge: "Analyse results"
        case .broker, .proxy, .doctor, .calibrate, .decode: "Servers and this host"
        }
    }

    /// Arguments beside the options.
    package var arguments: String {
        switch self {
        case .run, .coordinate: "FILE "
        case .capacity: ""
        case .proxy: "HOST:PORT "
        case .report: "DIR "
        case .compare: "BASE NEW "
        case .merge: "DIR ... "
        case .draft: "[NAME] "
        case .doctor: "[FILE] "
        default: ""
        }
    }

    /// Arguments behind the options.
    package var operands: String { self == .capacity ? " COMMAND ..." : "" }

    /// The form of a command line.
    package var synopsis: String { "clamor \(self.rawValue) \(self.arguments)[options]\(self.operands)" }

    package var example: String {
        switch self {
        case .conn: "clamor conn -h broker.example -c 10000 -R 500/s"
        case .pub: "clamor pub -h broker.example -c 100 -q 1 --rate 5000/s"
        case .sub: "clamor sub -h broker.example -c 10 -t 'fleet/#' --duration 1m"
        case .pubsub: "clamor pubsub -h embedded -c 100 -q 0,1,2 --rate 1000/s"
        case .login: "clamor xmpp login -h 127.0.0.1 --jid 'user%i@example.org' -P secret -c 1000 -R 100/s"
        case .message: "clamor xmpp message -h 127.0.0.1 --jid 'user%i@example.org' -P secret -c 100 --rate 1000/s"
        case .presence:
            "clamor xmpp presence -h 127.0.0.1 --jid 'u%i@example.org' -P secret -c 20 --contacts 9 --rate 50/s"
        case .ping: "clamor xmpp ping -h 127.0.0.1 --jid 'user%i@example.org' -P secret -c 100 --rate 500/s"
        case .muc:
            "clamor xmpp muc -h 127.0.0.1 --jid 'u%i@example.org' -P secret --rooms 10 --room-size 20 --rate 100/s"
        case .register: "clamor xmpp register -h 127.0.0.1 --jid 'new%i@example.org' -P secret -c 100 -R 20/s"
        case .run: "clamor run fleet.yaml --set RATE=5000/s"
        case .coordinate: "clamor coordinate fleet.yaml --target broker.example:1883 --segments 3"
        case .capacity: "clamor capacity --slo 'publish_ack_duration p99 < 50ms' pub -h embedded -c 50 -q 1"
        case .decode: "clamor decode --mix -d 5s"
        case .calibrate: "clamor calibrate --quick"
        case .doctor: "clamor doctor -h broker.example -c 50000"
        case .broker: "clamor broker -p 1884 --delay 5ms --drop 0.1%"
        case .proxy: "clamor proxy 127.0.0.1:1883 -p 1884 --delay 20ms"
        case .report: "clamor report results/runs/20261125-101500-pub"
        case .compare: "clamor compare results/base results/new"
        case .merge: "clamor merge results/segment-1 results/segment-2 --out results/whole"
        case .draft: "clamor init login-storm"
        }
    }

    /// Facts about the command beyond its options.
    package var discussion: String? {
        switch self {
        case .conn, .pub, .sub: Self.placeholders
        case .pubsub:
            """
            pair: subscriber k reads publisher k's topic. fan-in: each subscriber reads all topics. fan-out: all read the \
            one topic. shared: the subscribers are one share group. request: they answer to --response-topic.
            \(Self.placeholders)
            """
        case .login, .ping: Self.users
        case .message:
            """
            Messages go to the peer's full JID, so no roster is needed. In closed loop a client sends -F messages, and \
            then one for each that it receives.
            \(Self.users)
            """
        case .presence:
            """
            The clients form circles of --contacts + 1, in which each is a contact of all others. Missing subscriptions \
            are made before the load begins; those of an earlier run are used again.
            \(Self.users)
            """
        case .muc:
            """
            The first occupant of a room creates it, and the others follow. In closed loop each occupant sends -F \
            messages, and then one for each that all occupants have received.
            \(Self.users)
            """
        case .register:
            """
            Each account has a connection of its own. The run ends with the last account, or with --duration. Accounts \
            that exist already are errors and stay as they are; --keep keeps the created ones.
            \(Self.users)
            """
        case .run:
            """
            Options override the file. With --against the scenario and its opponent run in turn, A B A B, and are \
            compared as 'clamor compare DIR/a DIR/b' does it.
            """
        case .coordinate:
            """
            Each host runs 'clamor run FILE --coordinator mqtt://USER@HOST:PORT --segment I/N' with the same file and \
            options. The run begins when all segments are ready. Its results are merged here, and the exit code is the whole's.
            """
        case .capacity:
            """
            The load follows the options; --rate varies, or -c of conn, sub and xmpp login. Each step is a run of its \
            own. The load doubles until it breaks an objective, then the gap is halved to 5 %. Exit 99 if nothing holds.
            """
        case .decode:
            """
            Forms: pipelined (64 KiB a read), segments (1,460 bytes), fragments (1 to 7 bytes, drawn), cuts (every packet \
            cut once). What is decoded is compared with what was encoded; exit 97 where they differ.
            """
        case .calibrate:
            """
            The embedded broker injects delays, stalls, losses, duplicates and swaps, and the runs have to report them. \
            Exit 99 if one check fails. 'clamor compare' takes the noise between runs from the file that is left.
            """
        case .doctor:
            """
            A line per check: ok, warn or fail. Exit 64 if the load cannot run; the same checks guard every run. Without -c it \
            says how many clients run at most. With FILE it says how many hosts like this one carry the scenario, at measured \
            costs per client and per message; with --hosts whether so many do.
            """
        case .proxy:
            "Bytes, FIN and RST are passed on in order. Ctrl-C ends the proxy, and it prints its counts."
        case .compare:
            """
            A judged figure fails if it regressed beyond its limit, and significantly. Runs of another plan, CPU or number \
            of cores are refused (exit 65). One run a side is indicative and exits 0, unless a noise file or --strict is given.
            """
        case .merge:
            """
            Refused (exit 65) are segments that are missing, there twice, of another run or plan, not ended, or not whole.
            """
        case .draft:
            "The scenarios: \(ReadyScenario.all.map(\.name).joined(separator: ", ")). Without a name: the first."
        case .broker, .report: nil
        }
    }

    private static let placeholders = """
        Placeholders work in topics, client ids, user names, passwords and messages. %i is the client number, \
        %c client id, %u user name, %s message number of the client, %rand_N 1 to N, %t nanoseconds since 1970, \
        %{column} of --rows.
        """

    private static let users = """
        Placeholders work in --jid (but not in its domain), --password, --nick and -m. %i is the client number, %rand_N 1 \
        to N. -m also has %s, the message number of the client, and %t, nanoseconds since 1970.
        """
}
