import LoadEngine
package import Measurement
import NIOCore
import Workloads

/// The options of a scenario file, read and checked.
package struct ScenarioOptions: Sendable {
    package var name: String
    /// Of the run as a whole: phases, generator, results.
    package var common: LoadOptions
    package var groups: [ScenarioGroup]
    /// The targets of the groups forward to each other, although their lists differ.
    package var bridged = false
    /// The scenario is only explained, not run.
    package var isCheck = false
    /// Names of the variables in values that are secret.
    package var secretVariables: Set<String> = []
    /// The text of the file has a secret, and not only the environment.
    var hasLiteralSecret = false

    package init(name: String, common: LoadOptions, groups: [ScenarioGroup]) {
        self.name = name
        self.common = common
        self.groups = groups
    }
}

/// The clients of one group, as the short command has them that does the same.
package struct ScenarioGroup: Sendable {
    package enum Work: Hashable, Sendable {
        case mqtt(MQTTOptions)
        case xmpp(XMPPOptions)

        /// The options that apply to every group.
        package var options: LoadOptions {
            get {
                switch self {
                case .mqtt(let options): options.common
                case .xmpp(let options): options.common
                }
            }
            set {
                switch self {
                case .mqtt(var options):
                    options.common = newValue
                    self = .mqtt(options)
                case .xmpp(var options):
                    options.common = newValue
                    self = .xmpp(options)
                }
            }
        }

        /// As a run has it; a new one each time, without a name in a run of one command.
        func runGroup(named name: String? = nil) -> any RunGroup {
            switch self {
            case .mqtt(let options): MQTTGroup(options, name: name)
            case .xmpp(let options): XMPPGroup(options, name: name)
            }
        }

        /// The short command that does the same.
        var command: CommandName {
            switch self {
            case .mqtt(let options): options.command
            case .xmpp(let options): options.command
            }
        }

        /// The metrics that it will have by itself.
        var known: MetricCatalog {
            switch self {
            case .mqtt(let options):
                var load = options.load(run: 0, seed: 0)
                if options.spansSegments, load.hasLedger { load.bond = .ledger }
                return MQTTMetrics(for: load, loops: 1).known(for: load)
            case .xmpp(let options):
                let load = options.load(run: 0, seed: 0)
                return XMPPMetrics(for: load, loops: 1).known(for: load)
            }
        }
    }

    package var name: String
    package var work: Work

    package var options: LoadOptions { self.work.options }

    /// Whether its messages are accounted for one by one.
    package var hasLedger: Bool {
        switch self.work {
        case .mqtt(let options): options.hasLedger && options.receives
        case .xmpp(let options): options.hasLedger
        }
    }

    /// Whether any of its operations have due times of their own.
    var isOpenLoop: Bool {
        switch self.work {
        case .mqtt(let options): options.isOpenLoop
        case .xmpp(let options): options.isOpenLoop
        }
    }

    /// Whether it has subscribers whose server keeps messages for them while they are offline.
    var keepsSubscriptions: Bool {
        guard case .mqtt(let options) = self.work, options.subscribers > 0 || !options.subscriptions.isEmpty,
            !options.clean
        else { return false }
        return options.protocolLevel < 5 || options.sessionExpiry ?? 0 > 0
    }

    var runGroup: any RunGroup { self.work.runGroup(named: self.name) }

    mutating func join(run: String, seed: UInt64) {
        self.work.options.segment.run = run
        self.work.options.seed = seed
    }

    /// Takes over what is of the run, so that all groups have one timeline.
    mutating func join(_ run: LoadOptions) {
        var options = self.work.options
        options.duration = run.duration
        options.warmup = run.warmup
        options.drain = run.drain
        options.stages = run.stages.map { $0.of(group: self.name) }
        // An account is created once.
        if options.name != "xmpp-register" {
            let storms = run.stageStorms.filter { $0.until == nil || self.keepsSubscriptions }
            options.storms = (options.storms + storms).sorted { $0.at < $1.at }
        }
        options.threads = run.threads
        options.readSize = run.readSize
        options.seed = run.seed
        options.segment = run.segment
        options.redactedCommand = run.redactedCommand
        self.work.options = options
    }
}

extension ScenarioOptions {
    /// Takes the name and the seed of a run that another process leads.
    ///
    /// `thresholds`: those of the whole run.
    mutating func join(run: String, seed: UInt64, thresholds: [String]) {
        self.common.segment.run = run
        self.common.seed = seed
        self.common.thresholds = thresholds
        for place in self.groups.indices { self.groups[place].join(run: run, seed: seed) }
    }

    /// The metrics of each group, among them those of messages that another group publishes.
    func known(_ plan: DeliveryPlan) -> [GroupCatalog] {
        var place = 0
        return self.groups.map { group in
            guard case .mqtt = group.work else { return GroupCatalog(group.name, group.work.known) }
            defer { place += 1 }
            var load = plan.groups[place].load
            if self.spansSegments, load.hasLedger { load.bond = .ledger }
            let metrics = MQTTMetrics(for: load, in: plan, group: place, loops: 1)
            return GroupCatalog(group.name, metrics.known(for: load, in: plan, group: place))
        }
    }

    /// The messages that its MQTT groups exchange, without the filters of their clients.
    var deliveries: DeliveryPlan {
        let groups = self.groups.compactMap { $0.runGroup as? MQTTGroup }
        return DeliveryPlan(MQTTGroup.planned(groups, seed: 0, isBridged: self.bridged), findsReceivers: false)
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

extension RunSession {
    /// A run of several groups on one timeline.
    init(_ scenario: ScenarioOptions, leader: (any RunLeader)? = nil) {
        self.init(
            scenario.groups.map(\.runGroup),
            scenario.common,
            isBridged: scenario.bridged,
            leader: leader,
            plan: { scenario.planRecord(seed: $0) }
        )
    }
}
