import HostFit
import Measurement
import NIOCore
import Report
import Workloads
import RunResult

/// `clamor run FILE --check`: what would run, group by group, and whether this host carries it.
struct ScenarioCheck {
    private let scenario: ScenarioOptions
    private let screen: ProgressScreen

    init(_ scenario: ScenarioOptions) {
        self.scenario = scenario
        self.screen = ProgressScreen(quiet: scenario.common.quiet, json: false)
    }

    func perform() -> ExitStatus {
        Descriptors.raiseLimit()
        let question = self.question
        let needs = question.needs.map { check in
            "  this host, \(check.name): needs \(check.needs ?? ""); \(check.found)\n"
        }
        self.screen.show(self.scenario.explanation + needs.joined())
        guard let problem = question.problem else { return .success }
        self.screen.warn(problem)
        return .usage
    }

    private var question: HostQuestion {
        let groups = self.scenario.groups
        let limits = HostLimits.read(clients: groups.reduce(0) { $0 + $1.options.clients })
        let threads =
            self.scenario.common.threads
            ?? LoadOptions.defaultThreads(
                cores: limits.cores ?? System.coreCount,
                loopback: groups.contains { $0.options.isLoopback }
            )
        return HostQuestion(groups.map(\.runGroup), limits: limits, threads: threads)
    }
}

extension ScenarioOptions {
    /// The planned run, in lines.
    package var explanation: String {
        let clients = self.groups.reduce(0) { $0 + $1.options.clients }
        // With stages the load's length is that of all, warm-ups among them.
        let warmup = self.common.warmup + self.common.stages.filter(\.isWarmup).reduce(0) { $0 + $1.length }
        let duration =
            self.common.loadLength.map { DurationText.text($0 - warmup) + " measured" } ?? "until SIGINT"
        var lines = [
            "\(self.name): \(Self.count(self.groups.count, "group")), \(Self.count(clients, "client")), \(duration), "
                + "warm-up \(DurationText.text(warmup)), drain up to \(DurationText.text(self.common.drain))"
        ]
        for group in self.groups {
            lines.append("  \(group.name): \(group.command), \(Self.clients(group)) to \(Self.targets(group))")
            lines.append("    " + ([Self.connects(group.options)] + group.details).joined(separator: ", "))
        }
        for stage in self.common.stages {
            var words = ["load \(Self.percent(stage.load))"]
            if stage.isWarmup { words.append("not measured") }
            if stage.clients != .share(1) || !stage.turnouts.isEmpty { words.append(self.turnout(stage)) }
            if stage.reconnect > 0 { words.append("\(Self.percent(stage.reconnect)) of the clients come back") }
            if stage.offline > 0 { words.append("\(Self.percent(stage.offline)) of the subscribers are away") }
            lines.append("  stage \(stage.name): \(DurationText.text(stage.length)), \(words.joined(separator: ", "))")
        }
        lines.append("  schedule: \(self.scheduleHash)")
        lines += self.common.thresholds.map { "  threshold: \($0)" }
        return lines.joined(separator: "\n") + "\n"
    }

    /// `5 of 10 clients take part`, or that of each group.
    private func turnout(_ stage: StageOption) -> String {
        let groups = self.groups.filter { $0.options.name != "xmpp-register" }
        let named = Set(stage.turnouts.map(\.group))
        let words = groups.filter { named.isEmpty || named.contains($0.name) }.map { group in
            let all = group.options.members
            let count = "\(stage.of(group: group.name).clients.present(of: all)) of \(Self.count(all, "client"))"
            return groups.count == 1 ? count : "\(count) of \(group.name)"
        }
        return words.joined(separator: " and ") + " take part"
    }

    private static func percent(_ share: Double) -> String { "\(Human.number(share * 100))%" }

    private static func count(_ number: Int, _ word: String) -> String {
        "\(Human.count(UInt64(number))) \(word)\(number == 1 ? "" : "s")"
    }

    private static func clients(_ group: ScenarioGroup) -> String {
        let options = group.options
        return options.operators > 0 && options.listeners > 0
            ? "\(self.count(options.operators, "publisher")) and \(self.count(options.listeners, "subscriber"))"
            : self.count(options.clients, "client")
    }

    private static func targets(_ group: ScenarioGroup) -> String {
        group.options.targetNames.joined(separator: ", ")
    }

    private static func connects(_ options: LoadOptions) -> String {
        options.connectRate.map { "\(Human.number($0)) connects/s" } ?? "connects as fast as they go"
    }
}

extension ScenarioGroup {
    /// The short command that does the same.
    fileprivate var command: String {
        switch self.work {
        case .mqtt(let options): "mqtt \(options.kind.rawValue)"
        case .xmpp(let options): "xmpp \(options.kind.rawValue)"
        }
    }

    fileprivate var details: [String] {
        var details: [String] = []
        if self.options.operates {
            details.append(self.pace)
        }
        switch self.work {
        case .mqtt(let options):
            details.append("MQTT \([3: "3.1", 4: "3.1.1"][options.protocolLevel] ?? "5")")
            if options.operates { details.append("topic \(options.topic)") }
            if !options.filters.isEmpty { details.append("filters \(options.filters.joined(separator: " "))") }
            if options.kind != .conn {
                details.append("QoS \(options.qualities.map { "\($0)" }.joined(separator: ","))")
            }
        case .xmpp(let options):
            let users =
                options.users.isEmpty
                ? "\(options.local)@\(options.domain)/\(options.resource)" : "\(options.users.count) users of a table"
            details += [users, "TLS \(options.tls.rawValue)"]
            if options.kind == .message { details.append("pairing \(options.pairing.rawValue)") }
        }
        guard self.options.operates, case .generated(let sizes) = self.options.payload, self.hasPayload else {
            return details
        }
        let bounds = [sizes.lowerBound, sizes.upperBound].prefix(sizes.count == 1 ? 1 : 2)
        return details + [bounds.map { Human.count(UInt64($0)) }.joined(separator: " to ") + " bytes"]
    }

    private var pace: String {
        guard let rate = self.options.messageRate else {
            let think = self.options.think > 0 ? ", \(DurationText.text(self.options.think)) to think" : ""
            return "closed loop, window \(self.window)\(think)"
        }
        let words =
            switch self.options.shape {
            case .level: "\(Human.number(rate)) operations/s"
            case .ramp(let from, let to, let over):
                "\(Human.number(from)) to \(Human.number(to)) operations/s"
                    + (over.map { " within \(DurationText.text($0))" } ?? "")
            case .steps(let rates, let every):
                rates.map { Human.number($0) }.joined(separator: ", ")
                    + " operations/s, \(DurationText.text(every)) each"
            }
        switch self.options.arrivals {
        case .even: return words
        case .poisson: return words + ", Poisson arrivals"
        case .bursts(let size): return words + ", \(Human.count(UInt64(size))) at once"
        }
    }

    private var hasPayload: Bool {
        if case .xmpp(let options) = self.work { options.kind == .message } else { true }
    }

    private var window: Int {
        switch self.work {
        case .mqtt(let options): options.highestQoS == 0 ? options.batch : options.window
        case .xmpp(let options): options.window
        }
    }
}
