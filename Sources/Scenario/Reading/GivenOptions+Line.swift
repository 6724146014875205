extension GivenOptions {
    /// The options of a command line, read, with every problem.
    ///
    /// `texts`: by the option's id; one that stands alone has the text that this means. `contradictions`: the ids of
    /// options that were given by their negation as well, with the opposite value.
    package init(
        _ command: CommandName,
        _ texts: [String: [String]],
        _ contradictions: Set<String> = [],
        arguments: [String],
        environment: [String: String]
    ) {
        self.init(command, arguments: arguments, environment: environment)
        let specs = OptionTable.specs(of: command)
        let words = CommandLineWords(arguments, specs)
        for spec in specs {
            guard let own = texts[spec.id] else { continue }
            self.take(GivenOption(spec: spec, texts: own, typed: words.name(of: spec) ?? spec.name))
            if contradictions.contains(spec.id), let negation = spec.negation {
                let name = words.options.last { $0.spec.id == spec.id && $0.name != negation }?.name ?? spec.name
                self.add(OptionProblem(name: negation, text: "\(name) true says the opposite; leave one out"))
            }
        }
        self.checkNeighbours()
    }

    /// The answer of a command: the options that it read, the file that it prints, or all problems.
    ///
    /// `name`: the command, as refusals have it.
    package mutating func answer(_ invocation: Invocation, of name: String) -> Invocation {
        var answer = invocation
        if self[\.printScenario] == true, self.problems.isEmpty {
            if case .run(let scenario) = invocation, let group = scenario.groups.first {
                answer = .text(ScenarioPrinter.text(group.work, &self) ?? "")
            }
        }
        guard !self.problems.isEmpty else { return answer }
        return .refused(self.problems.map { "\(name): \(Redaction.hideURLSecrets(in: $0.description))" })
    }
}
