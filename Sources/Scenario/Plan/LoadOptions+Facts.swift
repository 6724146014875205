import LoadEngine
import MQTTCodec
import NIOCore
import Transport
import Workloads

extension LoadOptions {
    /// Options of every protocol.
    func addFacts(to facts: inout PlanFacts, of command: CommandName) {
        facts.add(self, of: command)
        let section = command.section ?? ""
        facts.number("connect.rate", self.connectRate)
        facts.number("churn", self.churn?.perSecond, .key("churn_rate"))
        facts.flag("churn.cut", self.churn?.cuts ?? false, .schedule)
        for (index, storm) in self.storms.enumerated() {
            let path = "storm[\(index)]"
            facts.number("\(path).share", storm.share, .schedule)
            facts.nanoseconds("\(path).at", storm.at.nanoseconds, .schedule)
            facts.nanoseconds("\(path).over", storm.over.nanoseconds, unless: 0, .schedule)
            facts.nanoseconds("\(path).until", storm.until?.nanoseconds, .schedule)
            facts.flag("\(path).cut", storm.cuts, unless: true, .schedule)
        }
        for (index, stage) in self.stages.enumerated() where stage.clients != .share(1) {
            switch stage.clients {
            case .share(let share): facts.number("stages[\(index)].clients_share", share, .schedule)
            case .count(let count): facts.integer("stages[\(index)].clients", count, .schedule)
            }
        }
        self.addTransport(to: &facts, of: command)
        guard self.operates else { return }
        self.addPace(to: &facts, section)
        self.addPayload(to: &facts, section)
    }

    private func addPace(to facts: inout PlanFacts, _ section: String) {
        switch (self.shape, self.pacing) {
        case (.ramp(let from, let to, let over), _):
            facts.number("\(section).rate.from", from, .key("rate_from"))
            facts.number("\(section).rate.to", to, .key("rate_to"))
            // A ramp without a length of its own has that of the load.
            facts.nanoseconds("\(section).rate.over", over ?? self.loadLength, .schedule)
        case (.steps(let rates, let every), _):
            facts.add("\(section).rate.steps", .list(rates.map { .number($0) }), .key("rate_steps"))
            facts.nanoseconds("\(section).rate.every", every, .key("rate_every_seconds"))
        case (.level, .rate(let rate)): facts.number("\(section).rate", rate, .schedule)
        // The same due times as with a rate.
        case (.level, .interval(let nanoseconds)):
            facts.number("\(section).rate", Double(self.operators) * 1e9 / Double(nanoseconds), .schedule)
        case (.level, .closedLoop): break
        }
        switch self.arrivals {
        case .even: break
        case .poisson: facts.text("\(section).arrivals", "poisson", .key("arrivals"))
        case .bursts(let size): facts.integer("\(section).burst", size, .key("burst"))
        }
        facts.nanoseconds("\(section).think", self.think, unless: 0, .key("think_seconds"))
        facts.integer("\(section).limit", self.limit, .key("limit"))
    }

    private func addPayload(to facts: inout PlanFacts, _ section: String) {
        switch self.payload {
        case .generated(let sizes): Self.add(sizes, to: &facts, section)
        case .message(let bytes): facts.digest("\(section).message", bytes, .schedule)
        case .template(let bytes, let sizes):
            facts.digest("\(section).template", bytes, .schedule)
            // `-m` would send these names as they are.
            if self.payload.draft().hasNames { facts.flag("\(section).is_template", true, .record) }
            Self.add(sizes, to: &facts, section)
        case .file(let bytes):
            facts.digest("\(section).file", bytes, .schedule)
            // `-m` and `template://` would replace placeholders in these bytes.
            if bytes.contains(UInt8(ascii: "%")) { facts.flag("\(section).is_literal", true, .record) }
        }
        facts.texts("\(section).lines", self.lines.values.map(\.digest).sorted())
    }

    private static func add(_ sizes: ClosedRange<Int>, to facts: inout PlanFacts, _ section: String) {
        if sizes.count == 1 {
            facts.integer("\(section).size", sizes.lowerBound, unless: 256, .schedule)
        } else {
            facts.integer("\(section).size.min", sizes.lowerBound, .schedule)
            facts.integer("\(section).size.max", sizes.upperBound, .schedule)
        }
    }

    private func addTransport(to facts: inout PlanFacts, of command: CommandName) {
        if let webSocket = self.transport.webSocket {
            facts.text("subprotocol", webSocket.subprotocols.joined(separator: ","), unless: "mqtt", .record)
            facts.secret("path.query", isGiven: webSocket.path.contains("?"))
            for index in webSocket.headers.indices { facts.secret("headers_\(index + 1)", isGiven: true) }
        }
        guard let tls = self.transport.tls else { return }
        facts.file("ca_file", tls.caFile, .record)
        facts.file("cert_file", tls.certificateFile, .record)
        facts.file("key_file", tls.keyFile, .record)
        for (index, pin) in tls.pins.enumerated() {
            if pin.hasPrefix("sha256/") {
                facts.text("pin_\(index + 1)", pin, .record)
            } else {
                facts.file("pin_\(index + 1)", pin, .record)
            }
        }
        facts.secret("psk", isGiven: tls.psk != nil)
        facts.add(tls, of: command)
    }
}

extension MQTTOptions {
    /// The options of an MQTT group that differ from their defaults.
    var facts: PlanFacts {
        var facts = PlanFacts()
        facts.text("command", self.kind.rawValue, .schedule)
        facts.integer("clients", self.kind == .sub ? self.subscribers : self.publishers, .schedule)
        if self.kind == .pubsub { facts.integer("subscribers", self.subscribers, .schedule) }
        self.common.addFacts(to: &facts, of: self.command)
        facts.add(self, of: self.command)
        self.addIdentity(to: &facts)
        let expiry = self.sessionExpiry.map { Int64($0) * 1_000_000_000 }
        facts.nanoseconds("connect.session_expiry", expiry, unless: 0)
        facts.digest("raw", self.raw)
        facts.number("subscription_churn", self.subscriptionChurn?.perSecond, .key("subscription_churn_rate"))
        facts.text("subscription_churn_filter", self.subscriptionChurn?.filter)
        self.addWill(to: &facts)
        if self.kind == .pub || self.kind == .pubsub { self.addPublishing(to: &facts) }
        if self.kind == .pubsub { facts.text("topology", self.topology.rawValue, .schedule) }
        self.addSubscribing(to: &facts)
        return facts
    }

    private func addIdentity(to facts: inout PlanFacts) {
        // A drawn prefix is omitted: it differs per run.
        if self.drawnPrefix == nil {
            facts.text("client_id", self.kind == .sub ? self.subscriberID : self.publisherID)
            if self.kind == .pubsub { facts.text("subscriber_id", self.subscriberID) }
        }
        facts.secret("password", isGiven: self.password != nil)
        facts.text("rows", self.rows?.digest, .schedule)
        switch self.auth {
        case .password: break
        case .scram(let hash): facts.text("auth", hash.word)
        case .aliyun(let aliyun):
            facts.text("auth", "aliyun")
            facts.text("group_id", aliyun.groupID)
            facts.text("instance_id", aliyun.instanceID)
            facts.digest("token_file", aliyun.tokens?.utf8, .schedule)
            facts.secret("token_file", isGiven: aliyun.tokens != nil)
        }
    }

    private func addWill(to facts: inout PlanFacts) {
        guard let will = self.will else { return }
        facts.text("will.topic", will.topic)
        if !will.message.isEmpty { facts.digest("will.message", will.message, .schedule) }
        facts.secret("will.message", isGiven: !will.message.isEmpty)
        facts.add(will, of: self.command)
        facts.digest("will.correlation_data", will.properties.correlationData)
    }

    private func addPublishing(to facts: inout PlanFacts) {
        guard self.streams.isEmpty else { return self.addStreams(to: &facts) }
        if let p2p = self.p2p {
            facts.text("publish.p2p.root", p2p.root, .schedule)
            facts.text("publish.p2p.to", "\(p2p.to)", .schedule)
        }
        facts.text("publish.topic", self.topic, unless: Self.usualTopic, .schedule)
        facts.text("publish.qos", self.qosList, unless: "0", .schedule)
        facts.digest("publish.correlation_data", self.publishProperties.correlationData)
        let usualAnswers = self.topology == .request ? "clamor-answers/%c" : nil
        facts.text("publish.response_topic", self.responseTopic, unless: usualAnswers)
    }

    private func addSubscribing(to facts: inout PlanFacts) {
        guard self.kind == .sub, self.hasEqualFilters else { return self.addFilters(to: &facts) }
        facts.texts("subscribe.filter", self.subscriptions.map(\.filter), .schedule)
        facts.text("subscribe.qos", self.qosList, unless: "0")
    }

    private var qosList: String { self.qualities.map(String.init).joined(separator: ",") }
}

extension XMPPOptions {
    /// The options of an XMPP group that differ from their defaults.
    var facts: PlanFacts {
        var facts = PlanFacts()
        facts.text("command", "xmpp \(self.kind.rawValue)", .schedule)
        facts.integer("clients", self.operators, .schedule)
        self.common.addFacts(to: &facts, of: self.command)
        facts.add(self, of: self.command)
        if self.users.isEmpty {
            facts.text("jid", "\(self.local)@\(self.domain)/\(self.resource)")
        } else {
            let names = self.users.map { "\($0.local)@\($0.domain)/\($0.resource)\n" }
            facts.digest("users", names.joined().utf8)
        }
        facts.secret("password", isGiven: !self.users.isEmpty || !self.password.isEmpty)
        switch self.kind {
        case .muc:
            facts.integer("muc.room_size", self.groupSize, .schedule)
            facts.text("muc.room", self.room, unless: Self.usual.room, .schedule)
            facts.text("muc.service", self.service, .schedule)
        case .presence: facts.integer("presence.contacts", self.groupSize - 1, .schedule)
        case .login, .message, .ping, .register, .unregister: break
        }
        return facts
    }
}
