import Measurement

/// Memory and CPU time.
extension LoadFit {
    /// Bytes of the kernel per client.
    private var socketBytes: UInt64 { UInt64(self.ends) * self.costs.socket }

    /// Bytes of this host per idle client.
    private var bytesPerClient: UInt64 {
        self.costs.client + self.socketBytes + (self.server == .embedded ? self.costs.brokerClient : 0)
    }

    var memory: HostCheck? {
        let free = self.limits.memoryAvailable
        let group = self.limits.group
        guard let available = [free, group.memoryLeft].compactMap({ $0 }).min() else { return nil }
        var found = "\(Words.binaryBytes(available)) are free"
        if let left = group.memoryLeft, left == available {
            found = "\(Words.binaryBytes(left)) are left of the control group's"
            if let limit = group.memoryLimit { found += " \(Words.binaryBytes(limit)) (memory.max)" }
        }
        let parts = [
            "\(Words.count(self.costs.client)) bytes a client",
            "\(Words.count(self.socketBytes)) of the kernel's",
            self.server == .embedded ? "\(Words.count(self.costs.brokerClient)) of the embedded broker's" : nil,
        ]
        var check = HostCheck("memory", found: found)
        check.available = Double(available)
        check.largestClients = Int(clamping: available / self.bytesPerClient)
        guard let clients = self.clients else {
            check.found += " (\(parts.compactMap { $0 }.joined(separator: ", ")))"
            return check
        }
        let needed = UInt64(clients) * self.bytesPerClient
        let words = parts.compactMap { $0 }.joined(separator: ", ")
        check.needs = "about \(Words.binaryBytes(needed)) of memory (\(words))"
        check.judge(Double(needed), of: Double(available), else: .fail, [.fewerClients, .severalMachines])
        return check
    }

    /// Buffers are used only while bytes wait in them, so a shortage slows a load down but does not stop it.
    var buffers: HostCheck? {
        guard let used = self.limits.bufferPages, let pressure = self.limits.bufferPressure,
            let most = self.limits.bufferMost
        else { return nil }
        let left = pressure - min(pressure, used)
        var check = HostCheck(
            "TCP buffers",
            found: "\(Words.count(left)) pages are left before the kernel saves "
                + "(net.ipv4.tcp_mem \(Words.count(pressure)) and \(Words.count(most)) pages)"
        )
        check.available = Double(left)
        guard let clients = self.clients else { return check }
        let needed = UInt64(clients * self.ends)
        check.needs = "\(Words.count(needed)) with a page each at once"
        check.judge(
            Double(needed),
            of: Double(left),
            else: .warn,
            [.raiseBuffers(low: needed, pressure: used + needed, most: 2 * (used + needed))]
        )
        return check
    }

    var cores: HostCheck? {
        guard let cores = self.limits.cores else { return nil }
        let available = min(Double(self.loops), Double(cores), self.limits.group.cores ?? .infinity)
        let cost = self.costs.sent + self.deliveries * self.costs.delivered
        var found = Self.plural(self.loops, "event loop", "event loops") + " on " + Self.plural(cores, "core", "cores")
        if let quota = self.limits.group.cores { found += ", of which cpu.max gives \(Words.decimal(quota))" }
        let costs =
            "\(Words.decimal(cost, digits: 1)) CPU-µs a message"
            + (self.deliveries > 0 ? " with its deliveries" : "")
        var check = HostCheck("cores", found: found)
        check.available = available
        if let quota = self.limits.group.cores, quota < Double(min(self.loops, cores)) {
            check.state = .warn
            check.remedies = [.raiseQuota, .fewerThreads(max(1, Int(quota)))]
        }
        guard let rate = self.rate else {
            check.found += ", about \(Words.count(Int(available / cost * 1e6))) messages/s at \(costs)"
            return check
        }
        let needed = rate * cost / 1e6
        check.needs = "\(Words.decimal(needed)) for \(Words.decimal(rate)) messages/s at \(costs)"
        let hasMoreCores = self.loops < cores && Double(self.loops) < needed
        check.judge(
            needed,
            of: available,
            else: .warn,
            [.lowerRate] + (hasMoreCores ? [.moreThreads] : []) + [.severalMachines]
        )
        return check
    }

    /// Clock sources that the C library reads without a system call.
    private static let fastClocks: Set = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"]

    var clock: HostCheck? {
        guard let source = self.limits.clockSource else { return nil }
        var check = HostCheck("clock", found: "the clock source is \(source)")
        guard !Self.fastClocks.contains(source) else { return check }
        check.state = .warn
        check.found += ", so that each look at the clock is a system call"
        check.remedies = [.fastClock]
        return check
    }

    var steal: HostCheck? {
        guard let share = self.limits.stealShare else { return nil }
        let taken = Words.percent(share, digits: 2)
        var check = HostCheck("steal", found: "the hypervisor took \(taken) of the CPU just now")
        check.judge(share, of: 0.01, else: .warn, [.quieterHost])
        // There is no needed amount: the figures are a share and its limit.
        (check.available, check.needed) = (share, nil)
        return check
    }

    var swap: HostCheck? {
        guard let total = self.limits.swapTotal, let used = self.limits.swapUsed else { return nil }
        let all = Words.binaryBytes(total)
        var check = HostCheck("swap", found: total == 0 ? "there is none" : "\(all), none of it in use")
        check.available = Double(total)
        guard used > 0 else { return check }
        check.state = .warn
        check.found = "\(Words.binaryBytes(used)) of \(all) are in use"
        check.remedies = [.noSwap]
        return check
    }
}
