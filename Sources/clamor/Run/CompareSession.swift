import Measurement
import Report

/// One comparison, from its directories to its exit status.
struct CompareSession {
    private let options: CompareOptions
    private let screen: ProgressScreen

    init(_ options: CompareOptions) {
        self.options = options
        self.screen = ProgressScreen(quiet: options.quiet, json: options.json)
    }

    func perform() -> ExitStatus {
        if let problem = self.options.files.problem {
            self.screen.warn(problem)
            return .cannotCreate
        }
        let comparison: Comparison
        do throws(ResultError) {
            let base = try ComparedRun.read(self.options.base)
            let new = try ComparedRun.read(self.options.new)
            let noise = try self.options.noise.map(NoiseFloor.read)
            var differences = Comparability.differences(base + new)
            differences += [Comparability.limited(base), Comparability.limited(new)].compactMap(\.self)
            if let noise, let path = self.options.noise, let run = base.first {
                differences += Comparability.differences(noise, path, run)
            }
            differences.removeAll { self.options.allowed.contains($0.kind) }
            guard differences.isEmpty else {
                for difference in differences {
                    let kind = difference.kind.rawValue
                    self.screen.warn("\(difference.text); --allow-different \(kind) compares all the same")
                }
                return .dataError
            }
            comparison = Comparison(base: base, new: new, limits: self.options.limits, noise: noise)
        } catch {
            self.screen.warn("\(error)")
            return .dataError
        }
        guard comparison.problems.isEmpty else {
            for problem in comparison.problems { self.screen.warn("--max-regression \(problem)") }
            return .dataError
        }
        return self.show(comparison)
    }

    private func show(_ comparison: Comparison) -> ExitStatus {
        if self.options.json {
            do throws(ResultError) {
                self.screen.write(try ComparisonJSON.text(comparison))
            } catch {
                self.screen.warn("\(error)")
                return .cannotCreate
            }
        } else {
            let text = ComparisonText(comparison, style: self.screen.style, showsAll: self.options.showsAll).text
            self.screen.show(text)
        }
        let files = self.options.files
        if let problem = files.write(JUnitXML(comparison), markdown: ComparisonMarkdown.text(comparison)) {
            self.screen.warn(problem)
            return .cannotCreate
        }
        let broken = comparison.regressions
        guard !broken.isEmpty else { return .success }
        let names = broken.map { "\($0.title) \($0.field.text) \($0.changeText)" }
        self.screen.warn("regression: " + names.joined(separator: ", "))
        return .thresholdFailed
    }
}
