package import Ledger

/// `ledger.csv` of a segment: messages that publishers sent and subscribers received, to be joined with the ledgers of
/// all other segments.
///
/// A row begins with its kind. Sequences are runs `first-last` separated by blanks, or one number.
package enum LedgerCSV {
    package static let fileName = "ledger.csv"

    private static let columns = ["kind", "subscription", "publisher", "qos", "at", "count", "sequences"]
    private static let last = "end"

    /// Rows that are put together before they are written.
    private static let batch = 4_096

    static func write(_ ledgers: [SegmentLedger], to path: String) throws(ResultError) {
        let file = try OutputFile(path: path)
        var text = CSV.row(self.columns)
        var rows = 0
        // A loop over closures that throw would lose the type of what they throw.
        var failure: ResultError?
        for ledger in ledgers {
            self.rows(of: ledger) { row in
                text += row
                rows += 1
                guard rows.isMultiple(of: self.batch), failure == nil else { return }
                do throws(ResultError) {
                    try file.write(text)
                } catch {
                    failure = error
                }
                text = ""
            }
        }
        if let failure { throw failure }
        try file.write(text + self.row(self.last, count: UInt64(rows)))
    }

    /// The whole text.
    package static func text(_ ledgers: [SegmentLedger]) -> String {
        var text = CSV.row(self.columns)
        var rows: UInt64 = 0
        for ledger in ledgers {
            self.rows(of: ledger) { row in
                text += row
                rows += 1
            }
        }
        return text + self.row(self.last, count: rows)
    }

    private static func rows(of ledger: SegmentLedger, _ add: (String) -> Void) {
        add(CSV.row(["ledger", ledger.group ?? "", "", "", "", "", ""]))
        for (kind, time) in [
            ("load_began", ledger.loadBegan), ("publishers_ended", ledger.publishersEnded),
            ("subscribers_left", ledger.subscribersLeft),
        ] {
            if let time { add(self.row(kind, at: time)) }
        }
        for own in ledger.subscriptions {
            add(
                self.row(
                    "subscription",
                    subscription: own.number,
                    at: own.began,
                    sequences: self.text(UInt64(own.publishers.lowerBound)..<UInt64(own.publishers.upperBound))
                )
            )
        }
        for early in ledger.early {
            add(
                self.row("early", subscription: early.subscription, publisher: early.publisher, count: early.sequence)
            )
        }
        for look in ledger.looks {
            add(self.row("look", at: look.at))
            for (publisher, sent) in look.sent.sorted(by: { $0.key < $1.key }) {
                add(self.row("sent", publisher: publisher, count: sent))
            }
        }
        for fate in ledger.fates {
            add(
                self.row(
                    "publisher",
                    publisher: fate.publisher,
                    qos: fate.qos,
                    count: fate.assigned,
                    sequences: self.text(fate.unknown.runs)
                )
            )
        }
        self.rows(of: ledger.received, add)
    }

    private static func rows(of received: LedgerExport, _ add: (String) -> Void) {
        for qos: UInt8 in 0...2 {
            let counts = received.counts[qos]
            for (kind, count) in [
                ("distinct", counts.distinct), ("duplicated", counts.duplicated), ("reordered", counts.reordered),
            ] where count > 0 {
                add(self.row(kind, qos: qos, count: count))
            }
        }
        if received.foreign > 0 { add(self.row("foreign", count: received.foreign)) }
        if received.overflowed { add(self.row("overflowed")) }
        for (key, stream) in zip(received.keys, received.streams) {
            add(
                self.row(
                    stream.overflowed ? "stream_overflowed" : "stream",
                    subscription: key.subscription,
                    publisher: key.publisher,
                    qos: stream.qos,
                    count: stream.next,
                    sequences: self.text(stream.missing)
                )
            )
        }
    }

    private static func row(
        _ kind: String,
        subscription: UInt32? = nil,
        publisher: UInt32? = nil,
        qos: UInt8? = nil,
        at: Int64? = nil,
        count: UInt64? = nil,
        sequences: String = ""
    ) -> String {
        func cell(_ value: (some BinaryInteger)?) -> String { value.map { String($0) } ?? "" }
        return "\(kind),\(cell(subscription)),\(cell(publisher)),\(cell(qos)),\(cell(at)),\(cell(count)),\(sequences)\n"
    }

    private static func text(_ run: Range<UInt64>) -> String {
        run.count == 1 ? "\(run.lowerBound)" : run.isEmpty ? "" : "\(run.lowerBound)-\(run.upperBound - 1)"
    }

    private static func text(_ runs: [Range<UInt64>]) -> String { runs.map { self.text($0) }.joined(separator: " ") }

    // MARK: - Back

    /// The ledgers of a whole file; `nil` for one that was cut, or is another.
    package static func read(_ text: String) -> [SegmentLedger]? {
        guard text.utf8.last == 0x0A else { return nil }
        let lines = text.wholeLines
        guard let header = lines.first, CSV.cells(of: header) == self.columns,
            let end = lines.last.flatMap({ Row($0) }), end.kind == self.last, end.count == UInt64(lines.count - 2)
        else { return nil }
        var ledgers: [SegmentLedger] = []
        for line in lines.dropFirst().dropLast() {
            if line.hasPrefix("ledger,") {
                guard let cells = CSV.cells(of: line), cells.count == self.columns.count else { return nil }
                var ledger = SegmentLedger(received: LedgerExport())
                if !cells[1].isEmpty { ledger.group = cells[1] }
                ledgers.append(ledger)
            } else {
                guard !ledgers.isEmpty, let row = Row(line), ledgers[ledgers.count - 1].add(row) else { return nil }
            }
        }
        return ledgers
    }
}

/// The cells of a row; what is no number has no row.
private struct Row {
    var kind: String
    var subscription: UInt32?
    var publisher: UInt32?
    var qos: UInt8?
    var at: Int64?
    var count: UInt64?
    var sequences: [Range<UInt64>] = []

    init?(_ line: Substring) {
        // No cell of a row of numbers is quoted.
        let cells = line.split(separator: ",", omittingEmptySubsequences: false)
        guard cells.count == 7 else { return nil }
        self.kind = String(cells[0])
        self.subscription = UInt32(cells[1])
        self.publisher = UInt32(cells[2])
        self.qos = UInt8(cells[3])
        self.at = Int64(cells[4])
        self.count = UInt64(cells[5])
        let known: [Bool] = [
            self.subscription != nil, self.publisher != nil, self.qos != nil, self.at != nil, self.count != nil,
        ]
        for (cell, isKnown) in zip(cells[1...5], known) where cell.isEmpty == isKnown { return nil }
        guard self.qos ?? 0 <= 2, self.count ?? 0 <= StreamLedger.sequenceLimit else { return nil }
        for part in cells[6].split(separator: " ") {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false).map { UInt64($0) }
            guard let first = ends[0], ends.count <= 2, let last = ends[ends.count - 1], first <= last,
                last < StreamLedger.sequenceLimit
            else { return nil }
            self.sequences.append(first..<last + 1)
        }
    }
}

extension SegmentLedger {
    /// Adds a row; `false` if it is not a row of a ledger.
    fileprivate mutating func add(_ row: Row) -> Bool {
        switch (row.kind, row.subscription, row.publisher, row.qos, row.at, row.count) {
        case ("load_began", nil, nil, nil, let at?, nil): self.loadBegan = at
        case ("publishers_ended", nil, nil, nil, let at?, nil): self.publishersEnded = at
        case ("subscribers_left", nil, nil, nil, let at?, nil): self.subscribersLeft = at
        case ("subscription", let number?, nil, nil, let began, nil):
            guard let run = row.sequences.first, row.sequences.count == 1, run.upperBound <= UInt64(UInt32.max) else {
                return false
            }
            let publishers = UInt32(run.lowerBound)..<UInt32(run.upperBound)
            self.subscriptions.append(Subscription(number: number, publishers: publishers, began: began))
        case ("early", let subscription?, let publisher?, nil, nil, let sequence?):
            self.early.append(Early(subscription: subscription, publisher: publisher, sequence: sequence))
        case ("look", nil, nil, nil, let at?, nil): self.looks.append(Look(at: at, sent: [:]))
        case ("sent", nil, let publisher?, nil, nil, let sent?):
            guard !self.looks.isEmpty else { return false }
            self.looks[self.looks.count - 1].sent[publisher] = sent
        case ("publisher", nil, let publisher?, let qos?, nil, let assigned?):
            let unknown = SequenceRanges(row.sequences)
            self.fates.append(PublisherFate(publisher: publisher, qos: qos, assigned: assigned, unknown: unknown))
        default: return self.received.add(row)
        }
        return true
    }
}

extension LedgerExport {
    fileprivate mutating func add(_ row: Row) -> Bool {
        switch (row.kind, row.subscription, row.publisher, row.qos, row.count) {
        case ("distinct", nil, nil, let qos?, let count?): self.counts[qos].distinct = count
        case ("duplicated", nil, nil, let qos?, let count?): self.counts[qos].duplicated = count
        case ("reordered", nil, nil, let qos?, let count?): self.counts[qos].reordered = count
        case ("foreign", nil, nil, nil, let count?): self.foreign = count
        case ("overflowed", nil, nil, nil, nil): self.overflowed = true
        case ("stream", let subscription?, let publisher?, let qos?, let next?),
            ("stream_overflowed", let subscription?, let publisher?, let qos?, let next?):
            self.keys.append(StreamKey(subscription: subscription, publisher: publisher))
            self.streams.append(
                StreamLedger(
                    qos: qos,
                    next: next,
                    missing: SequenceRanges(row.sequences),
                    overflowed: row.kind != "stream"
                )
            )
        default: return false
        }
        return true
    }
}
