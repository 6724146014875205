import ArgumentParser

/// How publishers publish.
struct PublishFlags: ParsableArguments {
    @OptionGroup var pace: PaceFlags
    @OptionGroup var payload: PayloadFlags

    @Option(
        name: [.customShort("r", allowingJoined: true), .long],
        defaultAsFlag: "true",
        parsing: .next,
        help: ArgumentHelp("Retain. (default: false)", valueName: "true|false")
    ) var retain: String?

    @Option(
        name: [.customShort("F", allowingJoined: true), .long],
        help: ArgumentHelp(
            "Messages in flight per client at QoS 1 and 2, 0: the peer's receive maximum (default: 16; emqtt_bench: 1); at QoS 0 messages per write in closed loop. (default: 1)",
            valueName: "n"
        )
    ) var inflight: String?
}

/// When operations are due, and how many.
struct PaceFlags: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp("Messages per second of all clients together, open loop.", valueName: "n/s")
    ) var rate: String?

    @Option(
        name: [
            .customShort("I", allowingJoined: true), .customLong("interval_of_msg"), .customLong("message-interval"),
        ],
        help: ArgumentHelp(
            "Milliseconds between messages of one client, open loop. Without it and --rate, or with 0: closed loop. (emqtt_bench: 1000)",
            valueName: "ms"
        )
    ) var messageInterval: String?

    @Option(
        name: [.customShort("L", allowingJoined: true), .long],
        help: ArgumentHelp(
            "Messages of all clients together; alone it also ends the run. (default: 0, no limit)",
            valueName: "n"
        )
    ) var limit: String?

    @Option(
        name: [.customShort("w", allowingJoined: true), .customLong("wait-before-publishing")],
        defaultAsFlag: "true",
        parsing: .next,
        help: ArgumentHelp(
            "Publish only when every client is up or has failed. (default: true; emqtt_bench: false)",
            valueName: "true|false"
        )
    ) var wait: String?

    @Flag(name: .long, help: "The same as -w false.") var noWait = false

    @Option(
        name: .long,
        help: ArgumentHelp("How long an acknowledgement is awaited. (default: 30s)", valueName: "duration")
    )
    var ackTimeout: String?
}

/// What messages carry.
struct PayloadFlags: ParsableArguments {
    @Option(
        name: [.customShort("s", allowingJoined: true), .long, .customLong("payload-size")],
        help: ArgumentHelp(
            "Payload size, or a range such as 64..1024, drawn for each message; under 32 (XMPP: 44) the ledger is off. (default: 256)",
            valueName: "bytes"
        )
    ) var size: String?

    @Option(
        name: [.customShort("m", allowingJoined: true), .long],
        help: ArgumentHelp(
            """
            A message of your own, template://FILE with placeholders, or file://FILE as it is; the ledger is off. A template \
            also has %TIMESTAMP%, %TIMESTAMPMS% (milliseconds, both), %TIMESTAMPUS%, %TIMESTAMPNS%, %UNIQUE% and %RANDOM% \
            (-s bytes), as in emqtt_bench.
            """,
            valueName: "text"
        )
    ) var message: String?
}

struct StoreFlag: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Where clients keep their flows of QoS 1 and 2: memory, or sqlite:PATH, a file that a later run with the same client ids takes up. (default: memory)",
            valueName: "store"
        )
    ) var store: String?
}

struct TopicFlag: ParsableArguments {
    @Option(
        name: [.customShort("t", allowingJoined: true), .long],
        help: ArgumentHelp("Topic; placeholders allowed. (default: clamor/%i; emqtt_bench: none)", valueName: "topic")
    ) var topic: String?
}

struct QoSFlag: ParsableArguments {
    @Option(
        name: [.customShort("q", allowingJoined: true), .long],
        help: ArgumentHelp(
            "QoS 0, 1 or 2; a list such as 0,1,2 spreads the clients over it. (default: 0)",
            valueName: "qos,..."
        )
    ) var qos: String?
}
