package import Transport

// Where a load goes, and how much of it.
extension LoadOptions {
    package var isEmbedded: Bool {
        if case .embedded = self.target { true } else { false }
    }

    package var isLoopback: Bool {
        switch self.target {
        case .embedded: true
        case .servers(let servers):
            servers.allSatisfy { $0.host == "localhost" || $0.host == "::1" || $0.host.hasPrefix("127.") }
        // Unknown before the name is resolved.
        case .service: false
        }
    }

    /// The servers in the order that clients use them; the embedded broker's port is unknown until it listens.
    package func targets(brokerPort: Int = 0) -> [Target] {
        switch self.target {
        case .embedded: [Target(host: "127.0.0.1", port: brokerPort)]
        case .servers(let servers): servers
        case .service(let domain, _): [Target(host: domain, port: 5_222)]
        }
    }

    package var targetNames: [String] {
        switch self.target {
        case .embedded: ["embedded"]
        case .servers(let servers): servers.map { "\($0.host):\($0.port)" }
        case .service(let domain, _): [domain]
        }
    }

    /// Operations per second of all clients; `nil` in closed loop.
    package var messageRate: Double? { self.pacing.operationRate(of: self.operators) }
}

extension PacingOption {
    /// Operations per second of all clients; `nil` in closed loop.
    package func operationRate(of clients: Int) -> Double? {
        switch self {
        case .rate(let perSecond): perSecond
        case .interval(let nanoseconds): Double(clients) * 1e9 / Double(nanoseconds)
        case .closedLoop: nil
        }
    }
}

extension MQTTOptions {
    /// Messages per second of all clients and streams; `nil` in closed loop.
    var messageRate: Double? {
        guard !self.streams.isEmpty else { return self.common.messageRate }
        return self.streams.reduce(0) { $0 + ($1.pacing.operationRate(of: self.operators) ?? 0) }
    }
}
