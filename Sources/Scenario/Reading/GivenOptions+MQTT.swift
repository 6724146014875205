import SASL
import Workloads

// Options of `conn`, `pub`, `sub` and `pubsub`, and of MQTT groups.
extension GivenOptions {
    /// The options of MQTT clients; with problems reported, not to be used.
    package mutating func mqtt(_ kind: MQTTOptions.Kind) -> MQTTOptions {
        var options = MQTTOptions(kind: kind)
        self.readConnection(into: &options)
        if kind == .pubsub { self.readTopology(into: &options) }
        if kind == .sub || !self.lists.subscriptions.isEmpty { self.readFilters(into: &options) }
        options.topic = self.topic() ?? options.topic
        options.streams = self.lists.streams
        options.p2p = self.lists.p2p
        options.qualities = self[\.qos] ?? self[\.subscribeQoS] ?? options.qualities
        if kind == .pub || kind == .pubsub { self.readPublishing(into: &options) }
        self.checkTopic(\.responseTopic)
        self.checkReply(options)
        if kind == .pubsub {
            self.checkRequests(&options)
            self.checkLedger(&options)
        }
        self.checkPeers(options)
        self.readRaw(into: &options)
        self.readRun(hasLedger: options.hasLedger && options.receives, into: &options.common)
        if options.isEmbedded { self.refuseWatchOfOwn(server: \.host) }
        // A repeatable run has repeatable client ids.
        if let seed = options.seed { options.replaceDrawnPrefix(with: Self.prefix(seed: seed)) }
        self.checkTogether(options)
        self.checkRows(options)
        self.checkSegments(options)
        self.checkMetrics(of: [self.command]) { ScenarioGroup.Work.mqtt(options).known }
        return options
    }

    /// Where clients connect, who they are, and what they say in CONNECT.
    mutating func readConnection(into options: inout MQTTOptions) {
        self.store(into: &options)
        self.store(into: &options.common)
        let authority = self.readURL(into: &options.transport)
        self.readTransport(into: &options.transport)
        self.readTarget(authority, into: &options)
        self.readRows(into: &options)
        self.readIdentity(into: &options)
        self.readClients(into: &options.common)
        self.readSubscriptionChurn(into: &options)
        self.readCredentials(into: &options)
        self.checkVersion(options)
        self.readAuthentication(into: &options)
        self.readWill(into: &options)
    }

    // MARK: - Identity

    private mutating func readIdentity(into options: inout MQTTOptions) {
        let count = self[\.count] ?? 1
        options.publishers = options.kind == .sub ? 0 : count
        options.subscribers = options.kind == .sub ? count : 0
        options.publisherID = self.clientID(options.kind == .conn ? "conn" : "pub")
        options.subscriberID = self.clientID("sub")
        if options.publisherID.hasPrefix(self.ownPrefix), !self.isGiven(\.prefix), !self.isGiven(\.clientID) {
            options.drawnPrefix = self.ownPrefix
        }
        guard let id = self[\.clientID] else { return }
        if options.kind == .pubsub {
            self.refuse(\.clientID, "would be the same for publishers and subscribers; use \(\.prefix)")
        } else if count > 1, !Template(parsing: id).hasClientNumber, options.rows == nil || !id.contains("%{") {
            self.refuse(\.clientID, "'\(id)' is the same for all \(count) clients; put %i into it")
        }
        if id.replacing("%%", with: "").contains("%c") { self.refuse(\.clientID, "%c is the client id itself; use %i") }
    }

    private func clientID(_ role: String) -> String {
        if let id = self[\.clientID] { return id }
        // Publishers and subscribers of one run must not take over each other.
        if self[\.shortIDs] == true { return "\(self[\.prefix] ?? "")\(role.prefix(1))%i" }
        return "\(self[\.prefix] ?? self.ownPrefix)-\(role)-%i"
    }

    /// How fast clients connect.
    mutating func readClients(into options: inout LoadOptions) {
        options.connectRate = self[\.connectRate].flatMap { $0 > 0 ? $0 : nil }
        guard let interval = self[\.interval] else { return }
        if options.connectRate != nil {
            self.refuse(\.interval, "\(\.connectRate) says the rate of connects too; leave one of the two out")
        }
        options.connectRate = interval > 0 ? 1e9 / Double(interval) : nil
    }

    private mutating func readSubscriptionChurn(into options: inout MQTTOptions) {
        guard let rate = self[\.subscriptionChurn] else { return }
        var churn = SubscriptionChurnOption(perSecond: rate)
        if let filter = self[\.subscriptionChurnFilter] {
            churn.filter = filter
            let problem = filter.isEmpty ? "a filter has at least one character" : TextCheck.topicFilter(filter)
            if let problem { self.refuse(\.subscriptionChurnFilter, "'\(filter)': \(problem)") }
        }
        options.subscriptionChurn = churn
    }

    private mutating func readCredentials(into options: inout MQTTOptions) {
        if self.isGiven(\.password) || self.isGiven(\.passwordFile) {
            options.password = self.password() ?? options.password
        } else if options.username != nil, options.password == nil {
            options.password = self.inherited(\.password).map(Template.escaped)
        }
        if options.protocolLevel < 5, options.password != nil, options.username == nil {
            self.refuse(
                \.password,
                "MQTT 3 has no password without a user name; add \(\.username), or use \(\.protocolVersion, "5")"
            )
        }
    }

    /// The password that was given, a file's without placeholders; nothing, and a problem, where that cannot be read.
    mutating func password() -> String? {
        if let password = self[\.password] { return password }
        guard let path = self[\.passwordFile] else { return nil }
        return self.contents(of: path, for: \.passwordFile).flatMap { bytes in
            guard let password = Self.password(in: bytes) else {
                return self.refused(\.passwordFile, "\(path) is no UTF-8, which passwords are sent as; convert it")
            }
            return Template.escaped(password)
        }
    }

    /// A file's only line, without its end: some editors put one there unasked, and some put CR LF.
    private static func password(in bytes: [UInt8]) -> String? {
        var line = bytes[...]
        if line.last == 0x0A {
            line = line.dropLast()
            if line.last == 0x0D { line = line.dropLast() }
        }
        return String(validating: line, as: UTF8.self)
    }

    /// Refuses by name what MQTT 3 has no room for.
    private mutating func checkVersion(_ options: MQTTOptions) {
        guard options.protocolLevel < 5 else { return }
        for spec in self.given(with: .version5) {
            let words: OptionWords =
                spec.id == OptionTable[\.sessionExpiry].id
                ? "MQTT 3 has no session expiry; leave it out, or use \(\.protocolVersion, "5")"
                : "MQTT 3 has no such property; leave it out, or use \(\.protocolVersion, "5")"
            self.refuse(spec, words)
        }
    }

    private mutating func checkTogether(_ options: MQTTOptions) {
        if options.topicAlias != nil, Template(parsing: options.topic).variesPerMessage {
            self.refuse(
                \.topicAlias,
                "needs a topic that stays the same for a client; leave %s, %t and %rand_N out of \(\.topic)"
            )
        }
        let spread = options.kind == .sub ? options.subscribers : options.publishers
        if spread < options.qualities.count {
            let words: OptionWords =
                options.topology == .fanOut && options.kind == .pubsub
                ? "fan-out has one publisher, so one QoS"
                : "\(spread) client\(spread == 1 ? "" : "s") cannot be spread over \(options.qualities.count) QoS levels; raise \(\.count)"
            self.refuse(options.kind == .sub ? \OptionTable.subscribeQoS : \.qos, words)
        }
        guard options.protocolLevel == 3 else { return }
        // MQTT 3.1 §3.1: 1 to 23 characters.
        for (id, count) in [(options.publisherID, options.publishers), (options.subscriberID, options.subscribers)]
        where count > 0 {
            let last = Template(parsing: id).filter(ofClient: .init(clientNumber: options.startNumber + count))
            if last.count > 23 {
                return self.refuse(
                    \.protocolVersion,
                    "client ids of MQTT 3.1 have 23 characters at most, and '\(last)' has \(last.count); add \(\.shortIDs, "true")"
                )
            }
        }
    }

    // MARK: - Authentication

    /// Behind the credentials, which the methods work with.
    private mutating func readAuthentication(into options: inout MQTTOptions) {
        let method = self[\.auth]
        if method != "aliyun" {
            self.refuse(
                with: .aliyun,
                because: "is a matter of Alibaba Cloud; add \(\.auth, "aliyun"), or leave it out"
            )
        }
        switch method {
        case nil, "password": options.auth = .password
        case "aliyun": self.readAliyun(into: &options)
        case let word?:
            guard let hash = SCRAMHash(word: word) else {
                return self.refuse(\.auth, "'\(word)' is not one of aliyun, scram-sha-256, scram-sha-1")
            }
            options.auth = .scram(hash)
            if options.protocolLevel < 5 {
                self.refuse(\.auth, "MQTT 3 has no \(word); leave it out, or use \(\.protocolVersion, "5")")
            }
            if options.username == nil || options.password == nil {
                self.refuse(\.auth, "\(word) needs a user and a password; add \(\.username) and \(\.password)")
            }
            if case .embedded(let arguments) = options.target, !arguments.contains("--users") {
                self.refuse(\.auth, "the embedded broker knows no users; add \(\.broker, "'--users FILE'")")
            }
        }
    }

    private mutating func readAliyun(into options: inout MQTTOptions) {
        guard let group = self[\.groupID], !group.isEmpty else {
            return self.refuse(\.auth, "aliyun needs the group that the clients are of; add \(\.groupID, "GID_...")")
        }
        var aliyun = AliyunOptions(groupID: group)
        aliyun.instanceID = self[\.instanceID]
        if options.username == nil { self.refuse(\.auth, "aliyun needs the access key; add \(\.username)") }
        if let path = self[\.tokenFile] {
            if aliyun.instanceID == nil {
                self.refuse(\.tokenFile, "tokens name their instance; add \(\.instanceID)")
            }
            aliyun.tokens = self.tokens(path)
        } else if options.password == nil {
            self.refuse(\.auth, "aliyun needs the secret key; add \(\.password), or \(\.tokenFile)")
        }
        // SPEC A14: the service closes a connection that says more.
        if self.isGiven(\.keepAlive) {
            if !(1...120).contains(options.keepAlive) {
                self.refuse(\.keepAlive, "Alibaba Cloud takes 1 to 120 seconds")
            }
        } else {
            options.keepAlive = 60
        }
        options.publisherID = "\(group)@@@\(options.publisherID)"
        options.subscriberID = "\(group)@@@\(options.subscriberID)"
        options.auth = .aliyun(aliyun)
        // The service's own limit of a client id.
        for (id, count) in [(options.publisherID, options.publishers), (options.subscriberID, options.subscribers)]
        where count > 0 {
            let last = Template(parsing: id).filter(ofClient: .init(clientNumber: options.startNumber + count))
            if last.utf8.count <= 64 { continue }
            return self.refuse(
                \.groupID,
                "Alibaba Cloud takes client ids of 64 characters at most; add \(\.shortIDs, "true")"
            )
        }
    }

    private mutating func tokens(_ path: String) -> String? {
        guard let bytes = self.contents(of: path, for: \.tokenFile) else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        let parts = lines.map { $0.split(separator: "|", omittingEmptySubsequences: false) }
        let isWhole = parts.allSatisfy { part in
            part.count.isMultiple(of: 2) && !part.contains { $0.isEmpty }
                && stride(from: 0, to: part.count, by: 2).allSatisfy { ["R", "W", "RW"].contains(part[$0]) }
        }
        guard !parts.isEmpty, isWhole else {
            // Not echoed: it is a secret.
            return self.refused(
                \.tokenFile,
                "\(path) holds no tokens; write them like R|TOKEN, W|TOKEN or RW|TOKEN, one a line"
            )
        }
        return lines.joined(separator: "|")
    }

    // MARK: - CONNECT

    private mutating func readWill(into options: inout MQTTOptions) {
        guard let topic = self[\.willTopic] else {
            // SPEC A2: without a will there is nothing that its other values belong to.
            return self.refuse(with: .will, because: "belongs to a will, which needs a topic; add \(\.willTopic)")
        }
        self.checkTopic(\.willTopic)
        self.checkTopic(\.willResponseTopic)
        var will = WillOptions(topic: topic)
        self.store(into: &will)
        will.message = Array((self[\.willMessage] ?? "").utf8)
        options.will = will
    }

    private mutating func checkReply(_ options: MQTTOptions) {
        guard let topic = options.reply.topic else { return }
        if topic != "p2p" { self.checkTopic(\.replyTopic) }
        if options.template(topic).variesPerMessage {
            self.refuse(\.replyTopic, "'\(topic)' would be another for each message; use placeholders of the client")
        }
        if let filter = options.reply.filter, let problem = TextCheck.topicFilter(filter) {
            self.refuse(\.replyFilter, "'\(filter)': \(problem)")
        }
    }

    private mutating func checkTopic(_ option: OptionKey<String>) {
        guard let topic = self[option], let problem = TextCheck.topicName(topic) else { return }
        self.refuse(option, "'\(topic)': \(problem)")
    }

    /// Bytes that replace CONNECT.
    private mutating func readRaw(into options: inout MQTTOptions) {
        guard let text = self[\.raw] else { return }
        if text.hasPrefix("@") {
            options.raw = self.contents(of: String(text.dropFirst()), for: \.raw)
        } else {
            options.raw = HexText.parse(text)
            // Not echoed: a CONNECT holds a password.
            if options.raw == nil {
                self.refuse(\.raw, "is neither bytes in hexadecimal, such as 'c0 00', nor a file, such as @connect.bin")
            }
        }
        if options.raw == [] { self.refuse(\.raw, "is empty; give at least one byte") }
        let words: OptionWords = "belongs to CONNECT, and \(\.raw) takes its place; leave one of the two out"
        self.refuse(with: .connectPacket, because: words)
        self.refuse(with: .will, because: words)
        if options.username != nil, !self.isGiven(\.username) {
            self.refuse(\.url, "its user belongs to CONNECT, and \(\.raw) takes its place; leave one of the two out")
        }
    }
}
