import Measurement

// The main figures in a few lines.
extension Summary {
    /// More objectives than these are listed only where they failed.
    private static let mostObjectives = 6

    /// One block of titled lines, and a table each for latencies, groups and stages.
    var compactSections: [[String]] {
        guard !self.nothingConnected else { return self.ownMeasurements + [self.whereFilesAre] }
        let stages = self.stageMetrics.isEmpty ? [] : self.stageRows
        let counts = SummaryCounts(self.record.metrics)
        let head = self.clientsLine(counts) + self.publishLine(counts) + self.deliveryLine(counts) + self.losses
        let tail = [self.timeLine, self.errorLine, self.generatorLine, self.serverLine].flatMap { $0 }
        return [
            self.notes, head + self.remark(counts), self.groupRows, self.latencyRows, stages, tail,
            self.objectiveSection,
            self.compactFiles,
        ]
    }

    /// `Clients    100 of 100 up in 1.20 s · TLS 1.3`: nothing where no part is known.
    private func line(_ title: String, _ parts: [String?]) -> [String] {
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
            let all = findings?.allUpSeconds.map { " in \(Human.coarse($0))" } ?? ""
            up = "\(Human.number(Double(count))) of \(Human.number(Double(planned))) up\(all)"
        }
        // Of whole connects; with groups there are several series, and percentiles do not add up.
        func times(_ all: [Metric], _ figures: [String], _ paths: [KeyPath<DurationReading, Double>]) -> String? {
            let all = all.filter { $0.labels["phase"] == "total" }
            let texts = zip(figures, Cell.durations(all.count == 1 ? all[0] : nil, paths)).compactMap { name, text in
                text == Human.unknown ? nil : text.map { "\(name) \($0)" }
            }
            return texts.isEmpty ? nil : texts.joined(separator: ", ")
        }
        let lost = counts.lostConnections.value
        let reconnects: String? = counts.reconnects.value.flatMap { count in
            guard count > 0 else { return nil }
            let all = self.record.metrics(named: "reconnect_duration")
            let figures = times(all, ["p50", "p99", "max"], [\.p50, \.p99, \.max]).map { " (\($0))" } ?? ""
            return Human.counted(count, "reconnect") + figures
        }
        let connects = self.record.metrics(named: "connect_duration")
        let tcp = connects.lazy.filter { $0.labels["phase"] == "tcp" }.compactMap(\.duration?.p90).max()
        let slow = tcp.flatMap { $0 < 1 ? nil : Human.duration($0) }
        let versions = (self.record.tlsVersions ?? [:]).sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map {
            version,
            count in
            self.record.tlsVersions?.count == 1 ? version : "\(version) (\(Human.count(count)))"
        }
        return self.line(
            "Clients",
            [
                up, times(connects, ["p99"], [\.p99]).map { "connect \($0)" },
                lost.flatMap { $0 > 0 ? "\(Human.counted($0, "connection")) lost" : nil }, reconnects,
                versions.isEmpty ? nil : versions.joined(separator: ", "),
                findings?.clockErrorSeconds.map { "clocks agree to ±\(Human.duration($0))" },
            ]
        ) + (slow.map { self.paragraph("tcp p90 \($0): \(Self.fullQueue)", indent: 2) } ?? [])
    }

    /// `9,990 sent (999/s)`; nothing of what is unknown.
    private func words(_ value: Double?, _ word: String, _ rate: Double?) -> String? {
        value.map { "\(Human.number($0)) \(word)" + self.rated($0, rate) }
    }

    /// The rate behind a count of the whole run; with the part of the count that it is of, if that is another span.
    private func rated(_ value: Double, _ rate: Double?) -> String {
        guard let text = rate.map(Human.rate) else { return "" }
        guard let part = self.measuredPart(value, rate) else { return " (\(text))" }
        let span = "in the \(Human.duration(self.measuredSeconds)) measured"
        // The measured phases of several segments are not quite the same.
        guard self.record.segment.merged == nil else { return ", \(text) \(span)" }
        return ", \(Human.number(part)) of them \(span) (\(text))"
    }

    private func publishLine(_ counts: SummaryCounts) -> [String] {
        guard let offered = counts.offered.value else { return [] }
        return self.line(
            "Sent",
            [
                "\(Human.number(offered)) offered", self.words(counts.sent.value, "sent", counts.sent.rate),
                self.words(counts.acked.value, "acknowledged", counts.acked.rate),
                counts.notSent.value.flatMap { $0 > 0 ? "\(Human.number($0)) not sent" : nil },
                counts.outstanding.value.flatMap { $0 > 0 ? "\(Human.number($0)) outstanding" : nil },
            ]
        )
    }

    /// Both figures are the ledger's where there is one: what arrived besides is named apart.
    private func deliveryLine(_ counts: SummaryCounts) -> [String] {
        let sums = self.record.books.deliveries
        guard let received = sums.map({ Double($0.received) }) ?? counts.arrived.value else { return [] }
        let duplicated = Double(self.record.books.reduce(0) { $0 + ($1.duplicated ?? 0) })
        // Messages of another run, or stored before this one.
        let others = counts.arrived.value.map { $0 - received - duplicated - (counts.overlapping.value ?? 0) }
        func found(_ count: Double?, _ word: String) -> String? {
            count.flatMap { $0 > 0 ? "\(Human.number($0)) \(word)" : nil }
        }
        // The rate is that of all arrivals.
        let rate = counts.arrived.value == received ? counts.arrived.rate : nil
        return self.line(
            "Delivered",
            [
                Human.number(received) + (sums.map { " of \(Human.count($0.expected)) expected" } ?? "")
                    + self.rated(received, rate),
                sums?.lost.map { "\(Human.count($0)) lost" },
                found((sums?.outstanding).map { Double($0) }, "outstanding"), found(duplicated, "duplicated"),
                found(counts.reordered.value, "out of order"), sums == nil ? nil : found(others, "others received"),
            ]
        )
    }

    // MARK: - Tables

    private static let compactLatencies = LatencyTitle.all.filter(\.isInSummary)

    /// Whole operations: with several groups they are in the row of their group.
    private var latencyRows: [String] {
        guard self.record.groups == nil else { return [] }
        var table = TextTable(["Latency", "count", "p50", "p99", "p99.9", "max"])
        for (place, metric) in self.wholeLatencies {
            let words = [Self.compactLatencies[place].title] + metric.labels.operationKinds
            table.add(words.joined(separator: " "), metric, [\.p50, \.p99, \.p999, \.max])
        }
        return self.section(table)
    }

    /// In the order of the titles, each with its place there; found in one walk over the metrics.
    private var wholeLatencies: [(place: Int, metric: Metric)] {
        self.record.metrics.compactMap { metric in
            guard case .duration = metric.reading, let place = Self.compactPlaces[metric.name], metric.labels.isWhole()
            else { return nil }
            return (place, metric)
        }.sorted { ($0.place, $0.metric.labels) < ($1.place, $1.metric.labels) }
    }

    private static let compactPlaces = Dictionary(
        compactLatencies.enumerated().map { ($1.name, $0) },
        uniquingKeysWith: { first, _ in first }
    )

    private var groupRows: [String] {
        guard let groups = self.record.groups else { return [] }
        var table = TextTable(["Groups", "up", "sent/s", "received/s", "lost", "ack p99", "delivery p99", "errors"])
        for group in groups {
            let part = Summary(self.record.part(group.name))
            func rate(_ names: String...) -> String? {
                names.flatMap { part.record.metrics(named: $0) }.compactMap(\.counter).sum { $0.rate }.map(Human.number)
            }
            let (clients, known) = (Human.number(Double(group.clients)), group.up.map { Human.number(Double($0)) })
            let up = known.map { $0 == clients ? $0 : "\($0) of \(clients)" }
            let errors = part.record.errors.reduce(UInt64(0)) { $0 + $1.count }
            table.add([
                group.name, up, rate("publish_sent", "stanza_sent"), rate("received"),
                group.ledger.lost.map { Human.count($0.values.reduce(0, +)) },
                part.highestP99(["publish_ack_duration", "iq_duration"], part.record.metrics),
                part.highestP99(["delivery_duration", "request_duration"], part.record.metrics),
                errors > 0 ? Human.count(errors) : nil,
            ])
        }
        return self.section(table)
    }

    private var stageRows: [String] {
        var table = TextTable(["Stages", "length", "sent/s", "received/s", "ack p99", "delivery p99"])
        for stage in self.record.stages where stage.measured {
            let own = self.stageMetrics.filter { $0.labels[Labels.stage] == stage.name }
            func rate(_ names: String...) -> String? {
                own.filter { names.contains($0.name) }.compactMap(\.counter).sum { $0.rate }.map(Human.number)
            }
            table.add([
                stage.name, Human.duration(stage.durationSeconds), rate("publish_sent", "stanza_sent"),
                rate("received"), self.highestP99(["publish_ack_duration", "iq_duration"], own),
                self.highestP99(["delivery_duration", "request_duration"], own),
            ])
        }
        return self.section(table)
    }

    /// The highest of several series: percentiles of different series do not add up.
    private func highestP99(_ names: [String], _ metrics: [Metric]) -> String? {
        let series = metrics.filter { names.contains($0.name) && $0.labels.isWhole() && $0.duration != nil }
        let worst = series.max { ($0.duration?.p99 ?? 0) < ($1.duration?.p99 ?? 0) }
        return worst.flatMap { Cell.durations($0, [\.p99]).first ?? nil }
    }

    // MARK: - Over time

    private var timeLine: [String] {
        guard let findings = self.record.findings else { return [] }
        func at(_ point: FindingPoint) -> String { "at \(point.second) s" + (point.stage.map { " in \($0)" } ?? "") }
        let worst = findings.worstSecond.map { point in
            let name = point.metric?.split(separator: " ").first.map(String.init)
            let title = Self.compactLatencies.first { $0.name == name }?.title ?? name ?? ""
            return "worst second \(at(point)): \(title) p99 \(Human.duration(point.value))"
        }
        let silence = findings.longestSilence.flatMap {
            $0.value > 0 ? "longest silence \(Human.duration($0.value)) \(at($0))" : nil
        }
        let peak = findings.peakInFlight.map { "at most \(Human.number($0.value)) in flight \(at($0))" }
        let growth = findings.backlogGrowth.map { "backlog grows by \(Human.rate($0))" }
        return self.line("Over time", [worst, silence]) + self.line("In flight", [peak, growth])
    }

    private var errorLine: [String] {
        let errors = self.record.errors.mostFrequentFirst
        guard let first = errors.first else { return [] }
        let kinds = errors.prefix(3).map { "\(Human.count($0.count)) \($0.words)" }
        let more = errors.count > 3 ? "\(errors.count - 3) other kinds" : nil
        return self.line(
            "Errors",
            kinds + [more, first.example.isEmpty ? nil : "e.g. \(first.example)".truncated(to: self.width - 20)]
        )
    }

    private var serverLine: [String] { self.line("Server", self.serverParts) }

    private var generatorLine: [String] {
        let facts = self.record.generator
        return self.line(
            "Generator",
            [
                self.record.findings?.headroom.map { headroom in
                    let times = headroom >= 10 ? Human.number(headroom.rounded()) : Human.fixed(headroom, digits: 1)
                    return "could offer about \(times) ×"
                },
                facts.loopCPUShares?.max().map { "busiest event loop at \(Human.percent($0)) of a core" },
                self.record.generatorCores.map { "\(Human.significant($0)) cores" },
            ]
        )
    }

    private var objectiveSection: [String] {
        let results = self.record.thresholds
        guard !results.isEmpty else { return [] }
        let share = self.record.findings?.withinObjective.map {
            "  \(Human.percent($0)) of the seconds within the latencies"
        }
        return [self.style.paint("Objectives", .bold) + (share ?? "")]
            + self.objectiveRows { !$0.ok || results.count <= Self.mostObjectives }
    }

    private func remark(_ counts: SummaryCounts) -> [String] {
        let ledger = self.record.ledger
        if ledger.pending == true { return ["  losses are known only after clamor merge"] }
        if let words = ledger.unfollowedWords { return self.paragraph(words, indent: 2) }
        guard !ledger.on, let reason = ledger.reason, counts.arrived.value != nil else { return [] }
        return self.paragraph("the ledger is off: \(reason)", indent: 2)
    }

    private var compactFiles: [String] {
        guard let files = self.files else { return [] }
        let words = [self.page.map { "page: \($0)" }, "all figures: --summary full"].compactMap(\.self)
        return [
            self.style.paint("Files", .bold)
                + "  \(files.hasSuffix("/") ? files : files + "/")  \(words.joined(separator: " · "))"
        ]
    }
}
