import Measurement

/// The one sentence of a run, with the number of the event that it is about.
struct FindingSentence {
    typealias Statement = (text: String, evidence: Int?)

    let search: FindingsSearch
    let found: [FoundEvent]
    let silent: Int?

    private var run: RunRecord { self.search.run }

    var statement: Statement {
        switch self.run.verdict?.state {
        case .aborted: self.aborted
        case .unreconciled: self.unreconciled
        case .generatorLimited: self.generator
        case .valid, nil:
            self.withServer(
                self.hung ?? self.broken ?? self.nothingDone ?? self.unanswered ?? self.failed ?? self.irregular
                    ?? self.behind ?? self.slow ?? self.minor ?? self.nothing
            )
        }
    }

    /// With the server's CPU, where that was the limit when a latency or the rate broke, or in a run without a break.
    private func withServer(_ statement: Statement) -> Statement {
        guard
            let server = self.found.first(where: {
                $0.event.kind == .server && $0.event.text.hasPrefix(FindingServer.limitWords)
            }), let seconds = server.event.seconds
        else { return statement }
        if let evidence = statement.evidence, let broken = self.found.first(where: { $0.event.number == evidence }) {
            // A lost connection or an error has causes of its own.
            guard [.threshold, .stall, .change].contains(broken.event.kind) else { return statement }
            // A break begins in the interval in which the core filled up, or later.
            guard server.start - 1 <= broken.start, broken.start <= server.start + seconds else { return statement }
        }
        return ("\(statement.text); \(server.event.text)", statement.evidence ?? server.event.number)
    }

    private var reason: Verdict.Reason? { self.run.verdict?.reasons.first }

    // MARK: - Before any statement on the server

    private var aborted: Statement {
        guard let reason = self.reason else { return ("the run was aborted", nil) }
        switch reason.code {
        case Verdict.Reason.noConnectionCode where self.run.clientsUp ?? 0 > 0:
            return (reason.line, self.number(.error))
        case Verdict.Reason.noConnectionCode:
            let error = self.run.errors.max { $0.count < $1.count }
            let words = error.map { ": \($0.example.isEmpty ? $0.kind : $0.example)" } ?? ""
            return (self.run.nothingCameUp("no client connected") + words, self.number(.error))
        case Verdict.Reason.signalCode:
            return (
                ["a signal ended the run\(self.endWords)", self.before].compactMap(\.self).joined(separator: "; "), nil
            )
        case Verdict.Reason.thresholdCode:
            let found = self.found.first { $0.event.kind == .threshold && $0.isBreak }
            return (found.map { "\($0.sentence); the run ended there" } ?? reason.line, found?.event.number)
        case Verdict.Reason.connectionsLostCode:
            let found = self.found.first { $0.event.kind == .storm && $0.isBreak }
            let words = "all connections were lost"
            guard let found, reason.text.hasPrefix(words) else { return (reason.line, nil) }
            return ("\(words) at \(found.event.second) s\(reason.text.dropFirst(words.count))", found.event.number)
        default: return (reason.line, nil)
        }
    }

    /// ` at 8 s in stage peak`.
    private var endWords: String {
        guard let end = self.run.stages.last(where: { $0.name != "drain" }) else { return "" }
        let second = Int(bounded: end.start + end.durationSeconds)
        let stage = self.search.intervals.hasStages && end.name != "connect" ? " in stage \(end.name)" : ""
        return " at \(second) s\(stage)"
    }

    private var before: String? {
        self.found.first { $0.isBreak && $0.event.kind != .generator }.map { "before that, \($0.sentence)" }
    }

    private var unreconciled: Statement {
        let more = (self.run.verdict?.reasons.count ?? 1) - 1
        let words = more > 0 ? ", and \(FindingWords.count(Double(more), "other reason"))" : ""
        return ("the figures do not reconcile: \(self.reason?.line ?? "the reason is unknown")\(words)", nil)
    }

    /// A fault that a late generator cannot explain is the server's, and comes first: silence for good, a stall ten
    /// times as long as sends were late, a proven loss.
    private var generator: Statement {
        let limit = self.found.first { $0.event.kind == .generator && $0.isBreak }
        let own =
            limit?.sentence ?? self.reason.map { "\($0.limited): \($0.line)" }
            ?? "the generator was the limit: the reason is unknown"
        let late =
            self.search.intervals.highest(self.search.intervals.columns(.scheduleLag), \.p99)
            .compactMap(\.self).max() ?? 0
        let stall = self.found.first { $0.event.kind == .stall && $0.event.seconds ?? 0 >= late * 10 }
        guard let fault = self.hung ?? stall.map({ ($0.sentence, $0.event.number) }) ?? self.loss else {
            return (own, limit?.event.number)
        }
        return ("\(fault.text); \(own)", fault.evidence)
    }

    // MARK: - What broke

    private var hung: Statement? {
        guard let second = self.silent else { return nil }
        let text = Verdict.Reason.silent(from: second).text
        return (self.run.outstandingWords.map { "\(text): \($0)" } ?? text, self.number(.stall))
    }

    /// With what was not answered, which nothing else in the sentence tells.
    private var broken: Statement? {
        guard let broken = self.first ?? self.loss else { return nil }
        return self.unanswered.map { ("\(broken.text); \($0.text)", broken.evidence) } ?? broken
    }

    /// Operations that were due and had no end when the drain was over.
    private var unanswered: Statement? { self.run.outstandingWords.map { ($0, nil) } }

    private var first: Statement? {
        self.found.first { $0.isBreak && $0.event.kind != .generator }.map { ($0.sentence, $0.event.number) }
    }

    private var loss: Statement? {
        let all = [self.lostMessages, self.lostCopies].compactMap(\.self)
        return all.isEmpty ? nil : (all.map(\.text).joined(separator: "; "), nil)
    }

    /// Stored copies that a SUBSCRIBE was owed, with the limit that they met.
    private var lostCopies: Statement? {
        let lost = self.total(.retainedLost)
        guard lost > 0 else { return nil }
        let limit = self.run.notes?.first { $0.code == Verdict.Reason.retainedLimitCode }.map { "; \($0.text)" }
        let all = FindingWords.count(self.total(.retainedExpected), "retained message")
        return ("\(Words.number(lost)) of \(all) did not come\(limit ?? "")", nil)
    }

    private var lostMessages: Statement? {
        let lost = (self.run.ledger.lost ?? [:]).filter { $0.value > 0 }
        guard self.run.ledger.on, !lost.isEmpty else { return nil }
        let count = lost.values.reduce(0, +)
        let expected = self.run.books.compactMap(\.expected).reduce(0, +)
        let of = expected >= count && expected > 0 ? " of \(Words.count(expected))" : ""
        let causes = lost.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { cause, count in
            let name = cause.replacing("-", with: " ")
            return lost.count == 1 ? name : "\(name) \(Words.count(count))"
        }
        let example = self.run.ledger.examples?.first { $0.finding == .lost }.flatMap(\.words)
        let noun = count == 1 && of.isEmpty ? "message" : "messages"
        let text = "\(Words.count(count))\(of) \(noun) \(count == 1 ? "was" : "were") lost "
        return (text + "(\(causes.joined(separator: ", ")))" + (example.map { "; the first: \($0)" } ?? ""), nil)
    }

    /// Messages were sent, and none was answered or came.
    private var nothingDone: Statement? {
        let answers = self.search.lanes.filter { $0.kind == .answers }
        let sent = answers.reduce(0) { $0 + $1.sent.reduce(0, +) }
        if !answers.isEmpty, sent > 0, answers.allSatisfy({ $0.done.allSatisfy { $0 == 0 } }) {
            let words = "\(Words.count(Int64(bounded: sent))) \(sent == 1 ? "was" : "were") sent"
            return ("no message was acknowledged: \(words)", nil)
        }
        return self.isSilentSubscriber ? ("no message was received", nil) : nil
    }

    /// A run that only subscribes, and heard nothing.
    private var isSilentSubscriber: Bool {
        // Where clients unsubscribe too, that is the load.
        guard self.run.whole(.unsubscribe).isEmpty else { return false }
        let received = self.run.metrics.filter { $0.isOf(.received) }
        let offered = MetricDefinition.all(.offered)
        return self.run.metrics.contains { $0.isOf(.subscribe) } && !received.isEmpty
            && received.allSatisfy { $0.counter?.value == 0 }
            && !self.run.metrics.contains { $0.isOf(offered) && $0.counter?.value ?? 0 > 0 }
    }

    /// An objective that the time line cannot date.
    private var failed: Statement? {
        let failed = self.run.thresholds.filter { !$0.ok }
        guard let first = failed.first else { return nil }
        let more = failed.count > 1 ? ", and \(FindingWords.count(Double(failed.count - 1), "other"))" : ""
        let word = first.state == .undecided ? "is undecided" : "failed"
        return ("the objective \(first.expression) \(word)\(self.figure(of: first))\(more)", nil)
    }

    private func figure(of result: ThresholdResult) -> String {
        guard let value = result.value else { return ": it has no sample" }
        let unit = (try? Threshold.parse(result.expression))?.unit
        func words(_ value: Double) -> String {
            switch unit {
            case .time: FindingWords.duration(value)
            case .share: Words.percent(value, digits: 2)
            case .perSecond: "\(FindingWords.significant(value))/s"
            case .perHour: "\(Words.number(value))/h"
            case .timePerHour: "\(FindingWords.duration(value))/h"
            case .plain, nil: Words.decimal(value)
            }
        }
        guard result.isBound else { return ": \(words(value))" }
        return result.high.map { ": \(words(value)) to \(words($0))" } ?? ": \(words(value)) or more"
    }

    /// Faults that no time line dates and no standard permits: MQTT 5.0 §4.3.3 and §4.6, RFC 6120 §10.1 and §8.3.
    private var irregular: Statement? {
        let found = [
            (self.total(.deliveryDuplicated, ["qos": "2"]), "message", "came twice at QoS 2"),
            (self.total(.deliveryReordered), "message", "came out of order"),
            (self.total(.retainedStale), "retained message", "came in an older state"),
            (self.total(.repliesOutstanding), "answer", "of a client did not come"),
            (self.total(.stanzaRefused), "stanza", "came back as an error"),
        ].filter { $0.0 > 0 }
        guard !found.isEmpty else { return nil }
        return (found.map { "\(FindingWords.count($0, $1)) \($2)" }.joined(separator: "; "), nil)
    }

    private func total(_ metric: MetricDefinition, _ labels: Labels = [:]) -> Double {
        self.run.whole(metric).filter { $0.labels.contains(labels) }.reduce(0) { $0 + ($1.counter?.value ?? 0) }
    }

    /// Answers that fell behind the load until its end.
    private var behind: Statement? {
        guard let backlog = self.search.backlog, let growth = backlog.growth else { return nil }
        // The cause is not recorded: the server, a long path or a window of few messages.
        let text =
            "the answers fell behind by \(Self.whole(growth)) of \(Self.whole(backlog.offered)) messages a second"
        let change = self.found.first { $0.event.kind == .change }
        return (text + (change.map { "; \($0.event.text)" } ?? ""), change?.event.number)
    }

    /// `3,410`, `12.3`.
    private static func whole(_ value: Double) -> String { Words.decimal(value, digits: value >= 99.95 ? 0 : 1) }

    /// Connects and sends that the server let wait for over a second, which no objective judges.
    private var slow: Statement? {
        func worst(_ metrics: [MetricDefinition]) -> Double {
            self.run.metrics.filter {
                $0.isOf(metrics) && ["total", nil].contains($0.labels["phase"]) && $0.labels[Labels.stage] == nil
            }.compactMap(\.duration?.p99).max() ?? 0
        }
        let found = [
            ("connects took", worst([.connect, .reconnect])),
            ("sends were held back for", worst([.publishBlocked, .stanzaBlocked])),
        ].filter { $0.1 >= 1 }
        guard !found.isEmpty else { return nil }
        return (found.map { "\($0) \(FindingWords.duration($1)) (p99)" }.joined(separator: "; "), nil)
    }

    private var minor: Statement? {
        let found =
            self.found.first { $0.event.kind == .threshold } ?? self.found.first { $0.event.kind == .error }
            ?? self.found.first { $0.event.kind == .storm && !$0.isPlanned }
        return found.map { ($0.sentence, $0.event.number) } ?? self.undatedError
    }

    /// Errors that the time line does not have.
    private var undatedError: Statement? {
        let count = self.run.errors.reduce(0) { $0 + $1.count }
        guard count > 0, let most = self.run.errors.max(by: { $0.count < $1.count }) else { return nil }
        let example = most.example.isEmpty ? "" : ", such as: \(most.example)"
        return ("\(FindingWords.count(Double(count), "error")), most of kind \(most.kind)\(example)", nil)
    }

    private var nothing: Statement {
        let change = self.found.first { $0.event.kind == .change }
        return (FindingsRecord.calm + (change.map { "; \($0.event.text)" } ?? ""), change?.event.number)
    }

    private func number(_ kind: FindingEvent.Kind) -> Int? { self.found.first { $0.event.kind == kind }?.event.number }
}
