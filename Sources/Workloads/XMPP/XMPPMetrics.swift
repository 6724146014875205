package import LoadEngine
package import Measurement
import Transport

/// The metrics of an XMPP load, with the identifiers that the loops record with.
///
/// Metrics that cannot occur in the load are absent rather than 0.
package struct XMPPMetrics: Sendable {
    /// The planned operations of the clients: messages, presence changes, or IQ pings.
    package struct Operation: Sendable {
        package let counts: OperationMetrics
        /// Confirmed messages, or answered pings.
        package let known: CounterID
        /// Returned as errors.
        package let refused: CounterID
    }

    package struct Message: Sendable {
        package let fresh: CounterID
        /// Stored by the server while the receiver was offline (XEP-0203).
        package let delayed: CounterID
        /// From due to received, and from written to received.
        package let delivery: DurationID
        package let duration: DurationID
    }

    /// For pings, and for requests that register or remove an account.
    package struct Ping: Sendable {
        /// From due to the answer, and from written to the answer.
        package let response: DurationID
        package let service: DurationID
    }

    /// Names of the protocol's own phases.
    private static func steps(of work: XMPPLoad.Work) -> [String] {
        work == .register ? ["stream", "register"] : ["stream", "sasl", "bind"]
    }

    package let catalog: MetricCatalog
    package let connect: ConnectMetrics
    /// For clients that were connected before; the same as ``connect`` if no client reconnects.
    package let reconnect: ConnectMetrics
    package let departures: [DeparturePlan.Cause: DepartureMetrics]
    package let operation: Operation?
    package let message: Message?
    package let ping: Ping?
    package let fanOut: FanOutMetrics?
    /// Time from written to acknowledged by stream management (XEP-0198), and the number of acknowledged stanzas.
    package let acknowledged: (duration: DurationID, count: CounterID)?
    package let scheduleLag: DurationID
    /// Stanzas that do not belong to the load.
    package let otherMessages: CounterID
    package let presences: CounterID
    package let iqs: CounterID
    package let traffic: TrafficMetrics

    /// - Parameters:
    ///   - load: decides which metrics can occur.
    ///   - loops: number of event loops.
    package init(for load: XMPPLoad, loops: Int) {
        var catalog = MetricCatalog()
        catalog.stages = load.stages
        var layers = load.layers
        // STARTTLS happens inside the stream, and is timed there.
        if load.tls != .off { layers.insert(.tls) }
        let steps = Self.steps(of: load.work)
        self.connect = ConnectMetrics("connect", layers: layers, steps: steps, &catalog)
        self.reconnect =
            load.comesBack ? ConnectMetrics("reconnect", layers: layers, steps: steps, &catalog) : self.connect
        self.departures = DepartureMetrics.all(load.departures, &catalog)
        switch load.work {
        case .login:
            self.operation = nil
            self.message = nil
            self.ping = nil
        case .message, .muc:
            self.operation = Self.operation("message", known: "stanza_confirmed", &catalog)
            self.message = Message(
                fresh: catalog.counter("received", ["stanza": "message", "delayed": "false"]),
                delayed: catalog.counter("received", ["stanza": "message", "delayed": "true"]),
                delivery: catalog.duration("delivery_duration", ["stanza": "message"]),
                duration: catalog.duration("message_duration")
            )
            self.ping = nil
        case .presence:
            self.operation = Self.operation("presence", known: "stanza_confirmed", &catalog)
            self.message = Message(
                fresh: catalog.counter("received", ["stanza": "presence", "from": "contact"]),
                // Counted apart from those of contacts, like all other foreign presences.
                delayed: catalog.counter("received", ["stanza": "presence", "from": "other"]),
                delivery: catalog.duration("delivery_duration", ["stanza": "presence"]),
                duration: catalog.duration("presence_duration")
            )
            self.ping = nil
        case .ping:
            let ping = Ping(
                response: catalog.duration("iq_duration", ["request": "ping"]),
                service: catalog.duration("iq_service_duration", ["request": "ping"])
            )
            self.operation = Self.operation("iq", known: "stanza_answered", answers: [ping.response], &catalog)
            self.message = nil
            self.ping = ping
        case .register, .unregister:
            let request: Labels = ["request": load.work == .register ? "register" : "remove"]
            self.operation = Self.operation("iq", known: "stanza_answered", &catalog)
            self.message = nil
            // Like everything that belongs to a connect, it covers the whole run.
            self.ping = Ping(
                response: catalog.duration("iq_duration", request, wholeRun: true),
                service: catalog.duration("iq_service_duration", request, wholeRun: true)
            )
        }
        self.fanOut = load.hasGroups ? FanOutMetrics(load.work, hasLedger: load.hasLedger, &catalog) : nil
        self.acknowledged =
            load.streamManagement
            ? (catalog.duration("sm_ack_duration"), catalog.counter("stanza_acked")) : nil
        self.scheduleLag = catalog.duration("schedule_lag")
        self.otherMessages = catalog.counter("received", ["stanza": "message", "delayed": "false"])
        self.presences =
            load.work == .presence
            ? catalog.counter("received", ["stanza": "presence", "from": "other"])
            : catalog.counter("received", ["stanza": "presence"])
        self.iqs = catalog.counter("received", ["stanza": "iq"])
        self.traffic = TrafficMetrics(protocolName: "xmpp", loops: loops, &catalog)
        self.catalog = catalog
    }

    /// The metrics of the finished run: the recorded ones and those settled at the end.
    package func known(for load: XMPPLoad) -> MetricCatalog {
        var catalog = self.catalog
        catalog.addProcessGauges()
        _ = catalog.counter("decode_time", ["protocol": "xmpp"], unit: "seconds")
        for name in ["failed", "excused", "outstanding"] where load.work != .login {
            _ = catalog.counter("stanza_\(name)", ["stanza": load.stanza ?? "iq"])
        }
        guard load.hasLedger, let stanza = load.stanza else { return catalog }
        for name in ["expected", "lost", "outstanding", "duplicated", "reordered"] {
            _ = catalog.counter("delivery_\(name)", ["stanza": stanza])
        }
        if let fanOut = self.fanOut { _ = catalog.counter(fanOut.unfinished) }
        return catalog
    }

    private static func operation(
        _ stanza: String,
        known: String,
        answers: [DurationID] = [],
        _ catalog: inout MetricCatalog
    ) -> Operation {
        let labels: Labels = ["stanza": stanza]
        return Operation(
            counts: OperationMetrics(
                offered: catalog.counter("stanza_offered", labels),
                sent: catalog.counter("stanza_sent", labels),
                notSent: catalog.counter("stanza_not_sent", labels),
                blocked: catalog.duration("stanza_blocked_duration", labels),
                answers: answers
            ),
            known: catalog.counter(known, labels),
            refused: catalog.counter("stanza_refused", labels)
        )
    }
}

/// The metrics of stanzas that are sent to a whole group.
package struct FanOutMetrics: Sendable {
    /// From due to received by the first receiver, and by the last; only with a ledger.
    package let receivers: (first: DurationID, last: DurationID)?
    /// Time until a client had joined its group.
    package let joined: DurationID
    /// The counter of stanzas that did not reach every receiver, settled at the end.
    let unfinished: String

    init(_ work: XMPPLoad.Work, hasLedger: Bool, _ catalog: inout MetricCatalog) {
        let name = work == .muc ? "muc_fanout" : "presence_fanout"
        self.receivers =
            hasLedger
            ? (
                catalog.duration("\(name)_duration", ["receiver": "first"]),
                catalog.duration("\(name)_duration", ["receiver": "last"])
            ) : nil
        self.joined = catalog.duration(
            work == .muc ? "muc_join_duration" : "presence_setup_duration",
            wholeRun: true
        )
        self.unfinished = "\(name)_unfinished"
    }

    /// Stanzas whose last arrival is unknown: some receivers had not got them when the run ended, or had left earlier.
    func unfinished(_ count: UInt64) -> Metric {
        Metric(name: self.unfinished, reading: .counter(CounterReading(value: Double(count), rate: nil)))
    }
}
