// The files that `init` writes.
extension GivenOptions {
    package mutating func draft(_ name: String?) -> Invocation {
        let path = self[\.draftFile]
        let kinds: [(option: AnyOptionKey, does: String)] = [
            (\.writesDashboard, "writes a dashboard"), (\.writesWorkflow, "writes a workflow"),
            (\.slurmScenario, "is followed by the scenario's file"),
            (\.kubernetesScenario, "is followed by the scenario's file"),
        ]
        let given = kinds.filter { self.isGiven($0.option) }
        if let kind = given.first {
            if let other = given.dropFirst().first {
                self.refuse(other.option, "writes other files than \(kind.option); give one of the two")
            }
            if let name { self.refuse(argument: name, "\(kind.option) \(kind.does); leave one of the two out") }
        }
        let isDivided = self.isGiven(\.slurmScenario) || self.isGiven(\.kubernetesScenario)
        if !isDivided {
            let words: OptionWords = "is of \(\.slurmScenario) and \(\.kubernetesScenario); add one of them"
            self.refuse(given: \.segmentCount, \.variables, because: words)
        }
        if self[\.writesDashboard] == true { return .draft(Draft(dashboardIn: path ?? "clamor-grafana")) }
        if self[\.writesWorkflow] == true { return .draft(Draft(workflowAt: path ?? ".github/workflows/load.yml")) }
        if isDivided { return self.dividedDraft(path) }
        return self.readyDraft(name, path)
    }

    private mutating func readyDraft(_ name: String?, _ path: String?) -> Invocation {
        let ready = name.map { name in ReadyScenario.all.first { $0.name == name } } ?? ReadyScenario.all[0]
        guard let ready else {
            let names = ReadyScenario.all.map(\.name)
            let hint = NearestName.question(name ?? "", in: names)
            self.refuse(argument: name ?? "", "is no ready scenario; \(hint)there are \(names.joined(separator: ", "))")
            return .text("")
        }
        let file = path ?? "\(ready.name).yaml"
        let next = file.hasSuffix(".yaml") ? "what would run: clamor run \(file) --check" : ""
        return .draft(Draft(path: file, text: ready.text, next: next))
    }

    // MARK: - Scenarios that an engine runs

    private mutating func dividedDraft(_ path: String?) -> Invocation {
        let isSlurm = self.isGiven(\.slurmScenario)
        let option: AnyOptionKey = isSlurm ? \OptionTable.slurmScenario : \OptionTable.kubernetesScenario
        self.checkSecrets(isSlurm) { Redaction.hideVariable($0) != $0 }
        guard let file = self[\.slurmScenario] ?? self[\.kubernetesScenario], let count = self[\.segmentCount],
            self.problems.isEmpty
        else { return .text("") }
        let scenario: ScenarioOptions
        switch self.read(file, for: option) {
        case .coordinate(let options): scenario = options.scenario
        case let other: return other
        }
        self.checkSecrets(isSlurm) { scenario.secretVariables.contains(String($0.prefix { $0 != "=" })) }
        guard self.problems.isEmpty, let bytes = self.contents(of: file, for: option) else { return .text("") }
        let divided = DividedScenario(
            path: file,
            text: String(decoding: bytes, as: UTF8.self),
            segments: count,
            variables: self[\.variables] ?? [],
            of: scenario
        )
        if isSlurm {
            let name = path ?? "\(divided.baseName).sbatch"
            return .draft(Draft(path: name, text: divided.slurmScript(name), next: "run it: sbatch --wait \(name)"))
        }
        if let problem = divided.objectProblem { self.refuse(option, "\(file) \(problem)") }
        let name = path ?? "\(divided.name).yaml"
        let text = divided.kubernetesObjects(name)
        // A scenario may have a secret anywhere, a comment or a user property among them.
        return .draft(Draft(path: name, text: text, next: "its first lines say how it is applied", isSecret: true))
    }

    /// Files that are written for others to see hold no secrets.
    private mutating func checkSecrets(_ isSlurm: Bool, where isSecret: (String) -> Bool) {
        let place = isSlurm ? "here and of sbatch" : "here and, from a Secret, of all pods"
        for (index, word) in (self[\.variables] ?? []).enumerated() where isSecret(word) {
            let name = word.prefix { $0 != "=" }
            self.refuse(
                \.variables,
                "\(name) would be readable in the file; put it into the environment, \(place)",
                at: index
            )
        }
    }

    /// Reads a scenario as its coordinator does.
    private mutating func read(_ file: String, for option: AnyOptionKey) -> Invocation {
        var coordinator = GivenOptions(.coordinate, environment: self.environment)
        for spec in OptionTable.specs(\.segmentCount, \.variables) {
            if let found = self.found[spec.id] { coordinator.take(found) }
        }
        let invocation = coordinator.coordinate(file)
        for problem in coordinator.problems {
            if problem.name == file {
                self.refuse(option, OptionWords(problem.text))
            } else {
                self.add(problem)
            }
        }
        return invocation
    }
}
