extension OptionReader {
    mutating func read(_ command: CapacityCommand, into options: inout CapacityOptions) {
        options.load = command.load.first == "--" ? Array(command.load.dropFirst()) : command.load
        options.hold = self.duration(command.hold, "--hold") ?? options.hold
        if options.hold < 1_000_000_000 { self.report("--hold", "has to be a second at least") }
        options.objectives = command.slo
        options.outputDirectory = command.out
        if command.out == "" { self.report("--out", "is empty; name a directory") }
        (options.json, options.quiet, options.strict) = (command.json, command.quiet, command.strict)
        if command.json, command.quiet { self.report("--quiet", "--json writes to stdout; leave one of the two out") }
        options.redactedCommand = ["clamor"] + Redaction.command(self.arguments)
        guard !options.load.isEmpty else {
            return self.report("load", "is missing; end with a command, such as pub -h embedded -c 50 -q 1")
        }
        options.variesClients = Self.isOfClients(options.load)
        self.readBounds(command, into: &options)
        if command.slo.isEmpty {
            self.report("--slo", "is missing; say what has to hold, such as 'publish_ack_duration p99 < 50ms'")
        }
        let known = self.problems.count
        for sentence in command.slo {
            // Whether there is a ledger to ask is found out with the load.
            if let problem = self.checks.threshold(sentence, true) {
                self.report("--slo", "'\(sentence)': \(problem)")
            }
        }
        if self.problems.count == known { self.check(options) }
    }

    /// Loads without operations of their own.
    private static func isOfClients(_ load: [String]) -> Bool {
        ["conn", "sub"].contains(load[0]) || Array(load.prefix(2)) == ["xmpp", "login"]
    }

    private mutating func readBounds(_ command: CapacityCommand, into options: inout CapacityOptions) {
        if options.variesClients {
            if command.maxRate != nil { self.report("--max-rate", "the load varies by clients; use --max-clients") }
            options.first =
                self.number(command.first, "--first", in: 1...10_000_000 as ClosedRange<Int>).map(Double.init) ?? 100
            let most = self.number(command.maxClients, "--max-clients", in: 1...10_000_000 as ClosedRange<Int>)
            options.most = most.map(Double.init) ?? options.most
        } else {
            if command.maxClients != nil { self.report("--max-clients", "the load varies by its rate; use --max-rate") }
            options.first = self.value(command.first, "--first", parse: RateText.parse) ?? options.first
            options.most = self.value(command.maxRate, "--max-rate", parse: RateText.parse) ?? options.most
        }
    }

    /// Whether a word gives the flag: alone, with `=`, or a short one joined to its value.
    private static func gives(_ word: String, _ flag: String) -> Bool {
        let isShort = !flag.hasPrefix("--")
        return word == flag || word.hasPrefix("\(flag)=") || isShort && word.hasPrefix(flag)
    }

    /// Whether a step could run, and leaves to the search what is its own.
    private mutating func check(_ options: CapacityOptions) {
        guard ["conn", "pub", "sub", "pubsub", "xmpp"].contains(options.load[0]) else {
            return self.report("load", "'\(options.load[0])' is no load; take conn, pub, sub, pubsub or xmpp")
        }
        let own =
            [
                "--duration", "-d", "--out", "--threshold", "--quiet", "--json", "--rate", "-I", "--message-interval",
                "-L",
            ]
            + (options.variesClients ? ["-c", "--count"] : [])
        for flag in own where options.load.contains(where: { Self.gives($0, flag) }) {
            return self.report(flag, "is the search's own; leave it out of the load")
        }
        let invocation = Invocation.parse(
            options.arguments(load: options.first, directory: "capacity"),
            environment: self.environment,
            checks: self.checks
        )
        switch invocation {
        case .run, .xmpp: break
        case .refused(let lines), .wrong(let lines):
            for line in lines { self.report("load", line.replacing("clamor ", with: "", maxReplacements: 1)) }
        default: self.report("load", "asks for a text, and runs nothing")
        }
    }
}
