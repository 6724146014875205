import MQTTCodec
package import Measurement

/// The metrics of an MQTT load, under the identifiers that the loops record by.
///
/// Only QoS levels that occur are in the catalog: what cannot happen is absent, not 0.
package struct MQTTMetrics: Sendable {
    package struct Connect: Sendable {
        package let dns: DurationID
        package let tcp: DurationID
        package let session: DurationID
        package let total: DurationID
        package let lag: DurationID
    }

    package struct Publish: Sendable {
        package let offered: CounterID
        package let sent: CounterID
        package let notSent: CounterID
        package let resent: CounterID
        /// At QoS 0 what was confirmed, above what was acknowledged.
        package let acked: CounterID
        package let write: DurationID
        package let blocked: DurationID
        /// By acknowledgement: PUBACK, or PUBREC and PUBCOMP; unused at QoS 0.
        package let response: (first: DurationID, last: DurationID)
        package let service: (first: DurationID, last: DurationID)
    }

    package struct Arrival: Sendable {
        package let fresh: CounterID
        package let retained: CounterID
        /// By the publisher's QoS, as the header has it.
        package let duration: DurationID
    }

    package let catalog: MetricCatalog
    package let connect: Connect
    private let publishByQoS: [Publish]
    private let arrivalByQoS: [Arrival]
    package let scheduleLag: DurationID
    package let subscribe: DurationID
    package let ping: DurationID
    package let bytesSent: CounterID
    package let bytesReceived: CounterID
    package let payloadSent: CounterID
    package let payloadReceived: CounterID
    package let decodePackets: CounterID
    package let decodeBytes: CounterID
    package let reads: CounterID
    package let reconnects: CounterID
    package let disconnects: [DisconnectReason: CounterID]
    package let connected: GaugeID
    /// By event loop: the share of a core that its thread used, and how late it woke up for what was due.
    package let cpu: [GaugeID]
    package let loopLag: [DurationID]

    package enum DisconnectReason: String, CaseIterable, Sendable {
        case closed
        case reset
        case server
        case timeout
        case `protocol`
    }

    /// - Parameters:
    ///   - load: decides which QoS levels can occur.
    ///   - loops: event loops.
    package init(for load: MQTTLoad, loops: Int) {
        var catalog = MetricCatalog()
        func phase(_ name: String) -> DurationID {
            catalog.duration("connect_duration", ["phase": name], wholeRun: true)
        }
        self.connect = Connect(
            dns: phase("dns"),
            tcp: phase("tcp"),
            session: phase("session"),
            total: phase("total"),
            lag: catalog.duration("connect_lag", wholeRun: true)
        )
        let published = load.publishers > 0 ? Array(Set(load.qualities)).sorted() : []
        var publish: [QoS: Publish] = [:]
        for qos in published { publish[qos] = Self.publish(qos, &catalog) }
        // Levels that do not occur share the entry of one that does, so that the lookup is one array access.
        self.publishByQoS = published.isEmpty ? [] : QoS.allCases.compactMap { publish[$0] ?? publish[published[0]] }
        self.scheduleLag = catalog.duration("schedule_lag")
        self.subscribe = catalog.duration("subscribe_duration", wholeRun: true)
        self.ping = catalog.duration("ping_duration", wholeRun: true)
        let highest = load.subscribers > 0 ? load.subscriberQualities.max() ?? .atMostOnce : .atMostOnce
        let deliveredBy = load.publishers > 0 ? published : QoS.allCases
        self.arrivalByQoS =
            load.subscribers == 0
            ? []
            : QoS.allCases.map { qos in
                let published = deliveredBy.contains(qos) ? qos : deliveredBy.first ?? qos
                // A message comes at the lower of the publisher's level and the subscriber's.
                let level = min(published, highest)
                return Arrival(
                    fresh: catalog.counter("received", ["qos": "\(level.rawValue)", "retained": "false"]),
                    retained: catalog.counter("received", ["qos": "\(level.rawValue)", "retained": "true"]),
                    duration: catalog.duration("delivery_duration", ["qos": "\(published.rawValue)"])
                )
            }
        self.bytesSent = catalog.counter("bytes_sent", unit: "bytes")
        self.bytesReceived = catalog.counter("bytes_received", unit: "bytes")
        self.payloadSent = catalog.counter("payload_bytes_sent", unit: "bytes")
        self.payloadReceived = catalog.counter("payload_bytes_received", unit: "bytes")
        self.decodePackets = catalog.counter("decode_packets", ["protocol": "mqtt"])
        self.decodeBytes = catalog.counter("decode_bytes", ["protocol": "mqtt"], unit: "bytes")
        self.reads = catalog.counter("reads", ["protocol": "mqtt"])
        self.reconnects = catalog.counter("reconnects")
        var disconnects: [DisconnectReason: CounterID] = [:]
        for reason in DisconnectReason.allCases {
            disconnects[reason] = catalog.counter("disconnects", ["reason": reason.rawValue])
        }
        self.disconnects = disconnects
        self.connected = catalog.gauge("clients", ["state": "connected"])
        self.cpu = (0..<loops).map { catalog.gauge("generator_cpu", ["loop": "\($0)"], unit: "cores") }
        self.loopLag = (0..<loops).map { catalog.duration("loop_lag", ["loop": "\($0)"], wholeRun: true) }
        self.catalog = catalog
    }

    /// The metrics of the finished run: beside the recorded ones those that are settled at its end.
    package func known(for load: MQTTLoad) -> MetricCatalog {
        var catalog = self.catalog
        _ = catalog.counter("decode_time", ["protocol": "mqtt"], unit: "seconds")
        _ = catalog.gauge("generator_memory_bytes", unit: "bytes")
        guard load.hasLedger, load.subscribers > 0 else { return catalog }
        let settled = load.publishers > 0 ? ["delivery_expected", "delivery_lost"] : ["delivery_gaps"]
        let levels = load.publishers > 0 ? Set(load.qualities) : Set(QoS.allCases)
        for name in settled + ["delivery_duplicated", "delivery_reordered"] {
            for qos in levels.sorted() { _ = catalog.counter(name, ["qos": "\(qos.rawValue)"]) }
        }
        return catalog
    }

    /// By QoS, where a loop looks it up without touching an array's reference count; to be deallocated by the caller.
    ///
    /// Empty where nobody publishes.
    func makePublishTable() -> UnsafeMutablePointer<Publish> { Self.table(self.publishByQoS) }

    /// The same for what comes; empty where nobody subscribes.
    func makeArrivalTable() -> UnsafeMutablePointer<Arrival> { Self.table(self.arrivalByQoS) }

    private static func table<Row>(_ rows: [Row]) -> UnsafeMutablePointer<Row> {
        let table = UnsafeMutablePointer<Row>.allocate(capacity: rows.count)
        for (index, row) in rows.enumerated() { (table + index).initialize(to: row) }
        return table
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
            offered: counter("publish_offered"),
            sent: counter("publish_sent"),
            notSent: counter("publish_not_sent"),
            resent: counter("publish_resent"),
            acked: counter(qos == .atMostOnce ? "publish_confirmed" : "publish_acked"),
            write: write,
            blocked: catalog.duration("publish_blocked_duration", ["qos": level]),
            response: response,
            service: service
        )
    }
}
