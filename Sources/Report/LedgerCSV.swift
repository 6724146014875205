package import Ledger

/// `ledger.csv` of a segment: messages that publishers sent and receivers received, to be joined with the ledgers of
/// all other segments.
///
/// A row begins with its kind. Sequences are runs `first-last` separated by blanks, or one number. The size depends on
/// the plan and on what is missing, and not on the length of the run.
package enum LedgerCSV {
    package static let fileName = "ledger.csv"

    /// Rows that are put together before they are written.
    private static let batch = 4_096
    /// Runs of numbers in one row.
    private static let runLimit = 1_024

    static func write(_ ledger: SegmentLedger, to path: String) throws(ResultError) {
        let file = try OutputFile(path: path)
        var text = CSV.row(LedgerRow.columns)
        var rows: UInt64 = 0
        // A loop over closures that throw would lose the type of what they throw.
        var failure: ResultError?
        self.rows(of: ledger) { row in
            text += row.text
            rows += 1
            guard rows.isMultiple(of: UInt64(self.batch)), failure == nil else { return }
            do throws(ResultError) {
                try file.write(text)
            } catch {
                failure = error
            }
            text = ""
        }
        if let failure { throw failure }
        try file.write(text + LedgerRow(.end, count: rows).text)
    }

    package static func text(_ ledger: SegmentLedger) -> String {
        var text = CSV.row(LedgerRow.columns)
        var rows: UInt64 = 0
        self.rows(of: ledger) { row in
            text += row.text
            rows += 1
        }
        return text + LedgerRow(.end, count: rows).text
    }

    private static func rows(of ledger: SegmentLedger, _ add: (LedgerRow) -> Void) {
        for (process, times) in ledger.times.enumerated() {
            if process > 0 { add(LedgerRow(.process)) }
            for (kind, time) in [
                (LedgerRow.Kind.loadBegan, times.loadBegan), (.publishersEnded, times.publishersEnded),
                (.subscribersLeft, times.subscribersLeft),
            ] {
                if let time { add(LedgerRow(kind, at: time)) }
            }
        }
        for (kind, time) in [
            (LedgerRow.Kind.lastArrival, ledger.end.lastArrival), (.lastPublish, ledger.end.lastPublish),
            (.probed, ledger.end.probed), (.ended, ledger.end.ended),
            (.longest, ledger.end.longest == 0 ? nil : ledger.end.longest),
        ] {
            if let time { add(LedgerRow(kind, at: time)) }
        }
        self.rows(of: ledger.end.unproved.sorted(), LedgerRow(.unproved), add)
        self.rows(of: ledger.receivers, LedgerRow(.receivers), add)
        self.rows(of: ledger.began.sorted(), LedgerRow(.began), add)
        for (qos, granted) in Dictionary(grouping: ledger.granted, by: \.value).sorted(by: { $0.key < $1.key }) {
            self.rows(of: granted.map(\.key).sorted(), LedgerRow(.granted, qos: qos), add)
        }
        self.rows(of: ledger.places, add)
        for published in ledger.published { self.rows(of: published, add) }
        self.rows(of: ledger.received, add)
    }

    private static func rows(of places: LedgerPlaces, _ add: (LedgerRow) -> Void) {
        for stream in places.streams {
            var row = LedgerRow(.placePublishers, count: UInt64(stream.publishers.count))
            (row.receiver, row.publisher) = (stream.own, stream.publishers.lowerBound)
            (row.group, row.name) = (stream.group, stream.name)
            add(row)
        }
        for receivers in places.receivers {
            var row = LedgerRow(.placeReceivers, count: UInt64(receivers.numbers.count))
            row.receiver = receivers.numbers.lowerBound
            row.group = receivers.group
            add(row)
        }
        for stage in places.stages {
            var row = LedgerRow(.placeStage)
            row.name = stage.name
            if stage.isMeasured { row.flags.append(.measured) }
            add(row)
        }
    }

    private static func rows(of published: PublishedExport, _ add: (LedgerRow) -> Void) {
        add(LedgerRow(.audiences, count: UInt64(published.audiences.count)))
        for (number, members) in published.audiences.enumerated() {
            var start = 0
            for (index, member) in members.enumerated() {
                let next = index + 1 < members.count ? members[index + 1] : nil
                if let next, next.hasTerms(of: member) { continue }
                var row = LedgerRow(.members, qos: member.qos, count: UInt64(member.copies))
                row.audience = UInt32(number)
                if member.isShared { row.flags.append(.shared) }
                var others: LedgerRow?
                if member.noLocal > 0 || member.ownQoS != member.qos {
                    others = LedgerRow(.noLocal, qos: member.ownQoS, count: UInt64(member.noLocal))
                }
                self.rows(of: members[start...index].map(\.receiver), row) { row in
                    add(row)
                    if let others { add(others) }
                }
                start = index + 1
            }
        }
        for fate in published.fates {
            var row = LedgerRow(.publisher, qos: fate.qos, count: fate.assigned, fate.unknown.runs)
            (row.publisher, row.audience) = (fate.publisher, fate.audience)
            if fate.expires { row.flags.append(.expires) }
            if fate.isOrdered { row.flags.append(.ordered) }
            if fate.isAlone { row.flags.append(.alone) }
            add(row)
            for (kind, ranges) in [
                (LedgerRow.Kind.unsent, fate.unsent), (.outstanding, fate.outstanding), (.resent, fate.resent),
                (.admitted, fate.admitted),
            ] where !ranges.isEmpty {
                add(LedgerRow(kind, ranges.runs))
            }
            if fate.neverSent > 0 { add(LedgerRow(.neverSent, count: fate.neverSent)) }
            for mark in fate.dues {
                var row = LedgerRow(.due, at: mark.last, count: mark.count)
                row.audience = UInt32(mark.lane)
                add(row)
            }
        }
    }

    private static func rows(of received: LedgerExport, _ add: (LedgerRow) -> Void) {
        for qos: UInt8 in 0...2 {
            let counts = received.counts[qos]
            for (kind, count) in [
                (LedgerRow.Kind.distinct, counts.distinct), (.duplicated, counts.duplicated),
                (.reordered, counts.reordered), (.overlapped, counts.overlapped),
            ] where count > 0 {
                add(LedgerRow(kind, qos: qos, count: count))
            }
        }
        if received.foreign > 0 { add(LedgerRow(.foreign, count: received.foreign)) }
        if received.repeated > 0 { add(LedgerRow(.repeated, count: received.repeated)) }
        if received.overflowed { add(LedgerRow(.overflowed)) }
        self.rows(of: received.late.sorted(), LedgerRow(.late), add)
        self.rows(of: received.absent.sorted(), LedgerRow(.absent), add)
        for (index, (key, stream)) in zip(received.keys, received.streams).enumerated() {
            var row = LedgerRow(.stream, qos: stream.qos, count: stream.next, stream.missing)
            (row.receiver, row.publisher, row.audience) = (key.subscription, key.publisher, key.audience)
            if stream.overflowed { row.flags.append(.overflowed) }
            add(row)
            if let irregular = received.irregular[index] { self.rows(of: irregular, add) }
            if let excused = received.excused[index], !excused.isEmpty {
                add(LedgerRow(.streamExcused, excused.runs))
            }
        }
    }

    private static func rows(of irregular: Irregularity, _ add: (LedgerRow) -> Void) {
        for (kind, count, sequences) in [
            (LedgerRow.Kind.streamDuplicated, irregular.duplicated, irregular.duplicates.runs),
            (.streamPermitted, irregular.permitted, []), (.streamOverlapped, irregular.overlapped, []),
            (.streamReordered, irregular.reordered, irregular.overtaken.runs),
        ] where count > 0 || !sequences.isEmpty {
            add(LedgerRow(kind, count: count, sequences))
        }
    }

    /// Rows like `row` with the numbers in their order, consecutive ones as a run.
    private static func rows(of numbers: [UInt32], _ row: LedgerRow, _ add: (LedgerRow) -> Void) {
        var row = row
        for number in numbers.lazy.map(UInt64.init) {
            if let last = row.sequences.last, last.upperBound == number {
                row.sequences[row.sequences.count - 1] = last.lowerBound..<number + 1
                continue
            }
            if row.sequences.count == self.runLimit {
                add(row)
                row.sequences.removeAll(keepingCapacity: true)
            }
            row.sequences.append(number..<number + 1)
        }
        if !row.sequences.isEmpty { add(row) }
    }

    /// The ledger of a whole file; `nil` for one that was cut or damaged, or is another.
    package static func read(_ text: String) -> SegmentLedger? {
        guard let rows = self.rows(of: text), let header = rows.first, CSV.cells(of: header) == LedgerRow.columns,
            let end = rows.last.flatMap({ LedgerRow($0) }), end.kind == .end, end.count == UInt64(rows.count - 2)
        else { return nil }
        var reading = LedgerReading()
        for line in rows.dropFirst().dropLast() {
            guard let row = LedgerRow(line), reading.add(row) else { return nil }
        }
        return reading.isWhole ? reading.ledger : nil
    }

    /// The rows without their line feeds; a quoted name may have line feeds of its own.
    private static func rows(of text: String) -> [Substring]? {
        guard text.utf8.last == 0x0A else { return nil }
        var rows: [Substring] = []
        var open: Substring?
        for line in text.wholeLines {
            let row = open.map { text[$0.startIndex..<line.endIndex] } ?? line
            let isOpen = row.hasPrefix("place_") && !row.utf8.count(where: { $0 == 0x22 }).isMultiple(of: 2)
            open = isOpen ? row : nil
            if !isOpen { rows.append(row) }
        }
        return open == nil ? rows : nil
    }
}

extension AudienceMember {
    /// Whether all but the receiver is the same.
    fileprivate func hasTerms(of other: AudienceMember) -> Bool {
        var other = other
        other.receiver = self.receiver
        return self == other
    }
}
