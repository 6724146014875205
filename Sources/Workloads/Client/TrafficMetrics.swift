package import LoadEngine
package import Measurement
import NIOCore
package import Transport

package struct ConnectMetrics: Sendable {
    package let dns: DurationID
    package let tcp: DurationID
    /// The handshake of connections with TLS.
    package let tls: DurationID?
    package let webSocket: DurationID?
    /// The phases between the lower layers and the session, by name.
    package let steps: [DurationID]
    package let session: DurationID
    package let total: DurationID
    package let lag: DurationID

    /// The durations of first or later connects: the layers between TCP and the protocol, and the protocol's own
    /// phases.
    package init(
        isReconnect: Bool = false,
        layers: Set<ConnectError.Phase>,
        steps: [String] = [],
        _ catalog: inout MetricCatalog
    ) {
        func phase(_ phase: String) -> DurationID {
            catalog.duration(isReconnect ? .reconnect : .connect, ["phase": phase], wholeRun: true)
        }
        self.dns = phase("dns")
        self.tcp = phase("tcp")
        self.tls = layers.contains(.tls) ? phase("tls") : nil
        self.webSocket = layers.contains(.webSocket) ? phase("websocket") : nil
        self.steps = steps.map(phase)
        self.session = phase("session")
        self.total = phase("total")
        self.lag = catalog.duration(isReconnect ? .reconnectLag : .connectLag, wholeRun: true)
    }
}

extension LoopMeter {
    /// Records the durations that the connector measured.
    func record(_ phases: ConnectPhases, _ ids: ConnectMetrics) {
        if let dns = phases.dns { self.record(ids.dns, dns.nanoseconds) }
        if let tcp = phases.tcp { self.record(ids.tcp, tcp.nanoseconds) }
        if let tls = phases.tls, let id = ids.tls { self.record(id, tls.nanoseconds) }
        if let webSocket = phases.webSocket, let id = ids.webSocket { self.record(id, webSocket.nanoseconds) }
    }
}

/// Clients that leave by plan.
package struct DepartureMetrics: Sendable {
    package let left: CounterID
    /// A departure was due for a client that was not connected.
    package let missed: CounterID

    package static func all(
        _ causes: Set<DeparturePlan.Cause>,
        _ catalog: inout MetricCatalog
    ) -> [DeparturePlan.Cause: DepartureMetrics] {
        var departures: [DeparturePlan.Cause: DepartureMetrics] = [:]
        for cause in causes {
            departures[cause] = DepartureMetrics(
                left: catalog.counter(.disconnects, ["reason": cause.rawValue]),
                missed: catalog.counter(.departuresMissed, ["reason": cause.rawValue])
            )
        }
        return departures
    }
}

/// Metrics that all protocols share: bytes, reads, connections, and the loops' own load.
package struct TrafficMetrics: Sendable {
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
    package let oldest: GaugeID
    /// Per event loop: the share of a core that its thread used, and its wake-up delay.
    package let cpu: [GaugeID]
    package let loopLag: [DurationID]

    package init(protocolName: String, loops: Int, _ catalog: inout MetricCatalog) {
        self.bytesSent = catalog.counter(.bytesSent)
        self.bytesReceived = catalog.counter(.bytesReceived)
        self.payloadSent = catalog.counter(.payloadBytesSent)
        self.payloadReceived = catalog.counter(.payloadBytesReceived)
        self.decodePackets = catalog.counter(.decodePackets, ["protocol": protocolName])
        self.decodeBytes = catalog.counter(.decodeBytes, ["protocol": protocolName])
        self.reads = catalog.counter(.reads, ["protocol": protocolName])
        self.reconnects = catalog.counter(.reconnects)
        var disconnects: [DisconnectReason: CounterID] = [:]
        for reason in DisconnectReason.allCases {
            disconnects[reason] = catalog.counter(.disconnects, ["reason": reason.rawValue])
        }
        self.disconnects = disconnects
        self.connected = catalog.gauge(.clients, ["state": "connected"])
        self.oldest = catalog.gauge(.oldestOutstanding, merge: .highest)
        self.cpu = (0..<loops).map { catalog.gauge(.generatorCPU, ["loop": "\($0)"], merge: .highest) }
        self.loopLag = (0..<loops).map { catalog.duration(.loopLag, ["loop": "\($0)"], wholeRun: true) }
    }
}

extension MetricCatalog {
    /// Adds gauges that are read once a second outside the loops.
    mutating func addProcessGauges() {
        _ = self.gauge(.generatorMemory)
        _ = self.gauge(.hostCPUIdle)
        _ = self.gauge(.hostCPUPressure)
    }
}

package enum DisconnectReason: String, CaseIterable, Sendable {
    case closed
    case reset
    case server
    case timeout
    case `protocol`
}

/// The outcome of a loop's messages in addition to the counters: of the publishes of one QoS, or of its stanzas.
package struct MessageBook: Hashable, Sendable {
    package var timedOut: UInt64 = 0
    /// Refused with a reason code of 0x80 or above or with an error, or lost with their connection.
    package var failed: UInt64 = 0
    /// Operations without an answer when the run ended.
    package var inFlight: UInt64 = 0
    /// Messages without an acknowledgement, QoS 0 or stanzas, whose connection did not end gracefully.
    package var unconfirmed: UInt64 = 0
    /// The part of them whose connection broke before the run ended it, and stanzas that came back.
    package var broken: UInt64 = 0
    /// Messages of all levels without an answer when the plan cut their connection.
    package var excused: UInt64 = 0
}
