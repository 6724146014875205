package import HostFit
package import Scenario

extension LoadFit {
    /// A sentence for each problem: the load, the numbers and the remedies.
    package func sentences(of load: String, _ names: OptionNames) -> [String] {
        self.problems.map { check in
            let needs = check.needs.map { " needs \($0)," } ?? ":"
            return ["\(load)\(needs) \(check.found)", check.change(names)].compactMap { $0 }
                .joined(separator: ": ")
        }
    }
}

extension HostCheck {
    /// The remedies; `nil` if the check passes.
    package func change(_ names: OptionNames) -> String? {
        let words = self.remedies.map { names.text($0.words) }
        guard let last = words.last else { return nil }
        let change = (words.dropLast() + [words.count > 1 ? "or \(last)" : last]).joined(separator: ", ")
        return self.remedies.contains(.lowerRate) ? "\(change); such a run ends generator-limited" : change
    }
}

extension HostRemedy {
    fileprivate var words: OptionWords {
        switch self {
        case .fewerClients: "lower \(\.count)"
        case .lowerRate: "lower \(\.rate)"
        case .slowerConnects: "connect slower (\(\.connectRate))"
        case .moreSourceAddresses: "give more source addresses (\(\.sourceAddresses))"
        case .split(.processes(let count)):
            "split the load over several processes (\(\.processes, "\(count)"))"
        case .split(.segments(let count)): "make it more segments (\(\.segment, "1/\(count)") to \(count)/\(count))"
        case .severalMachines: "split the load over several machines"
        case .moreHosts: "take more hosts"
        case .moreThreads: "give more \(\.threads)"
        case .fewerThreads(let count): "\(\.threads, "\(count)")"
        case .raiseDescriptors(let count, let most):
            "raise the limit (\(most ? "sysctl -w fs.nr_open=\(count), " : "")ulimit -n \(count))"
        case .raiseOpenFiles: "raise fs.file-max (sysctl -w)"
        case .widenPortRange:
            "widen net.ipv4.ip_local_port_range (sysctl -w net.ipv4.ip_local_port_range='1024 65535')"
        case .waitForTimeWait(let seconds, nil): "wait \(seconds) s for TIME_WAIT"
        case .waitForTimeWait(let seconds, let reuse?):
            "wait \(seconds) s for TIME_WAIT (sysctl -w net.ipv4.tcp_tw_reuse=1: \(reuse) s)"
        case .raiseBacklog: "sysctl -w net.core.somaxconn=4096 net.ipv4.tcp_max_syn_backlog=4096"
        case .raiseTracking(let count): "sysctl -w net.netfilter.nf_conntrack_max=\(count)"
        case .raiseBuffers(let low, let pressure, let most):
            "sysctl -w net.ipv4.tcp_mem='\(low) \(pressure) \(most)'"
        case .raiseQuota: "raise cpu.max of the control group"
        case .fastClock:
            "boot with clocksource=tsc, if /sys/devices/system/clocksource/clocksource0/available_clocksource has it"
        case .quieterHost: "find a quieter host; a run with over 10 % of it is generator-limited"
        case .noSwap: "swapoff -a, or free memory: what is swapped in again is measured as latency"
        }
    }
}
