import Foundation
import Measurement
import Report
import Transport
import Workloads

// Options of the commands that put no load on a server.
extension GivenOptions {
    // MARK: - decode

    package mutating func decode() -> DecodeOptions {
        var options = DecodeOptions()
        self.store(into: &options)
        if options.isMix {
            options.sizes = options.isXMPP ? DecodeOptions.chatSizes : DecodeOptions.mixSizes
            options.qualities = [0, 1, 2]
        }
        options.sizes = self[\.decodeSizes] ?? options.sizes
        if options.isXMPP {
            // Stanzas have neither versions nor topics nor QoS.
            let words: OptionWords = "is a matter of MQTT; leave it out, or leave \(\.decodeProtocol, "xmpp") out"
            self.refuse(given: \.protocolVersion, \.topic, \.qos, because: words)
        } else {
            options.protocolLevel = self[\.protocolVersion] ?? options.protocolLevel
            options.topic = self.topic() ?? options.topic
            options.qualities = self[\.qos] ?? options.qualities
        }
        self.readResults(hasLedger: false, into: &options)
        self.checkMetrics(of: [.decode]) { DecodeMetrics.known(options.lanes) }
        return options
    }

    // MARK: - report, trend, merge and compare

    package mutating func report(_ directories: [String]) -> ReportOptions {
        var options = ReportOptions(directory: directories.first ?? "")
        switch directories.count {
        case 0: self.refuse(argument: "DIR", "is missing; give the result directory of a run")
        case 1: self.check(directory: directories[0])
        default:
            self.refuse(argument: directories[1], "is a second run; give several to clamor trend or clamor compare")
        }
        self.readOutput(into: &options)
        options.checks = self[\.laws] ?? false
        return options
    }

    package mutating func trend(_ directories: [String]) -> TrendOptions {
        var options = TrendOptions(directories: directories)
        if directories.isEmpty {
            self.refuse(argument: "DIR", "is missing; give a history, or result directories of several runs")
        }
        for directory in directories { self.check(directory: directory) }
        self.store(into: &options)
        self.readOutput(into: &options)
        return options
    }

    package mutating func merge(_ directories: [String]) -> MergeOptions {
        var options = MergeOptions()
        if directories.isEmpty {
            self.refuse(argument: "DIR", "is missing; give the result directories of all segments")
        }
        for directory in directories { self.check(directory: directory) }
        options.directories = directories
        // Whether there is a ledger to ask is known by the segments.
        self.readResults(hasLedger: true, into: &options)
        return options
    }

    package mutating func compare(_ directories: [String]) -> CompareOptions {
        var options = CompareOptions()
        self.readSides(directories, into: &options)
        self.readComparison(into: &options)
        return options
    }

    private mutating func readSides(_ directories: [String], into options: inout CompareOptions) {
        self.store(into: &options)
        if options.base.isEmpty, options.new.isEmpty {
            guard directories.count == 2 else {
                return self.refuse(
                    argument: "BASE NEW",
                    "two directories are wanted, not \(directories.count); of several runs: \(\.base, "DIR ...") \(\.new, "DIR ...")"
                )
            }
            (options.base, options.new) = ([directories[0]], [directories[1]])
        } else {
            if let extra = directories.first {
                self.refuse(argument: extra, "is a directory beside \(\.base) and \(\.new); give it behind one of them")
            }
            if options.base.isEmpty { self.refuse(\.base, "is missing; \(\.new) has no run to be compared with") }
            if options.new.isEmpty { self.refuse(\.new, "is missing; there is no run to compare with \(\.base)") }
        }
        for directory in options.base + options.new { self.check(directory: directory) }
    }

    /// The judged figures, the differences that are allowed, and where the result goes.
    mutating func readComparison(into options: inout CompareOptions) {
        self.store(into: &options)
        self.readOutput(into: &options)
        for (index, sentence) in (self[\.maxRegression] ?? []).enumerated() {
            do throws(ThresholdError) {
                let limit = try RegressionLimit(sentence)
                if MetricDefinition.named(limit.name).direction == .none {
                    self.refuse(
                        \.maxRegression,
                        "'\(sentence)': neither more nor less of \(limit.name) is worse",
                        at: index
                    )
                } else {
                    options.limits = (options.limits ?? []) + [limit]
                }
            } catch {
                self.refuse(\.maxRegression, "'\(sentence)': \(error.problem)", at: index)
            }
        }
        for word in self[\.allowDifferent] ?? [] {
            if let kind = Comparability.Kind(rawValue: word) {
                options.allowed.insert(kind)
            } else {
                let known = Comparability.Kind.allCases.map(\.rawValue).joined(separator: ", ")
                self.refuse(\.allowDifferent, "'\(word)' is none of \(known)")
            }
        }
    }

    // MARK: - proxy, calibrate

    package mutating func proxy(_ target: String) -> ProxyOptions {
        var options = ProxyOptions()
        self.store(into: &options)
        options.target = self.proxyTarget(target) ?? options.target
        options.quiet = self[\.quiet] ?? false
        return options
    }

    /// Reads `host:port` or `[::1]:port`: what listens on no port of its own has no usual one to add.
    private mutating func proxyTarget(_ text: String) -> Target? {
        let colon = text.lastIndex(of: ":") ?? text.endIndex
        var host = text[..<colon]
        let port = Int(text[colon...].dropFirst()) ?? 0
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        if isBracketed { host = host.dropFirst().dropLast() }
        let isHost = !host.isEmpty && !host.contains { $0.isWhitespace || "/[]@".contains($0) }
        guard isHost, isBracketed || !host.contains(":"), (1...65_535).contains(port) else {
            self.refuse(
                argument: "HOST:PORT",
                "'\(text)' is not a server and its port; write it like 127.0.0.1:1883 or [::1]:5222"
            )
            return nil
        }
        return Target(host: String(host), port: port)
    }

    package mutating func calibrate() -> CalibrateOptions {
        var options = CalibrateOptions()
        self.store(into: &options)
        self.readOutput(into: &options)
        return options
    }

    // MARK: - capacity

    package mutating func capacity(_ load: [String]) -> CapacityOptions {
        var options = CapacityOptions()
        self.store(into: &options)
        options.load = load.first == "--" ? Array(load.dropFirst()) : load
        if options.hold < 1_000_000_000 { self.refuse(\.hold, "has to be a second at least") }
        self.readOutput(into: &options)
        self.store(into: &options.live)
        guard !options.load.isEmpty else {
            self.refuse(argument: "load", "is missing; end with a command, such as pub -h embedded -c 50 -q 1")
            return options
        }
        // Loads without operations of their own.
        let words = Array(options.load.prefix(2))
        options.variesClients = ["conn", "sub"].contains(words[0]) || words == ["xmpp", "login"]
        self.readBounds(into: &options)
        if options.objectives.isEmpty {
            self.refuse(\.objectives, "is missing; say what has to hold, such as 'publish_ack_duration p99 < 50ms'")
        }
        for (index, sentence) in options.objectives.enumerated() {
            // Whether there is a ledger to ask is found out with the load.
            if let problem = TextCheck.threshold(sentence, hasLedger: true) {
                self.refuse(\.objectives, "'\(sentence)': \(problem)", at: index)
            } else if options.hold < 60_000_000_000, (try? Threshold.parse(sentence))?.field == .slope {
                let words: OptionWords = "'\(sentence)': a slope needs a minute or more; add \(\.hold, "90s")"
                self.refuse(\.objectives, words, at: index)
            }
        }
        return options
    }

    private mutating func readBounds(into options: inout CapacityOptions) {
        if options.variesClients {
            self.refuse(given: \.maxRate, because: "the load varies by clients; use \(\.maxClients)")
            options.first = self.first(.number(1...10_000_000 as ClosedRange<Int>)).map(Double.init) ?? 100
            options.most = self[\.maxClients].map(Double.init) ?? options.most
        } else {
            self.refuse(given: \.maxClients, because: "the load varies by its rate; use \(\.maxRate)")
            options.first = self.first(.rate) ?? options.first
            options.most = self[\.maxRate] ?? options.most
        }
    }

    /// A number of clients or a rate, by what varies.
    private mutating func first<Value>(_ form: OptionForm<Value>) -> Value? {
        guard let text = self[\.first] else { return nil }
        return self.reading(\.first) { () throws(QuantityError) in try form.read([text], false) }
    }

    /// A step of a search as a command line; `nil` if it cannot run, or asks for what is the search's own.
    package mutating func step(of options: CapacityOptions) -> [String]? {
        // Objectives that cannot be read are refused already, and are thresholds of the step.
        guard let first = options.load.first,
            options.objectives.allSatisfy({ TextCheck.threshold($0, hasLedger: true) == nil })
        else { return nil }
        let commands = CommandName.allCases.filter { Set<CommandName>.loads.contains($0) }
        let words = options.load.prefix(first == "xmpp" ? 2 : 1).joined(separator: " ")
        guard let command = commands.first(where: { $0.rawValue == words }) ?? (words == "xmpp" ? .login : nil) else {
            let remedy =
                words.hasPrefix("-")
                ? "options of the load come behind its name, as in: clamor capacity pub \(words)"
                : "take conn, pub, sub, pubsub or xmpp"
            self.refuse(argument: "load", "'\(first)' is no load; \(remedy)")
            return nil
        }
        let own = Set(
            [
                OptionTable[\.duration], OptionTable[\.outputDirectory], OptionTable[\.thresholds],
                OptionTable[\.quiet], OptionTable[\.json], OptionTable[\.rate], OptionTable[\.prometheus],
                OptionTable[\.messageInterval], OptionTable[\.limit],
            ].map(\.id) + (options.variesClients ? [OptionTable[\.count].id] : [])
        )
        let given = CommandLineWords(options.load, OptionTable.specs(of: command)).options
        if let word = given.first(where: { own.contains($0.spec.id) }) {
            self.refuse(argument: word.name, "the search sets it; leave it out of the load")
            return nil
        }
        return options.arguments(load: options.first, directory: "capacity")
    }

    /// `invocation`: what the command line of a step asks for.
    package mutating func check(step invocation: Invocation) {
        switch invocation {
        case .run: break
        case .refused(let lines), .wrong(let lines):
            for line in lines {
                // A step has its objectives as thresholds, and no others.
                let words = line.split(separator: " \(OptionTable[\.thresholds].name): ", maxSplits: 1)
                if words.count == 2 {
                    self.refuse(\.objectives, OptionWords(String(words[1])))
                } else {
                    self.refuse(argument: "load", "\(line.replacing("clamor ", with: "", maxReplacements: 1))")
                }
            }
        default: self.refuse(argument: "load", "asks for a text, and runs nothing")
        }
    }
}
