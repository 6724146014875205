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
                        "\(Human.number(up.rounded())) of \(Human.number(planned)) up",
                        up >= planned ? .green : .yellow
                    )
                )
            }
            for (state, count) in states.sorted(by: { $0.key < $1.key }) where state != "connected" {
                parts.append(BoardLine("\(Human.number(count.rounded())) \(state)"))
            }
        }
        if let lost = self.lostConnections { parts.append(lost) }
        if let count = self.total("reconnects") {
            parts.append(BoardLine(Human.counted(count, "reconnect"), count > 0 ? nil : .dim))
        }
        rows.add(Self.titled("Clients", parts, width: width), .clients, then: .reason)
        let up = self.history({ $1 }) { $0.clientsUp }
        // A level line shows nothing.
        if Set(up.compactMap(\.self)).count > 1, let trend = Self.trend("up", up, width: width, Human.number) {
            rows.add(trend, .trend)
        }
        return rows
    }

    /// `12 lost (10 reset, 2 timeout)`: connections, without those that the plan closes; absent where it is not counted.
    private var lostConnections: BoardLine? {
        let counters = self.totals.filter { $0.name == "disconnects" && !$0.labels.isOfPlannedDeparture }
        guard let lost = counters.compactMap(\.counter).sum(of: { $0.value }) else { return nil }
        guard lost > 0 else { return BoardLine("0 lost", .dim) }
        var reasons: [String: Double] = [:]
        for metric in counters {
            reasons[metric.labels["reason"] ?? "unknown", default: 0] += metric.counter?.value ?? 0
        }
        let words = reasons.filter { $0.value > 0 }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\(Human.number($0.value)) \($0.key)" }
        return BoardLine("\(Human.number(lost)) lost (\(words.joined(separator: ", ")))", .red)
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

    private var lost: Double? { self.total("delivery_lost", where: Self.isMessage) }

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
            let of = self.expected.map { " of \(Human.number($0)) expected" } ?? ""
            parts.append(BoardLine(Human.number(delivered) + of))
        }
        if let outstanding = self.outstanding {
            parts.append(BoardLine("\(Human.number(outstanding)) outstanding", outstanding > 0 ? .yellow : .dim))
        }
        if let losses = self.losses { parts.append(losses) }
        for (name, word) in [
            ("delivery_duplicated", "duplicated"), ("delivery_reordered", "out of order"),
            ("delivery_gaps", "missing in gaps"),
        ] {
            guard let count = self.total(name, where: Self.isMessage) else { continue }
            parts.append(BoardLine("\(Human.number(count)) \(word)", count > 0 ? .yellow : .dim))
        }
        let title = self.expected == nil ? "Received" : "Delivered"
        rows.add(Self.titled(title, parts, width: width), .deliveries, then: .reason)
        return rows
    }

    /// `3 lost (violated 2, dropped 1)`; absent where it is not known.
    private var losses: BoardLine? {
        guard let lost = self.lost else { return nil }
        guard lost > 0 else { return BoardLine("0 lost", .dim) }
        var causes: [String: Double] = [:]
        for metric in self.totals where metric.name == "delivery_lost" && Self.isMessage(metric.labels) {
            guard let cause = metric.labels[Labels.cause], let value = metric.counter?.value, value > 0 else {
                continue
            }
            causes[cause, default: 0] += value
        }
        let words = LedgerRecord.inOrder(causes.keys).map {
            "\(LedgerRecord.words($0)) \(Human.number(causes[$0] ?? 0))"
        }
        return BoardLine(
            "\(Human.number(lost)) lost" + (words.isEmpty ? "" : " (\(words.joined(separator: ", ")))"),
            .red
        )
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
        var parts = errors.prefix(Self.mostErrors).map { BoardLine("\(Human.count($0.count)) \($0.words)", .red) }
        if errors.count > Self.mostErrors { parts.append(BoardLine("and \(errors.count - Self.mostErrors) more")) }
        rows.add(Self.titled("Errors", parts, width: width), .errors, then: .example)
        if !first.example.isEmpty {
            rows.add(Self.below("e.g. \(first.example)", .dim).truncated(to: width), .example)
        }
        return rows
    }
}
