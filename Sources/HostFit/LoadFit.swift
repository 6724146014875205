import Measurement

/// Whether this host can carry a load: arithmetic over numbers, before the first socket.
///
/// It checks every run, and `clamor doctor` prints it line by line, so both agree.
package struct LoadFit: Sendable {
    /// The server's location, and whether it uses this host's descriptors, memory and cores.
    package enum Server: Sendable {
        case elsewhere
        case onLoopback
        /// A child process of this one.
        case embedded
    }

    /// Clients of this process, publishers and subscribers together; `nil` asks only for the maximum.
    package var clients: Int?
    /// Messages per second, of all clients together.
    package var rate: Double?
    /// How often each message is delivered to this process.
    package var deliveries = 0.0
    package var loops = 1
    package var server = Server.elsewhere
    /// Distinct addresses and ports to connect to.
    package var targets = 1
    /// Descriptors besides one per client.
    package var descriptorsBeside = 0
    /// The routes of this many clients.
    package var cycle: @Sendable (_ clients: Int) -> RouteCycle
    /// Clients per additional source address; `nil` if source addresses are given.
    package var clientsPerSource: Int?
    package var costs = ClientCosts()
    package var limits: HostLimits
    /// How to divide the load so that no process has more than this many clients; `nil` if that is impossible.
    ///
    /// The default suits clients that may run in any process.
    package var split: @Sendable (_ most: Int) -> LoadSplit?

    package init(clients: Int?, limits: HostLimits, cycle: @escaping @Sendable (_ clients: Int) -> RouteCycle) {
        self.clients = clients
        self.limits = limits
        self.cycle = cycle
        self.split = { most in
            guard let clients, most > 0 else { return nil }
            return .processes((clients + most - 1) / most)
        }
    }

    package static let mostClients = 10_000_000

    /// All checks, in the order of the report.
    package var checks: [HostCheck] {
        [
            self.descriptors, self.files, self.ports, self.backlog, self.tracking, self.memory, self.buffers,
            self.cores, self.clock, self.steal, self.swap,
        ].compactMap { $0 }
    }

    package var problems: [HostCheck] { self.checks.filter { $0.state == .fail } }

    /// The most clients that fit, and the check that limits them; `nil`: the limit is ``mostClients``.
    package var largest: (clients: Int, check: String?)? {
        let checks = self.checks
        let others = checks.filter { $0.name != Self.portsName }.compactMap { check in
            check.largestClients.map { (clients: $0, check: String?.some(check.name)) }
        }
        let least = others.min { $0.clients < $1.clients }
        guard self.limits.ports != nil else { return least }
        let most = self.largestByPorts(upTo: least?.clients ?? Self.mostClients)
        if let least, most == least.clients { return least }
        return (most, most == Self.mostClients ? nil : Self.portsName)
    }

    /// The most clients that each find a local port.
    ///
    /// On loopback more clients use more source addresses, so a number that does not fit may be followed by larger ones
    /// that do. The largest one counts.
    func largestByPorts(upTo most: Int) -> Int {
        guard let space = self.limits.ports else { return most }
        var clients = most
        while clients > 0 {
            let cycle = self.cycle(clients)
            guard let limit = cycle.largest(in: space)?.clients else { return clients }
            if clients <= limit { return clients }
            // Reduces to the capacity of these source addresses, or to the most clients that would use one address
            // fewer. The number of clients must decrease too: a target with a source of its own (::1) is in the cycle,
            // but it is not an address that spreading adds.
            let fewer = self.clientsPerSource.map { each in
                each * (min(cycle.sources, (clients + each - 1) / each) - 1)
            }
            clients = max(fewer ?? 0, limit)
        }
        return 0
    }

    static func plural(_ count: Int, _ one: String, _ many: String) -> String {
        "\(Words.count(count)) \(count == 1 ? one : many)"
    }
}
