import LoadEngine
import NIOCore
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
        self.checkBackoff(options.backoff, isUsed: options.reconnects > 0 || options.connectRetries > 0)
        self.checkSleep(\.cycleOnline, options.sleep.online)
        self.checkSleep(\.cycleOffline, options.sleep.offline)
        if options.failsOver, options.targetNames.count < 2 {
            self.refuse(\.failover, "is between several targets, and there is one; name another one too")
        } else if options.failsOver, options.reconnects == 0, options.connectRetries == 0 {
            self.refuse(\.failover, "needs clients that try again; add \(\.reconnects, "N")")
        }
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

    private mutating func checkSleep(_ option: OptionKey<Int64>, _ time: Int64?) {
        guard let time, time < 10_000_000 else { return }
        self.refuse(option, "\(DurationText.text(time)) is too short; give 10ms or more")
    }

    private mutating func checkBackoff(_ backoff: Backoff, isUsed: Bool) {
        let given: [AnyOptionKey] = [\OptionTable.reconnectLongest, \.reconnectFactor, \.reconnectJitter]
        if !isUsed, let option = given.first(where: self.isGiven) {
            self.refuse(option, "needs clients that try again; add \(\.reconnects, "N")")
        }
        guard let longest = backoff.to else { return }
        let words: OptionWords =
            "\(DurationText.text(longest)) is shorter than the first wait, \(DurationText.text(backoff.from)); raise it, or lower \(\.reconnectPeriod)"
        if longest < backoff.from { self.refuse(\.reconnectLongest, words) }
        if backoff.from == 0 {
            self.refuse(\.reconnectLongest, "a first wait of 0 grows to nothing; raise \(\.reconnectPeriod)")
        }
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
