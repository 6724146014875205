import LoadEngine
import RunResult
package import Scenario
import Workloads

/// The groups of one run; those of MQTT are a neighbourhood.
struct RunGroups {
    let all: [any RunGroup]
    let mqtt: [MQTTGroup]

    init(_ scenario: ScenarioOptions, _ names: OptionNames) {
        var (all, mqtt): ([any RunGroup], [MQTTGroup]) = ([], [])
        for group in scenario.groups {
            let name = scenario.isFile ? group.name : nil
            switch group.work {
            case .mqtt(let options):
                let own = MQTTGroup(options, name: name, names: names)
                all.append(own)
                mqtt.append(own)
            case .xmpp(let options): all.append(XMPPGroup(options, name: name, names: names))
            }
        }
        (self.all, self.mqtt) = (all, mqtt)
    }

    /// Makes neighbours of the MQTT groups; those with the embedded broker have one.
    func join(_ scenario: ScenarioOptions, seed: UInt64) throws(RunRefusal) {
        guard !self.mqtt.isEmpty else { return }
        let neighbourhood = try Neighbourhood(scenario, seed: seed)
        for (place, group) in self.mqtt.enumerated() { group.join(neighbourhood, at: place) }
        let embedded = self.mqtt.filter(\.options.isEmbedded)
        for group in embedded.dropFirst() { group.share(brokerOf: embedded[0]) }
    }

    /// The ledger over the MQTT groups of a run, after all their clients have ended.
    func delivery(_ samples: RunSamples) -> RunDelivery? {
        guard let plan = self.mqtt.first?.neighbourhood?.plan else { return nil }
        return RunDelivery(
            plan,
            self.mqtt.flatMap { $0.prepared?.results ?? [] },
            shares: samples.shares,
            longestShared: samples.longestShared,
            presence: samples.presence,
            realtimeOffset: self.mqtt.first?.prepared?.load.realtimeOffset ?? 0
        )
    }
}

/// The state that the MQTT groups of a run share: the messages that they exchange.
struct Neighbourhood: Sendable {
    let plan: DeliveryPlan
    /// Where the shards of all groups tell each other; `nil` where nothing is followed, or segments follow it together.
    let hub: DeliveryHub?
    /// The largest packet that the messages of all groups need.
    let packetLimit: Int

    typealias Member = (name: String, options: MQTTOptions)

    init(_ scenario: ScenarioOptions, seed: UInt64) throws(RunRefusal) {
        let members = scenario.neighbours
        var planned = scenario.plannedGroups(seed: seed)
        let plan = DeliveryPlan(planned)
        for (place, member) in members.enumerated() where member.options.answersSegments {
            planned[place].load.bond = .end
        }
        if Self.spansSegments(members, plan) {
            for place in members.indices where planned[place].load.hasLedger { planned[place].load.bond = .ledger }
        }
        self.plan = DeliveryPlan(planned)
        if let problem = self.plan.problem { throw RunRefusal(problem, .dataError) }
        let isJoint = self.plan.groups.contains { $0.load.bond == .ledger }
        self.hub = isJoint || !self.plan.hasLedger ? nil : DeliveryHub()
        self.packetLimit = MQTTOptions.packetLimit(members.map(\.options))
    }

    /// Whether messages of one segment go to clients of others.
    private static func spansSegments(_ members: [Member], _ plan: DeliveryPlan) -> Bool {
        guard members[0].options.part.count > 1, plan.isFollowed, plan.hasPublishers else { return false }
        return members.contains(where: \.options.spansSegments)
            || members.indices.contains { members[$0].options.kind != .pubsub && plan.hears($0) }
    }
}

extension ScenarioOptions {
    /// As a run has them; new ones each time.
    package func runGroups(_ names: OptionNames = .keys) -> [any RunGroup] { RunGroups(self, names).all }
}
