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
        /// By the publisher's QoS, which the header carries.
        package let duration: DurationID
        /// Answers after their timeout, also by the publisher's QoS.
        package let late: CounterID?
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
    ///   - loops: number of event loops.
    package init(for load: MQTTLoad, loops: Int) {
        var catalog = MetricCatalog()
        catalog.stages = load.stages
        self.connect = ConnectMetrics("connect", layers: load.layers, &catalog)
        self.reconnect =
            load.comesBack ? ConnectMetrics("reconnect", layers: load.layers, &catalog) : self.connect
        self.departures = DepartureMetrics.all(load.departures, &catalog)
        let published = load.publishers > 0 ? Array(Set(load.qualities)).sorted() : []
        var publish: [QoS: Publish] = [:]
        for qos in published { publish[qos] = Self.publish(qos, &catalog) }
        // Levels that do not occur share an entry, so that the lookup is one array access.
        self.publishByQoS = published.isEmpty ? [] : QoS.allCases.compactMap { publish[$0] ?? publish[published[0]] }
        self.store = load.keepsFlows ? Self.store(published, &catalog) : nil
        let isRequest = load.topology == .request
        self.answers = isRequest ? catalog.counter("requests_answered") : nil
        self.scheduleLag = catalog.duration("schedule_lag")
        self.subscribe = catalog.duration("subscribe_duration", wholeRun: true)
        self.subscriptionChurn = load.subscriptionChurn.map { _ in SubscriptionChurnMetrics(&catalog) }
        self.ping = catalog.duration("ping_duration", wholeRun: true)
        let highest = load.subscribers > 0 ? load.subscriberQualities.max() ?? .atMostOnce : .atMostOnce
        let deliveredBy = load.publishers > 0 ? published : QoS.allCases
        self.arrivalByQoS =
            load.subscribers == 0
            ? []
            : QoS.allCases.map { qos in
                let published = deliveredBy.contains(qos) ? qos : deliveredBy.first ?? qos
                // A message is delivered at the lower of the publisher's and the subscriber's level.
                let level = isRequest && qos == .atMostOnce ? qos : min(published, highest)
                return Arrival(
                    fresh: catalog.counter("received", ["qos": "\(level.rawValue)", "retained": "false"]),
                    retained: catalog.counter("received", ["qos": "\(level.rawValue)", "retained": "true"]),
                    duration: catalog.duration(
                        isRequest ? "request_duration" : "delivery_duration",
                        ["qos": "\(published.rawValue)"]
                    ),
                    late: isRequest ? catalog.counter("requests_late", ["qos": "\(published.rawValue)"]) : nil
                )
            }
        self.traffic = TrafficMetrics(protocolName: "mqtt", loops: loops, &catalog)
        self.catalog = catalog
    }

    /// The metrics of the finished run: the recorded ones and those settled at the end.
    package func known(for load: MQTTLoad) -> MetricCatalog {
        var catalog = self.catalog
        _ = catalog.counter("decode_time", ["protocol": "mqtt"], unit: "seconds")
        catalog.addProcessGauges()
        guard load.hasLedger, load.subscribers > 0 else { return catalog }
        let settled = load.publishers > 0 ? ["delivery_expected", "delivery_lost"] : ["delivery_gaps"]
        let levels = load.publishers > 0 ? Set(load.qualities) : Set(QoS.allCases)
        let requests = load.topology == .request ? ["requests_lost"] : []
        for name in requests + settled + ["delivery_duplicated", "delivery_reordered"] {
            for qos in levels.sorted() { _ = catalog.counter(name, ["qos": "\(qos.rawValue)"]) }
        }
        return catalog
    }

    /// By the publisher's QoS; empty in a load without subscribers.
    package var deliveryDurations: [DurationID] { self.arrivalByQoS.map(\.duration) }

    /// The publish metrics by QoS, in memory that a loop reads without reference counting.
    ///
    /// The caller deallocates it.
    ///
    /// Empty in a load without publishers.
    func makePublishTable() -> UnsafeMutablePointer<Publish> { Self.table(self.publishByQoS) }

    /// The arrival metrics in the same form; empty in a load without subscribers.
    func makeArrivalTable() -> UnsafeMutablePointer<Arrival> { Self.table(self.arrivalByQoS) }

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

    private static func publish(_ qos: QoS, _ catalog: inout MetricCatalog) -> Publish {
        let level = "\(qos.rawValue)"
        func counter(_ name: String) -> CounterID { catalog.counter(name, ["qos": level]) }
        func leg(_ name: String, _ leg: String) -> DurationID { catalog.duration(name, ["qos": level, "leg": leg]) }
        let write = catalog.duration("publish_write_duration", ["qos": level])
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
                blocked: catalog.duration("publish_blocked_duration", ["qos": level])
            ),
            resent: counter("publish_resent"),
            acked: counter(qos == .atMostOnce ? "publish_confirmed" : "publish_acked"),
            write: write,
            response: response,
            service: service
        )
    }
}
