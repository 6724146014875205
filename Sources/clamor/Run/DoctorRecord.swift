package import HostFit
import Measurement
package import Report
import RunControl
package import Scenario

/// The report of `clamor doctor`, as text and as JSON.
package struct DoctorRecord: Codable, Sendable {
    package struct Load: Codable, Sendable {
        /// Publishers and subscribers together; absent if only the largest number was requested.
        package var clients: Int?
        package var rate: Double?
        package var targets: [String]
        /// The given addresses; empty if the system chooses, with automatic spreading on loopback.
        package var sources: [String]
        package var eventLoops: Int
    }

    package struct Check: Codable, Sendable {
        package var name: String
        package var state: HostCheck.State
        package var found: String
        package var needs: String?
        package var change: String?
        package var available: Double?
        package var needed: Double?
        package var largestClients: Int?

        init(_ check: HostCheck, isFile: Bool = false) {
            self.name = check.name
            self.state = check.state
            self.found = check.found
            self.needs = check.needs
            self.change = check.change(isFile ? .keys : .flags)
            self.available = check.available
            self.needed = check.needed
            self.largestClients = check.largestClients
        }
    }

    package var schema = "clamor.doctor/1"
    package var load: Load
    /// Whether no check failed.
    package var fits: Bool
    /// The most clients that these sources and targets allow on this host, and the check that limits them.
    package var largestClients: Int?
    package var limitedBy: String?
    package var checks: [Check]
    /// The hosts of a scenario, whose checks are those of one of the hosts.
    package var machines: Machines?
    /// The load in the form of command-line flags.
    package var flags: String?

    package init(_ fit: LoadFit, of load: String, targets: [String], sources: [String]) {
        self.load = Load(
            clients: fit.clients,
            rate: fit.rate,
            targets: targets,
            sources: sources,
            eventLoops: fit.loops
        )
        self.checks = fit.checks.map { Check($0) }
        self.fits = self.checks.allSatisfy { $0.state != .fail }
        let largest = fit.largest
        self.largestClients = largest?.clients
        self.limitedBy = largest.map { $0.check ?? "-c" }
        self.flags = fit.clients == nil ? nil : load
    }

    /// Pretty-printed, with sorted keys.
    package func json() throws -> String { try PrettyJSON.text(self, path: "doctor", isSnakeCase: true) }

    /// One line per check, between the requested load and the largest number of clients.
    package func text(_ style: TerminalStyle) -> String {
        if let machines = self.machines { return self.text(of: machines, style) }
        let asked = self.flags ?? "what it allows at most"
        let rate = self.load.rate.map { ", \(Words.rate($0))" } ?? ""
        var lines = ["This host · \(asked)\(rate) to \(self.load.targets.joined(separator: ","))", ""]
        lines += self.lines(style)
        if let most = self.largestClients {
            let limit = self.limitedBy.map { ", limited by \($0)" } ?? ""
            lines += ["", "The largest number of clients: \(Words.count(UInt64(max(0, most))))\(limit)."]
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A line per check.
    func lines(_ style: TerminalStyle) -> [String] {
        let width = self.checks.map(\.name.count).max() ?? 0
        return self.checks.map { check in
            var line = check.found
            if let needs = check.needs { line += "; needs \(needs)" }
            if let change = check.change { line += "; \(change)" }
            let state = style.paint(check.state.rawValue.paddedRight(to: 4), check.state.ink)
            return "  \(state)  \(check.name.paddedRight(to: width))  \(line)"
        }
    }

    /// The share of one of several hosts: the largest.
    package struct Machines: Codable, Sendable {
        package var hosts: Int
        /// The smallest number that carries the scenario; absent if none was found.
        package var smallest: Int?
        package var clients: Int
        package var processes: Int
        package var processClients: Int
        package var processDescriptors: Int
        package var sourceAddresses: Int
        package var sourceAddressesNeeded: Int?
        /// From one source address to one target.
        package var ports: Int
        /// Resident bytes of all processes, and those of the kernel and of the embedded broker.
        package var processMemoryBytes: UInt64
        package var kernelMemoryBytes: UInt64
        package var connectCpuSeconds: Double
        package var connectCores: Double?
        package var loadCores: Double?
        /// CPU time of the whole run; absent without an end, or with a closed loop.
        package var cpuSeconds: Double?

        init(_ share: HostShare, smallest: Int?) {
            self.hosts = share.hosts
            self.smallest = smallest
            self.clients = share.clients
            self.processes = share.processes
            self.processClients = share.clientsOfProcess
            self.processDescriptors = share.descriptorsOfProcess
            self.sourceAddresses = share.sources
            self.sourceAddressesNeeded = share.sourcesNeeded
            self.ports = share.ports
            self.processMemoryBytes = share.processBytes
            self.kernelMemoryBytes = share.kernelBytes
            self.connectCpuSeconds = share.connectSeconds
            self.connectCores = share.connectCores
            self.loadCores = share.hasClosedLoop ? nil : share.loadCores
            self.cpuSeconds = share.cpuSeconds
        }
    }

    /// The answer for a scenario.
    ///
    /// - Parameters:
    ///   - share: the largest share of the hosts that were asked for, or that it needs.
    ///   - scenario: the whole of it.
    ///   - smallest: the smallest number of hosts that carries it.
    ///   - limit: the check that rules out one host fewer.
    package init(_ share: HostShare, of scenario: ScenarioOptions, smallest: Int?, limit: String?) {
        let options = scenario.groups.map(\.options)
        func each(_ names: [String]) -> [String] { names.reduce(into: []) { if !$0.contains($1) { $0.append($1) } } }
        let rate = share.groups.flatMap(\.flows).reduce(0) { $0 + $1.peak } * Double(share.hosts)
        self.load = Load(
            clients: options.reduce(0) { $0 + $1.clients },
            rate: rate > 0 ? rate : nil,
            targets: each(options.flatMap(\.targetNames)),
            sources: each(options.flatMap(\.sourceAddresses)),
            eventLoops: share.loops * share.processes
        )
        self.checks = share.checks.map { Check($0, isFile: true) }
        self.fits = share.problems.isEmpty
        self.limitedBy = limit
        self.machines = Machines(share, smallest: smallest)
        self.flags = scenario.name
    }

    func text(of machines: Machines, _ style: TerminalStyle) -> String {
        let rate = self.load.rate.map { ", \(Words.rate($0))" } ?? ""
        let hosts = "\(Words.count(machines.hosts)) \(machines.hosts == 1 ? "host" : "hosts") like this one"
        let clients = Words.count(self.load.clients ?? 0, "client")
        var lines = [
            "\(hosts) · \(self.flags ?? "") of \(clients)\(rate) to \(self.load.targets.joined(separator: ","))",
            "", "The largest share of a host:",
        ]
        lines += self.lines(style) + [""]
        let memory = Words.binaryBytes(machines.processMemoryBytes + machines.kernelMemoryBytes)
        var costs = ["\(memory) of memory"]
        if let seconds = machines.cpuSeconds { costs.append("\(Words.decimal(seconds, digits: 1)) CPU-seconds") }
        if let cores = machines.loadCores { costs.append("\(Words.decimal(cores)) cores under load") }
        costs.append("\(Words.count(machines.ports)) ports from each source address to each target")
        if let needed = machines.sourceAddressesNeeded {
            costs.append("\(Words.count(needed)) source \(needed == 1 ? "address" : "addresses") at least")
        }
        lines.append("A host needs \(costs.joined(separator: ", ")).")
        if let smallest = machines.smallest {
            let limit = smallest > 1 ? self.limitedBy.map { "; one host fewer fails for \($0)" } ?? "" : ""
            lines.append("The smallest number of hosts like this one: \(Words.count(smallest))\(limit).")
        } else {
            lines.append("No number of hosts like this one carries it; \(self.limitedBy ?? "a check") fails on each.")
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension HostCheck.State {
    fileprivate var ink: TerminalStyle.Ink {
        switch self {
        case .ok: .green
        case .warn: .yellow
        case .fail: .red
        }
    }
}
