import Measurement

/// The largest part of a plan whose clients are divided among several hosts like this one.
///
/// Its checks are those of every run (``LoadFit``), but for memory, cores and descriptors, which several processes have
/// a share in.
package struct HostShare: Sendable {
    package var hosts: Int
    /// Processes of each host, and event loops of each process.
    package var processes: Int
    package var loops: Int
    /// Clients of the largest process.
    package var clientsOfProcess: Int
    /// The groups as far as they are this host's.
    package var groups: [GroupWork]
    /// The host as a whole first, and the ports of each target.
    package var fits: [LoadFit]
    /// Seconds of load, with the warm-up; `nil`: until the run is stopped.
    package var seconds: Double?
    /// Whether the plan can be divided into as many segments.
    package var isDivisible = true

    package init(hosts: Int, processes: Int, loops: Int, clientsOfProcess: Int, groups: [GroupWork], fits: [LoadFit]) {
        self.hosts = hosts
        self.processes = processes
        self.loops = loops
        self.clientsOfProcess = clientsOfProcess
        self.groups = groups
        self.fits = fits
    }

    /// The share of each event loop that a plan may use: what is left is for bursts, and for the other work of a host.
    package static let busiest = 0.7

    // MARK: - Predictions

    private var costs: ClientCosts { self.fits.first?.costs ?? ClientCosts() }
    package var clients: Int { self.groups.reduce(0) { $0 + $1.clients } }

    package var processBytes: UInt64 {
        let own = self.groups.reduce(UInt64(0)) { $0 + UInt64($1.clients) * self.costs.bytes($1) }
        return own + UInt64(self.processes) * self.bytesOfProcess
    }

    /// Bytes of a process without its clients.
    private var bytesOfProcess: UInt64 {
        self.groups.reduce(self.costs.process) { sum, group in
            sum + self.costs.group + (group.flows.isEmpty && !group.isClosedLoop ? 0 : self.costs.messages)
        }
    }

    /// Bytes beside the processes: sockets in the kernel, and the embedded broker's clients.
    package var kernelBytes: UInt64 {
        let server = self.fits.first?.server ?? .elsewhere
        let one =
            (server == .elsewhere ? 1 : 2) * self.costs.socket + (server == .embedded ? self.costs.brokerClient : 0)
        return UInt64(self.clients) * one
    }

    package var connectSeconds: Double {
        self.groups.reduce(0) { $0 + Double($1.clients) * self.connectMicros($1) } / 1e6
    }

    /// CPU-µs of a client's connect: the slower the connects, the more often they wake a loop.
    private func connectMicros(_ group: GroupWork) -> Double {
        guard let rate = group.connectRate, rate > 0 else { return self.costs.connects(group, rate: 1).busy * 1e6 }
        let work = self.costs.connects(group, rate: rate)
        return work.cores(places: self.places, wakeup: self.costs.wakeup) / rate * 1e6
    }

    /// Cores while clients connect at their rates; `nil` if they connect as fast as they succeed.
    package var connectCores: Double? {
        let rated = self.groups.compactMap { group in
            group.connectRate.map { self.costs.connects(group, rate: $0) }
        }
        return rated.isEmpty
            ? nil : rated.reduce(LoopWork(), +).cores(places: self.places, wakeup: self.costs.wakeup)
    }

    /// Whether some clients send as fast as they can, so that the cores of the load are unknown.
    package var hasClosedLoop: Bool { self.groups.contains(where: \.isClosedLoop) }

    /// Cores at the peak of the load, without closed loops.
    package var loadCores: Double { self.cores(\.peak) }

    /// CPU-seconds of the whole run, if its length and all rates are known.
    package var cpuSeconds: Double? {
        guard let seconds = self.seconds, !self.hasClosedLoop else { return nil }
        // Several hosts have a coordinator.
        let conversation = self.hosts > 1 ? self.costs.conversation : 0
        let start = Double(self.processes) * self.costs.start + conversation
        return start / 1e6 + self.connectSeconds + seconds * self.cores(\.mean)
    }

    private func cores(_ rate: (GroupWork.Flow) -> Double) -> Double {
        self.groups.map { self.costs.load($0, rate) }.reduce(LoopWork(), +)
            .cores(places: self.places, wakeup: self.costs.wakeup)
    }

    /// Event loops that can run at once.
    private var places: Double {
        let limits = self.fits.first?.limits ?? HostLimits()
        let loops = Double(self.loops * self.processes)
        return min(loops, limits.cores.map(Double.init) ?? loops, limits.group.cores ?? loops)
    }

    /// The clients by their target, where it is not the same for all.
    private var ways: ArraySlice<LoadFit> { self.fits.dropFirst(self.fits.count > 1 ? 1 : 0) }
    package var descriptorsOfProcess: Int { self.clientsOfProcess + (self.fits.first?.descriptorsBeside ?? 0) }

    /// Source addresses that the plan names, or that loopback takes.
    package var sources: Int { self.ways.map(\.sources).max() ?? 1 }

    /// Source addresses that each find a port for every client; `nil` if ports are unknown.
    package var sourcesNeeded: Int? { self.ways.compactMap(\.sourcesNeeded).max() }

    /// Local ports from one source address to one target.
    package var ports: Int { self.ways.map(\.busiestRoute).max() ?? 0 }

    // MARK: - Checks

    /// All checks, in the order of the report.
    package var checks: [HostCheck] {
        let own: Set = ["descriptors", "memory", "cores"]
        let shared = self.fits.flatMap(\.checks).filter { !own.contains($0.name) }
        return [self.division, self.descriptors].compactMap { $0 } + shared
            + [self.memory, self.connects, self.cores].compactMap { $0 }
    }

    /// The checks that make the load impossible.
    package var problems: [HostCheck] { self.checks.filter { $0.state == .fail } }

    private var division: HostCheck? {
        let segments = self.hosts * self.processes
        var check = HostCheck(
            "processes",
            found:
                "\(Words.count(self.processes)) with up to \(LoadFit.plural(self.clientsOfProcess, "client", "clients"))"
                + " each, of \(LoadFit.plural(self.clients, "client", "clients"))"
        )
        guard !self.isDivisible else { return check }
        check.found = "the groups cannot be divided into \(LoadFit.plural(segments, "part", "parts"))"
        check.state = .fail
        return check
    }

    private var descriptors: HostCheck? {
        guard let limits = self.fits.first?.limits, let limit = limits.descriptorsSoft else { return nil }
        var check = HostCheck("descriptors", found: "a process may have \(Words.count(limit))")
        check.needs = "\(Words.count(self.descriptorsOfProcess)) in each"
        let most = limits.descriptorsMost.map { UInt64(self.descriptorsOfProcess) > $0 } ?? false
        check.judge(
            Double(self.descriptorsOfProcess),
            of: Double(limit),
            else: .fail,
            [.raiseDescriptors(to: self.descriptorsOfProcess, most: most)]
        )
        return check
    }

    private var memory: HostCheck? {
        guard var check = self.fits.lazy.compactMap(\.memory).first, let available = check.available else { return nil }
        let process = Words.binaryBytes(self.bytesOfProcess)
        check.needs =
            "about \(Words.binaryBytes(self.processBytes)) of memory in "
            + "\(LoadFit.plural(self.processes, "process", "processes")) (\(process) each and the clients'), "
            + "\(Words.binaryBytes(self.kernelBytes)) beside them"
        (check.state, check.remedies, check.largestClients) = (.ok, [], nil)
        check.judge(Double(self.processBytes + self.kernelBytes), of: available, else: .fail, [.moreHosts])
        return check
    }

    private var connects: HostCheck? {
        guard let dearest = self.groups.map(self.connectMicros).max() else { return nil }
        let cost = "\(Words.decimal(dearest, digits: 0)) CPU-µs a client"
        var check = HostCheck("connects", found: self.room)
        guard let needed = self.connectCores else {
            check.found =
                "as fast as they succeed: at \(cost) about \(Words.decimal(self.connectSeconds, digits: 1)) CPU-seconds"
            return check
        }
        check.needs = "\(Words.decimal(needed)) while clients connect, at up to \(cost)"
        check.judge(needed, of: self.places * Self.busiest, else: .fail, [.slowerConnects, .moreHosts])
        return check
    }

    private var cores: HostCheck? {
        guard self.fits.first?.limits.cores != nil else { return nil }
        let rate = self.groups.flatMap(\.flows).reduce(0) { $0 + $1.peak }
        let needed = self.loadCores
        var check = HostCheck("cores", found: self.room)
        guard !self.hasClosedLoop else {
            check.found += "; closed loops take what there is"
            return check
        }
        check.needs =
            "\(Words.decimal(needed)) for \(Words.decimal(rate, digits: 0)) messages/s and what comes back"
        check.judge(needed, of: self.places * Self.busiest, else: .fail, [.lowerRate, .moreHosts])
        return check
    }

    private var room: String {
        "\(LoadFit.plural(self.loops * self.processes, "event loop", "event loops")) may use "
            + "\(Words.decimal(self.places * Self.busiest)) cores, \(Words.percent(Self.busiest, digits: 2)) of what there is"
    }

    // MARK: - How many

    /// The smallest number of hosts that carries a plan, and its share of one of them.
    ///
    /// - Parameters:
    ///   - most: as many hosts as are looked at.
    ///   - share: the largest share of this many hosts.
    /// - Returns: the number, and the check that rules out one host fewer; `nil` if none up to `most` carries it.
    package static func smallest(
        upTo most: Int = 16_384,
        _ share: (_ hosts: Int) -> HostShare
    ) -> (share: HostShare, limit: HostCheck?)? {
        var (low, high) = (0, 1)
        var limit: HostCheck?
        var found = share(1)
        while let problem = found.problems.first {
            limit = problem
            low = high
            guard high < most else { return nil }
            high = min(most, 2 * high)
            found = share(high)
        }
        // `high` hosts carry the plan, and `low` hosts do not.
        while high - low > 1 {
            let middle = (low + high) / 2
            let candidate = share(middle)
            if let problem = candidate.problems.first {
                (low, limit) = (middle, problem)
            } else {
                (high, found) = (middle, candidate)
            }
        }
        return (found, limit)
    }
}

extension LoadFit {
    fileprivate var sources: Int { self.cycle(self.clients ?? 0).sources }

    /// Clients of the busiest source and target.
    fileprivate var busiestRoute: Int {
        let routes = self.cycle(self.clients ?? 0).routes
        let most = Dictionary(routes.map { ($0, 1) }, uniquingKeysWith: +).values.max() ?? 0
        return routes.isEmpty ? 0 : ((self.clients ?? 0) * most + routes.count - 1) / routes.count
    }

    fileprivate var sourcesNeeded: Int? {
        guard let space = self.limits.ports, let clients = self.clients else { return nil }
        let left = Set(self.cycle(clients).routes).map { space.free($0).count }.min() ?? 0
        guard left > 0 else { return nil }
        let ofTarget = (clients + self.targets - 1) / max(1, self.targets)
        return (ofTarget + left - 1) / left
    }
}
