package import HostFit
import LoadEngine
import NIOCore
import Scenario
import Transport

/// The host resources that a run needs; the same for the check before a run and for `doctor`.
extension LoadOptions {
    /// Targets whose address must be resolved.
    var names: Int {
        let hosts = Set(self.targets().map(\.host)).subtracting(["localhost"])
        return hosts.count { (try? SocketAddress(ipAddress: $0, port: 0)) == nil }
    }

    func sources(clients: Int, limits: HostLimits) throws -> SourceAddresses {
        let targets = self.targets().count
        if !self.sourceAddresses.isEmpty { return try SourceAddresses(given: self.sourceAddresses, targets: targets) }
        guard self.isLoopback else { return .any }
        return SourceAddresses(
            clients: clients,
            targets: targets,
            connectionsPerSource: Self.connectionsPerSource(limits)
        )
    }

    /// In a narrower port range at most half of it, for the same reason: the kernel searches one half first.
    private static func connectionsPerSource(_ limits: HostLimits) -> Int {
        guard let ports = limits.ports else { return SourceAddresses.connectionsPerSource }
        return max(1, min(SourceAddresses.connectionsPerSource, ports.size / 2))
    }

    /// The routes of `clients` in turn, as the connector uses them.
    func cycle(clients: Int, limits: HostLimits) -> RouteCycle {
        let targets = self.targets()
        guard let sources = try? self.sources(clients: clients, limits: limits) else { return RouteCycle([]) }
        let routes = (0..<targets.count * sources.rounds).map { client in
            let target = targets[client % targets.count]
            let source = Self.addresses(of: target).lazy
                .compactMap { sources.address(forClient: client, to: $0)?.ipAddress }.first
            return Route(source: source.flatMap(IPAddress.init), name: target.host, port: UInt16(target.port))
        }
        return RouteCycle(routes)
    }

    /// The address of a target; for an unresolved name, one of each family.
    private static func addresses(of target: Target) -> [SocketAddress] {
        let host = target.host == "localhost" ? "127.0.0.1" : target.host
        if let address = try? SocketAddress(ipAddress: host, port: target.port) { return [address] }
        return ["192.0.2.1", "2001:db8::1"].compactMap { try? SocketAddress(ipAddress: $0, port: target.port) }
    }

    /// The question whether this host carries the load.
    ///
    /// - Parameters:
    ///   - clients: publishers and subscribers together; `nil` to ask only for the largest number.
    ///   - deliveries: the number of deliveries per message.
    ///   - limits: the limits of this host.
    ///   - threads: the number of event loops.
    ///   - descriptorsBeside: descriptors of this process, apart from those of clients.
    /// - Returns: the question, which computes its answer.
    package func fit(
        clients: Int?,
        deliveries: Double,
        limits: HostLimits,
        threads: Int,
        descriptorsBeside: Int
    ) -> LoadFit {
        var limits = limits
        // The embedded broker listens on a port that the kernel takes from the same range.
        if self.isEmbedded { limits.ports?.listenersToCome = 1 }
        let known = limits
        var fit = LoadFit(clients: clients, limits: limits) { self.cycle(clients: $0, limits: known) }
        fit.rate = self.messageRate.map { $0 / Double(self.part.count) }
        fit.deliveries = deliveries
        fit.loops = threads
        fit.server = self.isEmbedded ? .embedded : self.isLoopback ? .onLoopback : .elsewhere
        let targets = Set(self.targets())
        fit.targets = targets.count
        if self.sourceAddresses.isEmpty, self.isLoopback {
            fit.clientsPerSource = Self.connectionsPerSource(limits) * self.targets().count
        }
        fit.descriptorsBeside = descriptorsBeside
        return fit
    }

    /// The load as on the command line: `-c 30000`, `-c 20000 with 20000 subscribers`.
    ///
    /// `own`: the clients of this process, which may be one of several segments.
    package func loadWords(own: Int) -> String {
        let others = "\(self.listeners) subscriber\(self.listeners == 1 ? "" : "s")"
        let flags =
            self.listeners > 0 && self.operators > 0 ? "-c \(self.operators) with \(others)" : "-c \(self.clients)"
        guard self.segment.part != nil else { return flags }
        return "\(flags), of which \(own) in segment \(self.part.index + 1)/\(self.part.count),"
    }

    /// Event loops of a load of these groups; `cores`: the host's, if known.
    package static func defaultThreads(_ groups: [any RunGroup], cores: Int?) -> Int {
        self.defaultThreads(cores: cores ?? System.coreCount, loopback: groups.contains { $0.options.isLoopback })
    }
}
