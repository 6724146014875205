import MQTTCodec
import Workloads

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
        self.addSession(to: &facts)
        self.addWill(to: &facts)
        if self.kind == .pub || self.kind == .pubsub { self.addPublishing(to: &facts) }
        if self.kind == .pubsub { facts.text("topology", self.topology.rawValue, .schedule) }
        self.addSubscribing(to: &facts)
        if self.store != nil { facts.text("store_kind", "sqlite", .record) }
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
        case .scram(let hash): facts.text("auth", hash.word, .schedule)
        case .aliyun(let aliyun):
            facts.text("auth", "aliyun", .schedule)
            facts.text("group_id", aliyun.groupID)
            facts.text("instance_id", aliyun.instanceID)
            facts.digest("token_file", aliyun.tokens?.utf8, .schedule)
            facts.secret("token_file", isGiven: aliyun.tokens != nil)
        }
    }

    private func addSession(to facts: inout PlanFacts) {
        facts.seconds("connect.session_expiry", self.sessionExpiry, unless: 0)
        facts.digest("raw", self.raw)
        facts.number("subscription_churn", self.subscriptionChurn?.perSecond, .schedule)
        facts.text("subscription_churn_filter", self.subscriptionChurn?.filter, .schedule)
    }

    private func addWill(to facts: inout PlanFacts) {
        guard let will = self.will else { return }
        facts.text("will.topic", will.topic, .schedule)
        if !will.message.isEmpty { facts.digest("will.message", will.message, .schedule) }
        facts.secret("will.message", isGiven: !will.message.isEmpty)
        facts.integer("will.qos", will.qos, unless: 0)
        facts.flag("will.retain", will.retain)
        facts.seconds("will.delay", will.properties.willDelayInterval)
        facts.flag("will.is_text", will.properties.isText)
        facts.seconds("will.expiry", will.properties.messageExpiryInterval)
        facts.text("will.content_type", will.properties.contentType)
        facts.digest("will.correlation_data", will.properties.correlationData)
        facts.userProperties("will.user_properties", will.properties.userProperties)
        facts.text("will.response_topic", will.properties.responseTopic)
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
