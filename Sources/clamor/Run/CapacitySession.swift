import LoadEngine
import Measurement
import Pages
import Report
import RunControl
import RunResult
import Scenario

/// One search, from its options to its files and its exit status.
struct CapacitySession {
    let options: CapacityOptions
    private var screen: ProgressScreen { ProgressScreen(self.options) }
    private let runs = ChildRuns()

    func perform() async -> ExitStatus {
        do throws(RunRefusal) {
            let directory = try ResultDirectory.open(self.options.outputDirectory, name: "capacity")
            return await self.runs.session(self.options.live, self.screen) { await self.search(directory) }
        } catch {
            return self.screen.refuse(error)
        }
    }

    /// A step as the endpoint shows it before its first interval.
    private func step(_ number: Int, _ load: Double) -> LiveRun {
        let seconds = Double(self.options.hold) / 1e9
        let rate = self.options.variesClients ? [] : [LiveCourse.Stretch(seconds: seconds, from: load, to: load)]
        return LiveRun(
            .begun(self.options.redactedCommand, plan: ["name": .string("step \(number)")]),
            course: LiveCourse(stages: [LiveCourse.Stage("measure", seconds: seconds)], stretches: rate),
            clients: self.options.variesClients ? Int(load) : 0,
            keepsDurations: true,
            keepsTimeline: true
        )
    }

    private func search(_ directory: ResultDirectory) async -> ExitStatus {
        let settings = CapacitySearch.Settings(
            first: self.options.first,
            most: self.options.most,
            isWhole: self.options.variesClients
        )
        var search = CapacitySearch(settings)
        var record = CapacityRecord(
            command: self.options.redactedCommand,
            varies: self.options.variesClients ? "clients" : "rate",
            objectives: self.options.objectives,
            holdSeconds: Double(self.options.hold) / 1e9
        )
        while case .offer(let load, let phase) = search.next {
            let number = record.steps.count + 1
            let name = "steps/\(number)"
            let path = "\(directory.partial)/\(name)"
            let arguments = self.options.arguments(load: load, directory: path)
            let (status, errors) = await self.runs.perform(arguments, in: path) { self.step(number, load) }
            if await self.runs.isStopped { break }
            guard let run = try? RunJSON.read(directory: path), let (verdict, reason) = run.step(status: status) else {
                let words = errors.split(separator: "\n").first?.trimmingPrefix("clamor: ") ?? "exit status \(status)"
                let line = "step \(number): \(words)"
                let failure = RunRefusal(line, ExitStatus(rawValue: status) ?? .usage)
                let refused = self.screen.refuse(failure)
                guard !record.steps.isEmpty else {
                    directory.removeIfEmpty("steps")
                    return refused
                }
                return await self.end(record, search, directory, failure)
            }
            let step = record.add(
                CapacityRecord.Step(
                    number: number,
                    load: load,
                    phase: phase.rawValue,
                    verdict: verdict.word,
                    reason: reason,
                    directory: name
                ),
                measuredBy: run,
                (try? Timeline(reading: path)) ?? Timeline()
            )
            search.add(verdict)
            self.screen.show(record.line(step))
        }
        return await self.end(record, search, directory)
    }

    /// A step that did not run.
    private func end(
        _ record: CapacityRecord,
        _ search: CapacitySearch,
        _ directory: ResultDirectory,
        _ failure: RunRefusal? = nil
    ) async -> ExitStatus {
        var record = record
        let isStopped = await self.runs.isStopped
        var answer: CapacityAnswer?
        if case .end(let end) = search.next, !isStopped {
            answer = end
            record.answer = CapacityRecord.Answer(end)
            if !search.isSettled {
                record.answer?.reason = "\(search.steps.count) steps are the most of a search, and more were to be made"
            }
        } else {
            let held = search.steps.filter { $0.verdict == .held }.map(\.load).max()
            record.answer = CapacityRecord.Answer(kind: "interrupted", load: held, reason: failure?.line)
        }
        record.nameLimit()
        let written: Void? = self.screen.attempt {
            try ReportFile.write(record.json, to: directory.partial + "/capacity.json")
            try ReportFile.write(record.csv, to: directory.partial + "/capacity.csv")
            try directory.finish()
        }
        guard written != nil else { return .cannotCreate }
        if self.options.files.writesPage {
            let problem = PageFiles.write(to: "\(directory.path)/\(PageFiles.name)", CapacityPage(record).text)
            if let problem { self.screen.warn(problem) }
        }
        if self.options.json {
            self.screen.write(record.json)
        } else {
            self.screen.show(record.summary(files: directory.path))
        }
        return ExitStatus(of: answer, isStopped: isStopped, failure: failure?.status, isStrict: self.options.strict)
    }
}

extension CapacitySearch.Verdict {
    fileprivate var word: String {
        switch self {
        case .held: "held"
        case .broken: "broken"
        case .generatorLimited: "generator-limited"
        case .disturbed: "disturbed"
        }
    }
}

extension CapacityRecord.Answer {
    fileprivate init(_ answer: CapacityAnswer) {
        switch answer {
        case .found(let found): self.init(kind: "found", load: found.load, low: found.low, high: found.high)
        case .atLeast(let load): self.init(kind: "at-least", load: load, low: load)
        case .nothingHolds(let load): self.init(kind: "nothing-holds", high: load)
        case .generatorLimited(let load, let held, let reason):
            self.init(kind: "generator-limited", load: held, high: load, reason: reason)
        }
    }
}
