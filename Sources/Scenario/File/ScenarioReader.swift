import Measurement
import Workloads

/// Turns a scenario file into options, and collects all its problems.
///
/// The option table defines the keys and how their values are read, see ``GivenOptions``.
package struct ScenarioReader {
    /// Options, or what is wrong: a line each, with its place.
    package enum Outcome: Sendable {
        case scenario(ScenarioOptions)
        case wrong([String])
    }

    /// Keys of the file: those that are no options, and options of the run.
    package static var topKeys: [String] {
        OptionTable.specs(of: .run).filter { $0.scope != .group }.compactMap(\.key)
            + ["target", "bridged", "groups", "templates", "stages", "vars", "include"]
    }
    /// The name of a scenario that has none.
    private static let usualName = "scenario"
    /// Keys reserved for later versions.
    static let laterKeys: Set = ["during"]

    /// The one that was named, and those that it includes.
    var files: [String] = []
    let keys = ScenarioKeys()
    let environment: [String: String]
    private(set) var problems: Set<ScenarioProblem> = []
    var variables: ScenarioVariables
    /// Variables set by `--against`.
    private var opposed: Set<String> = []
    /// Values with invalid variables; other problems of these values are not reported.
    var unresolved: Set<ScenarioPlace> = []
    /// The file's target, for groups without one.
    var target: ScenarioValue?
    /// The seed of the command line, else of the file.
    var seed: UInt64?
    /// The length of the load, including its warm-up; `nil`: until the run is stopped.
    private(set) var loadLength: Int64?
    private(set) var plannedStages: [StageOption] = []
    /// The places of `clients`, by the stage's name.
    var turnoutPlaces: [String: ScenarioPlace] = [:]
    /// The places of the groups in them, by the names of both.
    var groupTurnoutPlaces: [[String]: (key: ScenarioPlace, value: ScenarioPlace)] = [:]
    /// As written in the file, including invalid ones.
    private(set) var groupNames: [String] = []
    /// The start of the MQTT client ids of this run, if the seed does not decide it.
    let salt = UInt16.random(in: 0...UInt16.max)
    /// The only group has the names that its short command has.
    private(set) var isAlone = false

    private init(_ given: [String: String], _ environment: [String: String]) {
        self.variables = ScenarioVariables(given: given, environment: environment)
        self.environment = environment
    }

    /// Reads a text that is in no file; paths in it are relative to the current directory.
    package static func read(_ yaml: String, variables: [String: String], environment: [String: String]) -> Outcome {
        var flags = GivenOptions(.run, environment: environment)
        let source = ScenarioSource(file: "scenario", set: variables.map { "\($0)=\($1)" }.sorted())
        let outcome = self.read(yaml, source, overrides: &flags)
        let others = flags.problems.map { Redaction.hideURLSecrets(in: $0.description) }
        if case .wrong(let lines) = outcome { return .wrong(lines + others) }
        return others.isEmpty ? outcome : .wrong(others)
    }

    /// Reads the text of a file.
    ///
    /// - Parameters:
    ///   - text: YAML.
    ///   - source: the path of the file, variables and a target of the command line.
    ///   - overrides: options of the command line; they override the file, and take the problems that are their own.
    /// - Returns: the scenario, or its problems.
    static func read(_ text: String, _ source: ScenarioSource, overrides: inout GivenOptions) -> Outcome {
        let opposed = Self.variables(of: source.against, \.against, &overrides)
        let variables = Self.variables(of: source.set, \.variables, &overrides).merging(opposed) { $1 }
        var reader = ScenarioReader(variables, overrides.environment)
        reader.opposed = Set(opposed.keys)
        let options = reader.read(text, source, &overrides)
        guard var options, reader.problems.isEmpty else { return .wrong(reader.lines) }
        let command = options.common.redactedCommand
        options.secretVariables = reader.variables.secrets
        options.common.redactedCommand = command.map {
            Redaction.hideSetting($0, where: options.secretVariables.contains)
        }
        return .scenario(options)
    }

    /// In the order of the file.
    private var lines: [String] {
        self.problems.sorted { ($0.place, $0.text) < ($1.place, $1.text) }.map { problem in
            let place = "\(self.files[problem.place.file]):\(problem.place.line):\(problem.place.column)"
            return "\(place): \(Redaction.hideURLSecrets(in: problem.text))"
        }
    }

    mutating func report(_ place: ScenarioPlace, _ text: String) {
        guard !self.unresolved.contains(place) else { return }
        guard self.mayQuote(place.file) else {
            let words = "is no part of a scenario; nothing of a file outside the scenario's directory is shown"
            self.problems.insert(
                ScenarioProblem(place: ScenarioPlace(line: 1, column: 1, file: place.file), text: words)
            )
            return
        }
        self.problems.insert(ScenarioProblem(place: place, text: text))
    }

    // MARK: - The file

    private mutating func read(
        _ text: String,
        _ source: ScenarioSource,
        _ overrides: inout GivenOptions
    ) -> ScenarioOptions? {
        guard let loaded = self.load(text, path: source.file) else { return nil }
        // In the order of the file, so that what is used where does not depend on chance.
        var values = Dictionary(
            uniqueKeysWithValues: Self.topKeys.compactMap { key in
                loaded[key].map { (key, self.resolved($0)) }
            }
        )
        for name in self.variables.unused {
            let known = self.variables.used.sorted().map { "${\($0)}" }.joined(separator: ", ")
            overrides.refuse(
                self.opposed.contains(name) ? \.against : \.variables,
                "\(source.file) has no ${\(name)}; it has \(known.isEmpty ? "no variables" : known)"
            )
        }
        if let groups = values["groups"] { values["groups"] = self.templated(groups, by: values["templates"]) }
        self.target = values["target"]
        if let target = source.target {
            self.replaceTarget(target)
            if let groups = values["groups"], !Self.needsTarget(groups) {
                overrides.refuse(
                    source.targetOption,
                    "every group of \(source.file) sets its own target; write ${TARGET} there, and give \(\.variables, "TARGET=...")"
                )
            }
        }
        var common = self.common(values, &overrides)
        self.seed = common.seed
        if let stages = values["stages"] {
            self.checkStages(values, &overrides)
            common.stages = self.stages(stages)
            self.plannedStages = common.stages
            common.warmup = 0
            common.duration = common.stages.reduce(0) { $0 + $1.length }
        }
        self.loadLength = common.loadLength
        guard let groups = values["groups"] else {
            return self.reported(
                ScenarioPlace(line: 1, column: 1),
                "groups is missing: it defines the clients; write groups: with one or more names below it"
            )
        }
        let isBridged = values["bridged"].map { self.flag($0, of: "bridged") } ?? false
        let members = self.groups(groups)
        self.checkIdentities(members)
        self.checkReceivers(members, isBridged: isBridged)
        if let stages = values["stages"] { self.checkAbsences(stages, members) }
        self.checkTurnouts(members)
        var options = ScenarioOptions(
            name: common.title ?? Self.usualName,
            common: common,
            groups: members.map(\.group)
        )
        options.bridged = isBridged
        for index in options.groups.indices { options.groups[index].join(options.common) }
        if let stages = values["stages"] { self.checkLoads(stages, options) }
        if self.problems.isEmpty, let problem = options.deliveries.problem { self.report(groups.place, problem) }
        let isWhole = self.problems.isEmpty
        let known = MetricCatalog.joined(isWhole ? options.known(options.deliveries) : [])
        if let thresholds = values["thresholds"] { self.read(thresholds, into: &options, known) }
        if isWhole { overrides.checkMetrics(of: Set(options.groups.map(\.work.command))) { known } }
        if isWhole, options.groups.allSatisfy(\.options.isEmbedded) { overrides.refuseWatchOfOwn(server: \.target) }
        return options
    }

    private mutating func replaceTarget(_ text: String) {
        var other: String?
        if case .text(let text)? = self.target?.content { other = text }
        self.target = ScenarioValue(
            place: self.target?.place ?? ScenarioPlace(line: 1, column: 1),
            content: .text(TargetText.whole(text, like: other))
        )
    }

    private static func needsTarget(_ groups: ScenarioValue) -> Bool {
        guard case .mapping(let entries) = groups.content else { return true }
        return entries.contains { entry in
            guard case .mapping(let keys) = entry.value.content else { return true }
            return !keys.contains { $0.key == "target" }
        }
    }

    func unknown(_ key: String, known: [String]) -> String {
        let names = known.joined(separator: ", ")
        if Self.laterKeys.contains(key) { return "'\(key)' is not in this build; here it knows \(names)" }
        let question =
            Self.key(ofOption: key, among: known).map { "did you mean \($0)? " } ?? NearestName.question(key, in: known)
        return "unknown key '\(key)'; \(question)here are \(names)"
    }

    /// The key of an option whose name was written as a key: `ca_file` of `--cacertfile`, here or in a section.
    private static func key(ofOption name: String, among known: [String]) -> String? {
        let plain = { (name: String) in String(name.drop { $0 == "-" }).replacing("_", with: "-") }
        let section = CommandName.allCases.compactMap(\.section).first { known.contains($0) } ?? "*"
        let keys = OptionTable.all.filter { $0.allNames.contains { plain($0) == plain(name) } }.compactMap(\.key)
            .map { $0.replacing("*", with: section).split(separator: ".").map(String.init) }
        let own = keys.compactMap(\.last).first { known.contains($0) }
        return own ?? keys.first { known.contains($0[0]) }?.joined(separator: ".")
    }

    /// Phases, generator and results: the command line's, else the file's.
    private mutating func common(_ values: [String: ScenarioValue], _ overrides: inout GivenOptions) -> LoadOptions {
        var options = LoadOptions(name: "run", port: 0, operates: true)
        options.title = Self.usualName
        let top = ScenarioPlace(line: 1, column: 1)
        var given = GivenOptions(.run, group: ("", top), environment: self.environment)
        for spec in OptionTable.specs(of: .run) where spec.scope != .group {
            guard let key = spec.key, key != OptionTable[\.thresholds].key, let value = values[key],
                let found = self.found(spec, value, key)
            else { continue }
            given.take(found)
        }
        for problem in given.problems { self.report(problem.place ?? top, problem.description) }
        let isRead = given.problems.isEmpty
        given.override(by: overrides)
        guard isRead else { return options }
        given.store(into: &options)
        given.readRun(hasLedger: true, into: &options)
        for problem in given.problems {
            if let place = problem.place { self.report(place, problem.description) } else { overrides.add(problem) }
        }
        return options
    }

    private mutating func groups(_ value: ScenarioValue) -> [(group: ScenarioGroup, sources: Sources)] {
        guard case .mapping(let entries) = value.content, !entries.isEmpty else {
            self.report(
                value.place,
                "groups is \(value.kind); write a name for each group, and its keys below the name"
            )
            return []
        }
        self.isAlone = entries.count == 1
        self.groupNames = entries.map(\.key)
        let groups = entries.compactMap { self.group($0) }
        return self.sharing(groups)
    }

    // MARK: - Thresholds

    private mutating func read(_ value: ScenarioValue, into options: inout ScenarioOptions, _ known: MetricCatalog) {
        guard case .list(let sentences) = value.content else {
            return self.report(
                value.place,
                "thresholds is \(value.kind); write a list: - \"connect_duration p99 < 250ms\""
            )
        }
        let isWhole = self.problems.isEmpty
        let loads = Set(options.groups.map(\.work.command))
        let hasLedger = options.groups.contains(where: \.hasLedger) || !isWhole
        for value in sentences {
            guard let sentence = self.text(value, of: "a threshold") else { continue }
            if let problem = TextCheck.threshold(sentence, hasLedger: hasLedger) {
                self.report(value.place, "threshold '\(sentence)': \(problem)")
            } else if isWhole, let threshold = try? Threshold.parse(sentence), threshold.isAbsent(in: known) {
                let problem = AbsentMetric(threshold.name).problem(in: loads).text(isFile: true)
                self.report(value.place, "threshold '\(sentence)': \(problem)")
            } else if isWhole, let problem = (try? Threshold.parse(sentence))?.problem(in: known) {
                self.report(value.place, "\(problem)")
            } else {
                options.common.thresholds.append(sentence)
            }
        }
    }
}
