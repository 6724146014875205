import LoadEngine
import NIOCore

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
        self.readOutput(into: &options)
        for (index, sentence) in options.thresholds.enumerated() {
            if let problem = TextCheck.threshold(sentence, hasLedger: hasLedger) {
                self.refuse(\.thresholds, "'\(sentence)': \(problem)", at: index)
            }
        }
    }

    /// Where the figures go, and files for the programs around a run: GitHub's own where no other is named.
    func readOutput(into options: inout some HasResults) {
        self.store(into: &options.results)
        var files = ReportFileOptions()
        self.store(into: &files)
        files.writesPage = !(self[\.withoutPage] ?? false) && !(self[\.isChild] ?? false)
        if !self.isGiven(\.markdown), let path = self.inherited(\.markdown), !path.isEmpty { files.inherited = path }
        options.files = files
        options.redactedCommand = ["clamor"] + Redaction.command(self.arguments)
    }

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
