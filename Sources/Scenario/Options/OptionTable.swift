import EmbeddedBroker
import FaultInjection
import FaultProxy
import LoadEngine
import MQTTCodec
import NIOCore
import Report
package import Transport
package import Workloads

/// All options of all commands, in the order of the help.
package struct OptionTable: Sendable {
    let serverTitle = OptionTitle("Server")
    package let host = OptionEntry("-h --host --hostname", key: "target", .list("host,..."), of: .mqtt.union([.doctor]))
        .help("Servers, taken in turn: host, host:port or [::1]:1883. 'embedded' starts Clamor's own broker.")
        .usual("127.0.0.1").example("-h embedded").basic
        .excluding(\.url, "is part of \(\.url) already; leave one of the two out")
        .plan(.none("a comparison is between servers"))
    let port = OptionEntry("-p --port", key: "target", .number(1...65_535, "port"), of: .mqtt.union([.doctor]))
        .help("Port.").usual("1883; with -S 8883, with --ws 80 or 443").elsewhere("emqtt_bench: always 1883")
        .basic
        .excluding(\.url, "is part of \(\.url) already; leave one of the two out")
        .plan(.none("a comparison is between servers"))
    let url = OptionEntry("--url", key: "target", .text("url"), of: .mqtt)
        .help("One URL instead of -h -p -u -P -S --ws --path: mqtt://user:password@host:port, mqtts://, ws://, wss://.")
        .example("--url mqtts://broker.example:8883")
        .plan(.none("a comparison is between servers; its user, TLS and WebSocket are options of their own"))
    let xmppHost = OptionEntry("-h --host --hostname", key: "target", .list("host,..."), of: .xmpp)
        .help("Servers, taken in turn.").usual("where DNS says that the domain of --jid is served")
        .example("-h 127.0.0.1").basic.plan(.none("a comparison is between servers"))
    let xmppPort: OptionEntry<Int> = OptionEntry("-p --port", key: "target", .number(1...65_535, "port"), of: .xmpp)
        .help("Port.").usual("5222; with --tls direct 5223, with --ws 443 or 80")
        .plan(.none("a comparison is between servers"))
        .needing(
            \.xmppHost,
            "without \(\.xmppHost) the DNS says the port; add \(\.xmppHost), or leave \(\.xmppPort) out"
        )
    package let xmppTLS = OptionEntry("--tls", key: "tls", .choice("policy"), of: .xmpp)
        .help(
            "required (STARTTLS), preferred (if offered), allowed (if the server requires it), direct (TLS at once), off."
        )
        .usual("required; with --ws direct")
        .into(\XMPPOptions.tls, plan: .key("tls_policy", hashed: "tls", always: true)).basic
    let resolver = OptionEntry("--resolver", key: "resolver", .text("host:port"), of: .xmpp)
        .help("The name server to ask where -h is not given.").usual("the system's").plan(.none("it finds the server"))
        .excluding(\.xmppHost, "\(\.xmppHost) says where the server is; leave one of the two out")
    let broker = OptionEntry("--broker", key: "broker", .text("faults"), of: .mqtt)
        .help("Faults, users and P2P of '-h embedded': options of 'clamor broker' in one argument.")
        .example("--broker '--drop 0.1% --delay 5ms'").unconditional
        .needing(\.host, "its faults are for \(\.host, "embedded"); add that, or leave it out")
    let separate = OptionEntry("--separate", key: "separate", .flag, of: [.pubsub])
        .help("Treat the hosts of -h as separate servers, each with its own ledger, not as one cluster.")
        .into(\MQTTOptions.isSeparate, plan: .fact("separate"))
    package let target = OptionEntry("--target", .text("server"), of: .files.union([.doctor, .plan]))
        .help("A server that overrides target: of the file, such as host:1884 or mqtts://host.").scope(.run).basic
        .plan(.none("a comparison is between servers"))
    let raw = OptionEntry("--raw", key: "raw", .text("bytes"), of: [.conn])
        .help("Bytes that each client sends in place of CONNECT, in hexadecimal or as @FILE. Shown nowhere.")
        .secret(.part { $0.hasPrefix("@") ? $0 : Redaction.mask })

    let clientsTitle = OptionTitle("Clients")
    package let count = OptionEntry("-c --count", key: "clients", .number(1...10_000_000), of: .loads.union([.doctor]))
        .help("Clients; with pubsub publishers.")
        .usual("1; one room or circle with muc and presence; as many as fit with doctor").example("-c 1000")
        .elsewhere("emqtt_bench: 200").basic
    package let topology = OptionEntry("--topology", key: "topology", .choice("shape"), of: [.pubsub])
        .help("Topology: pair, fan-in, fan-out, shared (one share group) or request (with responses).")
        .example("--topology shared").into(\MQTTOptions.topology).basic
    package let subscribers = OptionEntry("--subscribers", key: "subscribers", .number(1...10_000_000), of: [.pubsub])
        .help("Subscribers.")
        .usual("as many as publishers; fan-in and request 1, shared 4; fan-out -c, with 1 publisher").basic
    let doctorSubscribers = OptionEntry("--subscribers", .number(0...10_000_000), of: [.doctor])
        .help("Subscribers beside the clients of -c.").usual("0").plan(.none("doctor runs nothing"))
    let hosts = OptionEntry("--hosts", .number(1...16_384), of: [.doctor])
        .help("Whether so many hosts like this one carry the scenario FILE.").usual("as many as it needs")
        .plan(.none("doctor runs nothing")).scope(.command)
    let startNumber = OptionEntry("-n --startnumber", key: "start_number", .number(0...1_000_000_000), of: .loads)
        .help("Start number: %i runs from n+1 to n+count.").into(\LoadOptions.startNumber, plan: .fact("start_number"))
    let prefix = OptionEntry("--prefix", key: "prefix", .text("prefix"), of: .mqtt)
        .help("Client ids are PREFIX-pub-%i, PREFIX-sub-%i or PREFIX-conn-%i.").usual("clamor-XXXX, drawn for each run")
        .elsewhere("emqtt_bench: PREFIX_bench_pub_%i")
    let shortIDs = OptionEntry("--shortids", key: "short_ids", .toggle, of: .mqtt)
        .help("Short client ids: PREFIX, if given, then p, s or c for the role, then %i, such as p1.").usual("false")
        .elsewhere("emqtt_bench: PREFIX and %i")
    let clientID = OptionEntry("--client-id", key: "client_id", .text("id"), of: .mqtt)
        .help("The whole client identifier, with %i in it.")
        .excluding(\.prefix, "is the whole id; leave \(\.prefix) out")
    let rows = OptionEntry("--rows", key: "rows", .text("file"), of: .mqtt)
        .help("CSV with column names in its first line; %{column} in a text is the cell in the client's row.")

    let usersTitle = OptionTitle("Users")
    package let jid = OptionEntry("--jid", key: "jid", .text("jid"), of: .xmpp)
        .help("The user to log in as; %i is the client's number.").example("--jid 'user%i@example.org/clamor'").basic
    let username = OptionEntry("-u --username", key: "username", .text("name"), of: .mqtt)
        .help("User name; placeholders allowed.").into(\MQTTOptions.username, plan: .fact("username"))
        .part(of: .connectPacket)
    let password = OptionEntry("-P --password", key: "password", .text("password"), of: .loads)
        .help("Password. Shown nowhere.").usual("the environment's CLAMOR_PASSWORD").secret(.whole)
        .environment("CLAMOR_PASSWORD").part(of: .connectPacket)
    let passwordFile = OptionEntry("--password-file", key: "password_file", .text("file"), of: .loads)
        .help("A file with the password, without placeholders; a final line end is dropped.").part(of: .connectPacket)
        .excluding(\.password, "\(\.password) is given too; leave one of the two out")
    package let users = OptionEntry("--users", key: "users", .text("file.csv"), of: .xmpp)
        .help("Users instead of --jid and --password: lines of JID,PASSWORD; client %i has line %i.").basic
        .excluding(\.jid, "\(\.jid) is given too; leave one of the two out")
        .excluding(\.password, "\(\.password) is given too; leave one of the two out")
        .excluding(\.passwordFile, "\(\.passwordFile) is given too; leave one of the two out")
    let registers = OptionEntry("--register", key: "register", .flag, of: .xmpp)
        .help("Create missing accounts before the run (XEP-0077), and remove those it created after it.")
        .into(\XMPPOptions.registers, plan: .key("register", hashed: "register"))
    package let keepsAccounts = OptionEntry("--keep", key: "keep", .flag, of: .xmpp.subtracting([.register]))
        .help("Keep the accounts that --register created.").into(\XMPPOptions.keepsAccounts, plan: .hashed("keep"))
        .needing(\.registers, "is about the accounts that \(\.registers) creates; add that, or leave it out")
    let keepsRegistered = OptionEntry("--keep", key: "registration.keep", .flag, of: [.register])
        .help("Keep the accounts that the run created.").into(\XMPPOptions.keepsAccounts, plan: .hashed("keep"))
    let mechanism = OptionEntry("--mechanism", key: "mechanism", .words(XMPPOptions.mechanisms, "name"), of: .xmpp)
        .help("The only SASL mechanism, such as SCRAM-SHA-256 or PLAIN.").usual("the strongest that the server offers")
        .into(\XMPPOptions.mechanism, plan: .key("mechanism", hashed: "mechanism"))
    let streamManagement = OptionEntry("--sm", key: "stream_management", .flag, of: .xmpp)
        .help("Stream management (XEP-0198): every write is acknowledged.")
        .into(\XMPPOptions.streamManagement, plan: .key("stream_management", hashed: "stream_management"))

    let connectingTitle = OptionTitle("Connecting")
    package let connectRate = OptionEntry("-R --connrate", key: "connect.rate", .connectRate, of: .loads)
        .help("Connects per second, open loop.").usual("0: no limit, 64 pending per server").example("-R 500/s")
        .elsewhere("emqtt_bench: see -i").basic
    let interval = OptionEntry("-i --interval", key: "connect.interval", .milliseconds, of: .loads)
        .help("Milliseconds between connects, instead of -R.").elsewhere("emqtt_bench: 10")
    let connectTimeout = OptionEntry(
        "--connect-timeout",
        key: "connect.timeout",
        .duration.aboveZero("leaves no time to connect; write it like 10s"),
        of: .loads
    )
    .help("From name resolution to CONNACK, or to the end of an XMPP login.")
    .into(\LoadOptions.connectTimeout, plan: .key("connect_timeout_seconds", always: true))
    let connectRetries = OptionEntry("--num-retry-connect", key: "connect.retries", .number(0...1_000_000), of: .loads)
        .help("Further attempts after a first connect that failed.")
        .into(\LoadOptions.connectRetries, plan: .fact("connect.retries"))
    package let sourceAddresses = OptionEntry(
        "--ifaddr",
        key: "connect.source_addresses",
        .addresses,
        of: .loads.union([.doctor])
    )
    .help("Local addresses to connect from, taken in turn.").usual("the system's choice")
    .into(\LoadOptions.sourceAddresses, plan: .none("it says where the generator connects from"))
    let protocolVersion = OptionEntry(
        "-V --mqtt-version",
        key: "connect.protocol",
        .protocolLevel,
        of: .mqtt.union([.decode])
    )
    .help("MQTT version: 3 (3.1), 4 (3.1.1) or 5; 3.1, 3.1.1 and 5.0 as well.")
    .into(\MQTTOptions.protocolLevel, plan: .key("protocol_level", hashed: "connect.protocol", always: true)).basic
    let keepAlive = OptionEntry("-k --keepalive", key: "connect.keep_alive", .seconds(0...65_535), of: .mqtt)
        .help("Keep-alive in seconds; 0 is off.")
        .into(\MQTTOptions.keepAlive, plan: .key("keep_alive_seconds", hashed: "connect.keep_alive", always: true))
    let clean = OptionEntry("-C --clean", negation: "--no-clean", key: "connect.clean", .toggle, of: .mqtt)
        .help("Clean session (MQTT 5: clean start).")
        .into(\MQTTOptions.clean, plan: .key("clean", hashed: "connect.clean", always: true))
    let keepsSessions = OptionEntry("--keep-sessions", key: "connect.keep_sessions", .flag, of: .mqtt)
        .help("Take up the sessions of an earlier run, and leave them to the next one.")
        .into(\MQTTOptions.keepsSessions, plan: .key("keep_sessions", hashed: "connect.keep_sessions"))
        .needing(\.clean, "is about sessions that outlive a connection; add \(\.clean, "false")")
    let sessionExpiry = OptionEntry(
        "-x --session-expiry --session-expiry-interval",
        key: "connect.session_expiry",
        .seconds(0...UInt32.max),
        of: .mqtt
    )
    .help("Session expiry in seconds, MQTT 5 only; at its end a run ends those of connected clients.").usual("0")
    .into(\MQTTOptions.sessionExpiry).part(of: .version5).part(of: .connectPacket)

    let leavingTitle = OptionTitle("Leaving and coming back")
    let reconnects = OptionEntry(
        "--reconnect --maximum-reconnect-times",
        key: "reconnect.times",
        .number(0...1_000_000_000),
        of: .loads
    )
    .help("Reconnects per client at most; 0 is off.")
    .into(\LoadOptions.reconnects, plan: .key("reconnects", hashed: "reconnect"))
    let reconnectPeriod = OptionEntry("--reconnect-period", key: "reconnect.from", .milliseconds, of: .loads)
        .help("Milliseconds before a reconnect.").into(\LoadOptions.backoff.from, plan: .fact("reconnect_period"))
    let reconnectLongest = OptionEntry("--reconnect-max", key: "reconnect.to", .milliseconds, of: .loads)
        .help("Milliseconds that a wait has at most, before jitter; each is --reconnect-factor times the one before.")
        .usual("a day").into(\LoadOptions.backoff.to, plan: .fact("reconnect.to"))
    let reconnectFactor = OptionEntry("--reconnect-factor", key: "reconnect.factor", .factor, of: .loads)
        .help("How many times the wait before it the next wait of a client is, 1 to 100, until it is up again.")
        .usual("2 with --reconnect-max, else 1").into(\LoadOptions.backoff.factor, plan: .fact("reconnect.factor"))
    let reconnectJitter = OptionEntry("--reconnect-jitter", key: "reconnect.jitter", .percent, of: .loads)
        .help("Each wait is longer or shorter by up to this share, drawn for each client and attempt.")
        .into(\LoadOptions.backoff.jitter, plan: .fact("reconnect.jitter"))
    let failover = OptionEntry("--failover", key: "failover", .flag, of: .loads)
        .excluding(\.separate, "servers apart have ledgers of their own; leave one of the two out")
        .help("After a loss, and after each connect that failed, a client tries the next of several targets.")
        .into(\LoadOptions.failsOver, plan: .fact("failover"))
    let cycleOnline: OptionEntry<Int64> = OptionEntry(
        "--cycle-online",
        key: "cycle.online",
        .duration.aboveZero("is no time; write it like 30s"),
        of: .loads.subtracting([.register])
    )
    .help("How long a client stays online, before it sleeps for --cycle-offline, and so on.").usual("always")
    .needing(\.cycleOffline, "goes with \(\.cycleOffline); add that, or leave it out")
    .into(\LoadOptions.sleep.online, plan: .fact("cycle.online")).example("--cycle-online 30s --cycle-offline 5m")
    let cycleOffline: OptionEntry<Int64> = OptionEntry(
        "--cycle-offline",
        key: "cycle.offline",
        .duration.aboveZero("is no time; write it like 5m"),
        of: .loads.subtracting([.register])
    )
    .help("How long a client sleeps; the clients are spread evenly over the cycle.").usual("")
    .needing(\.cycleOnline, "goes with \(\.cycleOnline); add that, or leave it out")
    .into(\LoadOptions.sleep.offline, plan: .fact("cycle.offline"))
    let cycleJitter = OptionEntry("--cycle-jitter", key: "cycle.jitter", .percent, of: .loads.subtracting([.register]))
        .help("Each time online or offline is longer or shorter by up to this share.")
        .needing(\.cycleOnline, "goes with \(\.cycleOnline); add that, or leave it out")
        .into(\LoadOptions.sleep.jitter, plan: .fact("cycle.jitter"))
    let cycleCut = OptionEntry("--cycle-cut", key: "cycle.cut", .flag, of: .loads.subtracting([.register]))
        .help("Clients go offline at once: no DISCONNECT or closing tag, and answers under way are not awaited.")
        .needing(\.cycleOnline, "goes with \(\.cycleOnline); add that, or leave it out")
        .into(\LoadOptions.sleep.cuts, plan: .fact("cycle.cut"))
    let cycleDue = OptionEntry("--cycle-due", key: "cycle.due", .choice("what"), of: .paced.subtracting([.register]))
        .help("Operations due while a client sleeps: queue (sent when it is back), skip, or latest (the last is sent).")
        .needing(\.cycleOnline, "goes with \(\.cycleOnline); add that, or leave it out")
        .into(\LoadOptions.sleep.due, plan: .fact("cycle.due"))
    let churn = OptionEntry("--churn", key: "churn", .churn, of: .loads)
        .help("Clients per second that disconnect and come back, in turn; 100/s:cut closes without a DISCONNECT.")
        .into(\LoadOptions.churn)
    let storm = OptionEntry("--storm", key: "storm", .storms, of: .loads)
        .help(
            "30%@5s: 5 s into the load that share of clients is cut off at once; :disconnect says goodbye. Repeatable."
        )
        .usual("").into(\LoadOptions.storms)
    let subscriptionChurn = OptionEntry("--subscription-churn", key: "subscription_churn", .rate, of: .mqtt)
        .help("Clients per second that subscribe to a filter without publishers and unsubscribe again, in turn.")
        .excluding(\.raw, "clients of \(\.raw) have no session to subscribe in; leave one of the two out")
    let subscriptionChurnFilter = OptionEntry(
        "--subscription-churn-filter",
        key: "subscription_churn_filter",
        .text("filter"),
        of: .mqtt
    )
    .help("The filter of --subscription-churn; placeholders allowed.").usual("clamor-churn/%c")
    .needing(\.subscriptionChurn, "goes with \(\.subscriptionChurn); add that, or leave it out")

    let roomsTitle = OptionTitle("Rooms and contacts")
    package let pairing = OptionEntry("--pairing", key: "message.pairing", .choice("shape"), of: [.message])
        .help("neighbour (1 and 2, 3 and 4, ...), random (a ring over all) or hotspot (all to the first).")
        .into(\XMPPOptions.pairing, plan: .hashed("message.pairing")).basic
    let rooms = OptionEntry("--rooms", key: "muc.rooms", .number(1...10_000_000), of: [.muc])
        .help("Rooms; together with --room-size they give -c.").usual("-c divided by --room-size, else 1").basic
    let roomSize = OptionEntry("--room-size", key: "muc.room_size", .number(1...XMPPOptions.largestGroup), of: [.muc])
        .help("Occupants of each room.").usual("-c divided by --rooms").basic
    package let room = OptionEntry("--room", key: "muc.room", .text("room"), of: [.muc])
        .help("Name of the rooms, with %r for the room's number; with or without @SERVICE.").usual("clamor%r")
    let service = OptionEntry("--service", key: "muc.service", .text("domain"), of: [.muc])
        .help("Domain of the server's rooms.").usual("conference.DOMAIN, the domain of --jid")
    package let nick = OptionEntry("--nick", key: "muc.nick", .text("nick"), of: [.muc])
        .help("A client's name in its room.")
        .into(\XMPPOptions.nick, plan: .key("nick", hashed: "muc.nick", always: true))
    let contacts = OptionEntry(
        "--contacts",
        key: "presence.contacts",
        .number(1...XMPPOptions.largestGroup - 1),
        of: [.presence]
    )
    .help("Contacts of each client; -c must be a multiple of one more.").usual("9").basic

    let messagesTitle = OptionTitle("Messages")
    let topic = OptionEntry("-t --topic", key: "*.topic", .text("topic"), of: .publishing.union([.decode]))
        .help("Topic; placeholders allowed.").usual("clamor/%i").example("-t 'fleet/%i/telemetry'").basic
    let filters = OptionEntry("-t --topic", key: "subscribe.filter", .repeated("filter"), of: [.sub])
        .help("Topic filter; placeholders allowed. Repeatable.").usual("clamor/#")
        .example("-t '$share/backend/fleet/#'").basic
    let qos = OptionEntry("-q --qos", key: "*.qos", .qualities, of: .publishing.union([.decode]))
        .help("QoS 0, 1 or 2; a list such as 0,1,2 spreads the clients over it.").usual("0").example("-q 0,1,2").basic
    let subscribeQoS = OptionEntry("-q --qos", key: "subscribe.qos", .qualities, of: [.sub])
        .help("QoS 0, 1 or 2; a list such as 0,1,2 spreads the clients over it.").usual("0").basic
    package let size = OptionEntry("-s --size --payload-size", key: "*.size", .sizes, of: .payloads)
        .help("Payload size, or a range drawn for each message. The ledger needs 16, of several streams 20 (XMPP: 44).")
        .usual("256").example("-s 64..1KiB").basic
    package let message = OptionEntry("-m --message", key: "publish.message", .text("text"), of: .publishing)
        .help(
            "A message: text or template://FILE with placeholders; file://FILE, hex://BYTES, base64://BYTES. %{ledger} keeps the ledger on."
        )
    let ledger = OptionEntry("--ledger", key: "publish.ledger", .choice("place"), of: .publishing)
        .help(
            "Where messages have the header that the ledger reads: payload, or property (MQTT 5 user property 'clamor')."
        )
        .into(\MQTTOptions.ledger, plan: .fact("publish.ledger"))
    let body = OptionEntry("-m --message", key: "*.body", .text("text"), of: .stanzas)
        .help(
            "A message: text or template://FILE with placeholders, or file://FILE as it is. %{ledger} keeps the ledger on."
        )
    let retain = OptionEntry("-r --retain", key: "*.retain", .toggle, of: .publishing)
        .help("Retain messages.").into(\MQTTOptions.retain, plan: .key("retain", hashed: "*.retain", always: true))
    let pacingTitle = OptionTitle("Pace")
    package let rate = OptionEntry("--rate", key: "*.rate", .rate, of: .paced.union([.doctor]))
        .help(
            "Operations per second of all clients together, open loop. Without it and -I clients keep their window full."
        )
        .example("--rate 5000/s").basic
        .excluding(\.messageInterval, "\(\.messageInterval) sets the pace too, per client; leave one of the two out")
    let messageInterval = OptionEntry(
        "-I --interval_of_msg --message-interval",
        key: "*.interval",
        .milliseconds,
        of: .paced
    )
    .help("Milliseconds between messages of one client, open loop; 0 is closed loop.")
    .elsewhere("emqtt_bench: 1000")
    package let limit: OptionEntry<UInt64> = OptionEntry(
        "-L --limit",
        key: "*.limit",
        .number(0...UInt64.max),
        of: .paced
    )
    .help(
        "Operations of all clients together; 0 is no limit. The last one ends the run, unless --duration ends it before."
    ).usual("0")
    .part(of: .publisher)
    let inflight = OptionEntry("-F --inflight", key: "*.window", .number(0...65_535), of: .publishing)
        .help("Messages in flight per client at QoS 1 and 2, 0: the peer's maximum; at QoS 0 messages per write.")
        .usual("16").elsewhere("emqtt_bench: 1").into(\LoadOptions.inflight, plan: .hashed("*.window"))
        .part(of: .publisher)
    let stanzaWindow = OptionEntry(
        "-F --inflight",
        key: "*.window",
        .number(1...65_535),
        of: [.message, .presence, .ping, .muc]
    )
    .help("Stanzas in flight per client; pings 1024 at most.")
    .usual("16 messages; pings, in rooms and of presence 1").into(\LoadOptions.inflight, plan: .hashed("*.window"))
    let wait = OptionEntry("-w --wait-before-publishing", negation: "--no-wait", key: "*.wait", .toggle, of: .paced)
        .help("Begin operations only when every client is up or has failed.").elsewhere("emqtt_bench: false")
        .into(\LoadOptions.waitsForAll, plan: .key("waits_for_connects", hashed: "*.wait", always: true))
        .part(of: .publisher)
    let ackTimeout = OptionEntry(
        "--ack-timeout",
        key: "*.ack_timeout",
        .duration.aboveZero("leaves no time for an answer; write it like 30s"),
        of: .paced
    )
    .help("How long an acknowledgement is awaited.")
    .into(\LoadOptions.ackTimeout, plan: .key("ack_timeout_seconds", hashed: "*.ack_timeout", always: true))
    .part(of: .publisher)

    let runTitle = OptionTitle("Run")
    let name = OptionEntry("--name", key: "name", .name("text", remedy: "name the run"), of: .runs)
        .help("The name of the run, in its headline, run.json and the default directory.").usual("with run the file's")
        .into(\LoadOptions.title, plan: .title("name")).scope(.run)
    let tags = OptionEntry("--tag", key: "tags", .pairs, of: .runs)
        .help("A tag in run.json and in the headings of reports. Repeatable.").usual("none").example("--tag build=42")
        .into(\LoadOptions.tags, plan: .title("tags")).scope(.run)
    package let duration = OptionEntry("--duration -d", key: "duration", .duration, of: .runs)
        .help("The measured phase; a number without a unit is seconds; 0: until SIGINT.")
        .usual("10s; with -L alone until it is spent; with run the file's").example("--duration 30s")
        .elsewhere("emqtt_bench: until SIGINT").scope(.run).basic
    let warmup = OptionEntry("--warmup", key: "warmup", .duration, of: .runs)
        .help("A phase before the measured one that durations and rates leave out.").into(\LoadOptions.warmup)
        .scope(.run)
    let drain = OptionEntry("--drain", key: "drain", .duration, of: .runs)
        .help("How long open flows are awaited at the end.").into(\LoadOptions.drain).scope(.run)
    package let threads = OptionEntry("--threads", .number(1...1_024), of: .clients.union([.doctor]))
        .help("Event loops.").usual("cores, for a target on loopback cores - 1")
        .into(
            \LoadOptions.threads,
            plan: .none("it says how much of the host the generator uses; `generator` in run.json has it")
        )
        .scope(.process)
    package let sockets = OptionEntry("--transport", .choice("kind"), of: .clients)
        .help("The clients' sockets: socket, for plain TCP on Linux 5.11 or later, or nio, for all else too.")
        .usual("socket where it can be")
        .into(\LoadOptions.sockets, plan: .none("it changes no load; `generator` in run.json has it")).scope(.run)
    let readSize = OptionEntry("--read-size", .number(1...65_536), of: .clients)
        .help("Bytes of one read at most, 1 to 65536.")
        .into(\LoadOptions.readSize, plan: .key("read_size", always: true)).scope(.run)
    let seed = OptionEntry("--seed", key: "seed", .number(0...UInt64.max), of: .runs)
        .help("Makes every random choice repeatable.").usual("drawn for each run").into(\LoadOptions.seed)
        .scope(.process).plan(.none("it decides which values are drawn, not from which distribution"))
    let perClient = OptionEntry("--per-client", .flag, of: .clients)
        .help("Also write clients.csv, with one line per client.")
        .into(\LoadOptions.perClient, plan: .none("it adds a file")).scope(.run)
    package let validates = OptionEntry("--validate", key: "validate", .toggle(yes: "on", no: "off"), of: .mqtt)
        .help("Refuse options that MQTT forbids before anything is sent.")
        .into(\LoadOptions.validates, plan: .fact("validate"))
    let printScenario = OptionEntry("--print-scenario", .flag, of: .loads)
        .help("Print the scenario file that does the same, and connect nothing.").plan(.none("it runs nothing"))
        .scope(.command)
    let check = OptionEntry("--check", .flag, of: [.run])
        .help("Print the plan of the run, or every problem of the file, and connect nothing.")
        .plan(.none("it runs nothing")).scope(.command).basic
    let variables = OptionEntry("--set", .repeated("name=value"), of: .files.union([.draft, .doctor, .plan]))
        .help("Give ${NAME} in the file a value. Repeatable.").example("--set RATE=5000/s")
        .plan(.none("the plan has what the variable stands for")).scope(.run).basic.unconditional
        .secret(.part(Redaction.hideVariable))

    let resultsTitle = OptionTitle("Results")
    package let thresholds = OptionEntry("--threshold", key: "thresholds", .repeated("sentence"), of: .results)
        .help("A condition on a metric; exit 99 if it fails. Repeatable.")
        .example("--threshold 'connect_duration p99 < 250ms'")
        .into(\ResultOptions.thresholds, plan: .none("it judges a run")).scope(.run).basic.unconditional
    let outputDirectory = OptionEntry(
        "--out",
        .name("dir", remedy: "name a directory"),
        of: .results.union([.capacity, .plan])
    )
    .help("Result directory.").usual("results/runs/<time>-<name>")
    .into(\ResultOptions.outputDirectory, plan: .none("it says where results go")).scope(.command)
    let junit = OptionEntry("--junit", .name("file", remedy: "name a file"), of: .results.union([.compare, .trend]))
        .help("Write the judgements as JUnit XML.")
        .into(\ReportFileOptions.junit, plan: .none("it says where results go")).scope(.command)
    let markdown = OptionEntry(
        "--summary-md",
        .name("file", remedy: "name a file"),
        of: .results.union([.compare, .trend])
    )
    .help("Append a summary in Markdown.").usual("the file that GITHUB_STEP_SUMMARY names, if any")
    .into(\ReportFileOptions.markdown, plan: .none("it says where results go")).scope(.command)
    .environment("GITHUB_STEP_SUMMARY")
    let history = OptionEntry("--history", .name("dir", remedy: "name a directory"), of: .results)
        .help("Add the run to a history, which trend reads: a small file for each run.")
        .into(\ReportFileOptions.history, plan: .none("it says where results go")).scope(.process)
    let html = OptionEntry("--html", .name("file", remedy: "name a file"), of: [.report, .compare, .trend])
        .help("Write a page; it needs no network.")
        .into(\ReportFileOptions.html, plan: .none("it says where results go")).scope(.command)
    let laws = OptionEntry("--check", .flag, of: [.report])
        .help("Check the figures of the results against each other; exit 65 if one is wrong.")
        .plan(.none("it says how results are shown")).scope(.command)
    let withoutPage = OptionEntry("--no-page", .flag, of: .results.union([.capacity]))
        .help("Write no report.html into the result directory.").plan(.none("it says where results go"))
        .scope(.run)
    let json = OptionEntry(
        "--json",
        .flag,
        of: .results.union([.capacity, .plan, .calibrate, .doctor, .compare, .trend, .report])
    )
    .help("Print only the JSON of the result on stdout.")
    .into(\ResultOptions.json, plan: .none("it says where results go")).scope(.command)
    let quiet = OptionEntry(
        "--quiet",
        .flag,
        of: .results.union([.capacity, .calibrate, .doctor, .compare, .trend, .broker, .proxy, .watch, .plan])
    )
    .help("Print nothing on stdout; broker and proxy print only their first line.")
    .into(\ResultOptions.quiet, plan: .none("it says where results go")).scope(.command)
    .excluding(\.json, "\(\.json) writes to stdout; leave one of the two out")
    let plainLines = OptionEntry("--no-tty", .flag, of: .results)
        .help("Print a line a second instead of the board, even on a terminal.")
        .into(\ResultOptions.isPlain, plan: .none("it says how results are shown")).scope(.run)
    let colour = OptionEntry("--color", .choice("when"), of: .results)
        .help("Colours: auto (on a terminal, unless NO_COLOR is set), always, never.")
        .into(\ResultOptions.colour, plan: .none("it says how results are shown")).scope(.run)
    let summary = OptionEntry("--summary", .choice("detail"), of: .results.union([.report]))
        .help("Text of the result: compact, or full with every figure.")
        .into(\ResultOptions.summary, plan: .none("it says how results are shown")).scope(.run)
    let strict = OptionEntry("--strict", .flag, of: .results)
        .help("Exit 97 or 98 if the verdict is 'unreconciled' or 'generator-limited'.")
        .into(\ResultOptions.strict, plan: .none("it judges a run")).scope(.process)
    let capacityStrict = OptionEntry("--strict", .flag, of: [.capacity])
        .help("Exit 98 if the generator was the limit.")
        .into(\ResultOptions.strict, plan: .none("it judges a search")).scope(.process)

    let liveTitle = OptionTitle("While it runs")
    let prometheus = OptionEntry("--prometheus --restapi", .endpoint, of: .runs.union([.capacity]))
        .help("Serve the metrics at /metrics for Prometheus, and a live page at /; alone: at 127.0.0.1:9464.")
        .into(\LiveOptions.endpoint, plan: .none("it says how a run is watched")).scope(.command)
    let prometheusLinger = OptionEntry("--prometheus-linger", .duration, of: .runs.union([.capacity]))
        .help("Longest wait for one more request of the final result, if it was requested before.")
        .into(\LiveOptions.linger, plan: .none("it says how a run is watched")).scope(.command)
        .needing(\.prometheus, "is the wait of \(\.prometheus); add that, or leave it out")
    package let watchedProcesses = OptionEntry(
        "--watch-pid --pid",
        .repeated("pid|name"),
        of: .clients.union([.watch, .plan])
    )
    .help("Measure CPU, memory and descriptors of a server on this host, children included. Repeatable.")
    .example("--watch-pid mosquitto").into(\LiveOptions.processes, plan: .none("it says what a run observes"))
    .scope(.single)
    package let watchedPages = OptionEntry("--watch-prometheus", .words("url series"), of: .clients.union([.watch]))
        .help("Read the server's own metrics: a URL, and names of series with * and ?. Repeatable.")
        .example("--watch-prometheus http://127.0.0.1:18083/api/v5/prometheus/stats 'emqx_connections*'")
        .plan(.none("it says what a run observes")).scope(.single).secret(.part(Redaction.hideURLSecrets))
    package let readsSys = OptionEntry("--watch-sys", .flag, of: .mqtt.union([.run]))
        .help("Read the server's $SYS topics, and compare its counts with the run's; up to 25 s longer.")
        .into(\LiveOptions.readsSys, plan: .none("it says what a run observes")).scope(.single)
    let asksServer = OptionEntry("--server-name", .toggle(yes: "on", no: "off"), of: .clients)
        .help("Ask the server for its name and version after the run, with one more client.").usual("on")
        .plan(.none("it says what a run observes")).scope(.run).environment("CLAMOR_SERVER_NAME")

    let seriesTitle = OptionTitle("Several runs")
    let repeats = OptionEntry("--repeat", .number(1...1_000), of: [.run])
        .help("Runs, one after the other; with --against of each side.").usual("1; with --against 5")
        .plan(.none("it repeats a plan")).scope(.command)
    let against = OptionEntry("--against", .repeated("other"), of: [.run])
        .help(
            "The other side of a comparison: another file, another server, or another value of a variable. Repeatable."
        )
        .example("--against localhost:1884").plan(.none("each side has a plan of its own")).scope(.command)
        .unconditional.secret(.part(Redaction.hideVariable))

    let untilDecided = OptionEntry("--until-decided", .flag, of: [.run])
        .help("Judge both sides after each pair of runs, and end once one is worse, better, or no difference is left.")
        .plan(.none("it repeats a plan")).scope(.command)
        .needing(\.against, "compares two sides; add \(\.against), or leave it out")
        .excluding(\.repeats, "decides how many runs there are; leave one of the two out")
    let longest = OptionEntry("--max", .duration, of: [.run])
        .help("The longest time for the runs of both sides until it is decided.").usual("10m")
        .plan(.none("it repeats a plan")).scope(.command)
        .needing(\.untilDecided, "is the longest time of \(\.untilDecided); add that, or leave it out")

    let processesTitle = OptionTitle("Several processes")
    package let segment = OptionEntry("--segment", .text("i/n"), of: .clients)
        .help("Do only part I of N of the load, which needs --seed; auto reads it from the environment of a scheduler.")
        .plan(.none("the record has a segment of its own")).scope(.command)
    package let startAt = OptionEntry("--start-at", .text("time"), of: .clients)
        .help("When the first connect is due, such as 2026-11-21T01:37:10Z, or in seconds since 1970.").usual("now")
        .plan(.none("it is a moment, and a plan has none")).scope(.command)
    package let processes = OptionEntry("--processes", .number(1...SegmentOptions.mostProcesses), of: .clients)
        .help("Divide the load among this many processes on this host, and merge their results.")
        .plan(.none("it divides a plan")).scope(.command)
        .excluding(\.startAt, "starts its segments together; leave \(\.startAt) out")
    let endsDecided = OptionEntry("--end-decided", .flag, of: .loads)
        .help("End the load once an objective cannot be met any more.")
        .into(\LoadOptions.endsDecided, plan: .none("it says how a run ends")).scope(.command).hidden
    let isChild = OptionEntry("--child", .flag, of: .clients.union([.broker]))
        .help("Started by another clamor.").plan(.none("it says who started a process")).scope(.command).hidden

    let machinesTitle = OptionTitle("Many machines")
    let segmentCount = OptionEntry("--segments", .number(1...SegmentOptions.mostSegments), of: [.coordinate, .draft])
        .help("Number of segments: the run begins when all have joined.").plan(.none("it divides a plan")).basic
    let listen = OptionEntry("--listen", .text("host:port"), of: [.coordinate])
        .help("Address for segments; port 0: any free one.")
        .usual("127.0.0.1:\(CoordinatorPlace.usualPort)").plan(.none("it says where segments join")).basic
    let coordinatorUser = OptionEntry("--user -u", .text("name"), of: [.coordinate])
        .help("User name of the segments; the password is in CLAMOR_COORDINATOR_PASSWORD.")
        .usual("segment").plan(.none("it says who may join")).basic
    let watches = OptionEntry("--watches", .number(0...1_000), of: [.coordinate])
        .help("Number of 'clamor watch' on the servers' hosts that the begin waits for; others may join at any time.")
        .usual("0").plan(.none("it says what a run observes")).basic
    let coordinatorCertificate: OptionEntry<String> = OptionEntry("--certfile", .text("file"), of: [.coordinate])
        .help("The coordinator's certificate and its chain, PEM: segments join with mqtts.")
        .plan(.none("it says where segments join"))
        .needing(\.coordinatorKey, "needs its private key; add \(\.coordinatorKey)")
    let coordinatorKey = OptionEntry("--keyfile", .text("file"), of: [.coordinate])
        .help("The private key of the certificate, PEM.").plan(.none("it says where segments join"))
        .needing(\.coordinatorCertificate, "needs its certificate; add \(\.coordinatorCertificate)")
    package let onLost = OptionEntry(
        "--on-lost",
        .choice("abort|continue") as OptionForm<LostSegmentOption>,
        of: [.coordinate]
    )
    .help("End the run when a segment is lost, or go on without it; the verdict is then unreconciled.")
    .usual("abort").plan(.none("it says how a run ends")).basic
    package let coordinator = OptionEntry("--coordinator --join", .text("url"), of: [.run, .watch])
        .help("Join the run of a coordinator: as a segment, with its seed and its begin; or to watch servers.")
        .example("--coordinator mqtt://10.0.0.1:7883 --segment 2/3")
        .plan(.none("it says which run a segment joins")).scope(.command).secret(.part(Redaction.hideURLSecrets))
    let coordinatorAuthority = OptionEntry("--coordinator-cafile", .text("file"), of: [.run, .watch])
        .help("PEM file with the CAs that the coordinator's certificate is verified with.").usual("the system's")
        .plan(.none("it says which run a segment joins")).scope(.command)
        .needing(\.coordinator, "is of use with \(\.coordinator) only")
    let coordinatorPassword = OptionEntry("--coordinator-password", .text("password"), of: .files.union([.watch]))
        .help("Password of the segments. Without one the coordinator makes one, and prints it.")
        .usual("the environment's CLAMOR_COORDINATOR_PASSWORD").plan(.none("it says who may join")).scope(.command)
        .environment("CLAMOR_COORDINATOR_PASSWORD").secret(.whole)
    let leastClients = OptionEntry("--min-clients", key: "min_clients", .clients, of: .files)
        .help("Under a coordinator the load begins when this part of all clients is up; the others follow.")
        .usual("when each client is up or has failed").example("--min-clients 99.9%")
        .into(\LoadOptions.leastClients, plan: .none("it says how long a run waits")).scope(.run)
    package let joinTimeout = OptionEntry("--join-timeout", .duration, of: .files.union([.watch]))
        .help("Longest wait for all segments to be ready; of a segment, for its coordinator to answer.").usual("2m")
        .plan(.none("it says how long a run waits")).scope(.command)

    let authenticationTitle = OptionTitle("Authentication")
    let auth = OptionEntry("--auth", key: "auth", .text("method"), of: .mqtt)
        .help("aliyun, or with MQTT 5 scram-sha-256 or scram-sha-1; with -u and -P.").usual("user name and password")
        .part(of: .connectPacket)
    let groupID = OptionEntry("--group-id", key: "group_id", .text("group"), of: .mqtt)
        .help("Group of --auth aliyun: client ids are GROUP@@@PREFIX-pub-%i.").part(of: .aliyun)
    let instanceID = OptionEntry("--instance-id", key: "instance_id", .text("instance"), of: .mqtt)
        .help("Instance of --auth aliyun; without it the old signature is used.").part(of: .aliyun)
    let tokenFile = OptionEntry("--token-file", key: "token_file", .text("file"), of: .mqtt)
        .help("Tokens of --auth aliyun instead of a secret key: lines such as 'R|TOKEN' or 'W|TOKEN'.")
        .part(of: .aliyun)

    let tlsTitle = OptionTitle("TLS")
    package let ssl = OptionEntry("-S --ssl", key: "ssl", .toggle, of: .mqtt)
        .help("TLS, with the certificate verified.").usual("false").basic
    package let caFile = OptionEntry("--cacertfile --ca", key: "ca_file", .text("file"), of: .loads)
        .help("PEM file with the trusted CAs.").usual("the system's").into(\TransportOptions.TLS.caFile).part(of: .tls)
    package let certificateFile = OptionEntry("--certfile --cert", key: "cert_file", .text("file"), of: .loads)
        .help("PEM file with the client's certificate; with %i in it one file per client.")
        .into(\TransportOptions.TLS.certificateFile).part(of: .tls)
    package let keyFile = OptionEntry("--keyfile --key", key: "key_file", .text("file"), of: .loads)
        .help("PEM file with the certificate's private key; %i as well.")
        .into(\TransportOptions.TLS.keyFile).part(of: .tls)
    let insecure = OptionEntry("--insecure", key: "insecure", .flag, of: .loads)
        .help("Accept any certificate: neither issuer nor name is verified.")
        .into(\TransportOptions.TLS.isInsecure).part(of: .tls)
    package let pin = OptionEntry("--pin", key: "pin", .repeated("pin"), of: .loads)
        .help(
            "Accept only this server key: sha256/BASE64 of the public key, or a file with the certificate. Repeatable."
        )
        .into(\TransportOptions.TLS.pins).part(of: .tls)
    package let preSharedKey = OptionEntry("--psk", key: "psk", .text("id:hex"), of: .mqtt)
        .help("A pre-shared key instead of certificates (TLS 1.2). Shown nowhere.").part(of: .tls).secret(.whole)
    let preSharedKeyFile = OptionEntry("--psk-file", key: "psk_file", .text("file"), of: .mqtt)
        .help("A file with the pre-shared key: one line ID:HEX.").part(of: .tls)
        .excluding(\.preSharedKey, "\(\.preSharedKey) is given too; leave one of the two out")
    package let tlsVersion = OptionEntry("--tls-version", key: "tls_version", .tlsVersions, of: .loads)
        .help("1.2, 1.3, or a range such as 1.2-1.3.").usual("1.2-1.3")
        .into(\TransportOptions.TLS.versions, plan: .recorded("tls_version")).part(of: .tls)
    package let ciphers = OptionEntry("--ciphers", key: "ciphers", .text("list"), of: .loads)
        .help("Cipher suites of TLS 1.2, in OpenSSL's notation.")
        .into(\TransportOptions.TLS.ciphers, plan: .recorded("ciphers")).part(of: .tls)
    package let alpn = OptionEntry("--alpn", key: "alpn", .protocols, of: .mqtt)
        .help("Protocols offered by ALPN, such as mqtt.").usual("")
        .into(\TransportOptions.TLS.alpn, plan: .recorded("alpn")).part(of: .tls)
    package let serverName = OptionEntry("--sni", key: "sni", .text("name"), of: .loads)
        .help("The server name that is sent and verified.").usual("the host, if it is a name")
        .into(\TransportOptions.TLS.serverName, plan: .recorded("sni")).part(of: .tls)

    let webSocketTitle = OptionTitle("WebSocket and PROXY protocol")
    package let ws = OptionEntry("--ws", key: "ws", .flag, of: .loads)
        .help("Connect over WebSocket, to port 80, with TLS 443, unless -p gives another.")
        .needing(\.xmppHost, "the DNS tells of no WebSocket; add \(\.xmppHost)")
    let path = OptionEntry("--path", key: "path", .text("path"), of: .loads)
        .help("Path of the WebSocket.").usual("/mqtt; with xmpp /ws").part(of: .webSocket)
        .secret(.part(Redaction.hideQuery))
    let headers = OptionEntry("--header --ws-headers", key: "headers", .headers, of: .loads)
        .help("Header of the WebSocket request, 'Name: value', sent as it is. Repeatable.").usual("")
        .into(\TransportOptions.WebSocket.headers).part(of: .webSocket)
        .secret(.part(Redaction.hideHeaderValue))
    let subprotocols = OptionEntry("--subprotocol", key: "subprotocol", .list("name,..."), of: .mqtt)
        .help("Subprotocols that the WebSocket request offers, such as mqttv3.1 for old servers.")
        .into(\TransportOptions.WebSocket.subprotocols).part(of: .webSocket)
    let proxyProtocol = OptionEntry("--proxy-protocol", key: "proxy_protocol", .choice("version"), of: .mqtt)
        .help("Begin each connection with a PROXY header: v1 or v2.")
        .into(\LoadOptions.transport.proxy, plan: .key("proxy_protocol"))

    let connectPropertiesTitle = OptionTitle("MQTT 5 properties of CONNECT")
    let receiveMaximum = OptionEntry(
        "--receive-maximum --rcv-max",
        key: "connect.receive_maximum",
        .number(1...65_535),
        of: .mqtt
    )
    .help("Publishes at QoS 1 and 2 that the server may have in flight.").usual("65535")
    .into(\MQTTOptions.connect.receiveMaximum, plan: .fact("connect.receive_maximum")).part(of: .version5)
    .part(of: .connectPacket)
    let maximumPacketSize = OptionEntry(
        "--maximum-packet-size",
        key: "connect.maximum_packet_size",
        .number(1...UInt32.max, "bytes"),
        of: .mqtt
    )
    .help("Bytes of the largest packet that the client accepts.").usual("1048576, or more for messages of the run")
    .into(\MQTTOptions.connect.maximumPacketSize, plan: .fact("connect.maximum_packet_size")).part(of: .connectPacket)
    let topicAliasMaximum = OptionEntry(
        "--topic-alias-maximum",
        key: "connect.topic_alias_maximum",
        .number(0...65_535),
        of: .mqtt
    )
    .help("Topic aliases that the server may use.").usual("0")
    .into(\MQTTOptions.connect.topicAliasMaximum, plan: .fact("connect.topic_alias_maximum")).part(of: .version5)
    .part(of: .connectPacket)
    let responseInformation = OptionEntry("--req-response-info", key: "connect.response_information", .flag, of: .mqtt)
        .help("Request response information.")
        .into(\MQTTOptions.connect.requestsResponseInformation, plan: .fact("connect.response_information"))
        .part(of: .version5).part(of: .connectPacket)
    let problemInformation = OptionEntry(
        "",
        negation: "--no-req-problem-info",
        key: "connect.problem_information",
        .flag,
        of: .mqtt
    )
    .help("Request no reason strings and user properties with failures.")
    .into(\MQTTOptions.connect.requestsProblemInformation, plan: .fact("connect.problem_information"))
    .part(of: .version5).part(of: .connectPacket)
    let connectUserProperties = OptionEntry(
        "--conn-user-properties",
        key: "connect.user_properties",
        .userProperties,
        of: .mqtt
    )
    .help("User property of CONNECT, 'name: value'. Repeatable.").usual("none")
    .into(\MQTTOptions.connect.userProperties, plan: .fact("connect.user_properties")).part(of: .version5)
    .part(of: .connectPacket)

    let willTitle = OptionTitle("Will")
    let willTopic = OptionEntry("--will-topic", key: "will.topic", .text("topic"), of: .mqtt)
        .help("Topic of the will; placeholders allowed.").part(of: .connectPacket)
    let willMessage = OptionEntry("--will-message", key: "will.message", .text("text"), of: .mqtt)
        .help("Message of the will; placeholders allowed.").usual("empty").part(of: .will)
    let willQoS = OptionEntry("--will-qos", key: "will.qos", .number(0...2, "qos"), of: .mqtt)
        .help("QoS of the will.").into(\WillOptions.qos, plan: .fact("will.qos")).part(of: .will)
    let willRetain = OptionEntry("--will-retain", key: "will.retain", .toggle, of: .mqtt)
        .help("Retain the will.").into(\WillOptions.retain, plan: .fact("will.retain")).part(of: .will)
    let willDelay = OptionEntry("--will-delay-interval", key: "will.delay", .seconds(0...UInt32.max), of: .mqtt)
        .help("Seconds between the loss of the connection and the will.")
        .into(\WillOptions.properties.willDelayInterval, plan: .fact("will.delay")).part(of: .will).part(of: .version5)
    let willIsText = OptionEntry("--will-payload-format-indicator", key: "will.is_text", .toggle, of: .mqtt)
        .help("Declare the will as UTF-8 text.").usual("")
        .into(\WillOptions.properties.isText, plan: .fact("will.is_text")).part(of: .will).part(of: .version5)
    let willExpiry = OptionEntry(
        "--will-message-expiry-interval",
        key: "will.expiry",
        .seconds(0...UInt32.max),
        of: .mqtt
    )
    .help("Seconds after which the server may drop the will.")
    .into(\WillOptions.properties.messageExpiryInterval, plan: .fact("will.expiry")).part(of: .will).part(of: .version5)
    let willContentType = OptionEntry("--will-content-type", key: "will.content_type", .text("text"), of: .mqtt)
        .help("Content type of the will.")
        .into(\WillOptions.properties.contentType, plan: .fact("will.content_type")).part(of: .will).part(of: .version5)
    let willResponseTopic = OptionEntry("--will-response-topic", key: "will.response_topic", .text("topic"), of: .mqtt)
        .help("Response topic of the will.")
        .into(\WillOptions.properties.responseTopic, plan: .fact("will.response_topic")).part(of: .will)
        .part(of: .version5)
    let willCorrelationData = OptionEntry(
        "--will-correlation-data",
        key: "will.correlation_data",
        .text("text"),
        of: .mqtt
    )
    .help("Correlation data of the will.").into(\WillOptions.properties.correlationText).part(of: .will)
    .part(of: .version5)
    let willUserProperties = OptionEntry(
        "--will-user-properties",
        key: "will.user_properties",
        .userProperties,
        of: .mqtt
    )
    .help("User property of the will, 'name: value'. Repeatable.").usual("")
    .into(\WillOptions.properties.userProperties, plan: .fact("will.user_properties")).part(of: .will)
    .part(of: .version5)

    let messagePropertiesTitle = OptionTitle("MQTT 5 properties of PUBLISH")
    let isText = OptionEntry("--payload-format-indicator", key: "publish.is_text", .toggle, of: .publishing)
        .help("Declare messages as UTF-8 text.").usual("")
        .into(\MQTTOptions.publishProperties.isText, plan: .fact("publish.is_text")).part(of: .version5)
    let messageExpiry = OptionEntry(
        "--message-expiry-interval",
        key: "publish.expiry",
        .seconds(0...UInt32.max),
        of: .publishing
    )
    .help("Seconds after which the server may drop a message.")
    .into(\MQTTOptions.publishProperties.messageExpiryInterval, plan: .fact("publish.expiry")).part(of: .version5)
    let topicAlias = OptionEntry("--topic-alias", key: "publish.topic_alias", .topicAlias, of: .publishing)
        .help("Send the topic once per connection, then this alias; alone or auto: the first that the server allows.")
        .into(\MQTTOptions.topicAlias, plan: .fact("publish.topic_alias")).part(of: .version5).part(of: .publisher)
    let responseTopic = OptionEntry("--response-topic", key: "publish.response_topic", .text("topic"), of: .publishing)
        .help("Topic for responses; placeholders allowed.").usual("none; with --topology request clamor-answers/%c")
        .into(\MQTTOptions.responseTopic).part(of: .version5)
    let contentType = OptionEntry("--content-type", key: "publish.content_type", .text("text"), of: .publishing)
        .help("Content type of the messages.")
        .into(\MQTTOptions.publishProperties.contentType, plan: .fact("publish.content_type")).part(of: .version5)
    let correlationData = OptionEntry(
        "--correlation-data",
        key: "publish.correlation_data",
        .text("text"),
        of: .publishing
    )
    .help("Correlation data for responses.").into(\MQTTOptions.publishProperties.correlationText).part(of: .version5)
    let userProperties = OptionEntry(
        "--user-properties",
        key: "publish.user_properties",
        .userProperties,
        of: .publishing
    )
    .help("User property of PUBLISH, 'name: value'. Repeatable.").usual("none")
    .into(\MQTTOptions.publishProperties.userProperties, plan: .fact("publish.user_properties")).part(of: .version5)
    let publishIdentifier = OptionEntry(
        "--subscription-identifier",
        key: "publish.subscription_identifier",
        .number(1...268_435_455),
        of: [.pub]
    )
    .help("Subscription identifier in PUBLISH, which MQTT forbids (MQTT 5 §3.3.4): --validate off sends it.")
    .into(\MQTTOptions.publishProperties.subscriptionIdentifier, plan: .fact("publish.subscription_identifier"))
    .part(of: .version5)

    let subscriptionsTitle = OptionTitle("SUBSCRIBE")
    let filterCount = OptionEntry("--filter-count", key: "subscribe.count", .number(1...10_000), of: [.sub])
        .help("Filters made of each -t, with their numbers from 1 in place of %s.").usual("1")
        .into(\MQTTOptions.subscribe.count, plan: .fact("subscribe.count")).example("-t 'a/%s/#' --filter-count 100")
    let packets = OptionEntry("--subscribe-packets", key: "subscribe.packets", .choice("packets"), of: .subscribing)
        .help("SUBSCRIBE packets of a client: one with all filters, or one for each, after the last SUBACK.")
        .into(\MQTTOptions.subscribe.packets, plan: .fact("subscribe.packets"))
    let subscribePace = OptionEntry("--subscribe-pace", key: "subscribe.pace", .rate, of: .subscribing)
        .help("SUBSCRIBE packets of each client per second; their time counts from due.").usual(
            "as fast as SUBACK comes"
        )
        .into(\MQTTOptions.subscribe.pace, plan: .fact("subscribe.pace"))
    let unsubscribe = OptionEntry("--unsubscribe", key: "subscribe.unsubscribe", .flag, of: .subscribing)
        .help("Unsubscribe from all filters at the end of the run, in one packet.")
        .into(\MQTTOptions.subscribe.unsubscribes, plan: .fact("subscribe.unsubscribe"))

    let replyTitle = OptionTitle("Replies")
    let replyTopic = OptionEntry("--reply", key: "reply.publish", .text("topic"), of: .mqtt)
        .help("Answer the run's messages to this topic, at QoS 0; p2p: to the sender alone, as in ROOT/p2p/CLIENTID.")
        .usual("no answers").example("--reply 'door/%i/state'").into(
            \MQTTOptions.reply.topic,
            plan: .fact("reply.publish")
        )
    let replyFilter = OptionEntry("--reply-to", key: "reply.to", .text("filter"), of: .mqtt)
        .help("Answer only messages to topics that match; placeholders allowed.").usual("all")
        .needing(\.replyTopic, "is about answers; add \(\.replyTopic)")
        .into(\MQTTOptions.reply.filter, plan: .fact("reply.to"))
    let replyAfter = OptionEntry("--reply-after", key: "reply.after", .spread, of: .mqtt)
        .help("The delay of an answer, such as 200ms, or 200ms±50%.").usual("0s").example("--reply-after 200ms±50%")
        .needing(\.replyTopic, "is about answers; add \(\.replyTopic)")
        .into(\MQTTOptions.reply.after, plan: .fact("reply.after"))
    let replyProbability = OptionEntry("--reply-probability", key: "reply.probability", .percent, of: .mqtt)
        .help("The share of messages that are answered.")
        .needing(\.replyTopic, "is about answers; add \(\.replyTopic)")
        .into(\MQTTOptions.reply.probability, plan: .fact("reply.probability"))

    let subscribingTitle = OptionTitle("MQTT 5 options of SUBSCRIBE")
    let noLocal = OptionEntry("--no_local --no-local", key: "subscribe.no_local", .flag, of: .subscribing)
        .help("Receive no messages of the client's own.")
        .into(\MQTTOptions.subscribe.noLocal, plan: .fact("subscribe.no_local")).part(of: .version5)
    let retainAsPublished = OptionEntry(
        "--retain-as-published",
        key: "subscribe.retain_as_published",
        .flag,
        of: .subscribing
    )
    .help("Keep the retain flag that messages were published with.")
    .into(\MQTTOptions.subscribe.retainAsPublished, plan: .fact("subscribe.retain_as_published"))
    .part(of: .version5)
    let retainHandling = OptionEntry(
        "--retain-handling",
        key: "subscribe.retain_handling",
        .retainHandling,
        of: .subscribing
    )
    .help("Retained messages: 0 with every SUBSCRIBE, 1 if it is new, 2 never.")
    .into(\MQTTOptions.subscribe.retainHandling, plan: .fact("subscribe.retain_handling")).part(of: .version5)
    let subscriptionIdentifier = OptionEntry(
        "--subscription-identifier",
        key: "subscribe.identifier",
        .number(1...268_435_455),
        of: .subscribing
    )
    .help("Identifier of the subscriptions.")
    .into(\MQTTOptions.subscribe.properties.subscriptionIdentifier, plan: .fact("subscribe.identifier"))
    .part(of: .version5)
    let subscribeUserProperties = OptionEntry(
        "--user-properties",
        key: "subscribe.user_properties",
        .userProperties,
        of: [.sub]
    )
    .help("User property of SUBSCRIBE, 'name: value'. Repeatable.").usual("none")
    .into(\MQTTOptions.subscribe.properties.userProperties, plan: .fact("subscribe.user_properties"))
    .part(of: .version5)

    let decodingTitle = OptionTitle("Stream and decoder")
    let decodeProtocol = OptionEntry("--protocol", .choice("protocol"), of: [.decode])
        .help("mqtt or xmpp.").into(\DecodeOptions.protocol).basic
    let decodeSizes = OptionEntry("-s --size --payload-size", .decodeSizes, of: [.decode])
        .help("Payload sizes, or those of XMPP bodies, taken in turn; a list, or repeated.")
        .usual("256; with --mix 16,64,256,1024,4096, of XMPP 8,24,60,150,600").basic
    let isMix = OptionEntry("--mix", .flag, of: [.decode])
        .help("Not PUBLISH or messages alone, but a mix of packets or stanzas as a server sends them.")
        .into(\DecodeOptions.isMix).basic
    let decodeSeed = OptionEntry("--seed", .number(0...UInt64.max), of: [.decode])
        .help("Makes stream and fragments repeatable.").usual("drawn for each run").into(\DecodeOptions.seed)
    let forms = OptionEntry("--form", .each("form,..."), of: [.decode])
        .help("pipelined, segments, fragments, cuts.").usual("all").into(\DecodeOptions.forms).basic
    let paths = OptionEntry("--path", .each("path,..."), of: [.decode])
        .help("memory, socket.").usual("both").into(\DecodeOptions.paths).basic
    let decodeDuration = OptionEntry(
        "--duration -d",
        .duration.aboveZero("leaves no time to measure; write it like 2s"),
        of: [.decode]
    )
    .help("Of each form on each path, after a warm-up of a tenth of it, 1s at most.").into(\DecodeOptions.duration)
    .basic
    let decodeReadSize = OptionEntry("--read-size", .number(1...65_536), of: [.decode])
        .help("Bytes of one read of a socket at most, 1 to 65536.").into(\DecodeOptions.readSize)
    let sink = OptionEntry("--sink", .choice("sink"), of: [.decode])
        .help("view looks at the packets as the clients do, copy copies each payload.").into(\DecodeOptions.sink)

    let planTitle = OptionTitle("Plan")
    let node = OptionEntry("--node", .node, of: [.plan])
        .help("A node: its cores and its memory.").usual("none; it is needed").example("--node 4c/8G")
        .into(\FleetPlanOptions.node).basic
    let headroom = OptionEntry("--headroom", .percent, of: [.plan])
        .help("The part of a node's CPU and memory that stays free.").into(\FleetPlanOptions.headroom).basic
    let losses = OptionEntry("--lose", .number(0...1_000), of: [.plan])
        .help("Nodes that may be away while the others carry the fleet.").into(\FleetPlanOptions.losses).basic
    let costs = OptionEntry("--costs", .name("file", remedy: "name a file"), of: [.plan])
        .help("Costs that an earlier plan has measured; where there is no such file, this one writes it.")
        .into(\FleetPlanOptions.costs).basic
    let planSessions = OptionEntry("--sessions", .number(10...1_000_000), of: [.plan])
        .help("Clients at a time of the measurement, at most; a plan reaches three times as far.")
        .into(\FleetPlanOptions.sessions)

    let capacityTitle = OptionTitle("Search")
    package let objectives = OptionEntry("--slo", .repeated("sentence"), of: [.capacity])
        .help("A threshold that has to hold. Repeatable.").usual("none; at least one is needed")
        .example("--slo 'publish_ack_duration p99 < 50ms'").into(\CapacityOptions.objectives).basic.unconditional
    let hold = OptionEntry("--hold", .duration, of: [.capacity])
        .help("How long each step measures.").into(\CapacityOptions.hold).basic
    let first = OptionEntry("--first", .text("n"), of: [.capacity])
        .help("The first load that is offered.").usual("1000/s, or 100 clients").basic
    let maxRate = OptionEntry("--max-rate", .rate, of: [.capacity])
        .help("The highest rate that is offered.").usual("none").basic
    let maxClients = OptionEntry("--max-clients", .number(1...10_000_000), of: [.capacity])
        .help("The highest number of clients that is offered.").usual("none").basic

    let comparisonTitle = OptionTitle("Comparison")
    let base = OptionEntry("--base", .words("dir ..."), of: [.compare])
        .help("Runs of the base.").into(\CompareOptions.base)
    let new = OptionEntry("--new", .words("dir ..."), of: [.compare])
        .help("Runs that are compared with the base.").into(\CompareOptions.new)
    let maxRegression = OptionEntry("--max-regression", .repeated("sentence"), of: [.run, .compare])
        .help("A limit for one figure; only figures with a limit are then judged. Repeatable.")
        .usual(
            "5% of medians, rates and the server's CPU per message, 10% of p99 of acknowledgements and deliveries, "
                + "no more errors and losses"
        )
        .example("--max-regression 'publish_ack_duration{qos=1} p99 10%'").plan(.none("it judges a comparison"))
        .scope(.command).unconditional
    let allowDifferent = OptionEntry("--allow-different", .list("kind,..."), of: [.run, .compare])
        .help("Differences between the sides that are allowed: plan, cpu, cores, server, verdict.")
        .plan(.none("it judges a comparison")).scope(.command)
    let paired = OptionEntry("--paired", .flag, of: [.compare])
        .help("Judge by the differences within pairs: run N of one side was next to run N of the other.")
        .into(\CompareOptions.isPaired)
    let showsAll = OptionEntry("--all", .flag, of: [.compare])
        .help("Show figures without a difference as well.").into(\CompareOptions.showsAll)
    let compareStrict = OptionEntry("--strict", .flag, of: [.compare])
        .help("Exit 99 if a figure regressed, also with one run a side.")
        .into(\ResultOptions.strict)

    let trendTitle = OptionTitle("Trend")
    let gate = OptionEntry("--gate", .flag, of: [.trend])
        .help("Exit 99 if a figure changed for the worse.").into(\TrendOptions.isGate).basic
    let since = OptionEntry("--since", .text("tag|date"), of: [.trend])
        .help("Ask for changes from the first run with that tag, or from that date on, such as 2026-11-01.")
        .usual("all runs").into(\TrendOptions.since).basic
    let otava = OptionEntry("--otava", .name("file", remedy: "name a file"), of: [.trend])
        .help("Write the figures as CSV for Apache Otava.").into(\TrendOptions.otava)

    let listenersTitle = OptionTitle("Listeners")
    let listenHost = OptionEntry("-h --host --hostname", .text("address"), of: [.broker, .proxy])
        .help("Address to listen on.").into(\BrokerOptions.host).into(\ProxyOptions.host).basic
    let brokerPort = OptionEntry("-p --port", .number(0...65_535, "port"), of: [.broker])
        .help("Port; 0: any free one. The first line of output names it.").into(\BrokerOptions.port).basic
    let proxyPort = OptionEntry("-p --port", .number(0...65_535, "port"), of: [.proxy])
        .help("Port; 0: any free one. The first line of output names it.").into(\ProxyOptions.port).basic
    let tlsPort = OptionEntry("--tls-port", .number(0...65_535, "port"), of: [.broker])
        .help("Also listen for TLS; 0: any free port.").into(\BrokerOptions.tlsPort).basic
    let webSocketPort = OptionEntry("--ws-port", .number(0...65_535, "port"), of: [.broker])
        .help("Also listen for WebSocket; 0: any free port.").into(\BrokerOptions.webSocketPort).basic
    let secureWebSocketPort = OptionEntry("--wss-port", .number(0...65_535, "port"), of: [.broker])
        .help("Also listen for WebSocket over TLS; 0: any free port.").into(\BrokerOptions.secureWebSocketPort)
    let brokerCertificate = OptionEntry("--certfile", .text("file"), of: [.broker])
        .help("The broker's certificate and its chain, PEM.").into(\BrokerOptions.certificateFile).part(of: .tls)
    let brokerKey = OptionEntry("--keyfile", .text("file"), of: [.broker])
        .help("The private key of the certificate, PEM.").into(\BrokerOptions.keyFile).part(of: .tls)
    let brokerAuthority = OptionEntry("--cacertfile", .text("file"), of: [.broker])
        .help("Require client certificates signed by one of these CAs, PEM.").into(\BrokerOptions.authorityFile)
        .part(of: .tls)
    let brokerPSK = OptionEntry("--psk", .text("identity:hex"), of: [.broker])
        .help("A pre-shared key instead of a certificate.").into(\BrokerOptions.preSharedKey).part(of: .tls)
        .secret(.whole)
    let brokerPath = OptionEntry("--path", .text("path"), of: [.broker])
        .help("Path of the WebSocket listeners.").usual("any").into(\BrokerOptions.path)
        .secret(.part(Redaction.hideQuery))
    let readsProxyHeader = OptionEntry("--proxy-protocol", .flag, of: [.broker])
        .help("Require a PROXY header, v1 or v2, on every connection.").into(\BrokerOptions.readsProxyHeader)
    let brokerPacketSize = OptionEntry("--maximum-packet-size", .number(64...268_435_460, "bytes"), of: [.broker])
        .help("Bytes of the largest packet that clients may send.").into(\BrokerOptions.maximumPacketSize)

    let accessTitle = OptionTitle("Access")
    let brokerUsers = OptionEntry("--users", .text("file"), of: [.broker])
        .help("Lines of NAME:PASSWORD; other clients are refused.").usual("every client may connect")
    let allowsAnonymous = OptionEntry("--allow-anonymous", .flag, of: [.broker])
        .help("With --users: clients without a user name may connect too.")
        .excluding(\.brokerAuth, "\(\.brokerAuth) admits no client without a user; leave one of the two out")
        .needing(\.brokerUsers, "has no effect without \(\.brokerUsers); add that, or leave it out")
    let brokerAuth = OptionEntry("--auth", .text("method"), of: [.broker])
        .help("scram-sha-256 or scram-sha-1: the only method for --users.").usual("these and a password")
        .needing(\.brokerUsers, "is about users, and there are none; add \(\.brokerUsers)")

    let routingTitle = OptionTitle("Routing")
    let p2pRoots = OptionEntry("--p2p", .list("root,..."), of: [.broker])
        .help("Deliver ROOT/p2p/CLIENTID to that client, which need not subscribe.")
        .usual("off").example("--p2p door")

    let faultsTitle = OptionTitle("Faults")
    let drop = OptionEntry("--drop", .fault(.share), of: [.broker])
        .help("Share of outgoing PUBLISH that is lost.").into(\BrokerOptions.faults.dropPerBillion).basic
    let duplicate = OptionEntry("--duplicate", .fault(.every), of: [.broker])
        .help("Send every nth outgoing PUBLISH of a subscription twice.").into(\BrokerOptions.faults.duplicateEvery)
    let reorder = OptionEntry("--reorder", .fault(.every), of: [.broker])
        .help("Swap every nth outgoing PUBLISH of a subscription with the next.")
        .into(\BrokerOptions.faults.reorderEvery)
    let delay = OptionEntry("--delay", .fault(.span), of: [.broker])
        .help("Hold outgoing PUBLISH this long.").into(\BrokerOptions.faults.delay).basic
    let delayEvery = OptionEntry("--delay-every", .fault(.every), of: [.broker])
        .help("Hold only every nth.").into(\BrokerOptions.faults.delayEvery)
        .needing(\.delay, "says which messages are delayed, not how long; add \(\.delay)")
    let stall = OptionEntry("--stall", .fault(.stall), of: [.broker])
        .help("Neither read nor write, once: 2s@10s is for 2s, from 10s after the first CONNECT.")
        .into(\BrokerOptions.faults.stall).basic
    let disconnectEvery = OptionEntry("--disconnect-every", .fault(.span), of: [.broker])
        .help("Reset one connection each time, round robin over all.").into(\BrokerOptions.faults.disconnectEvery)
    let brokerMaxRate = OptionEntry("--max-rate", .fault(.rate), of: [.broker])
        .help("PUBLISH read per second over all clients.").into(\BrokerOptions.faults.maximumRate)
    let retryStorm = OptionEntry("--retry-storm", .fault(.every), of: [.broker])
        .help("While reading is behind for over a second, each PUBLISH costs as much of --max-rate as n.")
        .into(\BrokerOptions.faults.retryStorm)
        .needing(\.brokerMaxRate, "is a part of that rate; add \(\.brokerMaxRate)")
    let spin = OptionEntry("--spin", .fault(.every), of: [.broker])
        .help("Rounds of arithmetic that each PUBLISH read costs besides, about 3 ns each.")
        .into(\BrokerOptions.faults.spin)
    let fragment = OptionEntry("--fragment", .fault(.fragment), of: [.broker])
        .help("Bytes per write, such as 1-7.").into(\BrokerOptions.faults.fragment)
    let refuseCode = OptionEntry("--refuse", .fault(.connectRefusal), of: [.broker])
        .help("Answer every CONNECT with this code, such as 0x87 or 5.").into(\BrokerOptions.faults.refuse)

    let proxyFaultsTitle = OptionTitle("Faults of the proxy")
    let proxyDelay = OptionEntry("--delay", .fault(.span), of: [.proxy])
        .help("Hold the server's bytes this long.")
        .into(\ProxyOptions.faults.delay).basic
    let proxyDelayEvery = OptionEntry("--delay-every", .fault(.every), of: [.proxy])
        .help("Hold only every nth read of a connection.")
        .into(\ProxyOptions.faults.delayEvery)
        .needing(\.proxyDelay, "says which reads are delayed, not how long; add \(\.proxyDelay)")
    let proxyRate = OptionEntry("--rate", .bytesPerSecond, of: [.proxy])
        .help("Bytes per second of each connection, each way, such as 64KiB/s.").into(\ProxyOptions.faults.rate).basic
    let proxyStall = OptionEntry("--stall", .fault(.stall), of: [.proxy])
        .help("Neither accept nor read nor write, once: 2s@5s is for 2s, from 5s after the first client.")
        .into(\ProxyOptions.faults.stall).basic
    let cut = OptionEntry("--cut", .fault(.span), of: [.proxy])
        .help("End one connection by FIN each time, both sides, round robin over all.")
        .into(\ProxyOptions.faults.cutEvery)
    let reset = OptionEntry("--reset", .fault(.span), of: [.proxy])
        .help("End one connection by RST each time.").into(\ProxyOptions.faults.resetEvery)
    let proxyFragment = OptionEntry("--fragment", .fault(.fragment), of: [.proxy])
        .help("Bytes per write, both ways, such as 1-7.").into(\ProxyOptions.faults.fragment)

    let toolTitle = OptionTitle("Output")
    let calibrationFile = OptionEntry("--out", .name("file", remedy: "name a file"), of: [.calibrate])
        .help("The file to write.").into(\CalibrateOptions.output).basic
    let isQuick = OptionEntry("--quick", .flag, of: [.calibrate])
        .help("Take half a minute instead of three, and be less exact.").into(\CalibrateOptions.quick).basic
    let draftFile = OptionEntry("--out", .name("file", remedy: "name a file"), of: [.draft])
        .help("The file to write, with --grafana the directory; -: stdout, of --grafana the dashboard.").usual(
            "NAME.yaml"
        ).basic
    let writesDashboard = OptionEntry("--grafana", .flag, of: [.draft])
        .help("Write a dashboard for Grafana, and the scrape configuration of Prometheus, into clamor-grafana/.").basic
    let writesWorkflow = OptionEntry("--ci", .flag, of: [.draft])
        .help("Write load.sh and .github/workflows/load.yml, a load test in CI; --out .gitlab-ci.yml: of GitLab.").basic
    let slurmScenario = OptionEntry("--slurm", .name("file", remedy: "name a scenario file"), of: [.draft])
        .help("Write a script for Slurm's sbatch, which runs this scenario in tasks of its job.").basic
        .needing(\.segmentCount, "needs \(\.segmentCount, "N"), the number of tasks that divide the load")
    let kubernetesScenario = OptionEntry("--kubernetes", .name("file", remedy: "name a scenario file"), of: [.draft])
        .help("Write the objects for kubectl that run this scenario in pods of an Indexed Job.").basic
        .needing(\.segmentCount, "needs \(\.segmentCount, "N"), the number of pods that divide the load")
}
