package import Measurement
import Workloads

extension ScenarioGroup.Work {
    /// The short command that does the same.
    var command: CommandName {
        switch self {
        case .mqtt(let options): options.command
        case .xmpp(let options): options.command
        }
    }

    /// The options that differ from their defaults.
    var facts: PlanFacts {
        switch self {
        case .mqtt(let options): options.facts
        case .xmpp(let options): options.facts
        }
    }

    /// The plan of the group in `run.json`: all settings that affect the outcome, without secrets.
    func planRecord(seed: UInt64) -> [String: JSONValue] {
        switch self {
        case .mqtt(let options): options.planRecord(seed: seed)
        case .xmpp(let options): options.planRecord(seed: seed)
        }
    }
}

extension ScenarioOptions {
    /// The plan in `run.json`; that of a command is its only group's.
    package func plan(seed: UInt64) -> [String: JSONValue] {
        let plans = self.groups.map { ($0.name, $0.work.planRecord(seed: seed)) }
        guard self.isFile else { return plans.first?.1 ?? [:] }
        var plan = self.planRecord(seed: seed)
        plan["groups"] = .object(Dictionary(plans, uniquingKeysWith: { $1 }).mapValues { .object($0) })
        return plan
    }

    /// The plan as stored in `run.json`, apart from those of the groups.
    package func planRecord(seed: UInt64) -> [String: JSONValue] {
        var plan = self.timeline
        plan["command"] = "run"
        plan["name"] = .string(self.name)
        plan.add(self.common, of: .run, isTitle: true)
        plan["clients"] = .integer(Int64(self.groups.reduce(0) { $0 + $1.options.clients }))
        plan["seed"] = .integer(Int64(clamping: seed))
        plan["schedule_hash"] = .string(self.scheduleHash)
        if self.bridged { plan["bridged"] = true }
        return plan
    }

    /// The settings that all groups share.
    var timeline: [String: JSONValue] {
        var plan: [String: JSONValue] = [
            "warmup_seconds": .number(Double(self.common.warmup) / 1e9),
            "drain_seconds": .number(Double(self.common.drain) / 1e9),
        ]
        if let duration = self.common.duration { plan["duration_seconds"] = .number(Double(duration) / 1e9) }
        guard !self.common.stages.isEmpty else { return plan }
        plan["stages"] = .array(
            self.common.stages.map { stage in
                var facts: [String: JSONValue] = [
                    "name": .string(stage.name), "seconds": .number(Double(stage.length) / 1e9),
                    "load": .number(stage.load), "warmup": .bool(stage.isWarmup),
                    "reconnect": .number(stage.reconnect),
                ]
                if stage.offline > 0 { facts["offline"] = .number(stage.offline) }
                if stage.clients != .share(1) { facts.merge(Self.facts(stage.clients)) { $1 } }
                if !stage.turnouts.isEmpty {
                    let groups = stage.turnouts.map { ($0.group, JSONValue.object(Self.facts($0.clients))) }
                    facts["groups"] = .object(Dictionary(groups, uniquingKeysWith: { $1 }))
                }
                return .object(facts)
            }
        )
        return plan
    }

    private static func facts(_ turnout: TurnoutOption) -> [String: JSONValue] {
        switch turnout {
        case .share(let share): ["clients_share": .number(share)]
        case .count(let count): ["clients": .integer(Int64(count))]
        }
    }
}

extension MQTTOptions {
    /// The command that does the same.
    var command: CommandName { CommandName(rawValue: self.kind.rawValue) ?? .conn }
}

extension XMPPOptions {
    /// The command that does the same.
    var command: CommandName { CommandName(rawValue: "xmpp \(self.kind.rawValue)") ?? .register }
}
