import Foundation
import Workloads

extension GivenOptions {
    /// `file`: a scenario, whose load takes the place of the flags.
    package mutating func doctor(_ file: String?) -> Invocation {
        guard let file else { return .doctor(self.doctor()) }
        let words: OptionWords = "\(file) has the load; change it there, or leave it out"
        self.refuse(given: \.host, \.port, \.count, \.doctorSubscribers, \.sourceAddresses, \.rate, because: words)
        let source = ScenarioSource(file: file, set: self[\.variables] ?? [], target: self[\.target])
        switch self.read(source) {
        case .wrong(let lines): return .wrong(lines)
        case .scenario(var scenario):
            scenario.common.threads = self[\.threads]
            var options = DoctorOptions()
            options.scenario = scenario
            options.hosts = self[\.hosts]
            self.readOutput(into: &options)
            return .doctor(options)
        case nil: return .text("")
        }
    }

    /// Reads a scenario whose servers are planned.
    package mutating func plan(_ file: String) -> Invocation {
        let source = ScenarioSource(file: file, set: self[\.variables] ?? [], target: self[\.target])
        switch self.read(source) {
        case .wrong(let lines): return .wrong(lines)
        case .scenario(let scenario):
            var options = FleetPlanOptions()
            self.store(into: &options)
            var live = LiveOptions()
            self.readWatched(into: &live)
            (options.scenario, options.processes) = (scenario, live.processes)
            self.readOutput(into: &options)
            if !self.isGiven(\.node) {
                self.refuse(\.node, "is missing; say what a node is, such as \(\.node, "4c/8G")")
            }
            if options.headroom > 0.95 { self.refuse(\.headroom, "leaves nothing for the load; give 95% at most") }
            let isKnown = options.costs.map { FileManager.default.fileExists(atPath: $0) } ?? false
            if live.processes.isEmpty, !isKnown {
                self.refuse(
                    \.watchedProcesses,
                    "is missing; give the server's process, such as \(\.watchedProcesses, "mosquitto"), or costs with \(\.costs)"
                )
            }
            if isKnown, !live.processes.isEmpty {
                self.refuse(\.costs, "has costs already; take another file, or leave \(\.watchedProcesses) out")
            }
            self.checkPlan(of: scenario, file)
            return .plan(options)
        case nil: return .text("")
        }
    }

    /// A fleet whose work has costs that are measured.
    private mutating func checkPlan(of scenario: ScenarioOptions, _ file: String) {
        let works = scenario.groups.map(\.work)
        if Set(works.map { if case .xmpp = $0 { true } else { false } }).count > 1 {
            let words: OptionWords = "has MQTT and XMPP groups, which are two servers; plan each in a file of its own"
            return self.refuse(argument: file, words)
        }
        if Set(works.map(\.hasTLS)).count > 1 {
            let words: OptionWords = "has groups with and without TLS; plan each kind in a file of its own"
            return self.refuse(argument: file, words)
        }
        for group in scenario.groups {
            var words: OptionWords?
            if case .embedded = group.options.target, !self.isGiven(\.watchedProcesses) {
                words = "\(group.name): the embedded broker is no server to plan; name another with \(\.target)"
            } else if group.options.operates, !group.work.own.isOpenLoop {
                words = "\(group.name): sends as fast as it can; give it a rate, which a plan needs"
            } else if case .xmpp(let options) = group.work, options.hasGroups || options.makesAccounts {
                words = "\(group.name): no cost is known of \(options.kind.rawValue); leave the group out"
            }
            if let words { self.refuse(argument: file, words) }
        }
    }

    private mutating func doctor() -> DoctorOptions {
        var options = DoctorOptions()
        self.readConnection(into: &options.load)
        options.load.subscribers = self[\.doctorSubscribers] ?? 0
        if !self.isGiven(\.count) { options.load.publishers = 0 }
        if self.isGiven(\.count) || self.isGiven(\.doctorSubscribers) {
            options.clients = options.load.publishers + options.load.subscribers
        }
        if let rate = self[\.rate] { options.load.pacing = .rate(rate) }
        let words: OptionWords = "is about a scenario; give its FILE, or leave it out"
        self.refuse(given: \.hosts, \.variables, \.target, because: words)
        self.readOutput(into: &options)
        return options
    }
}
