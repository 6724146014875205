import Foundation
package import HostFit
package import Report

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

        enum CodingKeys: String, CodingKey {
            case clients
            case rate
            case targets
            case sources
            case eventLoops = "event_loops"
        }
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
            self.change = check.change(isFile: isFile)
            self.available = check.available
            self.needed = check.needed
            self.largestClients = check.largestClients
        }

        enum CodingKeys: String, CodingKey {
            case name
            case state
            case found
            case needs
            case change
            case available
            case needed
            case largestClients = "largest_clients"
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
    /// Of a scenario; its checks are those of one of the hosts.
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

    enum CodingKeys: String, CodingKey {
        case schema
        case load
        case fits
        case largestClients = "largest_clients"
        case limitedBy = "limited_by"
        case checks
        case machines
        case flags
    }

    /// Pretty-printed, with sorted keys.
    package func json() throws -> String { try PrettyJSON.text(self, path: "doctor") }

    /// One line per check, between the requested load and the largest number of clients.
    package func text(_ style: TerminalStyle) -> String {
        if let machines = self.machines { return self.text(of: machines, style) }
        let asked = self.flags ?? "what it allows at most"
        let rate = self.load.rate.map { ", \(Human.rate($0))" } ?? ""
        var lines = ["This host · \(asked)\(rate) to \(self.load.targets.joined(separator: ","))", ""]
        lines += self.lines(style)
        if let most = self.largestClients {
            let limit = self.limitedBy.map { ", limited by \($0)" } ?? ""
            lines += ["", "The largest number of clients: \(Human.count(UInt64(max(0, most))))\(limit)."]
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
