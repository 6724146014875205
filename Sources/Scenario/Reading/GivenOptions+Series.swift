import Foundation
import Report

// Options of `run FILE`, and what runs several times.
extension GivenOptions {
    /// Runs of each side where no number is given: enough to know how runs differ.
    private static let usualRuns = 5
    /// How long it may take until two sides are decided, in nanoseconds: ten minutes.
    private static let longest: Int64 = 600_000_000_000

    /// Reads a scenario file with the options that override it.
    package mutating func scenario(_ file: String) -> Invocation {
        let first = ScenarioSource(file: file, set: self[\.variables] ?? [], target: self[\.target])
        switch self.read(first) {
        case .wrong(let lines): return .wrong(lines)
        case .scenario(var options):
            let isSeries = self.isGiven(\.repeats) || self.isGiven(\.against)
            self.checkSegments(options, isSeries: isSeries)
            if isSeries { return self.series(first, options) }
            self.checkAlone()
            options.isCheck = self[\.check] ?? false
            return .run(options)
        case nil: return .text("")
        }
    }

    /// Reads the scenario of one side; nothing where its file is none.
    mutating func read(_ source: ScenarioSource) -> ScenarioReader.Outcome? {
        let bytes = self.contents(of: source.file) { given, problem in
            if let option = source.fileOption {
                given.refuse(option, OptionWords(problem))
            } else {
                given.refuse(argument: source.file, OptionWords(problem))
            }
        }
        guard let bytes else { return nil }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            self.refuse(argument: source.file, "is not text in UTF-8; save it as that")
            return nil
        }
        if let target = source.target, !TargetText.isTarget(target) {
            return self.refused(
                source.targetOption,
                "is no server; write it like host:1884, mqtt://host:1884 or embedded"
            )
        }
        return ScenarioReader.read(text, source, overrides: &self)
    }

    /// Options of a comparison need one.
    private mutating func checkAlone() {
        let words: OptionWords = "is of a comparison; add \(\.against), or give it to clamor compare"
        self.refuse(given: \.maxRegression, \.allowDifferent, because: words)
    }

    /// Reads what runs several times; `scenario` is the command's own.
    private mutating func series(_ first: ScenarioSource, _ scenario: ScenarioOptions) -> Invocation {
        var sides = [SeriesOptions.Side(name: "a", scenario: scenario, arguments: self.arguments(of: first))]
        let isPair = self.isGiven(\.against)
        if isPair, self.problems.isEmpty, let second = self.opponent(of: first) {
            switch self.read(second) {
            case .wrong(let lines): return .wrong(lines)
            case .scenario(let other):
                sides.append(SeriesOptions.Side(name: "b", scenario: other, arguments: self.arguments(of: second)))
            case nil: break
            }
        }
        if isPair {
            self.refuse(given: \.history, because: "keeps the runs of one build; leave it out beside \(\.against)")
        }
        if isPair, sides.last?.scenario.common.live.processes.isEmpty == false,
            (self[\.against] ?? []).contains(where: { !$0.contains("=") })
        {
            self.refuse(
                \.watchedProcesses,
                "would measure the same process for both sides of \(\.against); compare two runs with clamor compare"
            )
        }
        let decides = self[\.untilDecided] ?? false
        let usual = decides ? Comparison.mostPairs : isPair ? Self.usualRuns : 1
        var options = SeriesOptions(runs: self[\.repeats] ?? usual, sides: sides)
        if decides { options.longest = self[\.longest] ?? Self.longest }
        options.comparison.isPaired = decides
        options.isCheck = self[\.check] ?? false
        options.outputDirectory = self[\.outputDirectory]
        self.readComparison(isPair: isPair, into: &options.comparison)
        if sides.contains(where: { $0.scenario.groups.contains { $0.options.endsBySignal } }) {
            self.refuse(
                \.repeats,
                "the scenario has no end of its own, so no second run would begin; give \(\.duration)"
            )
        }
        return .series(options)
    }

    private mutating func readComparison(isPair: Bool, into options: inout CompareOptions) {
        self.readComparison(into: &options)
        guard !isPair else { return }
        self.checkAlone()
        // Of which run it would be is not clear.
        let words: OptionWords =
            "with \(\.repeats) it reports the comparison; add \(\.against), or leave it out"
        self.refuse(given: \.json, \.junit, \.markdown, because: words)
    }

    /// Everything behind `--against` as one side.
    private mutating func opponent(of base: ScenarioSource) -> ScenarioSource? {
        var side = base
        var words: [String: Int] = [:]
        for (index, word) in (self[\.against] ?? []).enumerated() {
            do throws(QuantityError) {
                switch try Opponent(word, isFile: FileManager.default.isReadableFile) {
                case .file(let path):
                    side.file = path
                    side.fileOption = \OptionTable.against
                    words["file", default: 0] += 1
                case .target(let text):
                    side.target = text
                    side.targetOption = \OptionTable.against
                    words["server", default: 0] += 1
                case .variable(let text): side.against.append(text)
                }
            } catch {
                self.refuse(\.against, OptionWords(error.description), at: index)
                return nil
            }
        }
        for (word, count) in words where count > 1 {
            self.refuse(\.against, "names \(count) \(word)s; one \(word) is held against the scenario at a time")
            return nil
        }
        return side
    }

    /// The command line of a run of that side.
    private func arguments(of source: ScenarioSource) -> [String] {
        let variables = (source.set + source.against).flatMap { ["--set", $0] }
        let target = source.target.map { ["--target", $0] } ?? []
        return ["run", source.file] + variables + target + self.ofEachRun
    }

    /// Options of the run as they are typed for one of several.
    private var ofEachRun: [String] {
        // A side has its own; a child prints nothing.
        let others = OptionTable.specs(\.variables, \.target, \.plainLines, \.colour, \.summary).map(\.id)
        return OptionTable.specs(of: .run).flatMap { spec -> [String] in
            let isForAll = [.run, .process, .single].contains(spec.scope) || spec.id == OptionTable[\.processes].id
            guard isForAll, !others.contains(spec.id),
                let found = self.found[spec.id],
                let name = spec.names.last(where: { $0.hasPrefix("--") })
            else { return [] }
            switch spec.shape {
            case .flag: return [name]
            case .repeated, .pairs: return found.texts.flatMap { $0.hasPrefix("-") ? ["\(name)=\($0)"] : [name, $0] }
            case .words: return [name] + found.texts
            case .one, .list, .toggle: return ["\(name)=\(found.texts.last ?? "")"]
            }
        }
    }
}

/// One side: a file, and the options that override it.
struct ScenarioSource {
    var file: String
    var set: [String] = []
    /// Variables behind `--against`, which override those of `--set`.
    var against: [String] = []
    var target: String?
    /// `nil`: the file is the argument.
    var fileOption: AnyOptionKey?
    var targetOption: AnyOptionKey = \OptionTable.target
}
