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
