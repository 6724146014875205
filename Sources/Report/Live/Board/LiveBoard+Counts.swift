import Measurement

// Clients, deliveries and errors.
extension LiveBoard {
    private static let mostErrors = 3

    /// Clients by state, and the connections that were lost.
    func clients(_ width: Int) -> BoardRows {
        var rows = BoardRows()
        var parts: [BoardLine] = []
        if let figures = self.run.recent.last(where: { !$0.clients.isEmpty }) {
            let planned = Double(self.run.clientsPlanned)
            let states = Dictionary(grouping: figures.clients) { $0.labels["state"] ?? "connected" }
                .mapValues { $0.reduce(0) { $0 + $1.value } }
            if let up = figures.clientsUp {
                parts.append(
                    BoardLine(
                        "\(Words.number(up.rounded())) of \(Words.number(planned)) up",
                        up >= planned ? .green : .yellow
                    )
                )
            }
            for (state, count) in states.sorted(by: { $0.key < $1.key }) where state != "connected" {
                parts.append(BoardLine("\(Words.number(count.rounded())) \(state)"))
            }
        }
        if let lost = self.lostConnections { parts.append(lost) }
        if let count = self.total(.reconnects) {
            parts.append(BoardLine(Words.counted(count, "reconnect"), count > 0 ? nil : .dim))
        }
        rows.add(Self.titled("Clients", parts, width: width), .clients, then: .reason)
        let up = self.history({ $1 }) { $0.clientsUp }
        // A level line shows nothing.
        if Set(up.compactMap(\.self)).count > 1, let trend = Self.trend("up", up, width: width, Words.number) {
            rows.add(trend, .trend)
        }
        return rows
    }

    /// `12 lost (10 reset, 2 timeout)`: connections, without those that the plan closes; absent where it is not counted.
    private var lostConnections: BoardLine? {
        let counters = self.totals.filter { $0.isOf(.disconnects) && !$0.labels.isOfPlannedDeparture }
        guard let lost = counters.compactMap(\.counter).sum(of: { $0.value }) else { return nil }
        let reasons = Self.sums(counters) { $0["reason"] ?? "unknown" }
        let words = reasons.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return Self.lost(lost, words.map { "\(Words.number($0.value)) \($0.key)" })
    }

    /// `3 lost (violated 2, dropped 1)`, or `0 lost`.
    private static func lost(_ count: Double, _ parts: [String]) -> BoardLine {
        guard count > 0 else { return BoardLine("0 lost", .dim) }
        let words = parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
        return BoardLine("\(Words.number(count)) lost\(words)", .red)
    }

    /// Counters added up by a label, without zeros and those without the label.
    private static func sums(_ counters: [Metric], by label: (Labels) -> String?) -> [String: Double] {
        counters.reduce(into: [:]) { sums, metric in
            guard let value = metric.counter?.value, value > 0, let key = label(metric.labels) else { return }
            sums[key, default: 0] += value
        }
    }

    // MARK: - In flight

    /// The operations that are due and without an answer, and the age of the oldest; nothing after the end.
    ///
    /// Where one waits for a second, the row is as important as deliveries.
    func inFlight(_ width: Int) -> BoardRows {
        var rows = BoardRows()
        guard self.run.final == nil else { return rows }
        var parts: [BoardLine] = []
        // At QoS 0 and of messages without stream management nothing answers.
        let isAnswered = { (labels: Labels) in ["1", "2"].contains(labels["qos"]) || labels["stanza"] == "iq" }
        let acked = self.totals.counters(MetricDefinition.all(.acked)).sum { $0.value }
        let due = self.totals.counters(MetricDefinition.all(.offered), where: isAnswered).sum { $0.value }
        if let acked, let due {
            let count = max(0, due - acked)
            let words = self.run.standing.errors.isEmpty ? "without an answer" : "without an answer or failed"
            parts.append(BoardLine("\(Words.number(count)) \(words)", count > 0 ? nil : .dim))
        }
        var oldest = 0.0
        for kind in MetricDefinition.all(.backlog) {
            guard let age = self.latest(kind).compactMap(\.gauge?.value).max(), age >= 0.001 else { continue }
            oldest = max(oldest, age)
            parts.append(BoardLine("\(kind.title) \(Words.duration(age))", age >= 1 ? .yellow : nil))
        }
        rows.add(Self.titled("In flight", parts, width: width), oldest >= 1 ? .deliveries : .generator, then: .reason)
        return rows
    }

    // MARK: - Deliveries

    private static func isMessage(_ labels: Labels) -> Bool { labels["stanza"] != "iq" }

    private var expected: Double? {
        if let final = self.run.final { return (final.books.deliveries?.expected).map { Double($0) } }
        return self.run.standing.expected.map { Double($0) }
    }

    private var delivered: Double? {
        let counted =
            if let final = self.run.final { final.books.deliveries?.received } else { self.run.standing.delivered }
        return counted.map { Double($0) } ?? IntervalFigures.received(self.totals)
    }

    private var lost: Double? { self.total(.deliveryLost, where: Self.isMessage) }

    /// Messages that the receivers shall have by now and do not have, those apart that are lost.
    ///
    /// Only the end of the drain makes a lost message of one that is outstanding.
    var outstanding: Double? {
        guard self.run.final == nil, let expected = self.run.standing.expected,
            let delivered = self.run.standing.delivered
        else { return nil }
        return max(0, Double(expected) - Double(delivered) - (self.lost ?? 0))
    }

    /// Messages expected and delivered so far, and what became of the others.
    func deliveries(_ width: Int) -> BoardRows {
        var rows = BoardRows()
        var parts: [BoardLine] = []
        if let delivered = self.delivered {
            let of = self.expected.map { " of \(Words.number($0)) expected" } ?? ""
            parts.append(BoardLine(Words.number(delivered) + of))
        }
        if let outstanding = self.outstanding {
            parts.append(BoardLine("\(Words.number(outstanding)) outstanding", outstanding > 0 ? .yellow : .dim))
        }
        if let losses = self.losses { parts.append(losses) }
        for kind in MetricDefinition.irregularities + [.deliveryGaps] {
            guard let count = self.total(kind, where: Self.isMessage) else { continue }
            parts.append(BoardLine("\(Words.number(count)) \(kind.title)", count > 0 ? .yellow : .dim))
        }
        let title = self.expected == nil ? "Received" : "Delivered"
        rows.add(Self.titled(title, parts, width: width), .deliveries, then: .reason)
        return rows
    }

    /// `3 lost (violated 2, dropped 1)`; absent where it is not known.
    private var losses: BoardLine? {
        guard let lost = self.lost else { return nil }
        let messages = self.totals.filter { $0.isOf(.deliveryLost) && Self.isMessage($0.labels) }
        let causes = Self.sums(messages) { $0[Labels.cause] }
        let words = LedgerRecord.inOrder(causes.keys).map {
            "\(LedgerRecord.words($0)) \(Words.number(causes[$0] ?? 0))"
        }
        return Self.lost(lost, words)
    }

    // MARK: - Errors

    /// The most frequent kinds with an example of the first.
    func errors(_ width: Int) -> BoardRows {
        var rows = BoardRows()
        let errors = (self.run.final?.errors ?? self.run.standing.errors).mostFrequentFirst
        guard let first = errors.first else {
            rows.add(Self.title("Errors").adding(BoardLine("none", .dim)), .errors)
            return rows
        }
        var parts = errors.prefix(Self.mostErrors).map { BoardLine("\(Words.count($0.count)) \($0.words)", .red) }
        if errors.count > Self.mostErrors { parts.append(BoardLine("and \(errors.count - Self.mostErrors) more")) }
        rows.add(Self.titled("Errors", parts, width: width), .errors, then: .example)
        if !first.example.isEmpty {
            rows.add(Self.below("e.g. \(first.example)", .dim).truncated(to: width), .example)
        }
        return rows
    }
}
