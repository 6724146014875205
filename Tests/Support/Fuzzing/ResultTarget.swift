import Foundation
import Measurement
import Pages
import Report
import RunResult
import TestSupport

/// The files of results, one of which is the input: every reader takes them, or refuses them in words.
///
/// The first byte of the settings chooses the file, the second what is done with the results.
package final class ResultTarget: FuzzTarget {
    package static var layout: FuzzInput.Layout { .text }
    package private(set) var reached = Reached()
    package private(set) var signature: UInt64 = 0

    private enum Use: Int, CaseIterable { case report, rebuild, merge, compare }

    private let folder: URL
    /// Results of two segments of one run, and of a run that ended by itself.
    private static let runs = ["one", "two", "whole"]

    package init() {
        let memory = "/dev/shm"
        let parent = FileManager.default.isWritableFile(atPath: memory) ? memory : NSTemporaryDirectory()
        self.folder = URL(filePath: parent).appending(path: "clamor-fuzz-\(ProcessInfo.processInfo.processIdentifier)")
        for run in Self.runs {
            self.make(run)
            for (name, text) in ResultSeeds.files(of: run) { self.write(text, run, name) }
        }
    }

    deinit { try? FileManager.default.removeItem(at: self.folder) }

    private func make(_ run: String) {
        try? FileManager.default.createDirectory(
            at: self.folder.appending(path: run),
            withIntermediateDirectories: true
        )
    }

    private func path(_ run: String) -> String { self.folder.appending(path: run).path }

    private func write(_ text: [UInt8], _ run: String, _ name: String) {
        let path = self.folder.appending(path: "\(run)/\(name)").path
        if FileManager.default.createFile(atPath: path, contents: Data(text)) { return }
        preconditionFailure("\(path) cannot be written")
    }

    package func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
        self.reached.inputs += 1
        self.signature = 0
        guard input.count > FuzzInput.settingsCount else { return }
        let text = Array(input[FuzzInput.settingsCount...])
        let use = Use.allCases[Int(input[1]) % Use.allCases.count]
        let run = use == .merge ? "one" : "whole"
        let files = ResultSeeds.files(of: run)
        let (name, whole) = files[Int(input[0]) % files.count]
        self.write(text, run, name)
        defer { self.write(whole, run, name) }
        let outcome = self.outcome(of: use, run)
        if outcome == nil { self.reached.withPacket += 1 }
        self.reached.note(outcome == nil ? "\(use) taken" : "\(use) refused")
        // Figures in the words are no news.
        let words = (outcome ?? "").filter { !$0.isNumber }.prefix(120)
        self.signature = "\(use) \(name) \(words)".utf8.reduce(14_695_981_039_346_656_037) {
            ($0 ^ UInt64($1)) &* 1_099_511_628_211
        }
    }

    /// The words of a refusal; `nil` where the results were taken.
    private func outcome(of use: Use, _ run: String) -> String? {
        let path = self.path(run)
        do {
            switch use {
            case .report: try self.show(try RunJSON.read(directory: path), try Timeline(reading: path))
            case .rebuild:
                let record = try Rebuild.run(partial: path) { $0.findings(in: $1) }
                for name in ["run.json", "metrics.csv"] {
                    if let whole = ResultSeeds.files(of: run).first(where: { $0.name == name }) {
                        self.write(whole.text, run, name)
                    }
                }
                try self.show(record, (try? Timeline(reading: path)) ?? Timeline())
            case .merge:
                let set = try SegmentSet([path, self.path("two")])
                let merged = MergedRun(set, command: ["clamor", "merge"])
                try self.show(merged.record, Timeline())
            case .compare:
                let runs = try ComparedRun.read([path, self.path("two")])
                let comparison = Comparison(base: [runs[0]], new: [runs[1]])
                _ = ComparisonText(comparison).text
            }
            return nil
        } catch let refusal as SegmentSet.Refusal {
            return refusal.lines.joined()
        } catch {
            return "\(error)"
        }
    }

    private func show(_ record: RunRecord, _ timeline: Timeline) throws {
        var record = record
        record.take(record.findings(in: timeline))
        for detail in [Summary.Detail.compact, .full] { _ = Summary(record, detail: detail, files: "results").text }
        // A page costs a hundred times as much.
        guard self.reached.inputs.isMultiple(of: 32) else { return }
        _ = try RunPage(record, timeline: timeline).text()
    }
}
