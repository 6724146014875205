package import LoadEngine
package import Measurement
import Transport

/// The metrics of an XMPP load, under the identifiers that the loops record by.
///
/// What cannot happen in the load is absent, not 0.
package struct XMPPMetrics: Sendable {
    /// What the clients send by plan: messages, changes of presence, or IQ pings.
    package struct Operation: Sendable {
        package let counts: OperationMetrics
        /// Of messages what was confirmed, of pings what was answered.
        package let known: CounterID
        /// Came back as an error.
        package let refused: CounterID
    }

    package struct Message: Sendable {
        package let fresh: CounterID
        /// Kept by the server while nobody was there (XEP-0203).
        package let delayed: CounterID
        /// Due → received, and written → received.
        package let delivery: DurationID
        package let duration: DurationID
    }

    /// Of pings, and of requests that make or remove an account.
    package struct Ping: Sendable {
        /// Due → answer, and written → answer.
        package let response: DurationID
        package let service: DurationID
    }

    /// Names of the protocol's own phases.
    private static func steps(of work: XMPPLoad.Work) -> [String] {
        work == .register ? ["stream", "register"] : ["stream", "sasl", "bind"]
    }

    package let catalog: MetricCatalog
    package let connect: ConnectMetrics
    /// Of clients that were connected before; the same as ``connect`` where none comes back.
    package let reconnect: ConnectMetrics
    package let departures: [DeparturePlan.Cause: DepartureMetrics]
    package let operation: Operation?
    package let message: Message?
    package let ping: Ping?
    package let fanOut: FanOutMetrics?
    /// Written → acknowledged by stream management (XEP-0198), and how many stanzas were.
    package let acknowledged: (duration: DurationID, count: CounterID)?
    package let scheduleLag: DurationID
    /// Stanzas that are not the load's own.
    package let otherMessages: CounterID
    package let presences: CounterID
    package let iqs: CounterID
    package let traffic: TrafficMetrics

    /// - Parameters:
    ///   - load: decides what can occur.
    ///   - loops: event loops.
    package init(for load: XMPPLoad, loops: Int) {
        var catalog = MetricCatalog()
        catalog.stages = load.stages
        var layers = load.layers
        // By STARTTLS it comes inside the stream, and is timed there.
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
                // Told apart from those of contacts, as all others are.
                delayed: catalog.counter("received", ["stanza": "presence", "from": "other"]),
                delivery: catalog.duration("delivery_duration", ["stanza": "presence"]),
                duration: catalog.duration("presence_duration")
            )
            self.ping = nil
        case .ping:
            self.operation = Self.operation("iq", known: "stanza_answered", &catalog)
            self.message = nil
            self.ping = Ping(
                response: catalog.duration("iq_duration", ["request": "ping"]),
                service: catalog.duration("iq_service_duration", ["request": "ping"])
            )
        case .register, .unregister:
            let request: Labels = ["request": load.work == .register ? "register" : "remove"]
            self.operation = Self.operation("iq", known: "stanza_answered", &catalog)
            self.message = nil
            // As all that belongs to a connect, over the whole run.
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

    /// The metrics of the finished run: beside the recorded ones those that are settled at its end.
    package func known(for load: XMPPLoad) -> MetricCatalog {
        var catalog = self.catalog
        catalog.addProcessGauges()
        _ = catalog.counter("decode_time", ["protocol": "xmpp"], unit: "seconds")
        guard load.hasLedger, let stanza = load.stanza else { return catalog }
        for name in ["delivery_expected", "delivery_lost", "delivery_duplicated", "delivery_reordered"] {
            _ = catalog.counter(name, ["stanza": stanza])
        }
        if let fanOut = self.fanOut { _ = catalog.counter(fanOut.unfinished) }
        return catalog
    }

    private static func operation(_ stanza: String, known: String, _ catalog: inout MetricCatalog) -> Operation {
        let labels: Labels = ["stanza": stanza]
        return Operation(
            counts: OperationMetrics(
                offered: catalog.counter("stanza_offered", labels),
                sent: catalog.counter("stanza_sent", labels),
                notSent: catalog.counter("stanza_not_sent", labels),
                blocked: catalog.duration("stanza_blocked_duration", labels)
            ),
            known: catalog.counter(known, labels),
            refused: catalog.counter("stanza_refused", labels)
        )
    }
}
