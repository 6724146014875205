import Ledger
package import LoadEngine
import MQTT
import MQTTCodec
import Measurement
import NIOCore
import SASL
import Transport
package import Workloads

/// Converts command-line options to the engine's plan.
extension LoadOptions {
    /// The load over all shards; more servers allow more pending connects.
    package func plan(targets: Int, seed: UInt64) -> LoadPlan {
        let pace: LoadPlan.Pace
        switch (self.operates, self.pacing) {
        case (false, _): pace = .idle
        case (_, .rate(let perSecond)):
            pace = .open(self.shaped(perSecond, seed: seed) ?? .rate(perSecond: perSecond))
        case (_, .interval(let nanoseconds)):
            let perSecond = Double(self.operators) * 1e9 / Double(nanoseconds)
            pace = .open(self.shaped(perSecond, seed: seed) ?? .interval(.nanoseconds(nanoseconds)))
        case (_, .closedLoop): pace = .closed
        }
        var plan = LoadPlan(
            operators: self.operators,
            listeners: self.listeners,
            connect: self.connectRate.map { .rate(perSecond: $0) } ?? .pending(64 * targets * self.brokers),
            pace: pace,
            limit: self.limit,
            waitsForConnects: self.waitsForAll,
            warmup: .nanoseconds(self.warmup),
            measure: self.duration.map { .nanoseconds($0) },
            drain: .nanoseconds(self.drain)
        )
        plan.segment = self.part
        plan.stages = self.planStages
        plan.think = .nanoseconds(self.think)
        plan.departures = DeparturePlan(churn: self.churn, storms: self.storms, attendances: self.turnouts, seed: seed)
        plan.departures.cycle = self.cycle
        return plan
    }

    /// Segments with their own brokers have their own pending connects there.
    private var brokers: Int { self.isEmbedded ? self.part.count : 1 }
    var metricStages: [MetricStage] { self.stages.map { MetricStage($0.name, measured: !$0.isWarmup) } }
}

extension PayloadOption {
    /// `parts` is what the variables of a message need, and `columns` are those that it may use.
    func load(_ parts: MessageParts, columns: [String] = []) -> LoadPayload {
        switch self {
        case .generated(let sizes): .generated(sizes: sizes)
        case .message(let bytes): .message(Template(parsing: bytes, columns: columns, message: parts))
        case .template(let bytes, let sizes):
            .message(Template(parsing: bytes, columns: columns, randomSizes: sizes, message: parts))
        case .file(let bytes): .message(Template(literal: bytes))
        }
    }
}

/// Converts command-line options to the load of MQTT clients.
extension MQTTOptions {
    /// The largest packet of a run's clients and embedded broker: 1 MiB, or what the messages of its groups need.
    ///
    /// 256 KiB are for the topic, the properties, and the values of placeholders.
    package static func packetLimit(_ groups: [MQTTOptions]) -> Int {
        let largest =
            groups.flatMap { group in
                [group.payload.load(group.parts(group.lines)).largest]
                    + group.streams.map { $0.payload.load(group.parts($0.lines)).largest }
            }.max() ?? 0
        return min(max(PacketDecoder.usualMaximum, largest + (256 << 10)), PacketProblem.largestPacket)
    }

    /// The clients' load; `run` is in the header of every message, and `seed` was given or drawn.
    package func load(run: UInt32, seed: UInt64, packetLimit: Int? = nil) -> MQTTLoad {
        let version = ProtocolVersion(rawValue: self.protocolLevel) ?? .v5
        let qualities = self.kind == .conn || self.kind == .sub ? [] : self.qualities.compactMap(QoS.init(rawValue:))
        let session = self.session(version, packetLimit)
        var load = MQTTLoad(
            version: version,
            publisherSession: session,
            subscriberSession: session,
            publisherID: self.template(self.publisherID),
            subscriberID: self.template(self.subscriberID),
            publishers: self.publishers,
            subscribers: self.subscribers,
            topic: self.template(self.topic),
            payload: self.payload.load(self.parts(self.lines), columns: self.columns),
            qualities: qualities,
            subscriberQualities: self.subscriberQualities,
            run: run,
            realtimeOffset: self.segment.clock.offsetNow
        )
        load.rows = self.rows
        load.username = self.username.map(self.template)
        load.password = self.password.map(self.template)
        load.account = self.aliyunAccount
        load.raw = self.raw
        if case .scram(let hash) = self.auth { load.scram = hash }
        load.firstNumber = self.startNumber + 1
        load.stream.retain = self.retain
        load.batch = self.batch
        load.isOpenLoop = self.isOpenLoop
        load.topology = self.kind == .sub ? .fanIn : self.topology
        load.filters = self.subscriptions.flatMap { own in
            let template = self.template(own.filter)
            return (1...(own.options.count ?? 1)).map { number in
                MQTTLoad.FilterTemplate(
                    own.options.count == nil ? template : template.numbered(number),
                    qos: own.qos.flatMap(QoS.init(rawValue:)),
                    options: own.options
                )
            }
        }
        load.publishersSubscribe = self.kind == .pub && !self.subscriptions.isEmpty
        load.targets = self.targetCount
        load.servers = self.isSeparate ? self.targetCount : 1
        load.hasLedger = self.hasLedger || self.kind == .sub || load.publishersSubscribe
        // `sub` cannot tell stored copies from new messages, so it cannot tell which ones are missing.
        if self.kind == .sub, self.mistakesStoredCopies { load.hasLedger = false }
        load.connectTimeout = .nanoseconds(self.connectTimeout)
        load.connectRetries = self.connectRetries
        load.reconnects = self.reconnects
        load.backoff = self.backoff
        load.failsOver = self.failsOver
        load.seed = seed
        load.stages = self.metricStages
        if self.churn != nil { load.departures.insert(.churn) }
        if self.storms.contains(where: { $0.until == nil }) { load.departures.insert(.storm) }
        if self.storms.contains(where: { $0.until != nil }) { load.departures.insert(.offline) }
        if !self.turnouts.isEmpty { load.departures.insert(.inactive) }
        if self.cycle != nil { load.departures.insert(.cycle) }
        // Nothing is due in closed loop.
        if self.isOpenLoop { load.dueWhileAway = self.cycle?.due }
        if self.transport.tls != nil { load.layers.insert(.tls) }
        if self.transport.webSocket != nil { load.layers.insert(.webSocket) }
        self.setProperties(of: &load)
        return load
    }

    /// With Retain As Published a stored copy looks like a new message, unless none is asked for.
    private var mistakesStoredCopies: Bool {
        self.subscriptions.contains {
            $0.options.retainAsPublished && $0.options.retainHandling != .doNotSend
        }
    }

    /// The streams of a publisher that has several; the groups of messages to one client follow from the run.
    private func streams(_ publishes: Bool) -> [MQTTLoad.Stream] {
        self.streams.map { own in
            var stream = MQTTLoad.Stream(
                topic: self.template(own.topic),
                payload: own.payload.load(self.parts(own.lines), columns: self.columns),
                qualities: publishes ? [own.qos].compactMap(QoS.init(rawValue:)) : []
            )
            stream.name = own.name
            stream.p2p = own.p2p.map { MQTTLoad.P2PTarget(root: Array($0.root.utf8), groups: []) }
            stream.carrier = self.carrier(of: own.payload, own.ledger)
            stream.retain = own.retain
            stream.properties = own.properties
            stream.responseTopic = own.responseTopic.map(self.template)
            return stream
        }
    }

    private var columns: [String] { self.rows?.columns ?? [] }

    private func parts(_ lines: [String: RowTable]) -> MessageParts {
        MessageParts(ledgerSize: ShortHeader.textSize(isAddressed: self.isAddressed), lines: lines)
    }

    /// Parses a text that may contain placeholders.
    package func template(_ text: String) -> Template { Template(parsing: text, columns: self.columns) }

    private func setProperties(of load: inout MQTTLoad) {
        load.stream.properties = self.publishProperties
        load.stream.carrier = self.carrier(of: self.payload, self.ledger)
        load.stream.responseTopic = self.responseTopic.map(self.template)
        load.stream.topicAlias = self.topicAlias
        load.stream.p2p = self.p2p.map { MQTTLoad.P2PTarget(root: Array($0.root.utf8), groups: []) }
        if !self.streams.isEmpty { load.streams = self.streams(load.qualities != []) }
        load.subscriptionChurn = self.subscriptionChurn.map { self.template($0.filter) }
        load.reply = self.reply.topic.map { topic in
            MQTTLoad.Reply(
                filter: self.reply.filter.map(self.template),
                topic: topic == "p2p" ? nil : self.template(topic),
                after: .nanoseconds(self.reply.after.time),
                jitter: self.reply.after.share,
                probability: self.reply.probability
            )
        }
        load.subscribeOptions = self.subscribe
        load.will = self.will.map { will in
            MQTTLoad.WillTemplate(
                topic: self.template(will.topic),
                message: Template(parsing: will.message, columns: self.columns),
                qos: QoS(rawValue: will.qos) ?? .atMostOnce,
                retain: will.retain,
                properties: will.properties
            )
        }
    }

    private var aliyunAccount: MQTTAlibabaCloud? {
        guard case .aliyun(let aliyun) = self.auth, let accessKey = self.username else { return nil }
        if let tokens = aliyun.tokens, let instance = aliyun.instanceID {
            return MQTTAlibabaCloud(accessKey: accessKey, mode: .token(Self.tokens(tokens), instanceID: instance))
        }
        // A key has no placeholders, but for the sign itself.
        guard let secret = self.password?.replacing("%%", with: "%") else { return nil }
        if let instance = aliyun.instanceID {
            return MQTTAlibabaCloud(accessKey: accessKey, mode: .signature(secret: secret, instanceID: instance))
        }
        return MQTTAlibabaCloud(accessKey: accessKey, mode: .group(secret: secret, groupID: aliyun.groupID))
    }

    /// Parses `R|token|W|token`, which was checked before.
    private static func tokens(_ text: String) -> [MQTTAlibabaCloud.Token] {
        let parts = text.split(separator: "|").map(String.init)
        return stride(from: 0, to: parts.count - 1, by: 2).compactMap { index in
            MQTTAlibabaCloud.Token.Use(rawValue: parts[index]).map { MQTTAlibabaCloud.Token($0, parts[index + 1]) }
        }
    }

    private var subscriberQualities: [QoS] {
        let all = self.qualities.compactMap(QoS.init(rawValue:))
        return self.kind == .sub ? all : [all.max() ?? .atMostOnce]
    }

    private func session(_ version: ProtocolVersion, _ packetLimit: Int?) -> SessionOptions {
        SessionOptions(
            version: version,
            cleanStart: self.clean,
            keepAlive: self.keepAlive,
            sessionExpiry: self.sessionExpiry,
            sessionEndsWithOwner: !self.keepsSessions,
            takesUpSession: self.keepsSessions,
            // 0 means the peer's receive maximum.
            window: self.window == 0 ? 65_535 : min(self.window, 65_535),
            ackTimeout: .nanoseconds(self.ackTimeout),
            maximumPacketSize: self.connect.maximumPacketSize.map(Int.init) ?? packetLimit,
            receiveMaximum: self.connect.receiveMaximum,
            topicAliasMaximum: self.connect.topicAliasMaximum ?? 0,
            requestsResponseInformation: self.connect.requestsResponseInformation,
            requestsProblemInformation: self.connect.requestsProblemInformation,
            userProperties: self.connect.userProperties
        )
    }
}

extension XMPPOptions {
    /// The clients' load; `run` is in the header of every message, and `seed` was given or drawn.
    package func load(run: UInt32, seed: UInt64) -> XMPPLoad {
        var load = XMPPLoad(
            self.kind,
            clients: self.operators,
            local: Template(parsing: self.local),
            domain: self.domain,
            resource: Template(parsing: self.resource),
            password: Template(parsing: self.password),
            pairing: self.pairing,
            segment: self.segment.part ?? .whole,
            run: run,
            seed: seed,
            realtimeOffset: HostClock.realtimeOffset()
        )
        load.users = self.users
        load.firstNumber = self.startNumber + 1
        load.tls = self.tls
        load.mechanism = self.mechanism
        // Only if the command line asks for both.
        load.allowsPlainWithoutTLS = self.mechanism == "PLAIN" && (self.tls == .off || self.tls == .allowed)
        load.streamManagement = self.streamManagement
        load.payload = self.payload.load(MessageParts(ledgerSize: XMPPBody.headerSize, lines: self.lines))
        load.groupSize = self.groupSize
        load.room = self.room
        load.service = self.service
        load.nick = Template(parsing: self.nick)
        load.window = self.window
        load.isOpenLoop = self.isOpenLoop
        load.ackTimeout = .nanoseconds(self.ackTimeout)
        load.connectTimeout = .nanoseconds(self.connectTimeout)
        load.connectRetries = self.connectRetries
        load.stages = self.metricStages
        load.reconnects = self.reconnects
        load.backoff = self.backoff
        load.failsOver = self.failsOver
        if self.churn != nil { load.departures.insert(.churn) }
        if !self.storms.isEmpty { load.departures.insert(.storm) }
        if !self.turnouts.isEmpty { load.departures.insert(.inactive) }
        if self.cycle != nil { load.departures.insert(.cycle) }
        // Nothing is due in closed loop.
        if self.isOpenLoop { load.dueWhileAway = self.cycle?.due }
        if self.tls == .direct { load.layers.insert(.tls) }
        if self.transport.webSocket != nil { load.layers.insert(.webSocket) }
        return load
    }
}
