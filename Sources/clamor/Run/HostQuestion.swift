import LoadEngine
import Measurement

/// Whether this host carries the load of all groups of a run together.
struct HostQuestion {
    private let groups: [any RunGroup]
    private let limits: HostLimits
    private let threads: Int

    init(_ groups: [any RunGroup], limits: HostLimits, threads: Int) {
        self.groups = groups
        self.limits = limits
        self.threads = threads
    }

    /// Why it does not, in one line.
    var problem: String? {
        let problems = self.questions.flatMap(\.problems)
        guard !problems.isEmpty else { return nil }
        let line = problems.joined(separator: "; ")
        // Of a scenario: clients have a key there.
        return self.groups.count > 1 ? line.replacing("lower -c", with: "lower clients") : line
    }

    /// What the load needs of this host, and what is there.
    var needs: [HostCheck] { self.questions.flatMap(\.checks).filter { $0.needs != nil } }

    private var questions: [LoadFit] {
        guard self.groups.count > 1 else {
            return self.groups.map { group in
                var fit = self.question(group.options, clients: group.clients, self.limits)
                fit.costs.client += group.clientBytes
                fit.split = group.split
                return fit
            }
        }
        // Ports are free or taken for each target by itself; everything else is for all.
        var others = self.limits
        others.ports = nil
        var ports = HostLimits()
        ports.ports = self.limits.ports
        return [self.whole(others)] + self.waysByTarget(ports)
    }

    /// A question for each single target: what all groups together connect there.
    private func waysByTarget(_ limits: HostLimits) -> [LoadFit] {
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
            var fit = self.question(options, clients: clients[target] ?? 0, limits)
            fit.flags = self.words(members)
            return fit
        }
    }

    private func whole(_ limits: HostLimits) -> LoadFit {
        // The group whose server is nearest takes the most of this host.
        let nearest =
            self.groups.first { $0.options.isEmbedded } ?? self.groups.first { $0.options.isLoopback } ?? self.groups[0]
        var fit = self.question(nearest.options, clients: self.groups.reduce(0) { $0 + $1.clients }, limits)
        fit.flags = self.words(self.groups)
        // How many parts of a scenario would each have clients of all groups is not known here.
        fit.split = { _ in nil }
        let clients = self.groups.reduce(0) { $0 + $1.clients }
        let own = self.groups.reduce(UInt64(0)) { $0 + UInt64($1.clients) * $1.clientBytes }
        if clients > 0 { fit.costs.client += own / UInt64(clients) }
        let rates = self.groups.compactMap { group in
            group.options.messageRate.map { (messages: $0, deliveries: $0 * group.deliveries) }
        }
        let messages = rates.reduce(0) { $0 + $1.messages }
        fit.rate = messages > 0 ? messages : nil
        fit.deliveries = messages > 0 ? rates.reduce(0) { $0 + $1.deliveries } / messages : 0
        return fit
    }

    private func question(_ options: LoadOptions, clients: Int, _ limits: HostLimits) -> LoadFit {
        options.fit(
            clients: clients,
            deliveries: self.groups[0].deliveries,
            limits: limits,
            threads: self.threads,
            descriptorsBeside: self.descriptors
        )
    }

    private var descriptors: Int {
        let own = self.groups.reduce(0) { $0 + $1.descriptors }
        return self.groups.dropFirst().reduce(Descriptors.beside(self.groups[0].options, threads: self.threads) + own) {
            $0 + Descriptors.added($1.options, threads: self.threads)
        }
    }

    private func words(_ groups: [any RunGroup]) -> String {
        let clients = groups.reduce(0) { $0 + $1.clients }
        return "\(clients) clients of \(groups.compactMap(\.name).joined(separator: ", "))"
    }
}

extension LoadOptions {
    /// Clients go round several servers: each by itself.
    fileprivate var singleTargets: [RunTarget] {
        guard case .servers(let servers) = self.target else { return [self.target] }
        return servers.map { .servers([$0]) }
    }
}
