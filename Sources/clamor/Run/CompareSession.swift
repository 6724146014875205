import Measurement
import Pages
import Report
import RunControl
import RunResult
import Scenario

/// One comparison, from its directories to its exit status.
struct CompareSession {
    let options: CompareOptions
    private var screen: ProgressScreen { ProgressScreen(quiet: self.options.quiet, json: self.options.json) }

    func perform() -> ExitStatus {
        guard self.screen.attempt({ try self.options.files.check() }) != nil else { return .cannotCreate }
        let read = self.screen.attempt {
            (try ComparedRun.read(self.options.base), try ComparedRun.read(self.options.new))
        }
        guard let (base, new) = read, self.areComparable(base, new) else { return .dataError }
        if self.options.isPaired, base.count != new.count {
            self.screen.warn("--paired: there are \(base.count) runs of base and \(new.count) of new; give pairs")
            return .dataError
        }
        let comparison = self.comparison(base, new)
        guard comparison.problems.isEmpty else {
            for problem in comparison.problems { self.screen.warn("--max-regression \(problem)") }
            return .dataError
        }
        return self.show(comparison)
    }

    func comparison(_ base: [ComparedRun], _ new: [ComparedRun]) -> Comparison {
        Comparison(
            base: base,
            new: new,
            limits: self.options.limits,
            isStrict: self.options.strict,
            isPaired: self.options.isPaired
        )
    }

    /// The differences that make the runs incomparable, however many more there are, each with its remedy.
    func differences(_ runs: [ComparedRun]) -> [String] { self.refused(Comparability.differences(runs)) }

    private func refused(_ differences: [Comparability.Difference]) -> [String] {
        differences.filter { !self.options.allowed.contains($0.kind) }.map {
            "\($0.text); --allow-different \($0.kind.rawValue) compares all the same"
        }
    }

    /// Reports all differences that make the runs incomparable, as far as they are known.
    func areComparable(_ base: [ComparedRun], _ new: [ComparedRun]) -> Bool {
        var differences = Comparability.differences(base + new)
        differences += [Comparability.limited(base), Comparability.limited(new)].compactMap(\.self)
        let refused = self.refused(differences)
        for line in refused { self.screen.warn(line) }
        return refused.isEmpty
    }

    private func show(_ comparison: Comparison) -> ExitStatus {
        let json = self.screen.attempt {
            let json = try ComparisonJSON.text(comparison)
            if let directory = self.options.directory {
                try ReportFile.write(json, to: directory + "/compare.json")
                try ReportFile.write(ComparisonMarkdown.text(comparison), to: directory + "/compare.md")
            }
            return json
        }
        guard let json else { return .cannotCreate }
        if self.options.json {
            self.screen.write(json)
        } else {
            let text = ComparisonText(comparison, style: self.screen.style, showsAll: self.options.showsAll).text
            self.screen.show(text)
        }
        let files = self.options.files
        if let path = files.html, let problem = PageFiles.write(to: path, ComparePage(comparison).text) {
            self.screen.warn(problem)
            return .cannotCreate
        }
        let written: Void? = self.screen.attempt {
            try files.write(JUnitXML(comparison), markdown: ComparisonMarkdown.text(comparison))
        }
        guard written != nil else { return .cannotCreate }
        if comparison.hasFailed {
            let names = comparison.regressions.map { "\($0.title) \($0.field.text) \($0.changeText)" }
            self.screen.warn("regression: " + names.joined(separator: ", "))
        }
        return ExitStatus(hasRegressed: comparison.hasFailed)
    }
}
