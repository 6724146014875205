import Crypto
import DataEncodings
import MQTTCodec
import Workloads

// The messages of clients, and their pace.
extension GivenOptions {
    /// A topic to publish to, with placeholders.
    mutating func topic() -> String? {
        guard let topic = self[\.topic] else { return nil }
        if topic.isEmpty {
            self.refuse(\.topic, "a topic has at least one character; leave it out for clamor/%i")
        } else if topic.contains(where: { $0 == "+" || $0 == "#" }) {
            self.refuse(
                \.topic,
                "'\(topic)' has a wildcard, which only a filter may have; use a placeholder such as %i"
            )
        } else if let problem = TextCheck.topicName(topic) {
            self.refuse(\.topic, "'\(topic)': \(problem)")
        }
        return topic
    }

    mutating func readFilters(into options: inout MQTTOptions) {
        let filters = self[\.filters] ?? []
        let common = options.subscribe
        options.subscriptions =
            self.lists.subscriptions.isEmpty
            ? (filters.isEmpty ? ["clamor/#"] : filters).map { SubscriptionOption($0, options: common) }
            : self.lists.subscriptions
        for (index, filter) in filters.enumerated() {
            let problem = filter.isEmpty ? "a filter has at least one character; leave it out for clamor/#" : nil
            if let problem = problem ?? TextCheck.topicFilter(filter) {
                self.refuse(\.filters, "'\(filter)': \(problem)", at: index)
            }
        }
        let all = options.subscriptions
        for (index, own) in all.enumerated()
        where own.options.count ?? 1 > 1 && !options.template(own.filter).hasMessageNumber {
            let words: OptionWords = "'\(own.filter)' has no %s for the numbers of \(\.filterCount); write one into it"
            filters.isEmpty ? self.refuse(\.filterCount, words) : self.refuse(\.filters, words, at: index)
        }
        if all.reduce(0, { $0 + ($1.options.count ?? 1) }) > 65_000 {
            self.refuse(\.filters, "are more than 65,000 for a client; use fewer, or a smaller \(\.filterCount)")
        }
        if all.contains(where: { $0.options.pace != nil }), !all.contains(where: { $0.options.packets == .each }) {
            let each: OptionWords = "spaces several packets; set \(\.packets, "each"), or leave it out"
            self.refuse(\.subscribePace, each)
        }
    }

    mutating func readTopology(into options: inout MQTTOptions) {
        let given = self[\.subscribers]
        switch options.topology {
        case .pair: options.subscribers = given ?? options.publishers
        case .fanIn, .request: options.subscribers = given ?? 1
        case .shared: options.subscribers = given ?? 4
        case .fanOut:
            if given != nil, options.publishers > 1 {
                self.refuse(
                    \.subscribers,
                    "fan-out has one publisher, and \(\.count) counts subscribers too; leave one out"
                )
            }
            options.subscribers = given ?? options.publishers
            options.publishers = 1
        }
    }

    mutating func readPublishing(into options: inout MQTTOptions) {
        self.readPace(into: &options.common)
        self.readPayload(
            \.message,
            atMost: Self.largestPayload,
            of: "MQTT",
            columns: options.rows?.columns ?? [],
            into: &options.common
        )
        if options.ledger == .property, options.protocolLevel < 5 {
            self.refuse(
                \.ledger,
                "MQTT 3 has no user properties; use \(\.protocolVersion, "5"), or put %{ledger} into \(\.message)"
            )
        }
        if options.ledger == .property, options.payload.draft().hasLedger {
            self.refuse(\.ledger, "the message has %{ledger} already; leave one of the two out")
        }
        if let given = options.inflight, given > MQTTOptions.largestBatch, options.highestQoS == 0 {
            self.refuse(\.inflight, "at QoS 0 it is messages per write, \(MQTTOptions.largestBatch) at most")
        }
    }

    // MARK: - Pace

    /// When operations are due, and how many.
    mutating func readPace(into options: inout LoadOptions) {
        if let interval = self[\.messageInterval], interval > 0 { options.pacing = .interval(interval) }
        if let rate = self[\.rate] { options.pacing = .rate(rate) }
        options.limit = self[\.limit].flatMap { $0 == 0 ? nil : $0 }
    }

    /// The protocol's largest packet (B1) less room for a topic and properties.
    private static let largestPayload = 268_000_000

    /// The payload of messages, at most so many bytes of the protocol.
    mutating func readPayload(
        _ option: OptionKey<String>,
        atMost largest: Int,
        of name: String,
        columns: [String] = [],
        into options: inout LoadOptions
    ) {
        let sizes = self[\.size]
        if let sizes {
            options.payload = .generated(sizes: sizes)
            if sizes.upperBound > largest { self.refuse(\.size, "\(name) carries \(largest) bytes at most") }
        }
        guard let message = self[option] else { return }
        var hasRandom = false
        if let path = Self.path(message, scheme: "template://") {
            let bytes = self.contents(of: path, for: option) ?? []
            let randomSizes = sizes ?? 256...256
            options.payload = .template(bytes, randomSizes: randomSizes)
            hasRandom = options.payload.draft().hasRandomBytes
            if let unknown = options.payload.draft().unknown.first {
                let known = Template.names.joined(separator: ", ")
                self.refuse(
                    option,
                    "\(unknown) in \(path) is no placeholder; the names are \(known); file:// sends a file as it is"
                )
            }
        } else if let path = Self.path(message, scheme: "file://") {
            options.payload = .file(self.contents(of: path, for: option) ?? [])
        } else if let text = Self.path(message, scheme: "hex://") ?? Self.path(message, scheme: "base64://") {
            let isHex = message.hasPrefix("hex://")
            let found = isHex ? HexText.parse(text) : Base64.decode(text.utf8)
            if found == nil {
                let form = isHex ? "pairs of hexadecimal digits, such as hex://0aff" : "base64, such as base64://Cv8="
                self.refuse(option, "is not \(form)")
            }
            options.payload = .file(found ?? [])
        } else {
            options.payload = .message(Array(message.utf8))
        }
        self.readVariables(option, columns, into: &options)
        if sizes != nil, !hasRandom { self.refuse(option, "a message has its own size; leave \(\.size) out") }
        let parts = MessageParts(ledgerSize: XMPPBody.headerSize, lines: options.lines)
        if options.payload.load(parts, columns: columns).largest > largest {
            self.refuse(option, "\(name) carries \(largest) bytes at most")
        }
    }

    /// Reads the files of a message's variables.
    private mutating func readVariables(
        _ option: OptionKey<String>,
        _ columns: [String],
        into options: inout LoadOptions
    ) {
        let draft = options.payload.draft(columns: columns)
        if let problem = draft.problem { return self.refuse(option, "\(problem); %% is a percent sign") }
        for file in draft.files {
            guard let bytes = self.contents(of: file, for: option) else { continue }
            let lines = Self.lines(of: bytes).map { Array($0.bytes) }
            guard !lines.isEmpty, bytes.count <= RowTable.mostBytes else {
                self.refuse(option, "\(file) has no line, or over 4 GiB; give a file with one text a line")
                continue
            }
            options.lines[file] = RowTable(columns: ["line"], cells: lines, digest: SHA256.hash(data: bytes).hex)
        }
    }

    private static func path(_ text: String, scheme: String) -> String? {
        text.hasPrefix(scheme) ? String(text.dropFirst(scheme.count)) : nil
    }

    // MARK: - Options together

    /// Refuses what would make the ledger expect messages that a faultless server does not deliver.
    mutating func checkLedger(_ options: inout MQTTOptions) {
        if options.hasLedger, options.retains, options.subscribe.retainAsPublished,
            options.subscribe.retainHandling != .doNotSend
        {
            self.refuse(
                \.retainAsPublished,
                "with \(\.retain, "true") a stored copy looks like a new message (MQTT 5 §3.8.3.1); add \(\.retainHandling, "2")"
            )
        }
        guard options.isSeparate else { return }
        let servers = options.targetCount
        guard servers > 1 else {
            return self.refuse(
                \.separate,
                "there is one target; give several with \(\.host, self.isFile ? "mqtt://A,B" : "A,B"), or leave it out"
            )
        }
        guard min(options.publishers, options.subscribers) < servers else { return }
        self.refuse(
            \.separate,
            "\(servers) servers each need a publisher and a subscriber, and this run has \(options.publishers) and \(options.subscribers); raise \(\.count) and \(\.subscribers), or use another \(\.topology)"
        )
    }

    /// Checks messages to single clients, whose topics follow from the receivers.
    mutating func checkPeers(_ options: MQTTOptions) {
        guard options.p2p != nil else { return }
        if self.isGiven(\.topic) {
            self.refuse(\.topic, "messages to single clients have the topic of each; leave topic or p2p out")
        }
        // SPEC A14: the service lowers QoS 2, and what was asked for would not be measured.
        if options.qualities.contains(2) {
            self.refuse(\.qos, "messages to single clients have no QoS 2; use 0 or 1")
        }
        if options.topicAlias != nil {
            self.refuse(\.topicAlias, "needs a topic that stays the same, which p2p has not; leave one of the two out")
        }
    }

    /// Checks the options of requests, and the topic of their answers (MQTT 5.0 §4.10).
    mutating func checkRequests(_ options: inout MQTTOptions) {
        guard options.topology == .request else { return }
        if options.ledger == .property {
            self.refuse(\.ledger, "an answer has the payload of its request, and none of its properties; leave it out")
        }
        guard options.streams.isEmpty else {
            let words: OptionWords =
                "requests are one stream, and these are \(options.streams.count); take another topology"
            return self.refuse(\.topology, words)
        }
        if options.protocolLevel < 5 {
            self.refuse(
                \.topology,
                "requests are of MQTT 5, and MQTT 3 has no response topic; use \(\.protocolVersion, "5")"
            )
        }
        if options.qualities.contains(0) {
            let words: OptionWords =
                "a request is known to have come when it is acknowledged; write \(\.qos, "1") or \(\.qos, "2")"
            self.refuse(first: \.qos, \.topology, because: words)
        }
        if !options.hasLedger {
            let words: OptionWords =
                "requests carry the header that their answers are known by; give \(\.size) \(options.headerSize) or more, or put %{ledger} into \(\.message)"
            self.refuse(first: \.message, \.size, because: words)
        }
        if options.retain { self.refuse(\.retain, "a retained request would be answered again; leave it out") }
        if options.publishProperties.correlationData != nil {
            self.refuse(\.correlationData, "requests are numbered by it; leave it out")
        }
        guard let topic = options.responseTopic else {
            options.responseTopic = "clamor-answers/%c"
            return
        }
        if Template(parsing: topic).variesPerMessage {
            self.refuse(\.responseTopic, "'\(topic)' would be another for each request; use %i or %c")
        } else if options.publishers > 1, !Template(parsing: topic).variesPerClient {
            self.refuse(\.responseTopic, "'\(topic)' is the same for all, and each would read all answers; add %c")
        }
    }
}
