import Foundation
import Measurement
import Report
import TestSupport
import Testing

/// A run that has ended, and what it left.
struct ClamorRun {
    let ending: RunningProgram.Ending
    /// Holds the result directory `out`.
    let folder: ScratchFolder
    /// `run.json`.
    let record: RunRecord

    var directory: String { self.folder.path("out") }
    var status: Int32 { self.ending.status }

    /// The samples of a duration over all phases; `run.json` has those of the measured phase.
    func samples(_ name: String) throws -> Int {
        let lines = try String(contentsOfFile: "\(self.directory)/timeline.csv", encoding: .utf8).split(separator: "\n")
        let columns = lines.first?.split(separator: ",", omittingEmptySubsequences: false) ?? []
        let (names, counts) = (columns.firstIndex(of: "name"), columns.firstIndex(of: "count"))
        guard let names, let counts else { throw MissingColumn() }
        return lines.dropFirst().reduce(0) { sum, line in
            let cells = line.split(separator: ",", omittingEmptySubsequences: false)
            return cells[names] == name ? sum + (Int(cells[counts]) ?? 0) : sum
        }
    }

    struct MissingColumn: Error {}

    /// Runs a command that leaves results.
    ///
    /// The line, which starts with the command, is split at spaces; arguments that contain spaces follow it.
    static func of(_ line: String, _ more: String...) async throws -> ClamorRun {
        let folder = try ScratchFolder()
        let ending = try await ClamorBinary.run(self.arguments(line, more, in: folder))
        return try ClamorRun(ending, folder)
    }

    /// Starts a command, hands it to `body`, and waits for its end.
    static func of(
        _ line: String,
        _ more: String...,
        beside body: (RunningProgram) async throws -> Void
    ) async throws -> ClamorRun {
        let folder = try ScratchFolder()
        return try await ClamorBinary.with(self.arguments(line, more, in: folder)) { program in
            try await body(program)
            return try ClamorRun(try await program.ended(), folder)
        }
    }

    static func arguments(_ line: String, _ more: [String] = [], in folder: ScratchFolder) -> [String] {
        line.split(separator: " ").map(String.init) + more + ["--out", folder.path("out")]
    }

    init(_ ending: RunningProgram.Ending, _ folder: ScratchFolder) throws {
        self.ending = ending
        self.folder = folder
        // Whatever became of it: everything that was measured, and nothing left half done.
        #expect(folder.entries() == ["out"])
        for file in ["run.json", "metrics.csv", "timeline.csv", "latency.hlog"] {
            #expect(folder.entries("out").contains(file))
        }
        do {
            self.record = try RunJSON.read(directory: folder.path("out"))
        } catch {
            Issue.record("no results: \(error); status \(ending.status), stderr: \(ending.errors)")
            throw error
        }
        let laws = try RunLaws(directory: folder.path("out"))
        #expect(laws.broken == [])
    }
}

extension RunRecord {
    /// The sum of a counter over all metrics that have these labels.
    func count(_ name: String, _ labels: Labels = [:]) -> Int {
        let matching = self.metrics.filter { $0.name == name && $0.labels.contains(labels) }
        return matching.reduce(0) { $0 + Int($1.counter?.value ?? 0) }
    }

    func count(_ name: String, qos: Int) -> Int { self.count(name, ["qos": "\(qos)"]) }

    /// At QoS 0, 1 and 2.
    func perQoS(_ name: String) -> [Int] { (0...2).map { self.count(name, qos: $0) } }

    func duration(_ name: String, _ labels: Labels = [:]) -> DurationReading? {
        self.metrics.first { $0.name == name && $0.labels.contains(labels) }?.duration
    }

    var state: Verdict.State? { self.verdict?.state }
    /// Nothing is wrong with it, but what a busy host makes of any run, and a run then has to say.
    var isSound: Bool { self.state == .valid || self.state == .generatorLimited && self.hasReasonsOfBusyHost() }

    /// No reason is given but those of a busy host, and these; CPU is stolen beside the load too.
    func hasReasonsOfBusyHost(or others: Set<String> = []) -> Bool {
        let seconds = self.stages.first { $0.measured }?.durationSeconds ?? 0
        let busy: Set = ["unsent", "connect-rate", "cpu-steal"]
        let late: Set = seconds < 0.5 ? [] : ["schedule-lag", "generator-cpu", "host-full"]
        return others.union(busy).union(late).isSuperset(of: self.reasonCodes)
    }
    var reasonCodes: [String] { self.verdict?.reasons.map(\.code) ?? [] }
}
