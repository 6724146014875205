package import Ledger

extension LedgerCSV {
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
