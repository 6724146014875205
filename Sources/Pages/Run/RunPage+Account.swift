import Charts
import Measurement
import Report

extension RunPage {
    /// Figures that every summary has and no tile shows.
    var keyFigures: PageSection? {
        guard let findings = self.record.findings else { return nil }
        var facts: [(name: String, value: String)] = []
        func point(_ point: FindingPoint, _ text: String? = nil) -> String {
            let time = RunCourse.words(Double(point.second))
            return [text ?? point.text, "at \(time)", point.stage.map { "in \($0)" }].compactMap(\.self)
                .joined(separator: " ")
        }
        if let second = findings.steadySecond { facts.append(("steady from", RunCourse.words(Double(second)))) }
        if let sums = self.record.books.deliveries, self.total([.deliveryExpected]) == nil {
            facts.append(("delivered of expected", "\(Words.count(sums.received)) of \(Words.count(sums.expected))"))
        }
        if let peak = findings.peakInFlight { facts.append(("most in flight", point(peak, Words.number(peak.value)))) }
        if let slope = findings.backlogGrowth { facts.append(("backlog grows by", Words.rate(slope))) }
        // The tile of a latency has its worst second.
        if let worst = findings.worstSecond, self.main(.answer) ?? self.main(.delivery) == nil {
            facts.append(("worst second, p99", point(worst)))
        }
        if let silence = findings.longestSilence, silence.value > 0 {
            facts.append(("longest silence", point(silence)))
        }
        if let share = findings.withinObjective { facts.append(("seconds within the objective", Self.share(share))) }
        if let words = findings.headroomWords { facts.append(("generator", words)) }
        if let error = findings.clockErrorSeconds { facts.append(("clocks agree to", "±\(Words.duration(error))")) }
        for (version, count) in (self.record.tlsVersions ?? [:]).sorted(by: { $0.key < $1.key }) {
            facts.append((version, Words.count(count, "connection")))
        }
        guard !facts.isEmpty else { return nil }
        return PageSection("figures", "Key figures", html: PageFigure.facts(facts))
    }

    /// The share as a text; it is never rounded to all or none.
    private static func share(_ share: Double) -> String {
        guard share > 0, share < 1, share > 0.9995 || share < 0.0005 else { return Words.percent(share) }
        for digits in 2...6 {
            let text = Words.fixed(share * 100, digits: digits)
            if !text.hasPrefix("100"), text.contains(where: { ("1"..."9").contains($0) }) { return "\(text) %" }
        }
        return share > 0.5 ? "under 100 %" : "over 0 %"
    }

    var objectives: PageSection? {
        let results = self.record.thresholds
        guard !results.isEmpty else { return nil }
        var table = PageTable(
            "Thresholds of the run and the figures that decided",
            ["objective", "measured", "result"]
        )
        for result in results {
            table.add([
                .markup("<code>\(escapedMarkup(result.expression).replacing("_", with: "_<wbr>"))</code>"),
                .text(([result.valueText] + [result.remedy].compactMap(\.self)).joined(separator: ": ")),
                .text(Self.word(result.state), tone: result.ok ? .good : .bad),
            ])
        }
        let failed = results.count { !$0.ok }
        let counts = [ThresholdResult.State.broken, .undecided].compactMap { state in
            let count = results.count { $0.state == state }
            return count > 0 ? "\(count) \(state.rawValue)" : nil
        }
        return PageSection(
            folded: "objectives",
            "Objectives",
            summary: failed == 0 ? "all met" : counts.joined(separator: ", "),
            tone: failed == 0 ? .plain : .bad,
            isOpen: failed > 0,
            html: table.html
        )
    }

    private static func word(_ state: ThresholdResult.State) -> String {
        switch state {
        case .met: "✓ met"
        case .broken: "✗ broken"
        case .undecided: "? undecided"
        }
    }

    var errors: PageSection? {
        let errors = self.record.errors.mostFrequentFirst
        guard !errors.isEmpty else { return nil }
        var table = PageTable(
            "Errors by kind, each with its first example",
            ["kind", "group", "example", "count", "first at"],
            words: 3
        )
        for error in errors {
            table.add([
                .text(error.kind), error.group.map { .text($0) }, .text(error.example), .count(error.count),
                .text("\(error.firstAt.prefix(23).dropFirst(11).prefix { $0 != "Z" }) UTC"),
            ])
        }
        let count = errors.reduce(0) { $0 + $1.count }
        return PageSection(
            folded: "errors",
            "Errors",
            summary: "\(Words.count(count)), most: \(errors[0].kind)",
            tone: .warn,
            isOpen: true,
            html: table.html
        )
    }

    var losses: PageSection? {
        var table = PageTable(
            "Findings of the ledger by cause, each with its first example",
            ["finding", "group", "example", "count"],
            words: 3
        )
        var examples: [LedgerExample] = []
        let ledgers =
            self.record.groups.map { $0.map { ($0.name as String?, $0.ledger) } } ?? [(nil, self.record.ledger)]
        var lost: UInt64 = 0
        for (group, ledger) in ledgers {
            for (cause, count) in (ledger.lost ?? [:]).sorted(by: { $0.key < $1.key }) where count > 0 {
                lost += count
                let example = ledger.examples?.first { $0.finding == .lost && $0.cause == cause }
                table.add([
                    .text("lost: \(cause.replacing("-", with: " "))", tone: .bad), group.map { .text($0) },
                    example?.words.map { .text($0) }, .count(count),
                ])
            }
            examples += (ledger.examples ?? []).filter { $0.finding != .lost }
        }
        let findings: [(MetricDefinition, LedgerExample.Finding)] = [
            (.deliveryDuplicated, .duplicated), (.deliveryReordered, .reordered),
        ]
        for (kind, finding) in findings {
            guard let count = self.total([kind]), count > 0 else { continue }
            let example = examples.first { $0.finding == finding }
            table.add([.text(finding.rawValue), nil, example?.words.map { .text($0) }, .figure(count, Words.number)])
        }
        guard !table.isEmpty else { return nil }
        return PageSection(
            folded: "losses",
            "Losses, duplicates and order",
            summary: "\(Words.count(lost)) lost",
            tone: lost > 0 ? .bad : .plain,
            isOpen: true,
            html: table.html
        )
    }

    var books: PageSection? {
        let books = self.record.books
        guard !books.isEmpty else { return nil }
        let columns: [(String, KeyPath<Books, UInt64?>)] = [
            ("offered", \.offered), ("sent", \.sent), ("not sent", \.notSent), ("acked", \.acked),
            ("in flight", \.inFlight), ("timed out", \.timedOut), ("failed", \.failed), ("confirmed", \.confirmed),
            ("unconfirmed", \.unconfirmed), ("expected", \.expected), ("received", \.received), ("lost", \.lost),
            ("outstanding", \.deliveryOutstanding), ("duplicated", \.duplicated),
        ]
        let caption =
            "offered = sent + not sent; sent = acked + in flight + timed out + failed,"
            + " at QoS 0 confirmed + unconfirmed;"
            + " expected = received + lost + outstanding"
        var table = PageTable(caption, ["book"] + columns.map(\.0))
        for book in books { table.add([.text(book.name)] + columns.map { .count(book[keyPath: $0.1]) }) }
        let imbalances = books.flatMap(\.imbalances)
        let words = imbalances.map { "<p class=\"small\">Not balanced: \(escapedMarkup($0))</p>\n" }.joined()
        return PageSection(
            folded: "books",
            "Books",
            summary: imbalances.isEmpty ? "balanced" : "not balanced",
            tone: imbalances.isEmpty ? .plain : .bad,
            isOpen: !imbalances.isEmpty,
            html: words + table.html
        )
    }

    var slowest: PageSection? {
        let slowest = self.record.slowest ?? []
        guard let first = slowest.first else { return nil }
        let shown = slowest.prefix(Self.slowestShown)
        let rest = slowest.dropFirst(Self.slowestShown)
        let caption = "The \(shown.count) slowest messages; times are seconds from the start of the run"
        let more = PageFigure.folded("\(rest.count) more", html: self.table(rest, "The next slowest messages"))
        return PageSection(
            folded: "slowest",
            "Slowest messages",
            summary: [Words.duration(first.seconds), first.client.map { "of \($0)" }].compactMap(\.self)
                .joined(separator: " "),
            html: "<div class=\"wrapped\">\n\(self.table(shown, caption) + (rest.isEmpty ? "" : more))</div>\n"
        )
    }

    private static let slowestShown = 10

    private func table(_ slowest: ArraySlice<SlowMessage>, _ caption: String) -> String {
        let columns = ["client", "receiver", "group", "stream", "metric", "QoS", "latency", "due", "written"]
        var table = PageTable(caption, columns + ["acknowledged", "received", "loop lag"], words: 5)
        func time(_ value: Double?) -> PageTable.Cell? {
            value.map { .text("\(Words.fixed($0, digits: 3)) s", key: $0) }
        }
        for message in slowest {
            table.add([
                message.client.map { .text($0) }, message.receiver.map { .text($0) }, message.group.map { .text($0) },
                message.stream.map { .text($0) }, .text(MetricDefinition.named(message.metric).title),
                message.qos.map { .text(String($0)) }, .figure(message.seconds, Words.duration), time(message.due),
                time(message.written), time(message.acknowledged), time(message.received),
                .figure(message.loopLag, Words.duration),
            ])
        }
        return table.html
    }

    var notes: PageSection? {
        let notes = self.record.notes ?? []
        guard !notes.isEmpty else { return nil }
        let items = notes.map { "<li>\(escapedMarkup($0.text)) <code>\(escapedMarkup($0.code))</code></li>\n" }
        return PageSection(
            folded: "notes",
            "Notes",
            summary: "\(notes.count)",
            html: "<ul class=\"words-only\">\n\(items.joined())</ul>\n"
        )
    }
}
