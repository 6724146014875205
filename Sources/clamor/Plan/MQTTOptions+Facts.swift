import MQTTCodec
import Workloads

extension MQTTOptions {
    /// The options of an MQTT group that differ from their defaults.
    var facts: PlanFacts {
        var facts = PlanFacts()
        facts.text("command", self.kind.rawValue, .schedule)
        facts.integer("clients", self.kind == .sub ? self.subscribers : self.publishers, .schedule)
        if self.kind == .pubsub { facts.integer("subscribers", self.subscribers, .schedule) }
        self.common.addFacts(to: &facts, section: "publish")
        self.addIdentity(to: &facts)
        self.addSession(to: &facts)
        self.addWill(to: &facts)
        if self.kind == .pub || self.kind == .pubsub { self.addPublishing(to: &facts) }
        if self.kind == .sub || self.kind == .pubsub { self.addSubscribing(to: &facts) }
        if self.store != nil { facts.text("store_kind", "sqlite", .record) }
        return facts
    }

    private func addIdentity(to facts: inout PlanFacts) {
        // A drawn prefix is omitted: it differs per run.
        if self.drawnPrefix == nil {
            facts.text("client_id", self.kind == .sub ? self.subscriberID : self.publisherID)
            if self.kind == .pubsub { facts.text("subscriber_id", self.subscriberID) }
        }
        facts.text("username", self.username)
        facts.digest("password", self.password?.utf8, .record)
        facts.text("rows", self.rows?.digest, .schedule)
        switch self.auth {
        case .password: break
        case .scram(let hash): facts.text("auth", hash.word, .schedule)
        case .aliyun(let aliyun):
            facts.text("auth", "aliyun", .schedule)
            facts.text("group_id", aliyun.groupID)
            facts.text("instance_id", aliyun.instanceID)
            facts.digest("token_file", aliyun.tokens?.utf8)
        }
    }

    private func addSession(to facts: inout PlanFacts) {
        facts.integer("connect.protocol", self.protocolLevel, unless: 5, .schedule)
        facts.seconds("connect.keep_alive", self.keepAlive, unless: 300, .schedule)
        facts.flag("connect.clean", self.clean, unless: true, .schedule)
        facts.seconds("connect.session_expiry", self.sessionExpiry, unless: 0)
        facts.integer("connect.receive_maximum", self.connect.receiveMaximum)
        facts.integer("connect.maximum_packet_size", self.connect.maximumPacketSize)
        facts.integer("connect.topic_alias_maximum", self.connect.topicAliasMaximum)
        facts.flag("connect.response_information", self.connect.requestsResponseInformation)
        facts.flag("connect.problem_information", self.connect.requestsProblemInformation, unless: true)
        facts.userProperties("connect.user_properties", self.connect.userProperties)
        facts.digest("raw", self.raw)
        facts.number("subscription_churn", self.subscriptionChurn?.perSecond, .schedule)
        facts.text("subscription_churn_filter", self.subscriptionChurn?.filter, .schedule)
    }

    private func addWill(to facts: inout PlanFacts) {
        guard let will = self.will else { return }
        facts.text("will.topic", will.topic, .schedule)
        if !will.message.isEmpty { facts.digest("will.message", will.message) }
        facts.integer("will.qos", will.qos, unless: 0)
        facts.flag("will.retain", will.retain)
        facts.seconds("will.delay", will.properties.willDelayInterval)
        facts.messageProperties("will", will.properties)
        facts.text("will.response_topic", will.properties.responseTopic)
    }

    private func addPublishing(to facts: inout PlanFacts) {
        facts.text("publish.topic", self.topic, unless: "clamor/%i", .schedule)
        facts.text("publish.qos", self.qosList, unless: "0", .schedule)
        facts.flag("publish.retain", self.retain, .schedule)
        facts.messageProperties("publish", self.publishProperties)
        facts.integer("publish.subscription_identifier", self.publishProperties.subscriptionIdentifier)
        let usualAnswers = self.topology == .request ? "clamor-answers/%c" : nil
        facts.text("publish.response_topic", self.responseTopic, unless: usualAnswers)
        switch self.topicAlias {
        case nil: break
        case .automatic: facts.text("publish.topic_alias", "auto")
        case .fixed(let alias): facts.text("publish.topic_alias", "\(alias)")
        }
    }

    private func addSubscribing(to facts: inout PlanFacts) {
        if self.kind == .sub {
            facts.texts("subscribe.filter", self.filters, .schedule)
            facts.text("subscribe.qos", self.qosList, unless: "0")
            facts.userProperties("subscribe.user_properties", self.subscribe.properties.userProperties)
        } else {
            facts.text("topology", self.topology.rawValue, .schedule)
            facts.flag("separate", self.isSeparate)
        }
        facts.flag("subscribe.no_local", self.subscribe.noLocal)
        facts.flag("subscribe.retain_as_published", self.subscribe.retainAsPublished)
        facts.integer("subscribe.retain_handling", self.subscribe.retainHandling.rawValue, unless: 0)
        facts.integer("subscribe.identifier", self.subscribe.properties.subscriptionIdentifier)
    }

    private var qosList: String { self.qualities.map(String.init).joined(separator: ",") }
}

extension PlanFacts {
    /// Those of PUBLISH and of a will.
    fileprivate mutating func messageProperties(_ section: String, _ properties: Properties) {
        self.flag("\(section).is_text", properties.payloadFormatIndicator == 1)
        self.seconds("\(section).expiry", properties.messageExpiryInterval)
        self.text("\(section).content_type", properties.contentType)
        self.digest("\(section).correlation_data", properties.correlationData)
        self.userProperties("\(section).user_properties", properties.userProperties)
    }
}
