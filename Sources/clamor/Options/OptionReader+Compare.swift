import Measurement
import Report

extension OptionReader {
    mutating func read(_ command: CompareCommand, into options: inout CompareOptions) {
        self.readSides(command, into: &options)
        self.read(command.comparison, into: &options)
        self.read(command.files, into: &options.files)
        options.showsAll = command.all
        options.isStrict = command.strict
        options.json = command.json
        options.quiet = command.quiet
        if command.json, command.quiet { self.report("--quiet", "--json writes to stdout; leave one of the two out") }
    }

    mutating func read(_ flags: ComparisonFlags, into options: inout CompareOptions) {
        for sentence in flags.maxRegression { self.read(limit: sentence, into: &options) }
        options.noise = flags.noise
        for word in flags.allowDifferent?.split(separator: ",") ?? [] {
            if let kind = Comparability.Kind(rawValue: String(word)) {
                options.allowed.insert(kind)
            } else {
                let known = Comparability.Kind.allCases.map(\.rawValue).joined(separator: ", ")
                self.report("--allow-different", "'\(word)' is none of \(known)")
            }
        }
    }

    private mutating func readSides(_ command: CompareCommand, into options: inout CompareOptions) {
        options.base = command.base
        options.new = command.new
        let positional = command.directories
        if command.base.isEmpty, command.new.isEmpty {
            guard positional.count == 2 else {
                self.report(
                    "BASE NEW",
                    "two directories are wanted, not \(positional.count); of several runs: --base DIR ... --new DIR ..."
                )
                return
            }
            (options.base, options.new) = ([positional[0]], [positional[1]])
        } else {
            if let extra = positional.first {
                self.report(extra, "stands beside --base and --new; give it behind one of them")
            }
            if command.base.isEmpty { self.report("--base", "is missing; --new has nothing to be held against") }
            if command.new.isEmpty { self.report("--new", "is missing; there is nothing to hold against --base") }
        }
        for directory in options.base + options.new { self.check(directory: directory) }
    }

    private mutating func read(limit sentence: String, into options: inout CompareOptions) {
        do throws(ThresholdError) {
            let limit = try RegressionLimit(sentence)
            guard MetricDirection.of(limit.name) != .none else {
                self.report("--max-regression", "'\(sentence)': neither more nor less of \(limit.name) is worse")
                return
            }
            options.limits = (options.limits ?? []) + [limit]
        } catch {
            self.report("--max-regression", "'\(sentence)': \(error.problem)")
        }
    }

    /// GitHub's own file is taken where no other is named.
    mutating func read(_ flags: ReportFlags, into options: inout ReportFileOptions) {
        options.junit = flags.junit
        options.markdown = flags.summaryMd
        if flags.junit == "" { self.report("--junit", "is empty; name a file") }
        if flags.summaryMd == "" { self.report("--summary-md", "is empty; name a file") }
        if flags.summaryMd == nil, let path = self.environment["GITHUB_STEP_SUMMARY"], !path.isEmpty {
            options.inherited = path
        }
    }
}
