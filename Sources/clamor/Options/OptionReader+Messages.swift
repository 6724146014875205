import MQTTCodec
import Workloads

extension OptionReader {
    mutating func read(_ flag: TopicFlag, into options: inout MQTTOptions) {
        options.topic = self.topic(flag.topic) ?? options.topic
    }

    /// A topic to publish to, with placeholders.
    mutating func topic(_ text: String?) -> String? {
        guard let topic = text else { return nil }
        let name = self.typed(["-t", "--topic"])
        if topic.isEmpty {
            self.report(name, "a topic has at least one character; leave -t out for clamor/%i")
        } else if topic.contains(where: { $0 == "+" || $0 == "#" }) {
            self.report(name, "'\(topic)' has a wildcard, and nobody can publish to that; use a placeholder such as %i")
        } else if let problem = self.checks.topicName(topic) {
            self.report(name, "'\(topic)': \(problem)")
        }
        return topic
    }

    mutating func read(filters: [String], into options: inout MQTTOptions) {
        options.filters = filters.isEmpty ? ["clamor/#"] : filters
        for filter in filters {
            let problem = filter.isEmpty ? "a filter has at least one character; leave -t out for clamor/#" : nil
            if let problem = problem ?? self.checks.topicFilter(filter) {
                self.report(self.typed(["-t", "--topic"]), "'\(filter)': \(problem)")
            }
        }
    }

    mutating func read(_ flag: QoSFlag, into options: inout MQTTOptions) {
        options.qualities = self.qualities(flag.qos) ?? options.qualities
    }

    /// QoS levels, each once.
    mutating func qualities(_ text: String?) -> [UInt8]? {
        guard let text else { return nil }
        let levels = text.split(separator: ",", omittingEmptySubsequences: false).map { UInt8($0) ?? .max }
        guard levels.allSatisfy({ $0 <= 2 }), Set(levels).count == levels.count else {
            self.report(
                self.typed(["-q", "--qos"]),
                "'\(text)' is not QoS 0, 1 or 2, nor a list of them such as 0,1,2 with each once"
            )
            return nil
        }
        return levels
    }

    mutating func read(topology: String?, subscribers: String?, into options: inout MQTTOptions) {
        if let topology {
            guard let shape = MQTTLoad.Topology(rawValue: topology) else {
                let shapes = MQTTLoad.Topology.allCases.map(\.rawValue).joined(separator: ", ")
                return self.report("--topology", "'\(topology)' is not one of \(shapes)")
            }
            options.topology = shape
        }
        let given = self.number(subscribers, "--subscribers", in: 1...10_000_000)
        switch options.topology {
        case .pair: options.subscribers = given ?? options.publishers
        case .fanIn, .request: options.subscribers = given ?? 1
        case .shared: options.subscribers = given ?? 4
        case .fanOut:
            if given != nil, options.publishers > 1 {
                self.report("--subscribers", "fan-out has one publisher, and -c counts subscribers too; leave one out")
            }
            options.subscribers = given ?? options.publishers
            options.publishers = 1
        }
    }

    /// Refuses what would make the ledger expect messages that a faultless server does not deliver.
    mutating func checkLedger(_ options: inout MQTTOptions, separate: Bool) {
        if options.hasLedger, options.retain, options.subscribe.retainAsPublished,
            options.subscribe.retainHandling != .doNotSend
        {
            self.report(
                "--retain-as-published",
                "with -r a stored copy looks like a new message (MQTT 5 §3.8.3.1); add --retain-handling 2"
            )
        }
        guard separate else { return }
        options.isSeparate = true
        let servers = options.targetCount
        guard servers > 1 else {
            return self.report("--separate", "there is one target; give several with -h A,B, or leave it out")
        }
        let fewest = min(options.publishers, options.subscribers)
        guard fewest < servers else { return }
        self.report(
            "--separate",
            "\(servers) servers each need a publisher and a subscriber, and this run has \(options.publishers) and "
                + "\(options.subscribers); raise -c and --subscribers, or use another --topology"
        )
    }

    mutating func read(_ flags: PublishFlags, into options: inout MQTTOptions) {
        self.read(flags.pace, into: &options.common)
        self.read(flags.payload, atMost: Self.largestPayload, of: "MQTT", into: &options.common)
        options.retain = self.boolean(flags.retain, "-r", "--retain") ?? false
        options.inflight = self.number(flags.inflight, "-F", "--inflight", in: 0...65_535)
        if let given = options.inflight, given > MQTTOptions.largestBatch, options.highestQoS == 0 {
            self.report("-F", "at QoS 0 it is messages per write, \(MQTTOptions.largestBatch) at most")
        }
    }

    /// When operations are due, and how many.
    mutating func read(_ flags: PaceFlags, into options: inout LoadOptions) {
        self.readPacing(flags, into: &options)
        options.limit = self.number(flags.limit, "-L", "--limit", in: 0...UInt64.max).flatMap { $0 == 0 ? nil : $0 }
        options.waitsForAll = self.boolean(flags.wait, "-w", "--wait-before-publishing") ?? !flags.noWait
        if flags.noWait, flags.wait == "true" { self.report("--no-wait", "-w true says the opposite; leave one out") }
        if let timeout = self.duration(flags.ackTimeout, "--ack-timeout") {
            options.ackTimeout = timeout
            if timeout == 0 { self.report("--ack-timeout", "'0' leaves no time for an answer; write it like 30s") }
        }
    }

    private mutating func readPacing(_ flags: PaceFlags, into options: inout LoadOptions) {
        let intervalNames = ["-I", "--interval_of_msg", "--message-interval"]
        let interval = self.milliseconds(flags.messageInterval, "-I", "--interval_of_msg", "--message-interval")
        if let interval, interval > 0 { options.pacing = .interval(interval) }
        guard let rate = self.value(flags.rate, "--rate", parse: RateText.parse) else { return }
        options.pacing = .rate(rate)
        if flags.messageInterval != nil {
            self.report(
                "--rate",
                "\(self.typed(intervalNames)) sets the pace too, per client; leave one of the two out"
            )
        }
    }

    /// The protocol's largest packet (B1) less room for a topic and properties.
    private static let largestPayload = 268_000_000

    /// What messages carry, at most so many bytes of the protocol.
    mutating func read(
        _ flags: PayloadFlags,
        atMost largest: Int,
        of name: String,
        into options: inout LoadOptions
    ) {
        let sizeFlag = self.typed(["-s", "--size", "--payload-size"])
        let sizes = self.value(flags.size, "-s", "--size", "--payload-size", parse: SizeRangeText.parse)
        if let sizes {
            options.payload = .generated(sizes: sizes)
            if sizes.upperBound > largest { self.report(sizeFlag, "\(name) carries \(largest) bytes at most") }
        }
        guard let message = flags.message else { return }
        let flag = self.typed(["-m", "--message"])
        let bytes: [UInt8]
        var random = 0
        if let path = Self.path(message, scheme: "template://") {
            bytes = self.contents(of: path, flag: flag) ?? []
            let randomSizes = sizes ?? 256...256
            options.payload = .template(bytes, randomSizes: randomSizes)
            if Template.hasRandomBytes(in: bytes) { random = randomSizes.upperBound }
            if let unknown = Template.unknownNames(in: bytes).first {
                let known = Template.names.joined(separator: ", ")
                self.report(
                    flag,
                    "\(unknown) in \(path) is no placeholder; the names are \(known); file:// sends a file as it is"
                )
            }
        } else if let path = Self.path(message, scheme: "file://") {
            bytes = self.contents(of: path, flag: flag) ?? []
            options.payload = .file(bytes)
        } else {
            bytes = Array(message.utf8)
            options.payload = .message(bytes)
        }
        if sizes != nil, random == 0 { self.report(flag, "a message has its own size; leave -s out") }
        if bytes.count + random > largest { self.report(flag, "\(name) carries \(largest) bytes at most") }
    }

    private static func path(_ text: String, scheme: String) -> String? {
        text.hasPrefix(scheme) ? String(text.dropFirst(scheme.count)) : nil
    }
}
