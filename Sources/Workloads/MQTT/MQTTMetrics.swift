import Ledger
package import LoadEngine
import MQTTCodec
package import Measurement
import Transport

/// The metrics of an MQTT load, with the identifiers that the loops record with.
///
/// The catalog has only QoS levels that occur: impossible metrics are absent rather than 0.
package struct MQTTMetrics: Sendable {
    package struct Publish: Sendable {
        package let operation: OperationMetrics
        package let resent: CounterID
        /// Confirmed messages at QoS 0, acknowledged ones above it.
        package let acked: CounterID
        package let write: DurationID
        /// The time to each acknowledgement: PUBACK, or PUBREC and PUBCOMP; unused at QoS 0.
        package let response: (first: DurationID, last: DurationID)
        package let service: (first: DurationID, last: DurationID)
    }

    package struct Arrival: Sendable {
        package let fresh: CounterID
        package let retained: CounterID
    }

    package struct Delivery: Sendable {
        package let duration: DurationID
        /// Answers after their timeout, also by the publisher's QoS.
        package let late: CounterID?
        /// Arrivals before the message was due, where clocks of several hosts meet.
        package let negative: CounterID?
    }

    package let catalog: MetricCatalog
    package let connect: ConnectMetrics
    /// The connects of clients that were connected before; ``connect`` if no client reconnects.
    package let reconnect: ConnectMetrics
    package let downtime: DurationID?
    package let departures: [DeparturePlan.Cause: DepartureMetrics]
    /// The metrics of a publish by stream and QoS; empty in a load without publishers.
    let publishByQoS: [Publish]
    /// The metrics of an arrival by QoS; empty in a load without subscribers.
    let arrivalByQoS: [Arrival]
    /// The deliveries of each stream of the run and QoS of the publisher, which the header carries.
    let deliveries: [Delivery]
    /// The deliveries to each share group with members in several groups.
    private let sharedDeliveries: [String: [Delivery]]
    /// Requests that the subscribers answered.
    package let answers: CounterID?
    package let scheduleLag: DurationID
    package let subscribe: DurationID
    let unsubscribe: DurationID?
    /// `nil` in a run whose clients do not reply.
    let replies: ReplyMetrics?
    /// `nil` of clients that get no copies of what the run retains.
    package let retained: RetainedMetrics?
    /// The metrics of the subscription churn, if the load has one.
    package let subscriptionChurn: SubscriptionChurnMetrics?
    package let ping: DurationID
    package let traffic: TrafficMetrics

    /// - Parameters:
    ///   - load: decides which QoS levels can occur.
    ///   - given: the publishers that its receivers may hear; `nil`: the load's own.
    ///   - group: the load's place in the plan.
    ///   - loops: number of event loops.
    package init(for load: MQTTLoad, in given: DeliveryPlan? = nil, group: Int = 0, loops: Int) {
        let plan = given ?? DeliveryPlan([DeliveryPlan.Group(load: load)])
        var catalog = MetricCatalog()
        catalog.stages = load.stages
        self.connect = ConnectMetrics(layers: load.layers, &catalog)
        self.reconnect =
            load.comesBack ? ConnectMetrics(isReconnect: true, layers: load.layers, &catalog) : self.connect
        self.downtime = load.reconnects > 0 ? catalog.duration(.downtime, wholeRun: true) : nil
        self.departures = DepartureMetrics.all(load.departures, &catalog)
        var publish: [Publish] = []
        for stream in load.streams where load.publishes {
            let label = load.hasStreams ? stream.name : nil
            let levels = Set(stream.qualities).sorted()
            let own = Dictionary(uniqueKeysWithValues: levels.map { ($0, Self.publish($0, label, load, &catalog)) })
            // Levels that do not occur share an entry, so that the lookup is one array access.
            publish += QoS.allCases.compactMap { own[$0] ?? levels.first.flatMap { own[$0] } }
        }
        self.publishByQoS = publish
        let isRequest = load.topology == .request
        self.answers = isRequest ? catalog.counter(.requestsAnswered) : nil
        self.scheduleLag = catalog.duration(.scheduleLag)
        self.subscribe = catalog.duration(.subscribe, wholeRun: true)
        self.unsubscribe =
            load.subscribes && load.unsubscribes ? catalog.duration(.unsubscribe, wholeRun: true) : nil
        self.replies = plan.groups.contains { $0.load.reply != nil } ? ReplyMetrics(load, &catalog) : nil
        self.retained = plan.getsRetained(group) ? RetainedMetrics(&catalog) : nil
        self.subscriptionChurn = load.subscriptionChurn.map { _ in SubscriptionChurnMetrics(&catalog) }
        self.ping = catalog.duration(.ping, wholeRun: true)
        let levels = plan.levels(heardBy: group)
        self.arrivalByQoS =
            levels.received.isEmpty
            ? []
            : QoS.allCases.map { qos in
                let level = levels.received.contains(qos) ? qos : levels.received.max() ?? qos
                return Arrival(
                    fresh: catalog.counter(.received, ["qos": "\(level.rawValue)", "retained": "false"]),
                    retained: catalog.counter(.received, ["qos": "\(level.rawValue)", "retained": "true"])
                )
            }
        self.deliveries = Self.deliveries(
            plan,
            heardBy: group,
            isRequest: isRequest,
            isJoint: load.bond == .ledger,
            &catalog
        )
        self.sharedDeliveries = Dictionary(
            uniqueKeysWithValues: plan.sharedNames(group).map { name in
                (name, Self.deliveries(plan, heardBy: group, isRequest: false, isJoint: false, as: name, &catalog))
            }
        )
        self.traffic = TrafficMetrics(protocolName: "mqtt", loops: loops, &catalog)
        self.catalog = catalog
    }

    /// The metrics of the finished run: the recorded ones and those settled at the end.
    package func known(for load: MQTTLoad, in given: DeliveryPlan? = nil, group: Int = 0) -> MetricCatalog {
        let plan = given ?? DeliveryPlan([DeliveryPlan.Group(load: load)])
        var catalog = self.catalog
        _ = catalog.counter(.decodeTime, ["protocol": "mqtt"])
        catalog.addProcessGauges()
        if self.retained != nil {
            for kind in RetainedAccount.settled { _ = catalog.counter(kind) }
            _ = catalog.gauge(.retainedRate)
        }
        for qos in load.publishes ? load.streams.flatMap(\.qualities) : [] {
            for kind in [MetricDefinition.publishFailed, .publishExcused, .publishOutstanding] {
                _ = catalog.counter(kind, ["qos": "\(qos.rawValue)"])
            }
        }
        if self.replies?.duration != nil { _ = catalog.counter(.repliesOutstanding) }
        let levels = plan.levels(heardBy: group)
        guard load.hasLedger || load.publishers == 0, !levels.received.isEmpty else { return catalog }
        for (labels, _) in plan.rows(heardBy: group) {
            catalog.addDeliveries(labels, publishersKnown: plan.hasPublishers)
            guard load.topology == .request else { continue }
            for kind in [MetricDefinition.requestsLost, .requestsOutstanding] { _ = catalog.counter(kind, labels) }
        }
        return catalog
    }

    /// The duration of a delivery to a share group, which is recorded off the loops.
    package func shareDuration(stream: Int, qos: UInt8, group: String) -> DurationID? {
        let row = stream * 3 + Int(min(qos, 2))
        let rows = self.sharedDeliveries[group] ?? self.deliveries
        return row < rows.count ? rows[row].duration : nil
    }

    /// One entry per stream of the run and QoS; streams that the group does not hear share the first one's.
    private static func deliveries(
        _ plan: DeliveryPlan,
        heardBy group: Int,
        isRequest: Bool,
        isJoint: Bool,
        as name: String? = nil,
        _ catalog: inout MetricCatalog
    ) -> [Delivery] {
        let rows = plan.rows(heardBy: group)
        guard !rows.isEmpty else { return [] }
        var known: [DeliveryPlan.RowKey: Delivery] = [:]
        for (labels, key) in rows {
            let labels = name.map { labels.adding(Labels.group, $0) } ?? labels
            known[key] = Delivery(
                duration: catalog.duration(isRequest ? .request : .delivery, labels),
                late: isRequest ? catalog.counter(.requestsLate, labels) : nil,
                negative: isJoint ? catalog.counter(.deliveryNegative, labels) : nil
            )
        }
        let first = known[rows[0].key]
        return (0..<max(1, plan.places.streams.count)).flatMap { stream in
            let own = rows.first { $0.key.stream == stream }.flatMap { known[$0.key] } ?? first
            return (0..<3).compactMap { known[DeliveryPlan.RowKey(stream: stream, qos: UInt8($0))] ?? own }
        }
    }

    /// The rows in memory that a loop reads without reference counting; the caller deallocates it.
    static func table<Row>(_ rows: [Row]) -> UnsafeMutablePointer<Row> {
        let table = UnsafeMutablePointer<Row>.allocate(capacity: rows.count)
        for (index, row) in rows.enumerated() { (table + index).initialize(to: row) }
        return table
    }

    /// `stream`: the stream's name, in a load with several.
    private static func publish(
        _ qos: QoS,
        _ stream: String?,
        _ load: MQTTLoad,
        _ catalog: inout MetricCatalog
    ) -> Publish {
        let own: Labels = ["qos": "\(qos.rawValue)"]
        let labels = stream.map { own.adding("stream", $0) } ?? own
        func counter(_ kind: MetricDefinition) -> CounterID { catalog.counter(kind, labels) }
        func leg(_ kind: MetricDefinition, _ leg: String) -> DurationID {
            catalog.duration(kind, labels.adding("leg", leg))
        }
        let write = catalog.duration(.publishWrite, labels)
        let response: (DurationID, DurationID)
        let service: (DurationID, DurationID)
        switch qos {
        case .atMostOnce: (response, service) = ((write, write), (write, write))
        case .atLeastOnce:
            let ids = (leg(.publishAck, "puback"), leg(.publishService, "puback"))
            (response, service) = ((ids.0, ids.0), (ids.1, ids.1))
        case .exactlyOnce:
            response = (leg(.publishAck, "pubrec"), leg(.publishAck, "pubcomp"))
            service = (leg(.publishService, "pubrec"), leg(.publishService, "pubcomp"))
        }
        return Publish(
            operation: OperationMetrics(
                offered: counter(.publishOffered),
                sent: counter(.publishSent),
                notSent: counter(.publishNotSent),
                skipped: load.skipped(.publishSkipped, .publishReplaced).map(counter),
                blocked: catalog.duration(.publishBlocked, labels),
                answers: qos == .atMostOnce ? [] : qos == .atLeastOnce ? [response.0] : [response.0, response.1]
            ),
            resent: counter(.publishResent),
            acked: counter(qos == .atMostOnce ? .publishConfirmed : .publishAcked),
            write: write,
            response: response,
            service: service
        )
    }
}
