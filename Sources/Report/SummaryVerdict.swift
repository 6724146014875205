package import Measurement

extension Summary {
    /// Measurement and objectives side by side: neither is to be missed for the other.
    var opening: [String] {
        let rows = self.hasFailed ? self.objectiveRows() + [""] : []
        return self.opening(rows, self.reasons(self.record.verdict?.reasons ?? []))
    }

    /// Without the reasons that the sentence has word for word.
    var compactOpening: [String] {
        let sentence = self.record.findings?.sentence ?? ""
        return self.opening(
            [],
            self.reasons(
                (self.record.verdict?.reasons ?? []).filter { reason in
                    // The code of a silent server is in the exit status.
                    !sentence.contains(reason.code == Verdict.Reason.silentCode ? reason.text : reason.line)
                }
            )
        )
    }

    private func opening(_ rows: [String], _ reasons: [String]) -> [String] {
        let state = self.style.paint(self.state.uppercased(), self.ink)
        guard let objectives = self.objectives else {
            return ["\(state)  \(self.headline)"] + self.sentence + reasons
        }
        let ink: TerminalStyle.Ink = self.hasFailed ? .red : .green
        return ["\(state) · \(self.style.paint(objectives, ink))"] + self.sentence + rows + [self.headline] + reasons
    }

    /// `3 of 4 objectives met`; nothing of a run that tested none, such as one in which no client connected.
    var objectives: String? {
        let results = self.record.thresholds
        guard !results.isEmpty, !self.nothingConnected else { return nil }
        return "\(results.count { $0.ok }) of \(results.count) objective\(results.count == 1 ? "" : "s") met"
    }

    /// Whether an objective that was tested failed.
    var hasFailed: Bool { !self.nothingConnected && self.record.thresholds.contains { !$0.ok } }

    /// The one sentence of the run.
    private var sentence: [String] {
        (self.record.findings?.sentence).map { self.paragraph($0, indent: 2, hanging: 2) } ?? []
    }

    /// The verdict in a word.
    var state: String { self.record.verdict?.state.rawValue ?? "unfinished" }

    private var ink: TerminalStyle.Ink { self.record.verdict?.state.ink ?? .yellow }

    private func reasons(_ reasons: [Verdict.Reason]) -> [String] {
        let segment = self.segment.map { self.paragraph($0, indent: 2, hanging: 2) } ?? []
        return segment + reasons.flatMap { self.paragraph("! \($0.line)", indent: 2, hanging: 2) }
    }

    /// Notes in addition to the figures.
    var notes: [String] {
        let notes = self.record.notes ?? []
        guard !notes.isEmpty else { return [] }
        return [self.style.paint("Notes", .bold)]
            + notes.flatMap { self.paragraph($0.line, indent: 2, hanging: 2) }
    }

    /// `clamor run · fleet telemetry · 10.0 s measured of 12.1 s · started 2026-11-21 01:37:09 UTC`.
    var headline: String {
        let measured = Human.duration(self.measuredSeconds) + " measured"
        let length = self.record.durationSeconds.map(Human.duration)
        let time =
            switch (self.measuredSeconds > 0, length) {
            case (true, .some(let length)): "\(measured) of \(length)"
            case (true, .none): measured
            case (false, .some(let length)): length
            case (false, .none): "length unknown"
            }
        let started = self.record.startedAt.prefix(19).replacing("T", with: " ")
        return ([self.commandName] + RunTitle.words(self.record) + [time, "started \(started) UTC"]).joined(
            separator: " · "
        )
    }

    /// Of the measured phase, which rates are of.
    var measuredSeconds: Double { self.record.stages.filter(\.measured).map(\.durationSeconds).reduce(0, +) }

    /// The part of a run's count that was in the measured phase, by its rate; `nil` where that is all of it.
    func measuredPart(_ value: Double?, _ rate: Double?) -> Double? {
        guard let value, let part = rate.map({ ($0 * self.measuredSeconds).rounded() }) else { return nil }
        return self.measuredSeconds > 0 && part < value - max(1, value / 50) ? part : nil
    }

    /// Nothing of a run that is whole, or merged.
    var segment: String? {
        let segment = self.record.segment
        guard segment.isPart else { return nil }
        return "segment \(segment.index) of \(segment.count): a part of the load; clamor merge adds the results of all"
    }

    package var commandName: String {
        let words = self.record.command
        let program = words.first.map { String($0.split(separator: "/").last ?? "") } ?? self.record.tool.name
        // Commands of a group have two words.
        let count = words.dropFirst().first == "xmpp" ? 2 : 1
        let subcommand = words.dropFirst().filter { !$0.hasPrefix("-") }.prefix(count)
        return ([program] + subcommand).joined(separator: " ")
    }

    /// The objectives of a run in which all were met.
    var metObjectives: [String] {
        guard !self.record.thresholds.isEmpty, !self.hasFailed else { return [] }
        return [self.style.paint("Objectives", .bold) + "  all \(self.record.thresholds.count) met"]
            + self.objectiveRows()
    }

    /// `met`, `FAILED` or `undecided`, the sentence, and the figure that decided.
    func objectiveRows(where isShown: (ThresholdResult) -> Bool = { _ in true }) -> [String] {
        let results = self.record.thresholds
        let width = results.map(\.expression.count).max() ?? 0
        let marks = max(6, results.map(\.state.word.count).max() ?? 0)
        return results.filter(isShown).flatMap { result in
            let mark = self.style.paint(result.state.word.paddedRight(to: marks), result.state.ink)
            let row = "  \(mark)  \(result.expression.paddedRight(to: width))  \(result.valueText)"
            return [row] + (result.remedy.map { self.paragraph($0, indent: marks + 4) } ?? [])
        }
    }

    /// Every kind once, the most frequent first, with its example below.
    var errors: [String] {
        let errors = self.record.errors.mostFrequentFirst
        guard !errors.isEmpty else { return [] }
        var table = TextTable(["Errors", "count", "first at"])
        for error in errors {
            // The time of day, to the millisecond.
            table.add([error.words, Human.count(error.count), String(error.firstAt.prefix(23).dropFirst(11))])
        }
        let rows = self.section(table)
        var lines = [rows[0]]
        for (row, error) in zip(rows.dropFirst(), errors) {
            lines.append(row)
            if !error.example.isEmpty {
                lines.append("    " + self.style.paint("e.g. \(error.example)".truncated(to: self.width - 4), .dim))
            }
        }
        return lines
    }

    /// Whether the run never had a connection: then every figure is zero and shows nothing of the server.
    var nothingConnected: Bool { self.record.hasNeverConnected }

    /// Where to look first.
    var hint: [String] { [self.style.paint("Hint", .bold) + "  " + self.record.connectionHint] }
}

extension Verdict.State {
    var ink: TerminalStyle.Ink {
        switch self {
        case .valid: .green
        case .generatorLimited: .yellow
        case .unreconciled, .aborted: .red
        }
    }
}

extension ThresholdResult {
    /// The measured figure in the unit of the limit, which is printed in the same sentence; both ends of one that is not
    /// known exactly.
    package var valueText: String {
        guard let value = self.value else { return "no sample" }
        let unit = (try? Threshold.parse(self.expression))?.unit
        func text(_ value: Double) -> String {
            switch unit {
            case .time: Human.duration(value)
            case .share: Human.percent(value)
            case .perSecond: Human.rate(value)
            case .plain, nil: Human.number(value)
            }
        }
        guard self.isBound else { return text(value) }
        return self.high.map { "\(text(value)) to \(text($0))" } ?? Human.atLeast(text(value))
    }

    /// The means to decide it; `nil` if it is decided, or if nothing but an answer would.
    package var remedy: String? {
        guard self.state == .undecided, let low = self.value, let high = self.high,
            (try? Threshold.parse(self.expression))?.name == "delivery_lost"
        else { return nil }
        return "\(Human.number(high - low)) outstanding when the drain ended; give it more time"
    }
}

extension ThresholdResult.State {
    package var word: String {
        switch self {
        case .met: "met"
        case .broken: "FAILED"
        case .undecided: "undecided"
        }
    }

    var ink: TerminalStyle.Ink {
        switch self {
        case .met: .green
        case .broken: .red
        case .undecided: .yellow
        }
    }
}

extension ErrorRecord {
    /// The kind, with the group in a run of several.
    var words: String { [self.group, self.kind].compactMap(\.self).joined(separator: " ") }
}

extension [ErrorRecord] {
    var mostFrequentFirst: [ErrorRecord] { self.sorted { ($1.count, $0.kind) < ($0.count, $1.kind) } }
}

extension RunRecord {
    /// Whether the run ended, or was interrupted, before its first connection.
    package var hasNeverConnected: Bool {
        let codes = (self.verdict?.reasons ?? []).map(\.code)
        let isInterrupted = codes.contains("interrupted") && self.stages.first?.name == "connect"
        guard codes.contains("no-connection") || isInterrupted else { return false }
        return !self.metrics.contains {
            $0.name == "connect_duration" && $0.labels["phase"] == "total" && $0.duration?.answered ?? 0 > 0
        }
    }

    /// The remedy for a run without any connection, by its most frequent error.
    package var connectionHint: String {
        let error = self.errors.max { $0.count < $1.count }
        let example = error?.example ?? ""
        switch error?.kind {
        case nil: return "no connect attempt ended; check that the server answers at this host and port"
        case "refused": return "check that the server listens at this host and port"
        case "resolve": return "check the spelling of the host name, and the name server of this host"
        case let kind? where kind.hasPrefix("timeout") || kind == "unreachable":
            return "check host and port, and the firewall and routes on the way to the server"
        case "protocol" where example.contains("HTTP"):
            return "this port speaks HTTP; \(self.named("add --ws", "use ws://")), or name the port of MQTT"
        case "reset", "lost", "closed", "protocol", "not-well-formed": return self.portHint
        case "tls": return self.tlsHint(example)
        case "websocket":
            let words = "check that this port speaks WebSocket, and the path of its endpoint"
            return self.has("tls") || self.has("domain") ? words : "\(words); TLS needs \(self.named("-S", "wss://"))"
        case "connack 0x01", "connack 0x84": return "the server does not speak this version of MQTT; try MQTT 3.1.1"
        case "connack 0x9c", "connack 0x9d", "see-other-host":
            return "the server has sent its clients elsewhere; connect there"
        case "connack 0x97", "connack 0x9f":
            return "a limit of the server; raise it, or connect more slowly (\(self.named("-R", "connect.rate")))"
        case "session":
            let clean = self.named("-C true", "connect.clean: true")
            return "use another \(self.named("--seed or --prefix", "seed or prefix")), or a clean start (\(clean))"
        case "ports", "descriptors", "source": return "check with clamor doctor what this host allows"
        case "not-authorized" where self.plans.contains { $0["domain"] != nil }:
            return "check \(self.named("--jid and its password; --register", "jid and its password; register: true")) "
                + "creates missing accounts"
        default: return "check user name, password and client identifiers; the server's log has its reason"
        }
    }

    /// The connection broke before the protocol began: most likely the port is one of other layers.
    private var portHint: String {
        if self.has("tls") { return self.plainPortHint }
        if self.has("websocket_path") {
            return "this port may need TLS, or speak no WebSocket; "
                + self.named("add -S, leave out --ws, or name its port", "use wss:// or mqtt://, or name its port")
        }
        return "check that this port speaks this protocol, and whether it requires TLS"
    }

    private var plainPortHint: String {
        if self.has("websocket_path") {
            return "this port may not speak WebSocket over TLS; leave out TLS, or name its port"
        }
        guard self.has("domain") else {
            let remedy = self.named("leave out -S", "use mqtt://")
            return "this port may not speak TLS; \(remedy), or use the port for TLS, 8883"
        }
        let tls = self.named("--tls", "tls:")
        return self.plans.contains { $0["tls_policy"] == "direct" }
            ? "this port may not begin with TLS; use \(tls) required, or the port for TLS, 5223"
            : "check that this is the port for clients of XMPP, 5222; with \(tls) direct it is 5223"
    }

    /// `example`: the words of the failure.
    private func tlsHint(_ example: String) -> String {
        if example.contains("closed during the handshake") || example.contains("does not speak TLS") {
            return self.plainPortHint
        }
        if example.contains("no known authority") {
            return "trust the authority of the server's certificate with \(self.named("--cacertfile", "ca_file:")) FILE"
        }
        if example.contains("certificate not for") {
            return self.plans.contains { $0["domain"] != nil }
                ? "the server needs a certificate for the domain of \(self.named("--jid", "jid"))"
                : "connect to a name of the certificate, or give such a name with \(self.named("--sni", "sni:")) NAME"
        }
        return "check that this port speaks TLS, and that the certificate is valid for this host"
    }

    /// An option, or what a scenario file has in its place.
    private func named(_ option: String, _ inFile: String) -> String { self.plan["command"] == "run" ? inFile : option }

    private func has(_ key: String) -> Bool { self.plans.contains { $0[key] != nil } }
}
