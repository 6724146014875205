import Foundation
import LoadEngine
import NIOCore
import Report
import Workloads

// The run as a whole.
extension GivenOptions {
    /// The phases of a run, the generator, its results; after all other options.
    mutating func readRun(hasLedger: Bool, into options: inout LoadOptions) {
        if let duration = self[\.duration] {
            options.duration = duration == 0 ? nil : duration
        } else if options.limit != nil {
            options.duration = nil
        }
        self.readResults(hasLedger: hasLedger, into: &options)
        self.readLive(into: &options)
        self.readSegments(into: &options)
        self.checkStorms(options)
    }

    /// Where the figures go, and how they are judged.
    mutating func readResults(hasLedger: Bool, into options: inout some HasResults) {
        options.json = self[\.json] ?? false
        options.quiet = self[\.quiet] ?? false
        options.isPlain = self[\.plainLines] ?? false
        options.colour = self[\.colour] ?? .auto
        options.summary = self[\.summary] ?? .compact
        options.strict = self[\.strict] ?? false
        options.outputDirectory = self[\.outputDirectory]
        options.files = self.reportFiles()
        options.thresholds = self[\.thresholds] ?? []
        options.redactedCommand = self.redactedCommand
        for (index, sentence) in options.thresholds.enumerated() {
            if let problem = self.checks.threshold(sentence, hasLedger) {
                self.refuse(\.thresholds, "'\(sentence)': \(problem)", at: index)
            }
        }
    }

    /// Files for the programs around a run; GitHub's own where no other is named.
    func reportFiles() -> ReportFileOptions {
        var files = ReportFileOptions()
        files.junit = self[\.junit]
        files.html = self[\.html]
        files.writesPage = !(self[\.withoutPage] ?? false) && !(self[\.isChild] ?? false)
        files.markdown = self[\.markdown]
        if !self.isGiven(\.markdown), let path = self.inherited(\.markdown), !path.isEmpty { files.inherited = path }
        return files
    }

    /// The command line with every secret replaced.
    var redactedCommand: [String] { ["clamor"] + Redaction.command(self.arguments) }

    /// A storm that the load's end comes before would never happen.
    private mutating func checkStorms(_ options: LoadOptions) {
        guard let duration = options.duration, let last = options.storms.last?.at.nanoseconds,
            last >= options.warmup + duration
        else { return }
        self.refuse(
            \.storm,
            "\(DurationText.text(last)) is not before the load's end, which \(\.warmup) and \(\.duration) put at \(DurationText.text(options.warmup + duration)); raise \(\.duration), or let the storm begin earlier"
        )
    }
}
