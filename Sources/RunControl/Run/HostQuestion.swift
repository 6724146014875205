package import HostFit
import Scenario

/// Checks whether this host can carry the load of all groups of a run together.
package struct HostQuestion {
    let groups: [any RunGroup]
    let limits: HostLimits
    let threads: Int

    package init(groups: [any RunGroup], limits: HostLimits, threads: Int) {
        self.groups = groups
        self.limits = limits
        self.threads = threads
    }

    /// One line with the reason why it cannot; `nil` if it can.
    package var problem: String? {
        let names = self.groups.first?.names ?? .keys
        let problems = self.questions.flatMap { $0.fit.sentences(of: $0.load, names) }
        return problems.isEmpty ? nil : problems.joined(separator: "; ")
    }

    /// The resources that the load needs of this host, with the available ones.
    package var needs: [HostCheck] { self.questions.flatMap(\.fit.checks).filter { $0.needs != nil } }

    /// The host as a whole first; in a run of several groups the ports of each target after it.
    package var fits: [LoadFit] { self.questions.map(\.fit) }

    private typealias Question = (fit: LoadFit, load: String)

    private var questions: [Question] {
        guard self.groups.count > 1 else {
            return self.groups.map { group in
                var fit = self.question(group.options, clients: group.clients, self.limits)
                fit.costs.client += group.clientBytes
                fit.split = group.split
                let load =
                    group.name == nil ? group.options.loadWords(own: group.clients) : self.words(self.groups)
                return (fit, load)
            }
        }
        // Ports are counted for each target, all other resources for the whole host.
        var others = self.limits
        others.ports = nil
        var ports = HostLimits()
        ports.ports = self.limits.ports
        return [self.whole(others)] + self.waysByTarget(ports)
    }

    /// One question for each target, with the connections of all groups there.
    private func waysByTarget(_ limits: HostLimits) -> [Question] {
        var order: [RunTarget] = []
        var clients: [RunTarget: Int] = [:]
        var groups: [RunTarget: [any RunGroup]] = [:]
        for group in self.groups {
            let targets = group.options.singleTargets
            for target in targets {
                if clients[target] == nil { order.append(target) }
                clients[target, default: 0] += (group.clients + targets.count - 1) / targets.count
                groups[target, default: []].append(group)
            }
        }
        return order.compactMap { target in
            guard let members = groups[target], var options = members.first?.options else { return nil }
            options.target = target
            return (self.question(options, clients: clients[target] ?? 0, limits), self.words(members))
        }
    }

    private func whole(_ limits: HostLimits) -> Question {
        // The group with the nearest server needs the most of this host.
        let nearest =
            self.groups.first { $0.options.isEmbedded } ?? self.groups.first { $0.options.isLoopback } ?? self.groups[0]
        var fit = self.question(nearest.options, clients: self.groups.reduce(0) { $0 + $1.clients }, limits)
        // Unknown: the split of a scenario into parts with clients of all groups.
        fit.split = { _ in nil }
        let clients = self.groups.reduce(0) { $0 + $1.clients }
        let own = self.groups.reduce(UInt64(0)) { $0 + UInt64($1.clients) * $1.clientBytes }
        if clients > 0 { fit.costs.client += own / UInt64(clients) }
        let rates = self.groups.compactMap { group in
            group.messageRate.map { (messages: $0, deliveries: $0 * group.deliveries) }
        }
        let messages = rates.reduce(0) { $0 + $1.messages }
        fit.rate = messages > 0 ? messages : nil
        fit.deliveries = messages > 0 ? rates.reduce(0) { $0 + $1.deliveries } / messages : 0
        return (fit, self.words(self.groups))
    }

    private func question(_ options: LoadOptions, clients: Int, _ limits: HostLimits) -> LoadFit {
        options.fit(
            clients: clients,
            deliveries: self.groups[0].deliveries,
            limits: limits,
            threads: self.threads,
            descriptorsBeside: Descriptors.beside(self.groups.map(\.options), threads: self.threads)
        )
    }

    private func words(_ groups: [any RunGroup]) -> String {
        let clients = groups.reduce(0) { $0 + $1.clients }
        let names = groups.compactMap(\.name).joined(separator: ", ")
        return "the load of \(clients) client\(clients == 1 ? "" : "s") (\(names))"
    }
}

extension LoadOptions {
    /// Each server of a target list as a target of its own.
    fileprivate var singleTargets: [RunTarget] {
        guard case .servers(let servers) = self.target else { return [self.target] }
        return servers.map { .servers([$0]) }
    }
}
