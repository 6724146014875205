import Measurement

/// Descriptors, ports, and the kernel's resources per connection.
extension LoadFit {
    static let portsName = "ports"

    /// Sockets of this host per client.
    var ends: Int { self.server == .elsewhere ? 1 : 2 }

    var descriptors: HostCheck? {
        guard let limit = self.limits.descriptorsSoft else { return nil }
        var facts: [String] = []
        if let hard = self.limits.descriptorsHard { facts.append("hard limit \(Words.count(hard))") }
        if let most = self.limits.descriptorsMost { facts.append("fs.nr_open \(Words.count(most))") }
        facts.append("\(Words.count(self.descriptorsBeside)) are used for other things")
        var check = HostCheck(
            "descriptors",
            found: "this process may have \(Words.count(limit)) (\(facts.joined(separator: ", ")))"
        )
        check.available = Double(limit)
        check.largestClients = max(0, Int(clamping: limit) - self.descriptorsBeside)
        guard let clients = self.clients else { return check }
        let needed = clients + self.descriptorsBeside
        check.needs = "\(Words.count(needed)) descriptors"
        let most = self.limits.descriptorsMost.map { UInt64(needed) > $0 } ?? false
        let split = self.split(check.largestClients ?? 0).map(HostRemedy.split)
        check.judge(
            Double(needed),
            of: Double(limit),
            else: .fail,
            [.fewerClients, .raiseDescriptors(to: needed, most: most)] + (split.map { [$0] } ?? [])
        )
        return check
    }

    /// The limit of all processes together; a server on this host needs descriptors too.
    var files: HostCheck? {
        guard let left = self.limits.filesLeft else { return nil }
        var check = HostCheck("open files", found: "the host has \(Words.count(left)) left (fs.file-max)")
        check.available = Double(left)
        check.largestClients = max(0, Int(clamping: left) - self.descriptorsBeside) / self.ends
        guard let clients = self.clients else { return check }
        let needed = clients * self.ends + self.descriptorsBeside
        check.needs = "\(Words.count(needed)) open files" + (self.ends == 2 ? " with the server's" : "")
        check.judge(Double(needed), of: Double(left), else: .fail, [.fewerClients, .raiseOpenFiles])
        return check
    }

    var ports: HostCheck? {
        guard let space = self.limits.ports else { return nil }
        let most = self.largestByPorts(upTo: Self.mostClients)
        let cycle = self.cycle(self.clients ?? most)
        // The limit with these source addresses, which a load of this size gets.
        let largest = cycle.largest(in: space)
        let allowed = min(Self.mostClients, largest?.clients ?? 0)
        let sources = cycle.sources
        let words =
            "\(Self.plural(sources, "source address", "source addresses")) to "
            + Self.plural(self.targets, "target", "targets")
        var check = HostCheck(
            Self.portsName,
            found: "\(words) \(sources == 1 && self.targets == 1 ? "has" : "have") \(Words.count(allowed)) "
                + "(\(self.facts(of: space, largest?.left)))"
        )
        check.available = Double(allowed)
        check.largestClients = most
        guard let clients = self.clients else { return check }
        check.needs = Self.plural(clients, "local port", "local ports")
        check.judge(Double(clients), of: Double(allowed), else: .fail, self.portRemedies(space, largest?.left))
        return check
    }

    private func facts(of space: PortSpace, _ left: PortSpace.Left?) -> String {
        var facts = ["net.ipv4.ip_local_port_range \(space.range.lowerBound)-\(space.range.upperBound)"]
        func add(_ count: Int, _ words: String) { if count > 0 { facts.append("\(Words.count(count)) \(words)") } }
        add(space.reserved.count, "reserved")
        add(space.table.listening.filter(space.range.contains).count + space.listenersToCome, "listened on")
        add(left?.inUse ?? 0, "in use")
        add(left?.inTimeWait ?? 0, "in TIME_WAIT")
        if self.clientsPerSource != nil { facts.append("127.0.0.1, 127.0.0.2 and so on as they are needed") }
        return facts.joined(separator: ", ")
    }

    private func portRemedies(_ space: PortSpace, _ left: PortSpace.Left?) -> [HostRemedy] {
        var remedies: [HostRemedy] = [.fewerClients]
        if self.clientsPerSource == nil { remedies.append(.moreSourceAddresses) }
        if let waiting = left?.inTimeWait, waiting > 0 {
            let soon = (space.timeWait.delay + 999) / 1_000
            let comesSoon = space.timeWait.reuse == 1 || space.timeWait.reuse == 2 && self.server != .elsewhere
            if !space.timeWait.hasTimestamps {
                remedies.append(.waitForTimeWait(seconds: 60, reuse: nil))
            } else if comesSoon {
                remedies.append(.waitForTimeWait(seconds: soon, reuse: nil))
            } else {
                remedies.append(.waitForTimeWait(seconds: 60, reuse: soon))
            }
        }
        return remedies + [.widenPortRange]
    }

    /// Connects that may wait at a listener of this host; a limit of a server elsewhere is unknown.
    var backlog: HostCheck? {
        guard self.server != .elsewhere, let accept = self.limits.acceptBacklog else { return nil }
        let half = self.limits.synBacklog.map { ", \(Words.count($0)) half-open (net.ipv4.tcp_max_syn_backlog)" } ?? ""
        var check = HostCheck(
            "backlog",
            found: "a listener of this host lets \(Words.count(accept)) connects wait (net.core.somaxconn)\(half)"
        )
        check.needs = "\(Self.connectsPending) at once for each target, without a connect rate"
        check.judge(
            Double(Self.connectsPending),
            of: Double(min(accept, self.limits.synBacklog ?? accept)),
            else: .warn,
            [.raiseBacklog, .slowerConnects]
        )
        return check
    }

    /// Connects in flight per target without a connect rate.
    package static let connectsPending = 64

    var tracking: HostCheck? {
        guard let most = self.limits.trackedMost, let now = self.limits.trackedConnections else { return nil }
        let left = most - min(most, now)
        var check = HostCheck(
            "conntrack",
            found: "the packet filter can follow \(Words.count(left)) more "
                + "(net.netfilter.nf_conntrack_max \(Words.count(most)), \(Words.count(now)) followed)"
        )
        check.available = Double(left)
        // The loaded module alone tracks nothing; without tracked connections it is unknown whether this run's would
        // be.
        let follows = now > 0
        if follows { check.largestClients = Int(clamping: left) }
        guard let clients = self.clients else { return check }
        check.needs = Self.plural(clients, "followed connection", "followed connections")
        check.judge(
            Double(clients),
            of: Double(left),
            else: follows ? .fail : .warn,
            [.fewerClients, .raiseTracking(to: UInt64(clients) + now)]
        )
        return check
    }
}
