import Measurement

// The main figures in a few lines.
extension Summary {
    /// One block of titled lines, and a table each for latencies, groups and stages.
    var lines: [[String]] {
        let stages = self.stageMetrics.isEmpty ? [] : self.stageRows
        let counts = SummaryCounts(self.record.metrics)
        let head =
            self.clientsLine(counts) + self.publishLine(counts) + self.deliveryLine(counts) + self.losses
            + self.retainedLine + self.replyLine
        let tail = self.timeLine + self.errorLine + self.generatorLine + self.line("Server", self.serverParts)
        return [self.loadLine + head + self.remark(counts), self.groupRows, self.latencyRows, stages, tail]
    }

    var loadLine: [String] { self.line("Load", [self.record.load]) }

    /// `Clients    100 of 100 up in 1.20 s · TLS 1.3`: nothing where no part is known.
    func line(_ title: String, _ parts: [String?]) -> [String] {
        let known = parts.compactMap(\.self)
        guard !known.isEmpty else { return [] }
        let width = 12
        let text = known.joined(separator: " · ").wrapped(at: self.width - width)
        return text.enumerated().map { number, line in
            (number == 0
                ? self.style.paint(title, .bold) + String(repeating: " ", count: max(1, width - title.count))
                : String(repeating: " ", count: width)) + line
        }
    }

    private static let fullQueue = "SYNs were sent again: the server's listen queue was full, or packets were lost"

    private func clientsLine(_ counts: SummaryCounts) -> [String] {
        let findings = self.record.findings
        var up: String?
        if let planned = findings?.clientsPlanned, let count = findings?.clientsUp {
            let all = findings?.allUpSeconds.map { " in \(Words.coarse($0))" } ?? ""
            up = "\(Words.number(Double(count))) of \(Words.number(Double(planned))) up\(all)"
        }
        // Of whole connects; with groups there are several series, and percentiles do not add up.
        func times(_ all: [Metric], _ figures: [String], _ paths: [KeyPath<DurationReading, Double>]) -> String? {
            let all = all.filter { $0.labels["phase"] == "total" }
            let texts = zip(figures, Cell.durations(all.count == 1 ? all[0] : nil, paths)).compactMap { name, text in
                text == Words.unknown ? nil : text.map { "\(name) \($0)" }
            }
            return texts.isEmpty ? nil : texts.joined(separator: ", ")
        }
        let lost = counts.lostConnections.value
        let reconnects: String? = counts.reconnects.value.flatMap { count in
            guard count > 0 else { return nil }
            let all = self.record.metrics(named: .reconnect)
            let figures = times(all, ["p50", "p99", "max"], [\.p50, \.p99, \.max]).map { " (\($0))" } ?? ""
            return Words.counted(count, "reconnect") + figures
        }
        let connects = self.record.metrics(named: .connect)
        let tcp = connects.lazy.filter { $0.labels["phase"] == "tcp" }.compactMap(\.duration?.p90).max()
        let slow = tcp.flatMap { $0 < 1 ? nil : Words.duration($0) }
        let versions = (self.record.tlsVersions ?? [:]).sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map {
            version,
            count in
            self.record.tlsVersions?.count == 1 ? version : "\(version) (\(Words.count(count)))"
        }
        return self.line(
            "Clients",
            [
                up, times(connects, ["p99"], [\.p99]).map { "connect \($0)" },
                lost.flatMap { $0 > 0 ? "\(Words.counted($0, "connection")) lost" : nil }, reconnects,
                versions.isEmpty ? nil : versions.joined(separator: ", "),
                findings?.clockErrorSeconds.map { "clocks agree to ±\(Words.duration($0))" },
            ]
        ) + (slow.map { self.paragraph("tcp p90 \($0): \(Self.fullQueue)", indent: 2) } ?? [])
    }

    /// `9,990 sent (999/s)`; nothing of what is unknown.
    private func words(_ value: Double?, _ word: String, _ rate: Double?) -> String? {
        value.map { "\(Words.number($0)) \(word)" + self.rated($0, rate) }
    }

    /// The rate behind a count of the whole run; with the part of the count that it is of, if that is another span.
    private func rated(_ value: Double, _ rate: Double?) -> String {
        guard let text = rate.map(Words.rate) else { return "" }
        guard let part = self.measuredPart(value, rate) else { return " (\(text))" }
        let span = "in the \(Words.duration(self.measuredSeconds)) measured"
        // The measured phases of several segments are not quite the same.
        guard self.record.segment.merged == nil else { return ", \(text) \(span)" }
        return ", \(Words.number(part)) of them \(span) (\(text))"
    }

    private func publishLine(_ counts: SummaryCounts) -> [String] {
        guard let offered = counts.offered.value else { return [] }
        return self.line(
            "Sent",
            [
                "\(Words.number(offered)) offered", self.words(counts.sent.value, "sent", counts.sent.rate),
                self.words(counts.acked.value, "acknowledged", counts.acked.rate),
                counts.notSent.value.flatMap { $0 > 0 ? "\(Words.number($0)) not sent" : nil },
                counts.outstanding.value.flatMap { $0 > 0 ? "\(Words.number($0)) outstanding" : nil },
                counts.skipped.value.flatMap { $0 > 0 ? "\(Words.number($0)) skipped or replaced in sleep" : nil },
            ]
        )
    }

    /// Both figures are the ledger's where there is one: what arrived besides is named apart.
    private func deliveryLine(_ counts: SummaryCounts) -> [String] {
        let sums = self.record.books.deliveries
        guard let received = sums.map({ Double($0.received) }) ?? counts.arrived.value else { return [] }
        let duplicated = Double(self.record.books.reduce(0) { $0 + ($1.duplicated ?? 0) })
        // Messages of another run, or stored before this one.
        let others = counts.arrived.value.map {
            $0 - received - duplicated - (counts.overlapping.value ?? 0) - self.copies.received
        }
        func found(_ count: Double?, _ word: String) -> String? {
            count.flatMap { $0 > 0 ? "\(Words.number($0)) \(word)" : nil }
        }
        // The rate is that of all arrivals.
        let rate = counts.arrived.value == received ? counts.arrived.rate : nil
        return self.line(
            "Delivered",
            [
                Words.number(received) + (sums.map { " of \(Words.count($0.expected)) expected" } ?? "")
                    + self.rated(received, rate),
                sums?.lost.map { "\(Words.count($0)) lost" },
                found((sums?.outstanding).map { Double($0) }, "outstanding"),
            ]
                + MetricDefinition.irregularities.map { kind in
                    found(kind == .deliveryDuplicated ? duplicated : counts.irregular[kind]?.value, kind.title)
                }
                + [sums == nil ? nil : found(others, "others received")]
        )
    }

    /// The stored copies that SUBSCRIBE packets were owed.
    private var copies: (expected: Double, received: Double, lost: Double, outstanding: Double) {
        func total(_ kind: MetricDefinition) -> Double { self.record.metrics.counters([kind]).sum { $0.value } ?? 0 }
        let (all, lost, owed) = (total(.retainedExpected), total(.retainedLost), total(.retainedOutstanding))
        return (all, all - lost - owed, lost, owed)
    }

    private var replyLine: [String] {
        let durations = self.record.whole(.reply).compactMap(\.duration).filter { $0.count > 0 }
        guard let slowest = durations.max(by: { $0.p99 < $1.p99 }) else { return [] }
        let (all, came) = durations.reduce(into: (0, 0)) { $0 = ($0.0 + $1.count, $0.1 + $1.answered) }
        let mark = slowest.bounds.contains("p99") ? "≥ " : ""
        return self.line(
            "Replies",
            [
                "\(Words.count(came)) of \(Words.count(all)) came back",
                "p50 \(Words.duration(slowest.p50)), p99 \(mark)\(Words.duration(slowest.p99))",
            ]
        )
    }

    private var retainedLine: [String] {
        let copies = self.copies
        guard copies.expected > 0 else { return [] }
        // Groups have rates of their own.
        let rates = self.record.metrics(named: .retainedRate).compactMap(\.gauge?.value)
        let rate = rates.count == 1 ? " (\(Words.rate(rates[0])) while they came)" : ""
        let stale = self.record.metrics.counters([.retainedStale]).sum { $0.value } ?? 0
        return self.line(
            "Retained",
            ["\(Words.number(copies.received)) of \(Words.number(copies.expected)) expected\(rate)"]
                + [(copies.lost, "lost"), (copies.outstanding, "outstanding"), (stale, "stale")].map { count, word in
                    count > 0 || word == "lost" ? "\(Words.number(count)) \(word)" : nil
                }
        )
    }

    // MARK: - Tables

    private static let compactLatencies = MetricDefinition.latencies.filter(\.isMainLatency)

    /// Whole operations: with several groups they are in the row of their group.
    private var latencyRows: [String] {
        guard self.record.groups == nil else { return [] }
        var table = TextTable("Latency", Self.tail)
        for (place, metric) in self.wholeLatencies {
            let words = [Self.compactLatencies[place].title] + metric.labels.operationKinds
            table.add(words.joined(separator: " "), metric)
        }
        return self.section(table)
    }

    /// The latencies in the order of their titles, each with its place there; found in one walk over the metrics.
    private var wholeLatencies: [(place: Int, metric: Metric)] {
        self.record.metrics.compactMap { metric in
            guard case .duration = metric.reading, metric.labels.isWhole(),
                let place = Self.compactLatencies.firstIndex(where: metric.isOf)
            else { return nil }
            return (place, metric)
        }.sorted { ($0.place, $0.metric.labels) < ($1.place, $1.metric.labels) }
    }

    private var groupRows: [String] {
        guard let groups = self.record.groups else { return [] }
        var table = TextTable(["Groups", "up", "sent/s", "received/s", "lost", "ack p99", "delivery p99", "errors"])
        for group in groups {
            let part = Summary(self.record.part(group.name)).record
            let own = Course(part.metrics)
            let (clients, known) = (Words.number(Double(group.clients)), group.up.map { Words.number(Double($0)) })
            let up = known.map { $0 == clients ? $0 : "\($0) of \(clients)" }
            let errors = part.errors.reduce(UInt64(0)) { $0 + $1.count }
            let lost = group.ledger.lost.map { Words.count($0.values.reduce(0, +)) }
            table.add([
                group.name, up, own.sent, own.received, lost, own.ack, own.delivery,
                errors > 0 ? Words.count(errors) : nil,
            ])
        }
        return self.section(table)
    }

    private var stageRows: [String] {
        var table = TextTable(["Stages", "length", "sent/s", "received/s", "ack p99", "delivery p99"])
        for stage in self.record.stages where stage.measured {
            let own = Course(self.stageMetrics.filter { $0.labels[Labels.stage] == stage.name })
            table.add([
                stage.name, Words.duration(stage.durationSeconds), own.sent, own.received, own.ack, own.delivery,
            ])
        }
        return self.section(table)
    }

    /// The cells of a group or a stage.
    private struct Course {
        let sent: String?
        let received: String?
        let ack: String?
        let delivery: String?

        init(_ metrics: [Metric]) {
            func rate(_ kinds: MetricDefinition...) -> String? {
                metrics.counters(kinds).sum { $0.rate }.map(Words.number)
            }
            // The highest of several series: percentiles of different series do not add up.
            func highestP99(_ kinds: MetricDefinition...) -> String? {
                let series = metrics.filter { $0.isOf(kinds) && $0.labels.isWhole() && $0.duration != nil }
                let worst = series.max { ($0.duration?.p99 ?? 0) < ($1.duration?.p99 ?? 0) }
                return worst.flatMap { Cell.durations($0, [\.p99])[0] }
            }
            self.sent = rate(.publishSent, .stanzaSent)
            self.received = rate(.received)
            self.ack = highestP99(.publishAck, .iq)
            self.delivery = highestP99(.delivery, .request)
        }
    }

    // MARK: - Over time

    private var timeLine: [String] {
        guard let findings = self.record.findings else { return [] }
        func at(_ point: FindingPoint) -> String { "at \(point.second) s" + (point.stage.map { " in \($0)" } ?? "") }
        let worst = findings.worstSecond.map { point in
            let name = point.metric?.split(separator: " ").first.map(String.init)
            let title = name.map { MetricDefinition.named($0).title } ?? ""
            return "worst second \(at(point)): \(title) p99 \(point.text)"
        }
        let silence = findings.longestSilence.flatMap {
            $0.value > 0 ? "longest silence \(Words.duration($0.value)) \(at($0))" : nil
        }
        let peak = findings.peakInFlight.map { "at most \(Words.number($0.value)) in flight \(at($0))" }
        let oldest = MetricDefinition.all(.backlog).compactMap { kind in
            self.record.metrics(named: kind).compactMap(\.gauge?.max).max()
                .flatMap { $0 < 0.001 ? nil : "\(kind.title) at most \(Words.duration($0))" }
        }
        let growth = findings.backlogGrowth.map { "backlog grows by \(Words.rate($0))" }
        return self.line("Over time", [worst, silence]) + self.line("In flight", [peak] + oldest + [growth])
    }

    private var errorLine: [String] {
        let errors = self.record.errors.mostFrequentFirst
        guard let first = errors.first else { return [] }
        let kinds = errors.prefix(3).map { "\(Words.count($0.count)) \($0.words)" }
        let more = errors.count > 3 ? "\(errors.count - 3) other kinds" : nil
        return self.line(
            "Errors",
            kinds + [more, first.example.isEmpty ? nil : "e.g. \(first.example)".truncated(to: self.width - 20)]
        )
    }

    var generatorLine: [String] {
        let facts = self.record.generator
        return self.line(
            "Generator",
            [
                self.record.findings?.headroomWords,
                facts.loopCPUShares?.max().map { "busiest event loop at \(Words.percent($0)) of a core" },
                self.record.generatorCores.map { "\(Words.significant($0)) cores" },
            ]
        )
    }

    private func remark(_ counts: SummaryCounts) -> [String] {
        let ledger = self.record.ledger
        if ledger.pending == true { return ["  losses are known only after clamor merge"] }
        if let words = ledger.unfollowedWords { return self.paragraph(words, indent: 2) }
        guard !ledger.on, let reason = ledger.reason, counts.arrived.value != nil else { return [] }
        return self.paragraph("the ledger is off: \(reason)", indent: 2)
    }
}

extension FindingsRecord {
    /// The load that the generator could offer, as a multiple of this one.
    package var headroomWords: String? {
        self.headroom.map { "could offer \(Words.fixed($0, digits: $0 >= 10 ? 0 : 1)) times this load" }
    }
}
