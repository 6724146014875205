import HostFit
import RunControl
import RunResult
import Scenario

/// `clamor run FILE --check`: what would run, group by group, and whether this host carries it.
struct ScenarioCheck {
    let scenario: ScenarioOptions
    private var screen: ProgressScreen { ProgressScreen(quiet: self.scenario.common.quiet, json: false) }

    func perform() -> ExitStatus {
        Descriptors.raiseLimit()
        let question = self.question
        let needs = question.needs.map { check in
            "  this host, \(check.name): needs \(check.needs ?? ""); \(check.found)\n"
        }
        self.screen.show(self.scenario.explanation + needs.joined())
        guard let problem = question.problem else { return .success }
        self.screen.warn(problem)
        return .usage
    }

    private var question: HostQuestion {
        let groups = self.scenario.runGroups()
        let limits = HostLimits.read(clients: groups.reduce(0) { $0 + $1.options.clients })
        let threads = self.scenario.common.threads ?? LoadOptions.defaultThreads(groups, cores: limits.cores)
        return HostQuestion(groups: groups, limits: limits, threads: threads)
    }
}
