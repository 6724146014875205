import Foundation
import Measurement
import Pages
import Report
import RunResult

/// One comparison, from its directories to its exit status.
struct CompareSession {
    private let options: CompareOptions
    private let screen: ProgressScreen

    init(_ options: CompareOptions) {
        self.options = options
        self.screen = ProgressScreen(quiet: options.quiet, json: options.json)
    }

    func perform() -> ExitStatus {
        do throws(RunRefusal) {
            try self.options.files.check()
        } catch {
            return self.screen.refuse(error)
        }
        let comparison: Comparison
        do throws(ResultError) {
            let base = try ComparedRun.read(self.options.base)
            let new = try ComparedRun.read(self.options.new)
            let noise = try self.options.noise.map(NoiseFloor.read)
            guard self.areComparable(base, new, noise) else { return .dataError }
            let (floor, remarks) = noise.map { ($0, []) } ?? self.calibrated(base, new)
            comparison = Comparison(
                base: base,
                new: new,
                limits: self.options.limits,
                noise: floor,
                remarks: remarks,
                isStrict: self.options.isStrict
            )
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

    /// Whether runs that have not started yet could be compared, from their plans and this host.
    func wouldCompare(_ base: ComparedRun, _ new: ComparedRun) -> Bool {
        do throws(ResultError) {
            return self.areComparable([base], [new], try self.options.noise.map(NoiseFloor.read))
        } catch {
            self.screen.warn("\(error)")
            return false
        }
    }

    /// The file of `calibrate` if one side has a single run, and the reasons why it cannot be used.
    private func calibrated(_ base: [ComparedRun], _ new: [ComparedRun]) -> (NoiseFloor?, remarks: [String]) {
        let path = Calibration.defaultPath
        guard base.count == 1 || new.count == 1, FileManager.default.fileExists(atPath: path) else { return (nil, []) }
        do throws(ResultError) {
            let floor = try NoiseFloor.read(path)
            let differences = Comparability.differences(floor, path, base[0]).map(\.text)
            guard !differences.isEmpty else { return (floor, []) }
            return (nil, ["\(path) is not used: \(differences.joined(separator: "; ")); run clamor calibrate here"])
        } catch {
            return (nil, ["\(path) is not used: \(error.reason)"])
        }
    }

    /// The differences that make the runs incomparable, however many more there are, each with its remedy.
    func differences(_ runs: [ComparedRun]) -> [String] { self.refused(Comparability.differences(runs)) }

    private func refused(_ differences: [Comparability.Difference]) -> [String] {
        differences.filter { !self.options.allowed.contains($0.kind) }.map {
            "\($0.text); --allow-different \($0.kind.rawValue) compares all the same"
        }
    }

    /// Reports all differences that make the runs incomparable.
    private func areComparable(_ base: [ComparedRun], _ new: [ComparedRun], _ noise: NoiseFloor?) -> Bool {
        var differences = Comparability.differences(base + new)
        differences += [Comparability.limited(base), Comparability.limited(new)].compactMap(\.self)
        if let noise, let path = self.options.noise, let run = base.first {
            differences += Comparability.differences(noise, path, run)
        }
        let refused = self.refused(differences)
        for line in refused { self.screen.warn(line) }
        return refused.isEmpty
    }

    private func show(_ comparison: Comparison) -> ExitStatus {
        do throws(ResultError) {
            let json = try ComparisonJSON.text(comparison)
            if let directory = self.options.directory {
                try ReportFile.write(json, to: directory + "/compare.json")
                try ReportFile.write(ComparisonMarkdown.text(comparison), to: directory + "/compare.md")
            }
            if self.options.json { self.screen.write(json) }
        } catch {
            self.screen.warn("\(error)")
            return .cannotCreate
        }
        if !self.options.json {
            let text = ComparisonText(comparison, style: self.screen.style, showsAll: self.options.showsAll).text
            self.screen.show(text)
        }
        let files = self.options.files
        if let path = files.html, let problem = PageFiles.write(to: path, ComparePage(comparison).text) {
            self.screen.warn(problem)
            return .cannotCreate
        }
        if let problem = files.write(JUnitXML(comparison), markdown: ComparisonMarkdown.text(comparison)) {
            self.screen.warn(problem)
            return .cannotCreate
        }
        if comparison.hasFailed {
            let names = comparison.regressions.map { "\($0.title) \($0.field.text) \($0.changeText)" }
            self.screen.warn("regression: " + names.joined(separator: ", "))
        }
        return ExitStatus(hasRegressed: comparison.hasFailed)
    }
}
