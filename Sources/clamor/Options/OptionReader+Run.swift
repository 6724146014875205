import LoadEngine
import NIOCore
import Workloads

extension OptionReader {
    mutating func read(_ flags: RunFlags, _ validate: ValidateFlag, into options: inout MQTTOptions) {
        let hasLedger = options.hasLedger && (options.kind == .sub || options.kind == .pubsub)
        self.read(flags, hasLedger: hasLedger, into: &options.common)
        // A repeatable run has repeatable client ids.
        if let seed = options.seed { options.replaceDrawnPrefix(with: Self.prefix(seed: seed)) }
        options.validates = self.boolean(validate.validate, "--validate", words: ("on", "off")) ?? true
        self.checkTogether(options)
        self.checkRows(options)
        self.checkSegments(options)
    }

    /// The phases of a run, the generator, its results; behind everything else that the run is told.
    mutating func read(_ flags: RunFlags, hasLedger: Bool, into options: inout LoadOptions) {
        if let duration = self.duration(flags.duration, "--duration", "-d") {
            options.duration = duration == 0 ? nil : duration
        } else if options.limit != nil {
            options.duration = nil
        }
        options.warmup = self.duration(flags.warmup, "--warmup") ?? options.warmup
        options.drain = self.duration(flags.drain, "--drain") ?? options.drain
        options.threads = self.number(flags.threads, "--threads", in: 1...1_024)
        options.readSize = self.number(flags.readSize, "--read-size", in: 1...65_536) ?? options.readSize
        options.seed = self.number(flags.seed, "--seed", in: 0...UInt64.max)
        options.perClient = flags.perClient
        self.read(flags.results, hasLedger: hasLedger, into: &options)
        self.read(flags.segments, into: &options)
        self.checkStorms(options)
        options.redactedCommand = ["clamor"] + Redaction.command(self.arguments)
    }

    mutating func read(_ flags: ResultFlags, hasLedger: Bool, into options: inout some ResultOptions) {
        options.json = flags.json
        options.quiet = flags.quiet
        options.isPlain = flags.noTTY
        options.strict = flags.strict
        options.outputDirectory = flags.out
        if flags.out == "" { self.report("--out", "is empty; name a directory") }
        if flags.json, flags.quiet { self.report("--quiet", "--json writes to stdout; leave one of the two out") }
        self.read(flags.files, into: &options.files)
        options.thresholds = flags.threshold
        for sentence in flags.threshold {
            if let problem = self.checks.threshold(sentence, hasLedger) {
                self.report("--threshold", "'\(sentence)': \(problem)")
            }
        }
    }

    /// What each flag alone cannot know.
    private mutating func checkTogether(_ options: MQTTOptions) {
        if options.topicAlias != nil, options.kind != .sub, options.topic.contains(where: { $0 == "%" }),
            ["%s", "%t", "%rand_"].contains(where: { options.topic.contains($0) })
        {
            self.report(
                "--topic-alias",
                "needs a topic that stays the same for a client; leave %s, %t and %rand_N out of -t"
            )
        }
        let spread = options.kind == .sub ? options.subscribers : options.publishers
        if spread < options.qualities.count {
            self.report(
                "-q",
                options.topology == .fanOut && options.kind == .pubsub
                    ? "fan-out has one publisher, so one QoS"
                    : "\(spread) client\(spread == 1 ? "" : "s") cannot be spread over \(options.qualities.count) QoS levels; raise -c"
            )
        }
        guard options.protocolLevel == 3 else { return }
        // MQTT 3.1 §3.1: 1 to 23 characters.
        for (id, count) in [(options.publisherID, options.publishers), (options.subscriberID, options.subscribers)]
        where count > 0 {
            let last = id.replacing("%i", with: "\(options.startNumber + count)")
            if last.count > 23 {
                return self.report(
                    "-V",
                    "client ids of MQTT 3.1 have 23 characters at most, and '\(last)' has \(last.count); add --shortids"
                )
            }
        }
    }

    /// A storm that the load's end comes before would never happen.
    private mutating func checkStorms(_ options: LoadOptions) {
        guard let duration = options.duration, let last = options.storms.last?.at.nanoseconds,
            last >= options.warmup + duration
        else { return }
        self.report(
            "--storm",
            "\(DurationText.text(last)) is not before the load's end, which --warmup and --duration put at "
                + "\(DurationText.text(options.warmup + duration)); raise --duration, or let the storm begin earlier"
        )
    }
}
