import ArgumentParser
import Measurement

/// Turns a scenario file into options, and collects everything that is wrong with it.
///
/// Values are read by the readers of the flags that mean the same, see ``ScenarioKey``.
package struct ScenarioReader {
    /// Options, or what is wrong: a line each, with its place.
    package enum Outcome: Sendable {
        case scenario(ScenarioOptions)
        case wrong([String])
    }

    static let topKeys = [
        "name", "target", "seed", "duration", "warmup", "drain", "groups", "templates", "stages", "thresholds", "vars",
        "include",
    ]
    /// What scenarios will have, and this build has not.
    static let laterKeys: Set = ["during"]

    /// The one that was named, and those that it includes.
    var files: [String] = []
    /// Of each file.
    var masks: [Int: VariableMask] = [:]
    let environment: [String: String]
    let checks: OptionChecks
    private(set) var problems: Set<ScenarioProblem> = []
    var variables: ScenarioVariables
    /// Of the variables those behind `--against`.
    private var opposed: Set<String> = []
    /// Values whose variables are wrong: nothing else is told of them.
    var unresolved: Set<ScenarioPlace> = []
    /// Of the file, for groups that have none of their own.
    var target: ScenarioValue?
    /// In its place.
    private var givenTarget: (flag: String, text: String)?
    /// Of the command line, else of the file.
    var seed: UInt64?
    /// Of the load, with its warm-up; `nil`: it goes on until it is told to stop.
    private(set) var loadLength: Int64?
    private(set) var plannedStages: [StageOption] = []
    /// Of `clients`, by the stage's name.
    var turnoutPlaces: [String: ScenarioPlace] = [:]
    /// Of the groups in them, by the names of both.
    var groupTurnoutPlaces: [[String]: (key: ScenarioPlace, value: ScenarioPlace)] = [:]
    /// As the file has them, whatever is wrong with them.
    private(set) var groupNames: [String] = []
    /// What the ids of this run's MQTT clients begin with, where the seed does not say it.
    let salt = UInt16.random(in: 0...UInt16.max)
    /// The only group has the names that its short command has.
    private(set) var isAlone = false

    private init(_ given: [String: String], _ environment: [String: String], _ checks: OptionChecks) {
        self.variables = ScenarioVariables(given: given, environment: environment)
        self.environment = environment
        self.checks = checks
    }

    /// Reads the text of a file.
    ///
    /// - Parameters:
    ///   - text: YAML.
    ///   - path: of the file, for what is wrong and for what it includes.
    ///   - given: variables of the command line, as `NAME=VALUE`.
    ///   - against: those behind `--against`, which go before them.
    ///   - target: a server of the command line, in the place of the file's, and the flag that it stands behind.
    ///   - flags: of the command line; they go before what the file says.
    ///   - environment: of this process.
    ///   - checks: what other targets know.
    ///   - flagReader: takes what is wrong with the flags themselves.
    /// - Returns: what the file asks for.
    static func read(
        _ text: String,
        path: String,
        given: [String] = [],
        against: [String] = [],
        target: (flag: String, text: String)? = nil,
        flags: RunFlags,
        environment: [String: String],
        checks: OptionChecks,
        flagReader: inout OptionReader
    ) -> Outcome {
        let opposed = Self.variables(of: against, &flagReader)
        let variables = Self.variables(of: given, &flagReader).merging(opposed) { $1 }
        var reader = ScenarioReader(variables, environment, checks)
        reader.opposed = Set(opposed.keys)
        reader.givenTarget = target
        let options = reader.read(text, path, flags, &flagReader)
        guard let options, reader.problems.isEmpty else { return .wrong(reader.lines) }
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
        self.problems.insert(ScenarioProblem(place: place, text: text))
    }

    // MARK: - The file

    private mutating func read(
        _ text: String,
        _ path: String,
        _ flags: RunFlags,
        _ flagReader: inout OptionReader
    ) -> ScenarioOptions? {
        guard let loaded = self.load(text, path: path) else { return nil }
        // In the order of the file, so that what is used where does not depend on chance.
        var values = Dictionary(
            uniqueKeysWithValues: Self.topKeys.compactMap { key in
                loaded[key].map { (key, self.resolved($0)) }
            }
        )
        for name in self.variables.unused {
            let known = self.variables.used.sorted().map { "${\($0)}" }.joined(separator: ", ")
            flagReader.report(
                self.opposed.contains(name) ? "--against" : "--set",
                "\(path) has no ${\(name)}; it has \(known.isEmpty ? "no variables" : known)"
            )
        }
        if let groups = values["groups"] { values["groups"] = self.templated(groups, by: values["templates"]) }
        self.target = values["target"]
        if let given = self.givenTarget {
            self.replaceTarget(given.text)
            if let groups = values["groups"], !Self.needsTarget(groups) {
                flagReader.report(
                    given.flag,
                    "every group of \(path) has a target of its own; write ${TARGET} there, and give --set TARGET=..."
                )
            }
        }
        let name = values["name"].flatMap { self.text($0, of: "name") } ?? "scenario"
        var common = self.common(name, values, flags, &flagReader)
        self.seed = common.seed
        if let stages = values["stages"] {
            self.checkStages(values, flags, &flagReader)
            common.stages = self.stages(stages)
            self.plannedStages = common.stages
            common.warmup = 0
            common.duration = common.stages.reduce(0) { $0 + $1.length }
        }
        self.loadLength = common.loadLength
        guard let groups = values["groups"] else {
            self.report(
                ScenarioPlace(line: 1, column: 1),
                "groups is missing: who connects, and what they do; write groups: with one or more names below it"
            )
            return nil
        }
        let members = self.groups(groups)
        self.checkIdentities(members)
        if let stages = values["stages"] { self.checkAbsences(stages, members) }
        self.checkTurnouts(members)
        var options = ScenarioOptions(name: name, common: common, groups: members.map(\.group))
        for index in options.groups.indices { options.groups[index].join(options.common) }
        if let stages = values["stages"] { self.checkLoads(stages, options) }
        if let thresholds = values["thresholds"] { self.read(thresholds, into: &options) }
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

    /// Whether a group has none of its own.
    private static func needsTarget(_ groups: ScenarioValue) -> Bool {
        guard case .mapping(let entries) = groups.content else { return true }
        return entries.contains { entry in
            guard case .mapping(let keys) = entry.value.content else { return true }
            return !keys.contains { $0.key == "target" }
        }
    }

    /// Why a key is none, with those that are.
    func unknown(_ key: String, known: [String]) -> String {
        Self.laterKeys.contains(key)
            ? "'\(key)' is not in this build; here it knows \(known.joined(separator: ", "))"
            : "unknown key '\(key)'; \(NearestName.of(key, in: known).map { "did you mean \($0)? " } ?? "")"
                + "here are \(known.joined(separator: ", "))"
    }

    /// A value that has to be one word or number.
    mutating func text(_ value: ScenarioValue, of key: String) -> String? {
        if case .text(let text) = value.content { return text }
        self.report(value.place, "\(key) is \(value.kind); give it one value")
        return nil
    }

    /// Phases, generator and results: the command line's, else the file's.
    private mutating func common(
        _ name: String,
        _ values: [String: ScenarioValue],
        _ flags: RunFlags,
        _ flagReader: inout OptionReader
    ) -> LoadOptions {
        var options = LoadOptions(name: Self.fileName(name), port: 0, operates: true)
        guard var ofFile = try? RunFlags.parse([]) else { preconditionFailure("every flag has a default") }
        ofFile.duration = values["duration"].flatMap { self.text($0, of: "duration") }
        ofFile.warmup = values["warmup"].flatMap { self.text($0, of: "warmup") }
        ofFile.drain = values["drain"].flatMap { self.text($0, of: "drain") }
        ofFile.seed = values["seed"].flatMap { self.text($0, of: "seed") }
        var reader = OptionReader(arguments: [], environment: self.environment, checks: self.checks, isFile: true)
        reader.read(ofFile, hasLedger: true, into: &options)
        for problem in reader.problems {
            let key = String(problem.flag.drop { $0 == "-" })
            self.report(values[key]?.place ?? ScenarioPlace(line: 1, column: 1), "\(key): \(problem.text)")
        }
        var both = flags
        both.duration = flags.duration ?? ofFile.duration
        both.warmup = flags.warmup ?? ofFile.warmup
        both.drain = flags.drain ?? ofFile.drain
        both.seed = flags.seed ?? ofFile.seed
        if reader.problems.isEmpty { flagReader.read(both, hasLedger: true, into: &options) }
        return options
    }

    /// Letters, digits and what else no shell minds.
    private static func fileName(_ name: String) -> String {
        String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == ".") ? $0 : "-" })
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
        var groups: [(group: ScenarioGroup, sources: Sources)] = []
        var embedded = false
        for entry in entries {
            guard let group = self.group(entry) else { continue }
            groups.append(group)
            guard case .embedded = group.group.options.target else { continue }
            if embedded {
                self.report(
                    entry.place,
                    "\(entry.key): one group can have the embedded broker; give the others a target of their own"
                )
            }
            embedded = true
        }
        return groups
    }

    // MARK: - Thresholds

    private mutating func read(_ value: ScenarioValue, into options: inout ScenarioOptions) {
        guard case .list(let sentences) = value.content else {
            return self.report(
                value.place,
                "thresholds is \(value.kind); write a list: - \"connect_duration p99 < 250ms\""
            )
        }
        let isWhole = self.problems.isEmpty
        let known = MetricCatalog.joined(isWhole ? options.groups.map { GroupCatalog($0.name, $0.known) } : [])
        let hasLedger = options.groups.contains(where: \.hasLedger) || !isWhole
        for value in sentences {
            guard let sentence = self.text(value, of: "a threshold") else { continue }
            if let problem = self.checks.threshold(sentence, hasLedger) {
                self.report(value.place, "threshold '\(sentence)': \(problem)")
            } else if isWhole, let problem = (try? Threshold.parse(sentence))?.problem(in: known) {
                self.report(value.place, "\(problem)")
            } else {
                options.common.thresholds.append(sentence)
            }
        }
    }
}
