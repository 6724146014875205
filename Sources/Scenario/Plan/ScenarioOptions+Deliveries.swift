import LoadEngine
package import Workloads

extension ScenarioOptions {
    /// Its MQTT groups, in their order.
    package var neighbours: [(name: String, options: MQTTOptions)] {
        self.groups.compactMap { group in
            guard case .mqtt(let options) = group.work else { return nil }
            return (self.isFile ? group.name : "", options)
        }
    }

    /// The messages that its MQTT groups exchange, without the filters of their clients.
    package var deliveries: DeliveryPlan { DeliveryPlan(self.plannedGroups(seed: 0), findsReceivers: false) }

    /// The groups of a run as the ledger sees them.
    package func plannedGroups(seed: UInt64) -> [DeliveryPlan.Group] {
        let members = self.neighbours
        var domains: [[String]] = []
        guard !members.isEmpty else { return [] }
        // The messages of one run, whichever group sends them.
        let run = members[0].options.segment.headerRun(seed: seed, group: nil)
        let limit = MQTTOptions.packetLimit(members.map(\.options))
        let planned = members.map { name, options in
            let servers = self.bridged ? [] : options.targetNames
            let domain = domains.firstIndex(of: servers) ?? domains.count
            if domain == domains.count { domains.append(servers) }
            let load = options.load(run: run, seed: seed, packetLimit: limit)
            return DeliveryPlan.Group(name: name, load: load, domain: domain)
        }
        let hasPublishers = planned.contains(where: \.load.publishes)
        return zip(planned, members).map { given, member in
            var group = given
            // Publishers of this run that retain are refused beside such filters.
            if hasPublishers, !given.load.publishes { group.load.hasLedger = true }
            for (place, stream) in given.load.streams.enumerated() where stream.p2p != nil {
                let streams = member.options.streams
                let option = streams.isEmpty ? member.options.p2p : streams[place].p2p
                group.load.streams[place].p2p?.groups = planned.indices.filter { other in
                    guard planned[other].domain == given.domain else { return false }
                    if case .group(let name)? = option?.to { return planned[other].name == name }
                    return true
                }
            }
            return group
        }
    }
}
