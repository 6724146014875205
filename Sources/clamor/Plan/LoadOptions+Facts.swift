import LoadEngine
import NIOCore
import Transport
import Workloads

extension LoadOptions {
    /// Options of every protocol.
    func addFacts(to facts: inout PlanFacts, of command: CommandName) {
        facts.add(self, of: command)
        let section = command.section ?? ""
        facts.number("connect.rate", self.connectRate, .schedule)
        facts.number("churn", self.churn?.perSecond, .schedule)
        facts.flag("churn.cut", self.churn?.cuts ?? false, .schedule)
        for (index, storm) in self.storms.enumerated() {
            let path = "storm[\(index)]"
            facts.number("\(path).share", storm.share, .schedule)
            facts.nanoseconds("\(path).at", storm.at.nanoseconds, .schedule)
            facts.nanoseconds("\(path).over", storm.over.nanoseconds, unless: 0, .schedule)
            facts.nanoseconds("\(path).until", storm.until?.nanoseconds, .schedule)
            facts.flag("\(path).cut", storm.cuts, unless: true, .schedule)
        }
        for (index, stage) in self.stages.enumerated() where stage.clients != .share(1) {
            switch stage.clients {
            case .share(let share): facts.number("stages[\(index)].clients_share", share, .schedule)
            case .count(let count): facts.integer("stages[\(index)].clients", count, .schedule)
            }
        }
        self.addTransport(to: &facts)
        guard self.operates else { return }
        self.addPace(to: &facts, section)
        self.addPayload(to: &facts, section)
    }

    private func addPace(to facts: inout PlanFacts, _ section: String) {
        switch (self.shape, self.pacing) {
        case (.ramp(let from, let to, let over), _):
            facts.number("\(section).rate.from", from, .schedule)
            facts.number("\(section).rate.to", to, .schedule)
            // A ramp without a length of its own has that of the load.
            facts.nanoseconds("\(section).rate.over", over ?? self.loadLength, .schedule)
        case (.steps(let rates, let every), _):
            facts.add("\(section).rate.steps", .list(rates.map { .number($0) }), .schedule)
            facts.nanoseconds("\(section).rate.every", every, .schedule)
        case (.level, .rate(let rate)): facts.number("\(section).rate", rate, .schedule)
        // The same due times as with a rate.
        case (.level, .interval(let nanoseconds)):
            facts.number("\(section).rate", Double(self.operators) * 1e9 / Double(nanoseconds), .schedule)
        case (.level, .closedLoop): break
        }
        switch self.arrivals {
        case .even: break
        case .poisson: facts.text("\(section).arrivals", "poisson", .schedule)
        case .bursts(let size): facts.integer("\(section).burst", size, .schedule)
        }
        facts.nanoseconds("\(section).think", self.think, unless: 0, .schedule)
        facts.integer("\(section).window", self.inflight, .schedule)
        facts.integer("\(section).limit", self.limit, .schedule)
    }

    private func addPayload(to facts: inout PlanFacts, _ section: String) {
        switch self.payload {
        case .generated(let sizes): Self.add(sizes, to: &facts, section)
        case .message(let bytes): facts.digest("\(section).message", bytes, .schedule)
        case .template(let bytes, let sizes):
            facts.digest("\(section).template", bytes, .schedule)
            // `-m` would send these names as they are.
            if Template.hasNames(in: bytes) { facts.flag("\(section).is_template", true, .record) }
            Self.add(sizes, to: &facts, section)
        case .file(let bytes):
            facts.digest("\(section).file", bytes, .schedule)
            // `-m` and `template://` would replace placeholders in these bytes.
            if bytes.contains(UInt8(ascii: "%")) { facts.flag("\(section).is_literal", true, .record) }
        }
    }

    private static func add(_ sizes: ClosedRange<Int>, to facts: inout PlanFacts, _ section: String) {
        if sizes.count == 1 {
            facts.integer("\(section).size", sizes.lowerBound, unless: 256, .schedule)
        } else {
            facts.integer("\(section).size.min", sizes.lowerBound, .schedule)
            facts.integer("\(section).size.max", sizes.upperBound, .schedule)
        }
    }

    private func addTransport(to facts: inout PlanFacts) {
        if let webSocket = self.transport.webSocket {
            facts.text("subprotocol", webSocket.subprotocols.joined(separator: ","), unless: "mqtt", .record)
            facts.secret("path.query", isGiven: webSocket.path.contains("?"))
            for index in webSocket.headers.indices { facts.secret("headers_\(index + 1)", isGiven: true) }
        }
        guard let tls = self.transport.tls else { return }
        facts.file("ca_file", tls.caFile, .record)
        facts.file("cert_file", tls.certificateFile, .record)
        facts.file("key_file", tls.keyFile, .record)
        for (index, pin) in tls.pins.enumerated() {
            if pin.hasPrefix("sha256/") {
                facts.text("pin_\(index + 1)", pin, .record)
            } else {
                facts.file("pin_\(index + 1)", pin, .record)
            }
        }
        facts.secret("psk", isGiven: tls.psk != nil)
        let usual = TransportOptions.TLS()
        if tls.versions != usual.versions {
            facts.texts("tls_version", [tls.versions.lowerBound, tls.versions.upperBound].map(\.rawValue), .record)
        }
        facts.text("ciphers", tls.ciphers, .record)
        // With XMPP it follows from the TLS policy.
        if tls.domain == nil { facts.texts("alpn", tls.alpn, .record) }
        facts.text("sni", tls.serverName, .record)
    }
}
