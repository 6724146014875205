import ArgumentParser

/// Properties of CONNECT, MQTT 5 only; named as MQTTX names them.
struct ConnectPropertyFlags: ParsableArguments {
    @Option(
        name: [.long, .customLong("rcv-max")],
        help: ArgumentHelp("Publishes at QoS 1 and 2 that the server may have open. (default: 65535)", valueName: "n")
    ) var receiveMaximum: String?

    @Option(name: .long, help: ArgumentHelp("Bytes of a packet that is accepted.", valueName: "bytes"))
    var maximumPacketSize: String?

    @Option(name: .long, help: ArgumentHelp("Topic aliases that the server may use. (default: 0)", valueName: "n"))
    var topicAliasMaximum: String?

    @Flag(name: .customLong("req-response-info"), help: "Ask for response information.")
    var requestResponseInformation = false

    @Flag(name: .customLong("no-req-problem-info"), help: "No reason strings and user properties with failures.")
    var noProblemInformation = false

    @Option(
        name: [.customLong("conn-user-properties")],
        parsing: .singleValue,
        help: ArgumentHelp("User property of CONNECT, 'name: value'. Repeatable.", valueName: "property")
    ) var userProperties: [String] = []
}

/// What the server publishes for a client that goes without saying so.
struct WillFlags: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("Topic of the will; placeholders allowed.", valueName: "topic"))
    var willTopic: String?

    @Option(name: .long, help: ArgumentHelp("Its message; placeholders allowed. (default: empty)", valueName: "text"))
    var willMessage: String?

    @Option(name: .long, help: ArgumentHelp("Its QoS. (default: 0)", valueName: "qos"))
    var willQos: String?

    @Option(
        name: .long,
        defaultAsFlag: "true",
        parsing: .next,
        help: ArgumentHelp("Whether it is retained. (default: false)", valueName: "true|false")
    ) var willRetain: String?

    @Option(name: .long, help: ArgumentHelp("Seconds until it is published.", valueName: "s"))
    var willDelayInterval: String?

    @Option(
        name: .long,
        defaultAsFlag: "true",
        parsing: .next,
        help: ArgumentHelp("It is UTF-8 text.", valueName: "true|false")
    ) var willPayloadFormatIndicator: String?

    @Option(name: .long, help: ArgumentHelp("Seconds that it is worth keeping.", valueName: "s"))
    var willMessageExpiryInterval: String?

    @Option(name: .long, help: ArgumentHelp("Its content type.", valueName: "text"))
    var willContentType: String?

    @Option(name: .long, help: ArgumentHelp("Its response topic.", valueName: "topic"))
    var willResponseTopic: String?

    @Option(name: .long, help: ArgumentHelp("Its correlation data.", valueName: "text"))
    var willCorrelationData: String?

    @Option(
        name: .long,
        parsing: .singleValue,
        help: ArgumentHelp("Its user property, 'name: value'. Repeatable.", valueName: "property")
    ) var willUserProperties: [String] = []
}

/// Properties of PUBLISH, MQTT 5 only.
struct PublishPropertyFlags: ParsableArguments {
    @Option(
        name: .long,
        defaultAsFlag: "true",
        parsing: .next,
        help: ArgumentHelp("Messages are UTF-8 text.", valueName: "true|false")
    ) var payloadFormatIndicator: String?

    @Option(name: .long, help: ArgumentHelp("Seconds that a message is worth keeping.", valueName: "s"))
    var messageExpiryInterval: String?

    @Option(
        name: .long,
        defaultAsFlag: "auto",
        parsing: .next,
        help: ArgumentHelp(
            "The topic goes out once a connection, then its alias: this one, or one of the server's choice.",
            valueName: "n|auto"
        )
    ) var topicAlias: String?

    @Option(name: .long, help: ArgumentHelp("Where answers go; placeholders allowed.", valueName: "topic"))
    var responseTopic: String?

    @Option(name: .long, help: ArgumentHelp("What an answer is to carry.", valueName: "text"))
    var correlationData: String?

    @Option(name: .long, help: ArgumentHelp("Content type of the messages.", valueName: "text"))
    var contentType: String?
}

/// Options of SUBSCRIBE, MQTT 5 only.
struct SubscribePropertyFlags: ParsableArguments {
    @Flag(name: [.customLong("no_local"), .customLong("no-local")], help: "No messages of the client's own.")
    var noLocal = false

    @Flag(name: .long, help: "Messages keep the retain flag they were published with.")
    var retainAsPublished = false

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Retained messages: 0 with every SUBSCRIBE, 1 if it is new, 2 never. (default: 0)",
            valueName: "0|1|2"
        )
    ) var retainHandling: String?
}

/// Properties that PUBLISH and SUBSCRIBE both have: of `sub` those of SUBSCRIBE, of `pub` those of PUBLISH.
struct SharedPropertyFlags: ParsableArguments {
    @Option(
        name: .long,
        parsing: .singleValue,
        help: ArgumentHelp(
            "User property, 'name: value', of PUBLISH; with sub of SUBSCRIBE. Repeatable.",
            valueName: "property"
        )
    ) var userProperties: [String] = []

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Identifier of the subscriptions, 1 to 268435455 (of PUBLISH with pub: forbidden, --validate off sends it).",
            valueName: "n"
        )
    ) var subscriptionIdentifier: String?
}
