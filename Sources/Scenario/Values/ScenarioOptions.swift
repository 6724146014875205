import LoadEngine
package import Measurement
import NIOCore
package import Workloads

/// The options of a scenario file, read and checked.
package struct ScenarioOptions: Sendable {
    package var name: String
    /// The options of the run as a whole: phases, generator, results.
    package var common: LoadOptions
    package var groups: [ScenarioGroup]
    /// A file, whose groups have names; the only group of a command has none.
    package var isFile = true
    /// The targets of the groups forward to each other, although their lists differ.
    package var bridged = false
    /// The scenario is only explained, not run.
    package var isCheck = false
    /// Names of the variables in values that are secret.
    package var secretVariables: Set<String> = []

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

        /// The options that both protocols have.
        package var own: any ProtocolOptions {
            switch self {
            case .mqtt(let options): options
            case .xmpp(let options): options
            }
        }

        /// The options that apply to every group.
        package var options: LoadOptions {
            get { self.own.common }
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

        package var hasTLS: Bool {
            switch self {
            case .mqtt(let options): options.transport.tls != nil
            case .xmpp(let options): ![.off, .allowed].contains(options.tls)
            }
        }

        /// The metrics that it will have by itself.
        package var known: MetricCatalog {
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

    package init(name: String, work: Work) {
        self.name = name
        self.work = work
    }

    package var options: LoadOptions { self.work.options }

    /// Whether its messages are accounted for one by one.
    package var hasLedger: Bool {
        switch self.work {
        case .mqtt(let options): options.hasLedger && options.receives
        case .xmpp(let options): options.hasLedger
        }
    }

    /// Whether it has subscribers whose server keeps messages for them while they are offline.
    package var keepsSubscriptions: Bool {
        guard case .mqtt(let options) = self.work, options.subscribers > 0 || !options.subscriptions.isEmpty,
            !options.clean
        else { return false }
        return options.protocolLevel < 5 || options.sessionExpiry ?? 0 > 0
    }

    package mutating func join(run: String, seed: UInt64) {
        self.work.options.segment.run = run
        self.work.options.seed = seed
    }

    /// Takes over what is of the run, so that all groups have one timeline.
    package mutating func join(_ run: LoadOptions) {
        var options = self.work.options
        options.duration = run.duration
        options.warmup = run.warmup
        options.drain = run.drain
        options.stages = run.stages.map { $0.of(group: self.name) }
        // An account is created once.
        if !options.makesAccounts {
            let storms = run.stageStorms.filter { $0.until == nil || self.keepsSubscriptions }
            options.storms = (options.storms + storms).sorted { $0.at < $1.at }
        }
        options.threads = run.threads
        options.sockets = run.sockets
        options.readSize = run.readSize
        options.seed = run.seed
        options.segment = run.segment
        // A group tells of the accounts that it makes.
        options.results = run.results
        self.work.options = options
    }
}

extension ScenarioOptions {
    /// A short command as the scenario that it is.
    package init(_ work: ScenarioGroup.Work) {
        let group = ScenarioGroup(name: work.options.name, work: work)
        self.init(name: work.options.name, common: work.options, groups: [group])
        self.isFile = false
    }

    /// Takes the name and the seed of a run that another process leads.
    ///
    /// `thresholds`: those of the whole run.
    package mutating func join(run: String, seed: UInt64, thresholds: [String]) {
        self.common.segment.run = run
        self.common.seed = seed
        self.common.thresholds = thresholds
        for place in self.groups.indices { self.groups[place].join(run: run, seed: seed) }
    }

    /// The metrics of each group, among them those of messages that another group publishes.
    package func known(_ plan: DeliveryPlan) -> [GroupCatalog] {
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
}
