import MQTTCodec
import Measurement
import Report
import Workloads

extension ScenarioOptions {
    /// The planned run, in lines.
    package var explanation: String {
        let clients = self.groups.reduce(0) { $0 + $1.options.clients }
        // With stages the load's length is that of all, warm-ups among them.
        let warmup = self.common.warmup + self.common.stages.filter(\.isWarmup).reduce(0) { $0 + $1.length }
        let duration =
            self.common.loadLength.map { DurationText.text($0 - warmup) + " measured" } ?? "until SIGINT"
        let bridged = self.bridged ? ", targets bridged" : ""
        var lines = [
            "\(self.name): \(Words.count(self.groups.count, "group")), \(Words.count(clients, "client")), \(duration), "
                + "warm-up \(DurationText.text(warmup)), drain up to \(DurationText.text(self.common.drain))" + bridged
        ]
        for group in self.groups {
            lines.append("  \(group.name): \(group.command), \(Self.clients(group)) to \(Self.targets(group))")
            lines.append("    " + ([Self.connects(group.options)] + group.details).joined(separator: ", "))
            lines += group.parts.map { "    \($0)" }
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
        let groups = self.groups.filter { !$0.options.makesAccounts }
        let named = Set(stage.turnouts.map(\.group))
        let words = groups.filter { named.isEmpty || named.contains($0.name) }.map { group in
            let all = group.options.members
            let count = "\(stage.of(group: group.name).clients.present(of: all)) of \(Words.count(all, "client"))"
            return groups.count == 1 ? count : "\(count) of \(group.name)"
        }
        return words.joined(separator: " and ") + " take part"
    }

    private static func percent(_ share: Double) -> String { "\(Words.number(share * 100))%" }

    private static func clients(_ group: ScenarioGroup) -> String {
        let options = group.options
        return options.operators > 0 && options.listeners > 0
            ? "\(Words.count(options.operators, "publisher")) and \(Words.count(options.listeners, "subscriber"))"
            : Words.count(options.clients, "client")
    }

    private static func targets(_ group: ScenarioGroup) -> String {
        group.options.targetNames.joined(separator: ", ")
    }

    private static func connects(_ options: LoadOptions) -> String {
        options.connectRate.map { "\(Words.number($0)) connects/s" } ?? "connects as fast as they go"
    }
}

extension ScenarioGroup {
    /// The short command that does the same.
    fileprivate var command: String { "\(self.work.command.speech.rawValue.lowercased()) \(self.work.command.word)" }

    fileprivate var details: [String] {
        switch self.work {
        case .mqtt(let options):
            let version = "MQTT \([3: "3.1", 4: "3.1.1"][options.protocolLevel] ?? "5")"
            guard options.operates, options.streams.isEmpty else { return [version] }
            return [options.pace(window: self.window), version] + options.message
        case .xmpp(let options):
            let users =
                options.users.isEmpty
                ? "\(options.local)@\(options.domain)/\(options.resource)" : "\(options.users.count) users of a table"
            var details = options.operates ? [options.pace(window: self.window)] : []
            details += [users, "TLS \(options.tls.rawValue)"]
            guard options.kind == .message else { return details }
            return details + ["pairing \(options.pairing.rawValue)"] + options.sizes
        }
    }

    /// Each stream of several, and each filter.
    fileprivate var parts: [String] {
        guard case .mqtt(let options) = self.work else { return [] }
        let streams = options.streams.map { stream in
            let one = options.with(stream)
            return "stream \(stream.name): " + (one.message + [one.pace(window: self.window)]).joined(separator: ", ")
        }
        return streams + options.subscriptions.map { $0.words(usual: options.qosWords) }
    }

    private var window: Int {
        switch self.work {
        case .mqtt(let options): options.highestQoS == 0 ? options.batch : options.window
        case .xmpp(let options): options.window
        }
    }
}

extension MQTTOptions {
    fileprivate var qosWords: String { "QoS \(self.qualities.map { "\($0)" }.joined(separator: ","))" }

    /// The messages of publishers: topic, QoS, size.
    fileprivate var message: [String] {
        let topic = self.p2p.map { "topic \($0.root)/p2p/ID of \($0.to)" } ?? "topic \(self.topic)"
        return [topic, self.qosWords] + self.sizes + (self.retain ? ["retained"] : [])
    }
}

extension SubscriptionOption {
    /// `usual`: the QoS of filters that have none of their own.
    fileprivate func words(usual: String) -> String {
        var words = [self.qos.map { "QoS \($0)" } ?? usual]
        if self.options.noLocal { words.append("no local") }
        if self.options.retainAsPublished { words.append("retain as published") }
        if self.options.retainHandling != .send {
            words.append("retain handling \(self.options.retainHandling.rawValue)")
        }
        return "filter \(self.filter): \(words.joined(separator: ", "))"
    }
}

extension ProtocolOptions {
    fileprivate var sizes: [String] {
        guard self.operates, case .generated(let sizes) = self.payload else { return [] }
        let bounds = [sizes.lowerBound, sizes.upperBound].prefix(sizes.count == 1 ? 1 : 2)
        return [bounds.map { Words.count(UInt64($0)) }.joined(separator: " to ") + " bytes"]
    }

    fileprivate func pace(window: Int) -> String {
        guard let rate = self.messageRate else {
            let think = self.think > 0 ? ", \(DurationText.text(self.think)) to think" : ""
            return "closed loop, window \(window)\(think)"
        }
        let words =
            switch self.shape {
            case .level: "\(Words.number(rate)) operations/s"
            case .ramp(let from, let to, let over):
                "\(Words.number(from)) to \(Words.number(to)) operations/s"
                    + (over.map { " within \(DurationText.text($0))" } ?? "")
            case .steps(let rates, let every):
                rates.map { Words.number($0) }.joined(separator: ", ")
                    + " operations/s, \(DurationText.text(every)) each"
            }
        switch self.arrivals {
        case .even: return words
        case .poisson: return words + ", Poisson arrivals"
        case .bursts(let size): return words + ", \(Words.count(UInt64(size))) at once"
        }
    }
}
