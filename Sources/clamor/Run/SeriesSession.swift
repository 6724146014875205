import Foundation
import Measurement
import Report
import RunControl
import RunResult
import Scenario

/// Runs of a scenario one after the other, alone or alternating with a second one for comparison.
struct SeriesSession {
    let options: SeriesOptions
    private var screen: ProgressScreen {
        let comparison = self.options.comparison
        let colour = self.options.sides[0].scenario.common.colour
        return ProgressScreen(quiet: comparison.quiet, json: comparison.json, colour: colour)
    }
    private let runs = ChildRuns()

    func perform() async -> ExitStatus {
        if self.options.isCheck { return self.check() }
        do throws(RunRefusal) {
            try self.options.comparison.files.check()
            // A series that could not be compared at its end does not begin.
            guard self.areComparable else { return .dataError }
            let common = self.options.sides[0].scenario.common
            let directory = try ResultDirectory.open(self.options.outputDirectory, name: common.directoryName)
            return await self.runs.session(common.live, self.screen) { await self.perform(in: directory) }
        } catch {
            return self.screen.refuse(error)
        }
    }

    /// A run as the endpoint shows it before its first interval.
    private func run(of side: SeriesOptions.Side, _ name: String) -> LiveRun {
        let groups = side.scenario.runGroups()
        return LiveRun(
            .begun(side.scenario.common.redactedCommand, plan: ["name": .string(name)]),
            course: LiveCourse(side.scenario.common, groups),
            clients: groups.reduce(0) { $0 + $1.options.clients },
            keepsDurations: true,
            keepsTimeline: true
        )
    }

    private func perform(in directory: ResultDirectory) async -> ExitStatus {
        var statuses: [ExitStatus] = []
        /// The runs of each side that count.
        var found: [String: [ComparedRun]] = [:]
        var end: (reason: String, status: ExitStatus)?
        var limited = 0
        let planned = self.options.longest == nil ? " of \(self.options.runs * self.options.sides.count)" : ""
        let began = ContinuousClock.now
        series: for number in 1...self.options.runs {
            // In the order A B B A, so that what a host does more and more is on both sides alike.
            let isTurned = self.options.longest != nil && number % 2 == 0
            var rest = isTurned ? Array(self.options.sides.reversed()) : self.options.sides
            while let side = rest.first {
                let path = [self.options.folder(of: side), self.options.name(ofRun: number)].compactMap(\.self)
                    .joined(separator: "/")
                let name = "run \(statuses.count + limited + 1)\(planned), \(path)"
                let whole = "\(directory.partial)/\(path)"
                let arguments = self.options.arguments(of: side, directory: whole)
                let (code, errors) = await self.runs.perform(arguments, in: whole) { self.run(of: side, name) }
                // Any other exit code means that the run was ended from outside.
                let status = ExitStatus(rawValue: code) ?? .interrupted
                statuses.append(status)
                let lines = errors.split(separator: "\n").map { $0.trimmingPrefix("clamor: ") }
                guard status.leavesWholeRun else {
                    let isStopped = await self.runs.isStopped
                    let reason =
                        lines.last.map(String.init) ?? (isStopped ? "interrupted" : "it ended with status \(code)")
                    end = ("\(name): \(reason)", status)
                    break series
                }
                for line in lines { self.screen.warn("\(name): \(line)") }
                rest.removeFirst()
                guard let record = try? RunJSON.read(directory: whole) else { continue }
                self.screen.show(RunLine(name, record).text)
                let isOver = self.options.longest.map { began.duration(to: .now) >= .nanoseconds($0) } ?? false
                if self.options.longest != nil, record.verdict?.state == .generatorLimited {
                    // It says nothing of the server, and is made again; nor does its status count.
                    statuses.removeLast()
                    limited += 1
                    guard self.putAside(whole, directory, in: "limited"), !isOver else { break series }
                    rest.insert(side, at: 0)
                    continue
                }
                let isFirst = found[side.name] == nil
                found[side.name, default: []].append(ComparedRun(path: path, record: record))
                if isFirst, let difference = self.difference(found) {
                    end = ("\(name): \(difference)", .dataError)
                    break series
                }
                if isOver, rest.isEmpty { break series }
            }
            if self.isDecided(found) { break }
        }
        if self.options.longest != nil, end == nil {
            // A run without the other one of its pair is not judged.
            let pairs = self.options.sides.map { found[$0.name]?.count ?? 0 }.min() ?? 0
            for side in self.options.sides where found[side.name]?.count ?? 0 > pairs {
                let path = "\(directory.partial)/\(side.name)/\(self.options.name(ofRun: pairs + 1))"
                _ = self.putAside(path, directory, in: "unpaired")
            }
            if pairs == 0 {
                let words = "no pair is whole: the generator limited \(Words.count(limited, "run"))"
                end = (words, .generatorLimited)
                let junit = JUnitXML(
                    suite: "clamor compare",
                    cases: [.init(group: "clamor compare", name: "pairs", outcome: .error(words))]
                )
                let files = self.options.comparison.files
                self.screen.attempt { try files.write(junit, markdown: "### ❌ clamor compare: \(words)\n") }
            }
        }
        guard self.screen.attempt({ try directory.finish() }) != nil else { return .cannotCreate }
        if let end {
            let whole = statuses.count { $0.leavesWholeRun }
            let count = planned.isEmpty ? Words.count(whole, "run") : "\(whole)\(planned) runs"
            let words = "\(count) \(whole == 1 ? "is" : "are") whole"
            let rest = self.options.sides.count > 1 ? ", and nothing was compared" : ""
            self.screen.warn("\(end.reason); \(words), what was measured is in \(directory.path)\(rest)")
            return end.status
        }
        return self.end(directory.path, statuses)
    }

    /// Moves a run that does not count to a folder beside the others.
    private func putAside(_ path: String, _ directory: ResultDirectory, in name: String) -> Bool {
        let folder = "\(directory.partial)/\(name)"
        let number = (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0
        let moved: Void? = self.screen.attempt {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try FileManager.default.moveItem(atPath: path, toPath: "\(folder)/\(number + 1)")
        }
        return moved != nil
    }

    /// Whether the pairs say which side is the better one, or that there is no difference.
    private func isDecided(_ found: [String: [ComparedRun]]) -> Bool {
        let sides = self.options.sides.compactMap { found[$0.name] }
        guard self.options.longest != nil, sides.count == 2, sides[0].count > 1 else { return false }
        let comparison = CompareSession(options: self.options.comparison).comparison(sides[0], sides[1])
        return comparison.hasFailed || !comparison.isUndecided
    }

    /// Writes the summary after all runs.
    private func end(_ path: String, _ statuses: [ExitStatus]) -> ExitStatus {
        guard self.options.sides.count > 1 else {
            self.screen.show("\nFiles  \(path)/\n")
            return .first(statuses)
        }
        var comparison = self.options.comparison
        comparison.base = ["\(path)/\(self.options.sides[0].name)"]
        comparison.new = ["\(path)/\(self.options.sides[1].name)"]
        comparison.directory = path
        self.screen.show("\n")
        let status = CompareSession(options: comparison).perform()
        self.screen.show("\nFiles  \(path)/  compare.json compare.md a/ b/\n")
        return .first(statuses + [status])
    }

    /// The first difference of the sides that no later run can undo; `nil` before each has a run.
    private func difference(_ found: [String: [ComparedRun]]) -> String? {
        let runs = self.options.sides.compactMap { found[$0.name]?.first }
        guard runs.count > 1, runs.count == self.options.sides.count else { return nil }
        return CompareSession(options: self.options.comparison).differences(runs).first
    }

    private var areComparable: Bool {
        guard self.options.sides.count > 1 else { return true }
        let sides = self.options.sides.map { side in
            ComparedRun(path: "\(side.arguments[1]) (\(side.name))", record: side.scenario.expectedRecord)
        }
        return CompareSession(options: self.options.comparison).areComparable([sides[0]], [sides[1]])
    }

    private func check() -> ExitStatus {
        var statuses: [ExitStatus] = []
        for side in self.options.sides {
            if self.options.sides.count > 1 { self.screen.show("\(side.name): ") }
            statuses.append(ScenarioCheck(scenario: side.scenario).perform())
        }
        let runs = "\(self.options.runs) run\(self.options.runs == 1 ? "" : "s")"
        let longest = self.options.longest.map { ", until it is decided, for \(DurationText.text($0)) at most" } ?? ""
        self.screen.show(
            self.options.sides.count > 1
                ? "\(runs) of each, taken in turn\(longest), and a comparison\n" : "\(runs), one after the other\n"
        )
        if self.options.sides.count > 1, !self.areComparable { statuses.append(.dataError) }
        return .first(statuses)
    }
}

extension ScenarioOptions {
    /// The expected parts of a run's record before it starts.
    fileprivate var expectedRecord: RunRecord {
        let plan = self.plan(seed: 0)
        return RunRecord(command: [], tool: Version.tool, host: HostFacts.read(), plan: plan, startedAt: "")
    }
}

private struct RunLine {
    let text: String

    init(_ name: String, _ record: RunRecord) {
        var words = [name, record.verdict?.state.rawValue].compactMap(\.self)
        let latencies: [MetricDefinition] = [.publishAck, .delivery, .iq, .connect]
        let latency = latencies.lazy.compactMap { kind in
            record.metrics.last { $0.isOf(kind) && $0.labels["stage"] == nil }
        }.first
        if let latency, let reading = latency.duration {
            words.append("\(latency.name) p50 \(Words.duration(reading.p50)), p99 \(Words.duration(reading.p99))")
        }
        if record.verdict?.state == .generatorLimited, let reason = record.verdict?.reasons.first?.line {
            words.append(reason)
        }
        self.text = words.joined(separator: " · ") + "\n"
    }
}
