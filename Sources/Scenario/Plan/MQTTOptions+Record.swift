import Crypto
import DataEncodings
import LoadEngine
package import Measurement
import NIOCore
import Transport
import Workloads

extension LoadOptions {
    /// The common part of every run's plan in `run.json`: all settings that affect the outcome, without secrets.
    func planRecord(seed: UInt64, of command: CommandName) -> [String: JSONValue] {
        var plan: [String: JSONValue] = [
            "command": .string(self.name),
            "targets": .array(self.targetNames.map { .string($0) }),
            "clients": .integer(Int64(self.clients)),
            "warmup_seconds": .number(Double(self.warmup) / 1e9),
            "drain_seconds": .number(Double(self.drain) / 1e9),
            "seed": .integer(Int64(clamping: seed)),
        ]
        if let duration = self.duration { plan["duration_seconds"] = .number(Double(duration) / 1e9) }
        plan.add(self, of: command)
        self.addTransport(to: &plan)
        self.addDepartures(to: &plan)
        return plan
    }

    private func addTransport(to plan: inout [String: JSONValue]) {
        if let tls = self.transport.tls {
            plan["tls"] = .string(tls.isInsecure ? "insecure" : tls.psk != nil ? "psk" : "verified")
            if tls.certificateFile != nil { plan["client_certificates"] = true }
        }
        if let webSocket = self.transport.webSocket {
            plan["websocket_path"] = .string(Redaction.hideQuery(in: webSocket.path))
        }
    }

    private func addDepartures(to plan: inout [String: JSONValue]) {
        if let churn = self.churn { plan["churn_cuts"] = .bool(churn.cuts) }
        guard !self.storms.isEmpty else { return }
        plan["storms"] = .array(
            self.storms.map {
                .object([
                    "share": .number($0.share), "at_seconds": .number(Double($0.at.nanoseconds) / 1e9),
                    "over_seconds": .number(Double($0.over.nanoseconds) / 1e9), "cuts": .bool($0.cuts),
                ])
            }
        )
    }

    /// The pace of operations, and the timeout for answers.
    func addOperations(to plan: inout [String: JSONValue]) {
        plan["window"] = .integer(Int64(self.window))
        switch self.pacing {
        case .rate(let perSecond):
            plan["pacing"] = "rate"
            plan["rate"] = .number(perSecond)
        case .interval(let nanoseconds):
            plan["pacing"] = "interval"
            plan["interval_seconds"] = .number(Double(nanoseconds) / 1e9)
        case .closedLoop: plan["pacing"] = "closed"
        }
        if case .ramp(_, _, let over?) = self.shape { plan["rate_over_seconds"] = .number(Double(over) / 1e9) }
    }

    func addPayload(to plan: inout [String: JSONValue]) {
        switch self.payload {
        case .generated(let sizes): Self.add(sizes, to: &plan)
        case .message(let bytes), .template(let bytes, _), .file(let bytes):
            plan["message_bytes"] = .integer(Int64(bytes.count))
            plan["message_sha256"] = .string(SHA256.hash(data: bytes).hex)
        }
        if case .template(_, let sizes) = self.payload, sizes != 256...256 { Self.add(sizes, to: &plan) }
    }

    private static func add(_ sizes: ClosedRange<Int>, to plan: inout [String: JSONValue]) {
        if sizes.count == 1 {
            plan["size_bytes"] = .integer(Int64(sizes.lowerBound))
        } else {
            plan["size_bytes_min"] = .integer(Int64(sizes.lowerBound))
            plan["size_bytes_max"] = .integer(Int64(sizes.upperBound))
        }
    }
}

extension MQTTOptions {
    /// The plan in `run.json`: all settings that affect the outcome, without secrets.
    ///
    /// Every record has the keys written here, and the option table's permanent keys. The keys of ``facts`` are written
    /// only for options that differ from their defaults, so that older records stay comparable.
    package func planRecord(seed: UInt64) -> [String: JSONValue] {
        var plan = self.common.planRecord(seed: seed, of: self.command)
        plan.add(self, of: self.command)
        if case .embedded(let faults) = self.target, !faults.isEmpty {
            plan["broker"] = .string(faults.joined(separator: " "))
        }
        if let rows = self.rows {
            plan["rows"] = .integer(Int64(rows.count))
            plan["rows_sha256"] = .string(rows.digest)
        }
        if self.kind == .pub || self.kind == .pubsub { self.addPublishing(to: &plan) }
        if self.subscribers > 0 {
            plan["subscribers"] = .integer(Int64(self.subscribers))
            if self.kind == .pubsub { plan["topology"] = .string(self.topology.rawValue) }
        }
        if !self.subscriptions.isEmpty { self.addSubscriptions(to: &plan) }
        self.facts.add(to: &plan)
        return plan
    }

    private func addPublishing(to plan: inout [String: JSONValue]) {
        plan["publishers"] = .integer(Int64(self.publishers))
        guard self.streams.isEmpty else { return self.addStreams(to: &plan) }
        if let p2p = self.p2p {
            plan["p2p"] = ["root": .string(p2p.root), "to": .string("\(p2p.to)")]
        } else {
            plan["topic"] = .string(self.topic)
        }
        plan["qos"] = .array(self.qualities.map { .integer(Int64($0)) })
        self.common.addPayload(to: &plan)
        plan["batch"] = .integer(Int64(self.batch))
        self.common.addOperations(to: &plan)
    }
}

extension XMPPOptions {
    /// The plan in `run.json`: all settings that affect the outcome, without secrets.
    package func planRecord(seed: UInt64) -> [String: JSONValue] {
        var plan = self.common.planRecord(seed: seed, of: self.command)
        plan.add(self, of: self.command)
        plan["domain"] = .string(self.domain)
        if !self.users.isEmpty { plan["users"] = .integer(Int64(self.users.count)) }
        if self.registers || self.kind == .register { plan["keeps_accounts"] = .bool(self.keepsAccounts) }
        self.facts.add(to: &plan)
        guard self.operates else { return plan }
        self.common.addOperations(to: &plan)
        plan["window"] = .integer(Int64(self.window))
        guard self.kind == .message || self.hasGroups else { return plan }
        switch self.kind {
        case .muc:
            plan["rooms"] = .integer(Int64(self.operators / self.groupSize))
            plan["room_size"] = .integer(Int64(self.groupSize))
            plan["room"] = .string("\(self.room)@\(self.service)")
        case .presence: plan["contacts"] = .integer(Int64(self.groupSize - 1))
        case .login, .message, .ping, .register, .unregister: plan["pairing"] = .string(self.pairing.rawValue)
        }
        self.common.addPayload(to: &plan)
        return plan
    }
}
