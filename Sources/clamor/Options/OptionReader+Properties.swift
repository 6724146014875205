import MQTTCodec
import Workloads

extension OptionReader {
    mutating func read(_ flags: ConnectPropertyFlags, into options: inout MQTTOptions) {
        var connect = ConnectOptions()
        connect.receiveMaximum = self.number(flags.receiveMaximum, "--receive-maximum", "--rcv-max", in: 1...65_535)
        connect.maximumPacketSize = self.number(flags.maximumPacketSize, "--maximum-packet-size", in: 1...UInt32.max)
        connect.topicAliasMaximum = self.number(flags.topicAliasMaximum, "--topic-alias-maximum", in: 0...65_535)
        connect.requestsResponseInformation = flags.requestResponseInformation
        connect.declinesProblemInformation = flags.noProblemInformation
        connect.userProperties = self.userProperties(flags.userProperties, "--conn-user-properties")
        options.connect = connect
        self.onlyVersion5(options, Self.connectPropertyFlags)
    }

    static var connectPropertyFlags: [[String]] {
        [
            ["--receive-maximum", "--rcv-max"], ["--maximum-packet-size"], ["--topic-alias-maximum"],
            ["--req-response-info"], ["--no-req-problem-info"], ["--conn-user-properties"],
        ]
    }

    mutating func read(_ flags: WillFlags, into options: inout MQTTOptions) {
        guard let topic = flags.willTopic else {
            // SPEC A2: without a will there is nothing that its other values belong to.
            let others = Self.willFlags.filter { self.isGiven([$0]) }
            for flag in others { self.report(flag, "belongs to a will, which needs a topic; add --will-topic") }
            return
        }
        if let problem = self.checks.topicName(topic) { self.report("--will-topic", "'\(topic)': \(problem)") }
        var will = WillOptions(topic: topic)
        will.message = Array((flags.willMessage ?? "").utf8)
        will.retain = self.boolean(flags.willRetain, "--will-retain") ?? false
        if let qos = self.number(flags.willQos, "--will-qos", in: 0...2 as ClosedRange<UInt8>) { will.qos = qos }
        will.properties.willDelayInterval = self.number(
            flags.willDelayInterval,
            "--will-delay-interval",
            in: 0...UInt32.max
        )
        if self.boolean(flags.willPayloadFormatIndicator, "--will-payload-format-indicator") == true {
            will.properties.payloadFormatIndicator = 1
        }
        will.properties.messageExpiryInterval = self.number(
            flags.willMessageExpiryInterval,
            "--will-message-expiry-interval",
            in: 0...UInt32.max
        )
        will.properties.contentType = flags.willContentType
        will.properties.responseTopic = self.responseTopic(flags.willResponseTopic, "--will-response-topic")
        will.properties.correlationData = flags.willCorrelationData.map { Array($0.utf8) }
        will.properties.userProperties = self.userProperties(flags.willUserProperties, "--will-user-properties")
        options.will = will
        self.onlyVersion5(options, Self.willFlags.dropFirst(3).map { [$0] })
    }

    /// The first three are MQTT 3's as well.
    static var willFlags: [String] {
        [
            "--will-message", "--will-qos", "--will-retain", "--will-delay-interval",
            "--will-payload-format-indicator", "--will-message-expiry-interval", "--will-content-type",
            "--will-response-topic", "--will-correlation-data", "--will-user-properties",
        ]
    }

    mutating func read(_ flags: PublishPropertyFlags, shared: SharedPropertyFlags, into options: inout MQTTOptions) {
        var properties = Properties()
        if self.boolean(flags.payloadFormatIndicator, "--payload-format-indicator") == true {
            properties.payloadFormatIndicator = 1
        }
        properties.messageExpiryInterval = self.number(
            flags.messageExpiryInterval,
            "--message-expiry-interval",
            in: 0...UInt32.max
        )
        properties.contentType = flags.contentType
        properties.correlationData = flags.correlationData.map { Array($0.utf8) }
        properties.userProperties = self.userProperties(shared.userProperties, "--user-properties")
        if options.kind == .pub {
            properties.subscriptionIdentifier = self.subscriptionIdentifier(shared.subscriptionIdentifier)
        }
        options.publishProperties = properties
        options.responseTopic = self.responseTopic(flags.responseTopic, "--response-topic")
        options.topicAlias = self.topicAlias(flags.topicAlias)
        self.onlyVersion5(
            options,
            [
                ["--payload-format-indicator"], ["--message-expiry-interval"], ["--topic-alias"],
                ["--response-topic"], ["--correlation-data"], ["--content-type"], ["--user-properties"],
                ["--subscription-identifier"],
            ]
        )
    }

    mutating func read(_ flags: SubscribePropertyFlags, shared: SharedPropertyFlags, into options: inout MQTTOptions) {
        options.subscribe.noLocal = flags.noLocal
        options.subscribe.retainAsPublished = flags.retainAsPublished
        options.subscribe.retainHandling =
            self.number(flags.retainHandling, "--retain-handling", in: 0...2)
            .flatMap(Subscription.RetainHandling.init(rawValue:)) ?? .send
        options.subscribe.properties.subscriptionIdentifier = self.subscriptionIdentifier(shared.subscriptionIdentifier)
        if options.kind == .sub {
            options.subscribe.properties.userProperties = self.userProperties(
                shared.userProperties,
                "--user-properties"
            )
        }
        var names = [["--no_local", "--no-local"], ["--retain-as-published"], ["--retain-handling"]]
        if options.kind == .sub { names += [["--user-properties"], ["--subscription-identifier"]] }
        self.onlyVersion5(options, names)
    }

    // MARK: - Values

    private mutating func subscriptionIdentifier(_ text: String?) -> UInt32? {
        self.number(text, "--subscription-identifier", in: 1...268_435_455)
    }

    private mutating func topicAlias(_ text: String?) -> MQTTLoad.TopicAlias? {
        guard let text else { return nil }
        if text == "auto" { return .automatic }
        if let number = UInt16(text), number > 0 { return .fixed(number) }
        self.report("--topic-alias", "'\(text)' is not a topic alias; it is 1 to 65535, or auto")
        return nil
    }

    private mutating func responseTopic(_ text: String?, _ flag: String) -> String? {
        guard let text else { return nil }
        if let problem = self.checks.topicName(text) { self.report(flag, "'\(text)': \(problem)") }
        return text
    }

    private mutating func userProperties(_ texts: [String], _ flag: String) -> [UserProperty] {
        texts.compactMap { text in
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else {
                self.report(flag, "'\(text)' is not a user property; write it like 'name: value'")
                return nil
            }
            return UserProperty(String(parts[0]), String(parts[1].drop { $0 == " " }))
        }
    }

    /// Refuses by name what MQTT 3 has no room for.
    private mutating func onlyVersion5(_ options: MQTTOptions, _ flags: [[String]]) {
        guard options.protocolLevel < 5 else { return }
        for names in flags where self.isGiven(names) {
            self.report(self.typed(names), "MQTT 3 has no such property; leave it out, or use -V 5")
        }
    }
}
