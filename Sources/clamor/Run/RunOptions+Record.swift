import Measurement

extension RunOptions {
    /// The plan as `run.json` holds it: what decides the outcome, and no secret.
    func planRecord(seed: UInt64) -> [String: JSONValue] {
        var plan: [String: JSONValue] = [
            "command": .string(self.kind.rawValue),
            "targets": .array(self.targetNames.map { .string($0) }),
            "protocol_level": .integer(Int64(self.protocolLevel)),
            "clients": .integer(Int64(self.publishers + self.subscribers)),
            "keep_alive_seconds": .integer(Int64(self.keepAlive)),
            "clean": .bool(self.clean),
            "connect_timeout_seconds": .number(Double(self.connectTimeout) / 1e9),
            "warmup_seconds": .number(Double(self.warmup) / 1e9),
            "drain_seconds": .number(Double(self.drain) / 1e9),
            "read_size": .integer(Int64(self.readSize)),
            "seed": .integer(Int64(clamping: seed)),
        ]
        if let duration = self.duration { plan["duration_seconds"] = .number(Double(duration) / 1e9) }
        if let rate = self.connectRate { plan["connect_rate"] = .number(rate) }
        if self.reconnects > 0 { plan["reconnects"] = .integer(Int64(self.reconnects)) }
        if case .embedded(let faults) = self.target, !faults.isEmpty {
            plan["broker"] = .string(faults.joined(separator: " "))
        }
        if self.kind == .pub || self.kind == .pubsub { self.addPublishing(to: &plan) }
        if self.subscribers > 0 {
            plan["subscribers"] = .integer(Int64(self.subscribers))
            if self.kind == .sub { plan["filters"] = .array(self.filters.map { .string($0) }) }
            if self.kind == .pubsub { plan["topology"] = .string(self.topology.rawValue) }
        }
        return plan
    }

    private func addPublishing(to plan: inout [String: JSONValue]) {
        plan["publishers"] = .integer(Int64(self.publishers))
        plan["topic"] = .string(self.topic)
        plan["qos"] = .array(self.qualities.map { .integer(Int64($0)) })
        plan["retain"] = .bool(self.retain)
        switch self.payload {
        case .generated(let size): plan["size_bytes"] = .integer(Int64(size))
        case .message(let bytes): plan["message_bytes"] = .integer(Int64(bytes.count))
        }
        plan["window"] = .integer(Int64(self.window))
        plan["batch"] = .integer(Int64(self.batch))
        plan["ack_timeout_seconds"] = .number(Double(self.ackTimeout) / 1e9)
        plan["waits_for_connects"] = .bool(self.waitsForAll)
        if let limit = self.limit { plan["limit"] = .integer(Int64(clamping: limit)) }
        switch self.pacing {
        case .rate(let perSecond):
            plan["pacing"] = "rate"
            plan["rate"] = .number(perSecond)
        case .interval(let nanoseconds):
            plan["pacing"] = "interval"
            plan["interval_seconds"] = .number(Double(nanoseconds) / 1e9)
        case .closedLoop: plan["pacing"] = "closed"
        }
    }

    var targetNames: [String] {
        switch self.target {
        case .embedded: ["embedded"]
        case .servers(let servers): servers.map { "\($0.host):\($0.port)" }
        }
    }
}
