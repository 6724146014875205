import Measurement

/// Whether this host can carry a load at all: arithmetic over numbers, asked before the first socket.
///
/// It guards every run, and `clamor doctor` prints it line by line, so the two cannot differ.
package struct LoadFit: Sendable {
    /// What is at the other end, and whose descriptors, memory and cores it takes.
    package enum Server: Sendable {
        case elsewhere
        case onLoopback
        /// A child process of this one.
        case embedded
    }

    /// Clients that this process connects, publishers and subscribers together; `nil` to ask only how many it could.
    package var clients: Int?
    /// Messages per second of all clients together.
    package var rate: Double?
    /// How often each message comes back to this process.
    package var deliveries = 0.0
    package var loops = 1
    package var server = Server.elsewhere
    /// Different addresses and ports to connect to.
    package var targets = 1
    /// Descriptors beside one per client.
    package var descriptorsBeside = 0
    /// The ways that so many clients go.
    package var rota: @Sendable (_ clients: Int) -> Rota
    /// With so many clients more, one more source address is used; `nil` where they are given.
    package var clientsPerSource: Int?
    package var costs = ClientCosts()
    package var limits: HostLimits
    /// How to divide the load so that no process has more clients than that; `nil` where it cannot be divided so.
    ///
    /// As it is made, of clients that may be in any process each.
    package var split: @Sendable (_ most: Int) -> LoadSplit?

    package init(clients: Int?, limits: HostLimits, rota: @escaping @Sendable (_ clients: Int) -> Rota) {
        self.clients = clients
        self.limits = limits
        self.rota = rota
        self.split = { most in
            guard let clients, most > 0 else { return nil }
            return .processes((clients + most - 1) / most)
        }
    }

    /// The most clients that a load may have.
    package static let mostClients = 10_000_000
}

/// What one client, or one message, costs; measured on Linux 6.18, x86-64, and stated wherever it is used.
package struct ClientCosts: Hashable, Sendable {
    /// Of this process: an idle MQTT client, resident (3.5 KiB at 18,000 of them).
    package var client: UInt64 = 4_096
    /// Of the kernel: a TCP socket with its inode, file, directory entry and epoll entry.
    package var socket: UInt64 = 4_096
    /// Of the embedded broker: a client of its (2.7 KiB).
    package var brokerClient: UInt64 = 3_072
    /// CPU-µs of a message that is a write of its own, nearly all of it the kernel's; at QoS 2 it is twice that.
    package var sent = 10.0
    /// CPU-µs of a message that comes in with a read of its own.
    package var delivered = 6.0

    package init() {}
}

extension LoadFit {
    /// All checks, in the order in which they are told.
    package var checks: [HostCheck] {
        [
            self.descriptors, self.files, self.ports, self.backlog, self.tracking, self.memory, self.buffers,
            self.cores, self.clock, self.steal, self.swap,
        ].compactMap { $0 }
    }

    /// The checks that make the load impossible.
    package var problems: [HostCheck] { self.checks.filter { $0.state == .fail } }

    /// The most clients that fit, and the check that allows no more; `nil`: that is ``mostClients``.
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

    /// The most clients that find a local port each.
    ///
    /// On loopback the more clients there are the more source addresses they use, so a number that does not fit may
    /// have larger ones that do; it is the largest that counts.
    func largestByPorts(upTo most: Int) -> Int {
        guard let space = self.limits.ports else { return most }
        var clients = most
        while clients > 0 {
            let rota = self.rota(clients)
            guard let limit = rota.largest(in: space)?.clients else { return clients }
            if clients <= limit { return clients }
            // Down to what these source addresses carry, or to the most clients that would use one address less.
            // By the number of clients too, which always gets smaller: a target with a source of its own (::1) is in
            // the rota and is no address that spreading adds.
            let fewer = self.clientsPerSource.map { each in
                each * (min(rota.sources, (clients + each - 1) / each) - 1)
            }
            clients = max(fewer ?? 0, limit)
        }
        return 0
    }

    static func plural(_ count: Int, _ one: String, _ many: String) -> String {
        "\(Words.count(count)) \(count == 1 ? one : many)"
    }
}
