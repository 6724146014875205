/// A metric that a run can record: its name, what it means, and what reports do with it.
///
/// Two are equal if their names are. A name that the table does not have, as of a file of a newer program, makes a
/// definition of which nothing else is known.
package struct MetricDefinition: Sendable {
    /// The meaning of a figure for a run, which decides the tables and charts that show it.
    package enum Role: Sendable {
        /// The time from due to the answer, or to the receiver.
        case answer, delivery
        /// The first connect of a client.
        case connect
        /// A request that is no message, such as SUBSCRIBE.
        case step
        /// The time from due until the client could send, or had written.
        case wait
        /// The time from the write: the twin of one from due.
        case service
        /// The delay of the generator itself.
        case lag
        /// Counters of messages and stanzas, alike for both protocols.
        case offered, sent, acked, notSent, outstanding
        /// A count of deliveries by the ledger.
        case ledger
        /// The operations that wait for their end.
        case backlog
        /// The process or the host of the generator, which no group has a share of.
        case process
        /// A watched server: its labels have values that are known only at run time.
        case server
        case decoder
        case other
    }

    /// Which way of a metric is the better one.
    package enum Direction: String, Codable, Sendable {
        case down, up
        /// The plan decides it, or it is neither good nor bad.
        case none
    }

    /// The change from which `compare` calls a metric worse where no limit is given.
    package enum Limit: Sendable {
        /// 5 % of the median, and 10 % of p99.
        case latency
        /// 5 % of the rate.
        case rate
        /// 5 % of the mean, as of a cost.
        case mean
        /// Any increase.
        case count
    }

    /// All that is known of a metric; the copies of a definition share it.
    private final class Facts: Sendable {
        let row: Row

        init(_ row: Row) { self.row = row }
    }

    private struct Row: Sendable {
        let name: String
        let kind: Metric.Kind
        let labels: [String]
        var unit: String?
        var help = ""
        var role = Role.other
        var word: String?
        var direction = Direction.none
        var isMishap = false
        var limit: Limit?
        var isMain = false
        var isRare = false
        var isSettled = false
        var twinName: String?
        var witnessName: String?
    }

    private let facts: Facts

    package var name: String { self.facts.row.name }
    package var kind: Metric.Kind { self.facts.row.kind }
    /// The labels that its series may have: `qos=1|2`, `leg`.
    package var labels: [String] { self.facts.row.labels }
    /// "seconds", "bytes" or "cores"; `nil` of what counts things or is a share.
    package var unit: String? { self.facts.row.unit }
    /// One sentence.
    package var help: String { self.facts.row.help }
    package var role: Role { self.facts.row.role }
    /// Its title in tables and charts.
    package var word: String? { self.facts.row.word }
    package var direction: Direction { self.facts.row.direction }
    /// Whether it counts failures: their count matters, and not their rate.
    package var isMishap: Bool { self.facts.row.isMishap }
    package var limit: Limit? { self.facts.row.limit }
    /// Whether a report's table of latencies has it.
    package var isMain: Bool { self.facts.row.isMain }
    /// Whether it counts events that are too rare for a slot: it is absent until the first one.
    package var isRare: Bool { self.facts.row.isRare }
    /// Whether it is settled after everything has stopped, and so belongs to no stage.
    package var isSettled: Bool { self.facts.row.isSettled }

    /// The definition of a name; `nil` for one that the table does not have.
    package static func of(_ name: String) -> MetricDefinition? { self.byName[name] }

    private static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// The same operations, from the write.
    package var twin: MetricDefinition? { self.facts.row.twinName.flatMap(Self.of) }

    /// A counter that a run has whenever it can have this duration, also without a sample of it.
    package var witness: MetricDefinition? { self.facts.row.witnessName.flatMap(Self.of) }

    /// As a reader calls it: `delivery`, `ack`, `publish blocked`.
    package var title: String {
        let name = self.name.hasSuffix("_duration") ? self.name.dropLast("_duration".count) : self.name[...]
        return self.word ?? String(name.replacing("_", with: " "))
    }

    // MARK: Making a row

    private init(_ name: String, _ kind: Metric.Kind, _ labels: String) {
        var row = Row(name: name, kind: kind, labels: labels.split(separator: " ").map(String.init))
        if kind == .duration { (row.unit, row.direction) = ("seconds", .down) }
        self.facts = Facts(row)
    }

    private init(_ row: Row) { self.facts = Facts(row) }

    private static func duration(_ name: String, _ labels: String = "") -> Self { Self(name, .duration, labels) }
    private static func counter(_ name: String, _ labels: String = "") -> Self { Self(name, .counter, labels) }
    private static func gauge(_ name: String, _ labels: String = "") -> Self { Self(name, .gauge, labels) }

    private func with<Value>(_ field: WritableKeyPath<Row, Value>, _ value: Value) -> Self {
        var row = self.facts.row
        row[keyPath: field] = value
        return Self(row)
    }

    private func unit(_ unit: String) -> Self { self.with(\.unit, unit) }
    private func role(_ role: Role) -> Self { self.with(\.role, role) }
    private func word(_ word: String) -> Self { self.with(\.word, word) }
    private func limit(_ limit: Limit) -> Self { self.with(\.limit, limit) }
    private func twin(_ twin: Self) -> Self { self.with(\.twinName, twin.name) }
    private func witness(_ witness: Self) -> Self { self.with(\.witnessName, witness.name) }
    private func help(_ help: String) -> Self { self.with(\.help, help) }
    private var up: Self { self.with(\.direction, .up) }
    private var down: Self { self.with(\.direction, .down) }
    private var mishap: Self { self.down.with(\.isMishap, true) }
    private var rare: Self { self.with(\.isRare, true) }
    private var settled: Self { self.with(\.isSettled, true) }
    private var main: Self { self.with(\.isMain, true) }
}

extension MetricDefinition: Hashable {
    package static func == (left: MetricDefinition, right: MetricDefinition) -> Bool {
        left.facts === right.facts || left.name == right.name
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(self.name) }
}

/// A name that is written in a test, or that the table does not have.
extension MetricDefinition: ExpressibleByStringLiteral {
    package init(stringLiteral name: String) { self = .named(name) }

    package static func named(_ name: String) -> MetricDefinition {
        let isDuration = name.hasSuffix("_duration") || name.hasSuffix("_lag")
        return self.of(name) ?? Self(name, isDuration ? .duration : .gauge, "")
    }
}

/// A value with the name of a metric.
package protocol MetricNamed {
    var name: String { get }
}

extension MetricNamed {
    package func isOf(_ definition: MetricDefinition) -> Bool { self.name == definition.name }
    package func isOf(_ definitions: [MetricDefinition]) -> Bool { definitions.contains { $0.name == self.name } }

    /// `nil` of a metric that the table does not have.
    package var definition: MetricDefinition? { .of(self.name) }
}

extension Metric: MetricNamed {}
extension Series: MetricNamed {}
extension Threshold: MetricNamed {}
extension Timeline.Column: MetricNamed {}

// MARK: - The table

extension MetricDefinition {
    /// All metrics, by the sections of the article on them, in its order.
    package static let sections: [(title: String, metrics: [MetricDefinition])] = [
        ("Connections", connections), ("Publishing (MQTT)", publishing), ("Receiving", receiving),
        ("Requests (MQTT 5, `--topology request`) and replies", requests),
        ("Changing subscriptions (`--subscription-churn`)", churn),
        ("XMPP", xmpp), ("Traffic and decoder", traffic),
        ("`clamor decode`", decoders), ("Generator and host", hosts), ("The watched server", servers),
    ]

    package static let all = sections.flatMap(\.metrics)

    /// The faults of deliveries besides those that are lost or owed.
    package static let irregularities =
        all.filter { $0.role == .ledger && $0.isMishap && ![deliveryLost, deliveryOutstanding].contains($0) }

    /// The metrics with this role, in the order of the table.
    package static func all(_ role: Role) -> [MetricDefinition] { self.all.filter { $0.role == role } }

    // MARK: Connections

    private static let connections: [MetricDefinition] = [
        connect, connectLag, reconnect, reconnectLag, downtime, clients, reconnects, disconnects, departuresMissed,
        errors,
        oldestOutstanding,
    ]
    package static let connect = duration("connect_duration", "phase").role(.connect).word("connect").limit(.latency)
        .main.help("Time of a client's first connect, by phase; phases are not cumulative.")
    package static let connectLag = duration("connect_lag").role(.lag)
        .help("From the time at which a connect was due to its begin: the generator's delay.")
    package static let reconnect = duration("reconnect_duration", "phase").word("reconnect")
        .help("Time of a connect of a client that was connected before, by phase.")
    package static let reconnectLag = duration("reconnect_lag").role(.lag)
        .help("From due to begun, for clients that left by plan.")
    package static let downtime = duration("downtime_duration").role(.step).word("downtime").main
        .help("From the loss of a connection until its client is up again, with subscriptions and rooms.")
    package static let clients = gauge("clients", "state=connected").help("Clients by state.")
    package static let reconnects = counter("reconnects")
        .help("Clients that came back after they had lost their connection or left by plan.")
    package static let disconnects = counter("disconnects", "reason").mishap
        .help("Lost connections, and clients that left by plan.")
    package static let departuresMissed = counter("departures_missed", "reason").mishap
        .help("Clients that should have left by plan and were not connected.")
    package static let errors = counter("errors", "kind").rare.mishap.limit(.count).help("Errors by kind.")

    package static let oldestOutstanding = gauge("oldest_outstanding").unit("seconds").role(.backlog)
        .word("oldest outstanding").down
        .help("Age of the oldest connect, publish, stanza or request without an end; at most a sample old.")

    // MARK: Publishing

    private static let publishing: [MetricDefinition] = [
        publishOffered, publishSkipped, publishReplaced, publishSent, publishNotSent, publishFailed, publishExcused,
        publishOutstanding, publishResent,
        publishAcked, publishConfirmed, publishAck, publishService, publishWrite, publishBlocked, scheduleLag,
    ]
    package static let publishOffered = counter("publish_offered", "qos").role(.offered)
        .help("Messages that became due.")
    package static let publishSkipped = counter("publish_skipped", "qos")
        .help("Messages that became due while their client slept, and were skipped; they are not offered.")
    package static let publishReplaced = counter("publish_replaced", "qos")
        .help("Messages that became due while their client slept, and a later one took their place; not offered.")
    package static let publishSent = counter("publish_sent", "qos").role(.sent).up
        .help("Messages of which the kernel took the first byte.")
    package static let publishNotSent = counter("publish_not_sent", "qos").role(.notSent).mishap
        .help("Messages that became due and were never sent.")
    package static let publishFailed = counter("publish_failed", "qos").mishap.settled
        .help("Messages that were refused, timed out, or lost their connection.")
    package static let publishExcused = counter("publish_excused", "qos").settled
        .help("Messages without an answer when the plan cut their connection: a storm, a churn, a stage.")
    package static let publishOutstanding = counter("publish_outstanding", "qos").role(.outstanding).mishap.settled
        .help("Messages neither answered nor failed when the drain ended, sent or not.")
    package static let publishResent = counter("publish_resent", "qos").mishap
        .help("Messages sent again after a reconnect, with DUP.")
    package static let publishAcked = counter("publish_acked", "qos=1|2").role(.acked).up.limit(.rate)
        .help("Messages that the server acknowledged, at QoS 1 and 2.")
    package static let publishConfirmed = counter("publish_confirmed", "qos=0").up.limit(.rate)
        .help("Messages at QoS 0 on connections that the server read to their end.")
    package static let publishAck = duration("publish_ack_duration", "qos=1|2 leg").role(.answer).word("ack")
        .twin(publishService).witness(publishAcked).limit(.latency).main
        .help("Response time of a publish: from due to acknowledged, cumulative by leg.")
    package static let publishService = duration("publish_service_duration", "qos=1|2 leg").role(.service)
        .witness(publishAcked).help("Service time of a publish: from written to acknowledged.")
    package static let publishWrite = duration("publish_write_duration", "qos").role(.wait).word("write")
        .witness(publishSent).help("From due to written.")
    package static let publishBlocked = duration("publish_blocked_duration", "qos").role(.wait).witness(publishSent)
        .help("From due to when window, socket and connection let the client send.")
    package static let scheduleLag = duration("schedule_lag").role(.lag)
        .help("From the moment at which a client could send to its write: the generator's delay.")

    // MARK: Receiving

    private static let receiving: [MetricDefinition] = [
        subscribe, unsubscribe, ping, received, delivery, deliveryExpected, deliveryReceived, deliveryLost,
        deliveryOutstanding,
        deliveryLate, deliveryMissing, deliveryDuplicated, deliveryOverlap, deliveryReordered, deliveryNegative,
        deliveryGaps, retained, retainedExpected, retainedLost, retainedOutstanding, retainedStale, retainedRate,
    ]
    package static let subscribe = duration("subscribe_duration").role(.step).word("subscribe")
        .help("From SUBSCRIBE, or from the time at which it was due, to SUBACK; one sample a packet.")
    package static let unsubscribe = duration("unsubscribe_duration").role(.step).word("unsubscribe")
        .help("From UNSUBSCRIBE to UNSUBACK, of clients that unsubscribe before they leave.")
    package static let ping = duration("ping_duration").role(.step).word("ping").help("From PINGREQ to PINGRESP.")
    package static let received = counter("received", "qos retained stanza delayed from").up.limit(.rate)
        .help("Messages or stanzas that clients received.")
    package static let delivery = duration("delivery_duration", "qos stanza").role(.delivery).word("delivery")
        .twin(message).limit(.latency).main
        .help("From the time at which a message was due to its arrival, by each receiver.")
    package static let deliveryExpected = counter("delivery_expected", "qos stanza").role(.ledger).word("expected")
        .settled.help("Messages that the server promised to deliver, once per receiver.")
    package static let deliveryReceived = counter("delivery_received", "qos").role(.ledger).settled
        .help("First arrivals, also of messages that were not expected.")
    package static let deliveryLost = counter("delivery_lost", "qos stanza cause").role(.ledger).word("lost").mishap
        .limit(.count).settled.help("Messages that were expected and not received; final when the run has ended.")
    package static let deliveryOutstanding = counter("delivery_outstanding", "qos stanza").role(.ledger)
        .word("outstanding").mishap.settled.help("Deliveries that neither came nor were lost when the drain ended.")
    package static let deliveryLate = counter("delivery_late", "qos stanza").rare.role(.ledger).word("late").mishap
        .settled
        .help("Deliveries that arrived after the end of the drain; they count as received.")
    package static let deliveryMissing = counter("delivery_missing", "qos").role(.ledger).word("missing").settled
        .help("Messages to a matching subscription that did not arrive, excused or not.")
    package static let deliveryDuplicated = counter("delivery_duplicated", "qos stanza permitted=yes|no")
        .role(.ledger).word("duplicated").mishap.settled.help("Messages that arrived again.")
    package static let deliveryOverlap = counter("delivery_overlap", "qos").role(.ledger).word("overlapping").settled
        .help("Further copies of a message for further matching filters of one client.")
    package static let deliveryReordered = counter("delivery_reordered", "qos stanza").role(.ledger).word("reordered")
        .mishap.settled.help("Messages that arrived after a later one.")
    package static let deliveryNegative = counter("delivery_negative", "qos")
        .help("Messages that arrived before they were due, by clocks that differ.")
    package static let deliveryGaps = counter("delivery_gaps", "qos").word("missing in gaps").settled
        .help("Missing message numbers, of subscribers without publishers in the run.")

    package static let retained = duration("retained_duration", "which=first|last").role(.step).word("retained")
        .witness(retainedExpected).main
        .help("From SUBSCRIBE to the first, and to the last, stored copy that it is owed.")
    package static let retainedExpected = counter("retained_expected").settled
        .help("Stored copies owed to a SUBSCRIBE: topics whose value was acknowledged before it.")
    package static let retainedLost = counter("retained_lost").mishap.limit(.count).settled
        .help("Stored copies that did not come, although the server was quiet and then answered.")
    package static let retainedOutstanding = counter("retained_outstanding").mishap.settled
        .help("Stored copies that had neither come nor were lost when the drain, or their connection, ended.")
    package static let retainedStale = counter("retained_stale").mishap.limit(.count)
        .help("Stored copies of an older value than the last acknowledged one, or of one that was cleared.")
    package static let retainedRate = gauge("retained_rate").up
        .help("Stored copies per second, over the time in which copies were under way to some client.")

    // MARK: Requests

    private static let requests: [MetricDefinition] = [
        request, requestsAnswered, requestsLate, requestsLost, requestsOutstanding, reply, repliesReceived, repliesSent,
        repliesWithheld, repliesNotSent, repliesOutstanding,
    ]
    package static let reply = duration("reply_duration").role(.step).word("reply").witness(repliesReceived)
        .limit(.latency).main.help("From the time at which a message was due to the reply at its sender.")
    package static let repliesReceived = counter("replies_received", "for=asker|other").up
        .help("Replies that came to the client that had asked, and to others that hear their topic.")
    package static let repliesSent = counter("replies_sent").up.help("Replies of clients that answer (`reply:`).")
    package static let repliesWithheld = counter("replies_withheld")
        .help("Messages that clients did not answer, by the plan's probability.")
    package static let repliesNotSent = counter("replies_not_sent").mishap
        .help("Replies that were due while their client was not connected; outstanding for the client that asked.")
    package static let repliesOutstanding = counter("replies_outstanding").mishap.settled
        .help("Replies that had not come to the client that had asked when the drain ended.")
    package static let request = duration("request_duration", "qos").role(.delivery).word("request")
        .witness(requestsAnswered).limit(.latency).main
        .help("From the time at which a request was due to its answer, in place of a delivery's.")
    package static let requestsAnswered = counter("requests_answered").help("Requests that the subscribers answered.")
    package static let requestsLate = counter("requests_late", "qos").mishap
        .help("Answers that came after the acknowledgement timeout.")
    package static let requestsLost = counter("requests_lost", "qos").mishap.settled
        .help("Acknowledged requests whose answer will not come.")
    package static let requestsOutstanding = counter("requests_outstanding", "qos").mishap.settled
        .help("Acknowledged requests whose answer had not come when the drain ended.")

    // MARK: Changing subscriptions

    private static let churn: [MetricDefinition] = [
        subscriptionChurn, subscriptionChurnDone, subscriptionChurnMissed, subscriptionChurnFailed,
        subscriptionChurnUnfinished,
    ]
    package static let subscriptionChurn = duration("subscription_churn_duration", "leg=suback|unsuback").role(.step)
        .word("churn").witness(subscriptionChurnDone)
        .help("From due to SUBACK, and from UNSUBSCRIBE to UNSUBACK, by leg.")
    package static let subscriptionChurnDone = counter("subscription_churn_done").up
        .help("Turns of changed subscriptions that completed.")
    package static let subscriptionChurnMissed = counter("subscription_churn_missed").mishap
        .help(
            "Turns that were not begun: the client was busy or not connected; outstanding, unless it was away by plan."
        )
    package static let subscriptionChurnFailed = counter("subscription_churn_failed").mishap
        .help("Turns that were refused, timed out, or lost their connection.")
    package static let subscriptionChurnUnfinished = counter("subscription_churn_unfinished")
        .help("Turns that the end of the load, or by plan of the connection, cut off.")

    // MARK: XMPP

    private static let xmpp: [MetricDefinition] = [
        stanzaOffered, stanzaSkipped, stanzaReplaced, stanzaSent, stanzaNotSent, stanzaFailed, stanzaExcused,
        stanzaOutstanding, stanzaConfirmed,
        stanzaAnswered, stanzaRefused, stanzaBlocked, message, presence, iq, iqService, smResponse, smAck, stanzaAcked,
        mucFanout, presenceFanout, mucFanoutUnfinished, presenceFanoutUnfinished, mucJoin, presenceSetup,
    ]
    package static let stanzaOffered = counter("stanza_offered", "stanza=message|presence|iq").role(.offered)
        .help("Stanzas that became due.")
    package static let stanzaSkipped = counter("stanza_skipped", "stanza=message|presence|iq")
        .help("Stanzas that became due while their client slept, and were skipped; they are not offered.")
    package static let stanzaReplaced = counter("stanza_replaced", "stanza=message|presence|iq")
        .help("Stanzas that became due while their client slept, and a later one took their place; not offered.")
    package static let stanzaSent = counter("stanza_sent", "stanza=message|presence|iq").role(.sent).up
        .help("Stanzas of which the kernel took the first byte.")
    package static let stanzaNotSent = counter("stanza_not_sent", "stanza=message|presence|iq").role(.notSent).mishap
        .help("Stanzas that became due and were never sent.")
    package static let stanzaFailed = counter("stanza_failed", "stanza=message|presence|iq").mishap.settled
        .help("Stanzas that were refused, came back as an error, timed out, or lost their connection.")
    package static let stanzaExcused = counter("stanza_excused", "stanza=message|presence|iq").settled
        .help("Stanzas without an answer when the plan cut their connection.")
    package static let stanzaOutstanding = counter("stanza_outstanding", "stanza=message|presence|iq")
        .role(.outstanding).mishap.settled
        .help("Stanzas neither answered nor failed when the drain ended, such as pings without a result.")
    package static let stanzaConfirmed = counter("stanza_confirmed", "stanza=message|presence").up.limit(.rate)
        .help("Stanzas confirmed by the server's closing tag or by stream management, without those that came back.")
    package static let stanzaAnswered = counter("stanza_answered", "stanza=iq").role(.acked).up
        .help("Requests with a result.")
    package static let stanzaRefused = counter("stanza_refused", "stanza").mishap
        .help("Stanzas that came back as an error.")
    package static let stanzaBlocked = duration("stanza_blocked_duration", "stanza").role(.wait).witness(stanzaSent)
        .help("From due to the moment at which the client could send.")
    package static let message = duration("message_duration").role(.service).word("from write")
        .help("From a message's write to its arrival.")
    package static let presence = duration("presence_duration").role(.service).word("from write")
        .help("From a presence's write to its arrival.")
    package static let iq = duration("iq_duration", "request=ping|register").role(.answer).word("iq")
        .twin(iqService).witness(stanzaAnswered).limit(.latency).main
        .help("From the time at which a request was due to its answer.")
    package static let iqService = duration("iq_service_duration", "request=ping|register").role(.service)
        .witness(stanzaAnswered).help("From a request's write to its answer.")
    package static let smResponse = duration("sm_response_duration").role(.answer).word("stream management")
        .twin(smAck).witness(stanzaAcked).limit(.latency).main
        .help("From the time at which a stanza was due to its acknowledgement by stream management.")
    package static let smAck = duration("sm_ack_duration").role(.service).witness(stanzaAcked)
        .help("From a stanza's write to its acknowledgement by stream management.")
    package static let stanzaAcked = counter("stanza_acked").up.help("Stanzas that stream management acknowledged.")
    package static let mucFanout = duration("muc_fanout_duration", "receiver=first|last").role(.delivery)
        .word("fan-out").main.help("From due to received by the first and the last occupant of a room.")
    package static let presenceFanout = duration("presence_fanout_duration", "receiver=first|last").role(.delivery)
        .word("fan-out").main.help("From due to received by the first and the last contact.")
    package static let mucFanoutUnfinished = counter("muc_fanout_unfinished").mishap
        .help("Room messages that some occupant did not get.")
    package static let presenceFanoutUnfinished = counter("presence_fanout_unfinished").mishap
        .help("Presences that some contact did not get.")
    package static let mucJoin = duration("muc_join_duration").role(.step).word("entering a room")
        .help("From a presence to a room to entered.")
    package static let presenceSetup = duration("presence_setup_duration").role(.step).word("contacts")
        .help("From the roster request to subscribed with all contacts.")

    // MARK: Traffic and decoders

    private static let traffic: [MetricDefinition] = [
        bytesSent, bytesReceived, payloadBytesSent, payloadBytesReceived, decodePackets, decodeBytes, reads, decodeTime,
    ]
    package static let bytesSent = counter("bytes_sent").unit("bytes").help("Bytes of packets sent, without TLS.")
    package static let bytesReceived = counter("bytes_received").unit("bytes")
        .help("Bytes of packets received, without TLS.")
    package static let payloadBytesSent = counter("payload_bytes_sent").unit("bytes").help("Bytes of payloads sent.")
    package static let payloadBytesReceived = counter("payload_bytes_received").unit("bytes")
        .help("Bytes of payloads received.")
    package static let decodePackets = counter("decode_packets", "protocol form path").role(.decoder).up
        .help("Packets or stanzas decoded.")
    package static let decodeBytes = counter("decode_bytes", "protocol form path").unit("bytes").role(.decoder).up
        .help("Bytes of decoded packets or stanzas.")
    package static let reads = counter("reads", "protocol form path").role(.decoder).help("Reads from sockets.")
    package static let decodeTime = counter("decode_time", "protocol form path").unit("seconds").role(.decoder)
        .settled.help("Time to decode all bytes, extrapolated from a sample each second.")

    private static let decoders: [MetricDefinition] = [decodePacketTime, decodeThousand]
    package static let decodePacketTime = gauge("decode_packet_time", "protocol form path").unit("seconds")
        .role(.decoder).down.limit(.mean).help("CPU time to decode one packet, over the rounds.")
    package static let decodeThousand = duration("decode_thousand_duration", "protocol form path").role(.decoder)
        .help("Time to decode 1,000 packets, one sample a round.")

    // MARK: Generator and host

    private static let hosts: [MetricDefinition] = [
        loopLag, generatorCPU, generatorMemory, hostCPUIdle, hostCPUPressure,
    ]
    package static let loopLag = duration("loop_lag", "loop").role(.process)
        .help("Lateness of an event loop's wake-ups.")
    package static let generatorCPU = gauge("generator_cpu", "loop").unit("cores").role(.process).down
        .help("Share of a core that an event loop of the generator used.")
    package static let generatorMemory = gauge("generator_memory_bytes").unit("bytes").role(.process)
        .help("Memory of the generator's process.")
    package static let hostCPUIdle = gauge("host_cpu_idle").role(.process)
        .help("Idle share of the host's CPU, without disk waits.")
    package static let hostCPUPressure = gauge("host_cpu_pressure").role(.process)
        .help("Share of time in which work waited for a CPU of the host; absent if the kernel does not report it.")

    // MARK: The watched server

    private static let servers: [MetricDefinition] = [
        serverCPU, serverCPUTime, serverThreadCPU, serverCPUThrottled, serverMemory, serverMemoryIdle,
        serverMemoryLimit, serverDescriptors, serverRetransmits, serverCPUPerMessage, serverMemoryPerConnection,
        serverMetric, serverSys,
    ]
    package static let serverCPU = gauge("server_cpu", "process").unit("cores").role(.server)
        .help("CPU that a watched process of the server used, in cores.")
    package static let serverCPUTime = counter("server_cpu_time", "process").unit("seconds").role(.server)
        .help("CPU time of a watched process of the server.")
    package static let serverThreadCPU = gauge("server_thread_cpu", "process thread").unit("cores").role(.server)
        .help("Share of a core that a thread of a watched process used: the 16 busiest, if they ever used 1 %.")
    package static let serverCPUThrottled = gauge("server_cpu_throttled", "process").role(.server)
        .help("Time per second for which the CPU quota of its control group stopped a watched process.")
    package static let serverMemory = gauge("server_memory_bytes", "process").unit("bytes").role(.server)
        .help("Resident memory of a watched process of the server.")
    package static let serverMemoryIdle = gauge("server_memory_idle_bytes", "process").unit("bytes").role(.server)
        .help("Resident memory of a watched process before the first client connected.")
    package static let serverMemoryLimit = gauge("server_memory_limit_bytes", "process").unit("bytes").role(.server)
        .help("Memory that the control groups of a watched process allow; absent without a limit.")
    package static let serverDescriptors = gauge("server_descriptors", "process").role(.server)
        .help("Open descriptors of a watched process of the server.")
    package static let serverRetransmits = counter("server_tcp_retransmits", "process").role(.server)
        .help("Segments that TCP sent again on the host, or in the network namespace, of a watched process.")
    package static let serverCPUPerMessage = gauge("server_cpu_per_message").unit("seconds").role(.server).down
        .limit(.mean).help("CPU time of the watched server per message, in and out.")
    package static let serverMemoryPerConnection = gauge("server_memory_per_connection").unit("bytes").role(.server)
        .down.help("Growth of the watched server's memory per connected client.")
    package static let serverMetric = gauge("server_metric", "series of page").role(.server)
        .help("A series of the server's own page of metrics.")
    package static let serverSys = gauge("server_sys", "topic").role(.server)
        .help("A number that the broker publishes below its topic for the system.")
}
