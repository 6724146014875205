/// Whether this host can carry a load at all: arithmetic over numbers, asked before the first socket.
package struct LoadFit: Hashable, Sendable {
    /// Clients that this process connects, publishers and subscribers together.
    package var clients: Int
    /// The flags that ask for them: `-c 30000`, `-c 20000 --subscribers 20000`.
    package var flags: String
    /// Different addresses and ports to connect to.
    package var targets: Int
    /// Source addresses to connect from.
    package var sourceAddresses: Int
    /// Whether more source addresses can be given (`--ifaddr`); on loopback they are spread already.
    package var isLoopback: Bool
    /// The soft limit after the program raised it to the hard one; `nil` if unknown.
    package var descriptorLimit: UInt64?
    /// Descriptors beside one per client: loops, files, standard streams.
    package var descriptorsBeside: Int
    /// Local ports that connect(2) may choose, for one source address and target.
    package var localPorts: ClosedRange<UInt16>?
    package var memoryAvailable: UInt64?
    /// What one client costs this process.
    package var bytesPerClient: UInt64

    package init(
        clients: Int,
        flags: String? = nil,
        targets: Int = 1,
        sourceAddresses: Int = 1,
        isLoopback: Bool = false,
        descriptorLimit: UInt64? = nil,
        descriptorsBeside: Int = 64,
        localPorts: ClosedRange<UInt16>? = nil,
        memoryAvailable: UInt64? = nil,
        bytesPerClient: UInt64 = 8192
    ) {
        self.clients = clients
        self.flags = flags ?? "-c \(clients)"
        self.targets = targets
        self.sourceAddresses = sourceAddresses
        self.isLoopback = isLoopback
        self.descriptorLimit = descriptorLimit
        self.descriptorsBeside = descriptorsBeside
        self.localPorts = localPorts
        self.memoryAvailable = memoryAvailable
        self.bytesPerClient = bytesPerClient
    }

    /// What makes the load impossible, one sentence each with the flag, the numbers and the remedy.
    package var problems: [String] {
        [self.descriptorProblem, self.portProblem, self.memoryProblem].compactMap { $0 }
    }

    private var descriptorProblem: String? {
        guard let limit = self.descriptorLimit else { return nil }
        let needed = self.clients + self.descriptorsBeside
        guard UInt64(needed) > limit else { return nil }
        return "\(self.flags) needs \(Words.count(needed)) descriptors, this process may have \(Words.count(limit)): "
            + "lower -c, raise the limit (ulimit -n), or split the load over several processes"
    }

    private var portProblem: String? {
        guard let ports = self.localPorts else { return nil }
        let available = ports.count * max(1, self.sourceAddresses) * max(1, self.targets)
        guard self.clients > available else { return nil }
        let sources = Self.plural(max(1, self.sourceAddresses), "source address", "source addresses")
        let targets = Self.plural(max(1, self.targets), "target", "targets")
        return "\(self.flags) needs \(Words.count(self.clients)) local ports, "
            + "\(sources) to \(targets) have \(Words.count(available)): lower -c, "
            + (self.isLoopback ? "" : "give more source addresses (--ifaddr), ")
            + "or widen net.ipv4.ip_local_port_range"
    }

    private var memoryProblem: String? {
        guard let available = self.memoryAvailable else { return nil }
        let (needed, overflow) = UInt64(self.clients).multipliedReportingOverflow(by: self.bytesPerClient)
        guard overflow || needed > available else { return nil }
        return "\(self.flags) needs about \(Words.bytes(needed)) of memory, \(Words.bytes(available)) are free: "
            + "lower -c, or split the load over several machines"
    }

    private static func plural(_ count: Int, _ one: String, _ many: String) -> String {
        "\(Words.count(count)) \(count == 1 ? one : many)"
    }
}
