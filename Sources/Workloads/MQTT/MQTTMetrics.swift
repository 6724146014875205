import Ledger
package import LoadEngine
import MQTTCodec
package import Measurement
import Report
import Transport

/// The metrics of an MQTT load, with the identifiers that the loops record with.
///
/// The catalog has only QoS levels that occur: impossible metrics are absent rather than 0.
package struct MQTTMetrics: Sendable {
    package struct Publish: Sendable {
        package let operation: OperationMetrics
        package let resent: CounterID
        /// At QoS 0 confirmed messages, above it acknowledged messages.
        package let acked: CounterID
        package let write: DurationID
        /// By acknowledgement: PUBACK, or PUBREC and PUBCOMP; unused at QoS 0.
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

    /// The metrics of a flow store.
    package struct Store: Sendable {
        package let commit: DurationID
        package let changes: CounterID
        /// By QoS, from 1: messages of this run that were stored before they were sent.
        package let messages: [CounterID?]
        /// Received QoS 2 messages that were stored before PUBREC.
        package let recorded: CounterID
        /// By QoS, from 1: stored messages of an earlier run, and their outcome.
        package let restored: [CounterID]
        package let delivered: [CounterID]
        package let refused: [CounterID]
        package let dropped: [CounterID]
    }

    package let catalog: MetricCatalog
    package let connect: ConnectMetrics
    /// For clients that were connected before; the same as ``connect`` if no client reconnects.
    package let reconnect: ConnectMetrics
    package let departures: [DeparturePlan.Cause: DepartureMetrics]
    private let publishByQoS: [Publish]
    private let arrivalByQoS: [Arrival]
    /// By stream of the run, and the publisher's QoS, which the header carries.
    private let deliveries: [Delivery]
    /// By share group with members in several groups: the same.
    private let sharedDeliveries: [String: [Delivery]]
    /// Only if clients store their flows.
    package let store: Store?
    /// Requests that the subscribers answered.
    package let answers: CounterID?
    package let scheduleLag: DurationID
    package let subscribe: DurationID
    /// Only with subscription churn.
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
        self.connect = ConnectMetrics("connect", layers: load.layers, &catalog)
        self.reconnect =
            load.comesBack ? ConnectMetrics("reconnect", layers: load.layers, &catalog) : self.connect
        self.departures = DepartureMetrics.all(load.departures, &catalog)
        let published = load.publishers > 0 ? Array(Set(load.streams.flatMap(\.qualities))).sorted() : []
        var publish: [Publish] = []
        for stream in load.streams where load.publishes {
            let label = load.hasStreams ? stream.name : nil
            let levels = Set(stream.qualities).sorted()
            let own = Dictionary(uniqueKeysWithValues: levels.map { ($0, Self.publish($0, label, &catalog)) })
            // Levels that do not occur share an entry, so that the lookup is one array access.
            publish += QoS.allCases.compactMap { own[$0] ?? levels.first.flatMap { own[$0] } }
        }
        self.publishByQoS = publish
        self.store = load.keepsFlows ? Self.store(published, &catalog) : nil
        let isRequest = load.topology == .request
        self.answers = isRequest ? catalog.counter("requests_answered") : nil
        self.scheduleLag = catalog.duration("schedule_lag")
        self.subscribe = catalog.duration("subscribe_duration", wholeRun: true)
        self.subscriptionChurn = load.subscriptionChurn.map { _ in SubscriptionChurnMetrics(&catalog) }
        self.ping = catalog.duration("ping_duration", wholeRun: true)
        let levels = plan.levels(heardBy: group)
        self.arrivalByQoS =
            levels.received.isEmpty
            ? []
            : QoS.allCases.map { qos in
                let level = levels.received.contains(qos) ? qos : levels.received.max() ?? qos
                return Arrival(
                    fresh: catalog.counter("received", ["qos": "\(level.rawValue)", "retained": "false"]),
                    retained: catalog.counter("received", ["qos": "\(level.rawValue)", "retained": "true"])
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
        _ = catalog.counter("decode_time", ["protocol": "mqtt"], unit: "seconds")
        catalog.addProcessGauges()
        for qos in load.publishes ? load.streams.flatMap(\.qualities) : [] {
            for name in ["failed", "excused", "outstanding"] {
                _ = catalog.counter("publish_\(name)", ["qos": "\(qos.rawValue)"])
            }
        }
        let levels = plan.levels(heardBy: group)
        guard load.hasLedger || load.publishers == 0, !levels.received.isEmpty else { return catalog }
        for (labels, _) in plan.rows(heardBy: group) {
            catalog.addDeliveries(labels, publishersKnown: plan.hasPublishers)
            guard load.topology == .request else { continue }
            for name in ["requests_lost", "requests_outstanding"] { _ = catalog.counter(name, labels) }
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
                duration: catalog.duration(isRequest ? "request_duration" : "delivery_duration", labels),
                late: isRequest ? catalog.counter("requests_late", labels) : nil,
                negative: isJoint ? catalog.counter("delivery_negative", labels) : nil
            )
        }
        let first = known[rows[0].key]
        return (0..<max(1, plan.places.streams.count)).flatMap { stream in
            let own = rows.first { $0.key.stream == stream }.flatMap { known[$0.key] } ?? first
            return (0..<3).compactMap { known[DeliveryPlan.RowKey(stream: stream, qos: UInt8($0))] ?? own }
        }
    }

    /// The publish metrics by QoS, in memory that a loop reads without reference counting.
    ///
    /// The caller deallocates it.
    ///
    /// Empty in a load without publishers.
    func makePublishTable() -> UnsafeMutablePointer<Publish> { Self.table(self.publishByQoS) }

    /// The arrival metrics in the same form; empty in a load without subscribers.
    func makeArrivalTable() -> UnsafeMutablePointer<Arrival> { Self.table(self.arrivalByQoS) }

    /// The delivery metrics in the same form.
    func makeDeliveryTable() -> UnsafeMutablePointer<Delivery> { Self.table(self.deliveries) }

    private static func table<Row>(_ rows: [Row]) -> UnsafeMutablePointer<Row> {
        let table = UnsafeMutablePointer<Row>.allocate(capacity: rows.count)
        for (index, row) in rows.enumerated() { (table + index).initialize(to: row) }
        return table
    }

    private static func store(_ published: [QoS], _ catalog: inout MetricCatalog) -> Store {
        let levels: [QoS] = [.atLeastOnce, .exactlyOnce]
        func counters(_ name: String) -> [CounterID] { levels.map { catalog.counter(name, ["qos": "\($0.rawValue)"]) } }
        return Store(
            commit: catalog.duration("store_commit_duration"),
            changes: catalog.counter("store_changes"),
            messages: levels.map { qos in
                published.contains(qos) ? catalog.counter("store_messages", ["qos": "\(qos.rawValue)"]) : nil
            },
            recorded: catalog.counter("store_recorded"),
            restored: counters("store_restored"),
            delivered: counters("store_delivered"),
            refused: counters("store_refused"),
            dropped: counters("store_dropped")
        )
    }

    /// `stream`: the stream's name, in a load with several.
    private static func publish(_ qos: QoS, _ stream: String?, _ catalog: inout MetricCatalog) -> Publish {
        let own: Labels = ["qos": "\(qos.rawValue)"]
        let labels = stream.map { own.adding("stream", $0) } ?? own
        func counter(_ name: String) -> CounterID { catalog.counter(name, labels) }
        func leg(_ name: String, _ leg: String) -> DurationID { catalog.duration(name, labels.adding("leg", leg)) }
        let write = catalog.duration("publish_write_duration", labels)
        let response: (DurationID, DurationID)
        let service: (DurationID, DurationID)
        switch qos {
        case .atMostOnce: (response, service) = ((write, write), (write, write))
        case .atLeastOnce:
            let ids = (leg("publish_ack_duration", "puback"), leg("publish_service_duration", "puback"))
            (response, service) = ((ids.0, ids.0), (ids.1, ids.1))
        case .exactlyOnce:
            response = (leg("publish_ack_duration", "pubrec"), leg("publish_ack_duration", "pubcomp"))
            service = (leg("publish_service_duration", "pubrec"), leg("publish_service_duration", "pubcomp"))
        }
        return Publish(
            operation: OperationMetrics(
                offered: counter("publish_offered"),
                sent: counter("publish_sent"),
                notSent: counter("publish_not_sent"),
                blocked: catalog.duration("publish_blocked_duration", labels),
                answers: qos == .atMostOnce ? [] : qos == .atLeastOnce ? [response.0] : [response.0, response.1]
            ),
            resent: counter("publish_resent"),
            acked: counter(qos == .atMostOnce ? "publish_confirmed" : "publish_acked"),
            write: write,
            response: response,
            service: service
        )
    }
}
