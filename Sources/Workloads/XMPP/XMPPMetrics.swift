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
        /// The time from due to received, and from written to received.
        package let delivery: DurationID
        package let duration: DurationID
    }

    /// The metrics of pings, and of requests that register or remove an account.
    package struct Ping: Sendable {
        /// The time from due to the answer, and from written to the answer.
        package let response: DurationID
        package let service: DurationID
    }

    package let catalog: MetricCatalog
    package let connect: ConnectMetrics
    /// The connects of clients that were connected before; ``connect`` if no client reconnects.
    package let reconnect: ConnectMetrics
    package let downtime: DurationID?
    package let departures: [DeparturePlan.Cause: DepartureMetrics]
    package let operation: Operation?
    package let message: Message?
    package let ping: Ping?
    package let fanOut: FanOutMetrics?
    /// Time from due, and from written, to acknowledged by stream management (XEP-0198), and the number of
    /// acknowledged stanzas.
    package let acknowledged: (response: DurationID, service: DurationID, count: CounterID)?
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
        let steps = load.work == .register ? ["stream", "register"] : ["stream", "sasl", "bind"]
        self.connect = ConnectMetrics(layers: layers, steps: steps, &catalog)
        self.reconnect =
            load.comesBack ? ConnectMetrics(isReconnect: true, layers: layers, steps: steps, &catalog) : self.connect
        self.downtime = load.reconnects > 0 ? catalog.duration(.downtime, wholeRun: true) : nil
        self.departures = DepartureMetrics.all(load.departures, &catalog)
        switch load.work {
        case .login:
            self.operation = nil
            self.message = nil
            self.ping = nil
        case .message, .muc:
            self.operation = Self.operation("message", load, known: .stanzaConfirmed, &catalog)
            self.message = Message(
                fresh: catalog.counter(.received, ["stanza": "message", "delayed": "false"]),
                delayed: catalog.counter(.received, ["stanza": "message", "delayed": "true"]),
                delivery: catalog.duration(.delivery, ["stanza": "message"]),
                duration: catalog.duration(.message)
            )
            self.ping = nil
        case .presence:
            self.operation = Self.operation("presence", load, known: .stanzaConfirmed, &catalog)
            self.message = Message(
                fresh: catalog.counter(.received, ["stanza": "presence", "from": "contact"]),
                // Counted apart from those of contacts, like all other foreign presences.
                delayed: catalog.counter(.received, ["stanza": "presence", "from": "other"]),
                delivery: catalog.duration(.delivery, ["stanza": "presence"]),
                duration: catalog.duration(.presence)
            )
            self.ping = nil
        case .ping:
            let ping = Ping(
                response: catalog.duration(.iq, ["request": "ping"]),
                service: catalog.duration(.iqService, ["request": "ping"])
            )
            self.operation = Self.operation("iq", load, known: .stanzaAnswered, answers: [ping.response], &catalog)
            self.message = nil
            self.ping = ping
        case .register, .unregister:
            let request: Labels = ["request": load.work == .register ? "register" : "remove"]
            self.operation = Self.operation("iq", load, known: .stanzaAnswered, &catalog)
            self.message = nil
            // Like everything that belongs to a connect, it covers the whole run.
            self.ping = Ping(
                response: catalog.duration(.iq, request, wholeRun: true),
                service: catalog.duration(.iqService, request, wholeRun: true)
            )
        }
        self.fanOut = load.hasGroups ? FanOutMetrics(load.work, hasLedger: load.hasLedger, &catalog) : nil
        self.acknowledged =
            load.streamManagement
            ? (catalog.duration(.smResponse), catalog.duration(.smAck), catalog.counter(.stanzaAcked)) : nil
        self.scheduleLag = catalog.duration(.scheduleLag)
        self.otherMessages = catalog.counter(.received, ["stanza": "message", "delayed": "false"])
        self.presences =
            load.work == .presence
            ? catalog.counter(.received, ["stanza": "presence", "from": "other"])
            : catalog.counter(.received, ["stanza": "presence"])
        self.iqs = catalog.counter(.received, ["stanza": "iq"])
        self.traffic = TrafficMetrics(protocolName: "xmpp", loops: loops, &catalog)
        self.catalog = catalog
    }

    /// The metrics of the finished run: the recorded ones and those settled at the end.
    package func known(for load: XMPPLoad) -> MetricCatalog {
        var catalog = self.catalog
        catalog.addProcessGauges()
        _ = catalog.counter(.decodeTime, ["protocol": "xmpp"])
        for kind in [MetricDefinition.stanzaFailed, .stanzaExcused, .stanzaOutstanding] where load.work != .login {
            _ = catalog.counter(kind, ["stanza": load.stanza ?? "iq"])
        }
        guard load.hasLedger, let stanza = load.stanza else { return catalog }
        let counted: [MetricDefinition] = [
            .deliveryExpected, .deliveryLost, .deliveryOutstanding, .deliveryDuplicated, .deliveryReordered,
        ]
        for kind in counted { _ = catalog.counter(kind, ["stanza": stanza]) }
        if let fanOut = self.fanOut { _ = catalog.counter(fanOut.unfinished) }
        return catalog
    }

    private static func operation(
        _ stanza: String,
        _ load: XMPPLoad,
        known: MetricDefinition,
        answers: [DurationID] = [],
        _ catalog: inout MetricCatalog
    ) -> Operation {
        let labels: Labels = ["stanza": stanza]
        return Operation(
            counts: OperationMetrics(
                offered: catalog.counter(.stanzaOffered, labels),
                sent: catalog.counter(.stanzaSent, labels),
                notSent: catalog.counter(.stanzaNotSent, labels),
                skipped: load.skipped(.stanzaSkipped, .stanzaReplaced).map { catalog.counter($0, labels) },
                blocked: catalog.duration(.stanzaBlocked, labels),
                answers: answers
            ),
            known: catalog.counter(known, labels),
            refused: catalog.counter(.stanzaRefused, labels)
        )
    }
}

/// The metrics of stanzas that are sent to a whole group.
package struct FanOutMetrics: Sendable {
    /// The time from due to the first receiver's arrival, and to the last one's; only with a ledger.
    package let receivers: (first: DurationID, last: DurationID)?
    /// Time until a client had joined its group.
    package let joined: DurationID
    /// The counter of stanzas that did not reach every receiver, settled at the end.
    let unfinished: MetricDefinition

    init(_ work: XMPPLoad.Work, hasLedger: Bool, _ catalog: inout MetricCatalog) {
        let fanOut: MetricDefinition = work == .muc ? .mucFanout : .presenceFanout
        self.receivers =
            hasLedger
            ? (catalog.duration(fanOut, ["receiver": "first"]), catalog.duration(fanOut, ["receiver": "last"])) : nil
        self.joined = catalog.duration(work == .muc ? .mucJoin : .presenceSetup, wholeRun: true)
        self.unfinished = work == .muc ? .mucFanoutUnfinished : .presenceFanoutUnfinished
    }

    /// Stanzas whose last arrival is unknown: some receivers had not got them when the run ended, or had left earlier.
    func unfinished(_ count: UInt64) -> Metric {
        Metric(self.unfinished, reading: .counter(CounterReading(value: Double(count), rate: nil)))
    }
}
