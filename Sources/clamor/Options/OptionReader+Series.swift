import Foundation

extension OptionReader {
    /// Runs of each side where nobody says how many: enough to know how runs differ.
    private static let usualRuns = 5
    private static let mostRuns = 1_000

    /// Reads the scenario of one side; nothing where its file is none.
    mutating func scenario(_ command: RunFile, _ source: ScenarioSource) -> ScenarioReader.Outcome? {
        guard let bytes = self.contents(of: source.file, flag: source.fileFlag) else { return nil }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            self.report(source.fileFlag, "\(source.file) is not text in UTF-8; save it as that")
            return nil
        }
        if let target = source.target, !TargetText.isTarget(target) {
            self.report(source.targetFlag, "is no server; write it like host:1884, mqtt://host:1884 or embedded")
            return nil
        }
        return ScenarioReader.read(
            text,
            path: source.file,
            given: source.set,
            against: source.against,
            target: source.target.map { (flag: source.targetFlag, text: $0) },
            flags: command.run,
            environment: self.environment,
            checks: self.checks,
            flagReader: &self
        )
    }

    /// What is told of a comparison wants one.
    mutating func checkAlone(_ flags: SeriesFlags) {
        for flag in flags.comparison.given {
            self.report(flag, "is of a comparison; add --against, or give it to clamor compare")
        }
    }

    /// Reads what runs several times; `scenario` is the command's own.
    mutating func series(_ command: RunFile, _ scenario: ScenarioOptions) -> Invocation {
        let first = ScenarioSource(command)
        var sides = [
            SeriesOptions.Side(name: "a", scenario: scenario, arguments: Self.arguments(first, command.run))
        ]
        if !command.series.against.isEmpty, self.problems.isEmpty, let second = self.opponent(command, first) {
            switch self.scenario(command, second) {
            case .wrong(let lines): return .wrong(lines)
            case .scenario(let other):
                sides.append(
                    SeriesOptions.Side(name: "b", scenario: other, arguments: Self.arguments(second, command.run))
                )
            case nil: break
            }
        }
        let isPair = !command.series.against.isEmpty
        let runs = self.number(command.series.repeats, "--repeat", in: 1...Self.mostRuns)
        var options = SeriesOptions(runs: runs ?? (isPair ? Self.usualRuns : 1), sides: sides)
        options.isCheck = command.check
        options.outputDirectory = command.run.results.out
        self.read(command, isPair: isPair, into: &options.comparison)
        if sides.contains(where: { $0.scenario.groups.contains { $0.options.endsBySignal } }) {
            self.report("--repeat", "the scenario has no end of its own, so no second run would begin; give --duration")
        }
        return .series(options)
    }

    /// What is told of the whole.
    private mutating func read(_ command: RunFile, isPair: Bool, into options: inout CompareOptions) {
        let results = command.run.results
        self.read(command.series.comparison, into: &options)
        options.files = ReportFileOptions()
        self.read(results.files, into: &options.files)
        options.json = results.json
        options.quiet = results.quiet
        options.isStrict = results.strict
        guard !isPair else { return }
        self.checkAlone(command.series)
        // Of which run it would be is not clear.
        let given =
            [("--json", results.json), ("--junit", results.files.junit != nil)]
            + [("--summary-md", results.files.summaryMd != nil)]
        for (flag, isGiven) in given where isGiven {
            self.report(flag, "with --repeat is of the comparison at the end; add --against, or leave it out")
        }
    }

    /// Everything behind `--against` as one side.
    private mutating func opponent(_ command: RunFile, _ base: ScenarioSource) -> ScenarioSource? {
        var side = base
        side.fileFlag = "--against"
        var words: [String: Int] = [:]
        for word in command.series.against {
            do throws(QuantityError) {
                switch try Opponent(word, isFile: FileManager.default.isReadableFile) {
                case .file(let path):
                    side.file = path
                    words["file", default: 0] += 1
                case .target(let text):
                    side.target = text
                    side.targetFlag = "--against"
                    words["server", default: 0] += 1
                case .variable(let text): side.against.append(text)
                }
            } catch {
                self.report("--against", "\(error)")
                return nil
            }
        }
        for (word, count) in words where count > 1 {
            self.report("--against", "names \(count) \(word)s; one \(word) is held against the scenario at a time")
            return nil
        }
        return side
    }

    /// The command line of a run of that side.
    private static func arguments(_ source: ScenarioSource, _ flags: RunFlags) -> [String] {
        let variables = (source.set + source.against).flatMap { ["--set", $0] }
        let target = source.target.map { ["--target", $0] } ?? []
        return ["run", source.file] + variables + target + flags.ofEachRun
    }
}

extension RunFlags {
    /// As they are typed for one run of several.
    fileprivate var ofEachRun: [String] {
        let values = [
            ("--duration", self.duration), ("--warmup", self.warmup), ("--drain", self.drain),
            ("--threads", self.threads), ("--read-size", self.readSize), ("--seed", self.seed),
        ]
        let words = values.flatMap { name, value in value.map { ["\(name)=\($0)"] } ?? [] }
        let flags = [("--per-client", self.perClient), ("--strict", self.results.strict)].filter(\.1).map(\.0)
        return words + flags + self.results.threshold.flatMap { ["--threshold", $0] }
    }
}
