package import Measurement

/// The server's part of a run: one sentence of figures, and one of what broke first.
package struct ServerOutcome {
    private let record: RunRecord
    private let counts: SummaryCounts
    /// The series that the figures are of: of answers, or else of deliveries, or else of connects.
    private let series: [(metric: Metric, reading: DurationReading)]
    private let failed: Double
    private let unanswered: Double

    package init(_ record: RunRecord) {
        self.record = record.withoutStages
        self.counts = SummaryCounts(self.record.metrics)
        let whole = self.record.metrics.compactMap { metric in
            metric.labels.isWhole() ? metric.duration.map { (metric: metric, reading: $0) } : nil
        }
        let all = Dictionary(grouping: whole) { $0.metric.definition?.role }
        let isOfMessages = (self.counts.sent.value ?? 0) + (self.counts.arrived.value ?? 0) > 0
        self.series = all[.answer] ?? all[.delivery] ?? (isOfMessages ? nil : all[.connect]) ?? []
        let unanswered = self.series.compactMap(\.reading.unanswered)
        self.failed = unanswered.reduce(0) { $0 + Double($1.failed) }
        self.unanswered = self.counts.outstanding.value ?? unanswered.reduce(0) { $0 + Double($1.outstanding) }
    }

    /// `99 % of 10,000 messages answered within 4.00 ms, none lost. No error, no stall.`; `nil` where nothing is known.
    ///
    /// A fault of the measurement comes before any statement on the server.
    package var text: String? {
        let isOfServer = self.record.verdict?.state ?? .valid == .valid
        let known = isOfServer ? [self.figures, self.fault] : self.fault.map { [$0, self.figures] } ?? []
        let sentences = known.compactMap { $0.map(Self.sentence) }
        return sentences.isEmpty ? nil : sentences.joined(separator: " ")
    }

    package var hasFigures: Bool { self.figures != nil }

    /// Whether something was measured, and nothing of it failed, is missing or is not known.
    package var isFaultless: Bool {
        let isCalm = self.record.findings?.isCalm ?? self.record.isOfDecoders
        let isWhole = self.record.books.deliveries.map { $0.lost == 0 && $0.outstanding == 0 } ?? true
        return self.hasFigures && self.record.verdict?.state == .valid && self.record.errors.isEmpty && isCalm
            && isWhole
            && self.failed + self.unanswered == 0
    }

    // MARK: - Figures

    private var figures: String? {
        guard !self.record.hasNeverConnected else { return nil }
        if self.record.isOfDecoders { return self.decoded }
        guard let first = self.slowest ?? self.traffic else { return nil }
        let isSaid = self.isSaid("not answered") || self.isSaid("not sent")
        let ends = [(self.failed, "failed"), (isSaid ? 0 : self.unanswered, "not answered")].filter { $0.0 > 0 }
        let parts = [first] + ends.map { "\(Words.number($0.0)) \($0.1)" } + [self.clients, self.losses, self.owed]
        return parts.compactMap(\.self).joined(separator: ", ")
    }

    private static let nouns: [MetricDefinition: (noun: String, verb: String)] = [
        .publishAck: ("message", " answered"), .iq: ("request", " answered"), .request: ("request", " answered"),
        .smResponse: ("stanza", " acknowledged"), .connect: ("connect", ""),
    ]

    /// The slowest series, by its p99, or by its maximum where too few samples carry that.
    private var slowest: String? {
        guard var worst = self.series.max(by: { $0.reading.p99 < $1.reading.p99 }) else { return nil }
        let isCarried = Cell.isCarried(99, by: worst.reading.count)
        if !isCarried { worst = self.series.max { $0.reading.max < $1.reading.max } ?? worst }
        let (reading, labels, kind) = (worst.reading, worst.metric.labels, MetricDefinition.named(worst.metric.name))
        let field: KeyPath<DurationReading, Double> = isCarried ? \.p99 : \.max
        let (noun, verb) = Self.nouns[kind] ?? ("message", " delivered")
        let isOne = self.series.count == 1
        let name = ([labels[Labels.group]].compactMap(\.self) + (isOne ? [] : labels.operationKinds))
        let which =
            (isOne ? [] : ["the slowest of \(self.series.count)"]) + (name.isEmpty ? [] : [name.joined(separator: " ")])
        let rest = which.isEmpty ? "" : " (\(which.joined(separator: ": ")))"
        let count = Words.counted(Double(reading.count), noun)
        // Below the error of the clocks: `within ±1.00 ms`.
        let value = Cell.duration(reading, field).replacing("< ", with: "")
        // A bound from below is no time within which anything ended.
        if reading.isBound(field) { return "\(kind.title) \(isCarried ? "p99" : "max") of \(count) \(value)\(rest)" }
        let all = reading.count > 1 ? "all " : ""
        let part = reading.unanswered == nil ? all : "\(Words.count(reading.answered)) of "
        return "\(isCarried ? "99 % of " : part)\(count)\(verb) within \(value)\(rest)"
    }

    /// Messages that nothing answers, and that carry no time.
    private var traffic: String? {
        [(self.counts.sent.value ?? 0, "sent"), (self.counts.arrived.value ?? 0, "received")].first { $0.0 > 0 }
            .map { "\(Words.counted($0.0, "message")) \($0.1)" }
    }

    /// All that are up are named only where connects are the load.
    private var clients: String? {
        guard let planned = self.record.findings?.clientsPlanned, let up = self.record.findings?.clientsUp else {
            return nil
        }
        if up < planned { return "\(Words.count(up)) of \(Words.count(planned)) clients up" }
        return self.series.first?.metric.isOf(.connect) == true ? "all \(Words.count(up)) up" : nil
    }

    /// By the ledger; nothing where there is none.
    private var losses: String? {
        guard let sums = self.record.books.deliveries, let lost = sums.lost, !self.isSaid("lost (") else { return nil }
        // Of what is outstanding none is lost yet.
        guard lost > 0 || sums.outstanding == 0 else { return nil }
        let of = " of \(Words.count(sums.expected))"
        return lost > 0
            ? "\(Words.count(lost))\(of) lost"
            : "none\(self.record.ledger.unfollowed == nil ? "" : "\(of) followed") lost"
    }

    private var owed: String? {
        guard let sums = self.record.books.deliveries, sums.outstanding > 0, !self.isSaid("when the drain ended") else {
            return nil
        }
        return "\(Words.count(sums.outstanding)) of \(Words.count(sums.expected)) deliveries outstanding"
    }

    private var decoded: String? {
        let lanes = self.record.decodeLanes.map { (labels: $0.labels, rate: $0.counter?.rate ?? 0) }
        guard let fastest = lanes.max(by: { $0.rate < $1.rate }), fastest.rate > 0 else { return nil }
        let noun = fastest.labels["protocol"] == "xmpp" ? "stanzas" : "packets"
        let name = [fastest.labels["path"], fastest.labels["form"]].compactMap(\.self).joined(separator: " ")
        let rest = lanes.count > 1 ? ", the fastest of \(lanes.count)" : ""
        return "\(Words.number(fastest.rate.rounded())) \(noun)/s decoded (\(name)\(rest))"
    }

    // MARK: - What broke first

    private var fault: String? {
        guard let findings = self.record.findings else { return nil }
        // Records of earlier versions tell there from when on the run was steady.
        var sentence = findings.sentence.replacing(/; steady from [0-9]+ s on/, with: "")
        if let lost = self.record.books.deliveries?.lost { sentence.replace("; \(Words.count(lost)) lost", with: "") }
        // With the titles of metrics in place of their names.
        sentence = MetricDefinition.all.reduce(sentence) { $0.replacing($1.name, with: $1.title) }
        guard sentence.lowercased().hasPrefix(FindingsRecord.calm) else { return sentence }
        let results = self.record.thresholds
        let checked = [
            self.record.errors.isEmpty ? "no error" : nil,
            self.counts.lostConnections.value == 0 ? "no connection lost" : nil,
            // Stalls are those of a time line with answers or deliveries.
            findings.worstSecond != nil || findings.steadySecond != nil ? "no stall" : nil,
            !results.isEmpty && results.allSatisfy(\.ok) ? "no objective broken" : nil,
        ].compactMap(\.self).joined(separator: ", ")
        return checked.isEmpty ? sentence : checked + sentence.dropFirst(FindingsRecord.calm.count)
    }

    private func isSaid(_ words: String) -> Bool { self.record.findings?.sentence.contains(words) ?? false }

    private static func sentence(_ text: String) -> String {
        let isWord = text.prefix { $0 != " " }.allSatisfy { $0.isLetter || $0 == "," }
        return (isWord ? text.prefix(1).uppercased() + text.dropFirst() : text) + (text.last == "." ? "" : ".")
    }
}
