import ArgumentParser

/// A command whose flags can be turned into options; nothing runs inside the argument parser.
protocol OptionsCommand: ParsableCommand {
    func invocation(_ reader: inout OptionReader) -> Invocation
}

/// A command that is a scenario of one group.
protocol LoadCommand: OptionsCommand {
    var scenario: ScenarioFlag { get }
}

struct ScenarioFlag: ParsableArguments {
    @Flag(name: .long, help: "Show the scenario file that does the same, and connect nothing.")
    var printScenario = false
}

private let placeholders = """
    Placeholders, in topics, client ids, user names, passwords and messages: %i client number, %c client id, \
    %u user name, %s message number of the client (emqtt_bench: of all clients), %rand_N a number from 1 to N, %t nanoseconds since 1970, %{column} \
    a cell of --rows.
    """

struct Conn: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "conn",
        abstract: "Connects clients and holds them; connect latency by phase.",
        discussion: placeholders
    )

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Bytes that each client sends in the place of CONNECT, in hexadecimal or as @FILE. Shown nowhere.",
            valueName: "bytes"
        )
    ) var raw: String?
    @OptionGroup(title: "Connection") var connection: ConnectionFlags
    @OptionGroup(title: "Run") var run: RunFlags
    @OptionGroup(title: "Run") var scenario: ScenarioFlag
    @OptionGroup(title: "Run") var validate: ValidateFlag

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = MQTTOptions(kind: .conn)
        reader.read(self.connection, into: &options)
        reader.read(raw: self.raw, into: &options)
        reader.read(self.run, self.validate, into: &options)
        return .run(options)
    }
}

struct Pub: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "pub",
        abstract: "Publishers; throughput and acknowledgement latency per QoS.",
        discussion: placeholders
    )

    @OptionGroup(title: "Messages") var topic: TopicFlag
    @OptionGroup(title: "Messages") var qos: QoSFlag
    @OptionGroup(title: "Messages") var publish: PublishFlags
    @OptionGroup(title: "Messages") var store: StoreFlag
    @OptionGroup(title: "MQTT 5 properties of messages") var properties: PublishPropertyFlags
    @OptionGroup(title: "MQTT 5 properties of messages") var shared: SharedPropertyFlags
    @OptionGroup(title: "Connection") var connection: ConnectionFlags
    @OptionGroup(title: "Run") var run: RunFlags
    @OptionGroup(title: "Run") var scenario: ScenarioFlag
    @OptionGroup(title: "Run") var validate: ValidateFlag

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = MQTTOptions(kind: .pub)
        reader.read(self.connection, into: &options)
        reader.read(self.topic, into: &options)
        reader.read(self.qos, into: &options)
        reader.read(self.publish, into: &options)
        reader.read(self.store, into: &options)
        reader.read(self.properties, shared: self.shared, into: &options)
        reader.read(self.run, self.validate, into: &options)
        return .run(options)
    }
}

struct Sub: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "sub",
        abstract: "Subscribers; receive throughput, decoder throughput.",
        discussion: placeholders
    )

    @Option(
        name: [.customShort("t", allowingJoined: true), .customLong("topic")],
        help: ArgumentHelp(
            "Topic filter; placeholders allowed. Repeatable. (default: clamor/#; emqtt_bench: none)",
            valueName: "filter"
        )
    ) var topics: [String] = []
    @OptionGroup var qos: QoSFlag
    @OptionGroup var store: StoreFlag
    @OptionGroup(title: "MQTT 5 options of SUBSCRIBE") var subscribe: SubscribePropertyFlags
    @OptionGroup(title: "MQTT 5 options of SUBSCRIBE") var shared: SharedPropertyFlags
    @OptionGroup(title: "Connection") var connection: ConnectionFlags
    @OptionGroup(title: "Run") var run: RunFlags
    @OptionGroup(title: "Run") var scenario: ScenarioFlag
    @OptionGroup(title: "Run") var validate: ValidateFlag

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = MQTTOptions(kind: .sub)
        reader.read(self.connection, into: &options)
        reader.read(filters: self.topics, into: &options)
        reader.read(self.qos, into: &options)
        reader.read(self.store, into: &options)
        reader.read(self.subscribe, shared: self.shared, into: &options)
        reader.read(self.run, self.validate, into: &options)
        return .run(options)
    }
}

struct PubSub: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "pubsub",
        abstract: "Publishers and subscribers in one run; end-to-end latency, loss, duplicates, order.",
        discussion: """
            Subscriber k reads publisher k's topic (pair), every level with a placeholder as + (fan-in), the one topic \
            (fan-out), or that filter in the share group 'clamor' (shared), at the highest QoS of -q. With request the \
            subscribers answer each message to --response-topic, by default clamor-answers/%c.
            \(placeholders)
            """
    )

    @Option(
        name: .long,
        help: ArgumentHelp("pair, fan-in, fan-out, shared or request. (default: pair)", valueName: "shape")
    ) var topology: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Subscribers. (default: as many as publishers; fan-in and request: 1; fan-out: -c, with 1 publisher; shared: 4)",
            valueName: "n"
        )
    ) var subscribers: String?
    @Flag(
        name: .long,
        help: "Treat the hosts of -h as separate servers, each with its own ledger. (default: one cluster)"
    ) var separate = false
    @OptionGroup(title: "Messages") var topic: TopicFlag
    @OptionGroup(title: "Messages") var qos: QoSFlag
    @OptionGroup(title: "Messages") var publish: PublishFlags
    @OptionGroup(title: "Messages") var store: StoreFlag
    @OptionGroup(title: "MQTT 5 properties") var properties: PublishPropertyFlags
    @OptionGroup(title: "MQTT 5 properties") var subscribe: SubscribePropertyFlags
    @OptionGroup(title: "MQTT 5 properties") var shared: SharedPropertyFlags
    @OptionGroup(title: "Connection") var connection: ConnectionFlags
    @OptionGroup(title: "Run") var run: RunFlags
    @OptionGroup(title: "Run") var scenario: ScenarioFlag
    @OptionGroup(title: "Run") var validate: ValidateFlag

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = MQTTOptions(kind: .pubsub)
        reader.read(self.connection, into: &options)
        reader.read(topology: self.topology, subscribers: self.subscribers, into: &options)
        reader.read(self.topic, into: &options)
        reader.read(self.qos, into: &options)
        reader.read(self.publish, into: &options)
        reader.read(self.store, into: &options)
        reader.read(self.properties, shared: self.shared, into: &options)
        reader.read(self.subscribe, shared: self.shared, into: &options)
        reader.checkRequests(&options)
        reader.checkLedger(&options, separate: self.separate)
        reader.read(self.run, self.validate, into: &options)
        return .run(options)
    }
}
