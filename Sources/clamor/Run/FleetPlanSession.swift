import Foundation
import HostFit
import LoadEngine
import Measurement
import Report
import RunControl
import RunResult
import Scenario

/// `clamor plan`: measures a server, or reads its costs, and plans the nodes of a fleet.
struct FleetPlanSession {
    let options: FleetPlanOptions
    private var screen: ProgressScreen { ProgressScreen(self.options) }

    private struct Result: Encodable {
        let plan: FleetPlan
        let fleet: ServerDemand
    }

    func perform() async -> ExitStatus {
        do throws(RunRefusal) {
            guard let scenario = self.options.scenario else { return .usage }
            var fleet = ServerDemand()
            for group in scenario.work(of: .whole) { fleet.add(group) }
            let costs = try await self.costs(of: scenario, retained: fleet.retained > 0)
            let plan: FleetPlan
            do throws(FleetPlan.Refusal) {
                plan = try FleetPlan(
                    fleet,
                    costs,
                    on: self.options.node,
                    headroom: self.options.headroom,
                    losses: self.options.losses
                )
            } catch {
                throw RunRefusal("\(error.words); measure more with --sessions, or plan a smaller fleet", .dataError)
            }
            if self.options.json {
                let result = Result(plan: plan, fleet: fleet)
                let text = try RunRefusal.unless { try PrettyJSON.text(result, path: "plan", isSnakeCase: true) }
                self.screen.write(text)
            } else {
                self.screen.show(self.text(of: plan, fleet, costs, scenario.name))
            }
            return .success
        } catch {
            return self.screen.refuse(error)
        }
    }

    private func costs(of scenario: ScenarioOptions, retained: Bool) async throws(RunRefusal) -> ServerCosts {
        if let path = self.options.costs, FileManager.default.fileExists(atPath: path) {
            let costs = try RunRefusal.unless("--costs: \(path): ", .dataError) {
                try JSONDecoder().decode(ServerCosts.self, from: Data(contentsOf: URL(filePath: path)))
            }
            try self.check(costs, scenario, retained: retained, path)
            return costs
        }
        let directory = try ResultDirectory.open(self.options.outputDirectory, name: "plan")
        let runs = CostRuns(
            of: scenario,
            processes: self.options.processes,
            sessions: self.options.sessions,
            hasRetained: retained,
            in: directory.partial
        )
        let costs = try await Signals.cancelling { [screen] () async throws(RunRefusal) in
            try await runs.measure { screen.show($0 + "\n") }
        }
        let text = try RunRefusal.unless { try PrettyJSON.text(costs, path: "costs") }
        try RunRefusal.unless("", .cannotCreate) {
            try ReportFile.write(text, to: directory.partial + "/costs.json")
            try directory.finish()
        }
        if let path = self.options.costs {
            let place = "--costs: the costs are in \(directory.path)/costs.json; "
            try RunRefusal.unless(place, .cannotCreate) { try ReportFile.write(text, to: path) }
        }
        return costs
    }

    /// Costs of another kind of connection say nothing about this one.
    private func check(
        _ costs: ServerCosts,
        _ scenario: ScenarioOptions,
        retained: Bool,
        _ path: String
    ) throws(RunRefusal) {
        let work = scenario.groups[0].work
        var isXMPP = false
        if case .xmpp = work { isXMPP = true }
        let problems = [
            (!costs.isSound, "has figures that no measurement has"),
            (costs.isXMPP != isXMPP, "has the costs of \(costs.isXMPP ? "an XMPP server" : "an MQTT broker")"),
            (costs.hasTLS != work.hasTLS, "has costs \(costs.hasTLS ? "with" : "without") TLS, unlike the fleet"),
            (retained && costs.retainedBytes == nil, "has no cost of retained messages, which the fleet has"),
        ]
        guard let problem = problems.first(where: { $0.0 })?.1 else { return }
        throw RunRefusal("--costs: \(path) \(problem); measure anew with --watch-pid, into another file", .dataError)
    }

    // MARK: - Text

    private func text(of plan: FleetPlan, _ fleet: ServerDemand, _ costs: ServerCosts, _ name: String) -> String {
        func words(_ estimate: Estimate, _ show: (Double) -> String) -> String {
            let (value, low, high) = (show(estimate.value), show(estimate.low), show(estimate.high))
            return low == high ? value : "\(value) (\(low) to \(high))"
        }
        let node = "\(Words.plain(self.options.node.cores)) cores and \(Words.bytes(self.options.node.memoryBytes))"
        let lost = self.options.losses > 0 ? ", \(self.options.losses) of them may be away" : ""
        var lines = [
            "\(name): \(Words.significant(fleet.sessions)) sessions, \(Words.significant(fleet.messagesIn)) messages/s in, "
                + "\(Words.significant(fleet.messages - fleet.messagesIn)) out",
            "",
            "nodes          \(words(plan.nodes) { Words.plain($0) }) of \(node)\(lost)",
            "limit          \(plan.bound.words), with \(Words.percent(self.options.headroom)) left free",
            "of a node      \(words(plan.cores) { Words.significant($0) }) cores, \(words(plan.share) { Words.percent($0) })"
                + "; \(words(plan.memoryBytes) { Words.bytes($0) }), with \(Words.bytes(plan.socketBytes)) in the kernel",
            "all back       after \(words(plan.recoverySeconds) { Words.duration($0) }) at full speed",
        ]
        if let top = plan.topRate {
            lines.append("one node takes \(words(top) { Words.significant($0) }) messages/s in at most")
        }
        lines += ["", "Costs of \(costs.server ?? "the server"), measured \(costs.measuredAt.prefix(10)):"]
        for item in ServerItem.allCases where costs[item].value > 0 {
            let text = words(costs[item]) { Words.significant($0 * 1e6) }
            lines.append("  \(item.rawValue.paddedRight(to: 24)) \(text) CPU-us")
        }
        lines.append("  \("session".paddedRight(to: 24)) \(words(costs.sessionBytes) { Words.bytes($0) })")
        lines += [
            "",
            "Not known: how the nodes of a cluster share clients and forward messages. "
                + "Clients that are cut, churn or reconnect count as if they stayed.",
        ]
        return lines.joined(separator: "\n") + "\n"
    }
}
