import Measurement

/// Parses `timeline.csv` from its bytes, without a string per cell: an hour's run has millions of them.
struct TimelineScanner {
    /// The cells that the rows of one series share.
    struct Head {
        var series: Series
        var unit: String?
        var kind: Metric.Kind
    }

    /// A row; NaN where a cell is empty.
    struct Row {
        var second: Int
        /// The place in ``TimelineScanner/phases``.
        var phase: Int
        /// The place in ``TimelineScanner/heads``.
        var head: Int
        var value = Double.nan
        var rate = Double.nan
        var count = Double.nan
        var min = Double.nan
        var p50 = Double.nan
        var p99 = Double.nan
        var max = Double.nan
        /// The operations without an answer; only a duration that has any gives it.
        var unanswered: UnansweredReading?
        var bounds: [String] = []

        /// The length of the interval, to the millisecond; only a counter that moved gives it.
        var length: Double? {
            guard self.value > 0, self.rate > 0 else { return nil }
            return (self.value / self.rate * 1000).rounded() / 1000
        }
    }

    private(set) var phases: [String] = []
    private(set) var heads: [Head] = []

    /// Bytes from the cell `name` up to `unit`, to their head; nil for cells that are no head.
    private var known: [[UInt8]: Int?] = [:]
    private var knownPhases: [[UInt8]: Int] = [:]
    /// The bytes of each head, to compare a row with the head that followed last time.
    private var texts: [[UInt8]] = []
    /// The head that followed each head in the last interval.
    private var following: [Int] = []
    private var lastHead: Int?
    private var lastPhase: (text: [UInt8], place: Int)?
    private var cells: [Range<Int>] = []

    private static let width = 2 + MetricsCSV.columns.count
    /// The number of cells in files of `clamor.run/1`.
    private static let firstWidth = 2 + MetricsCSV.firstColumns

    private enum Place {
        static let name = Place.of("name")
        static let labels = Place.of("labels")
        static let type = Place.of("type")
        static let unit = Place.of("unit")
        static let value = Place.of("value")
        static let rate = Place.of("rate")
        static let count = Place.of("count")
        static let min = Place.of("min")
        static let p50 = Place.of("p50")
        static let p99 = Place.of("p99")
        static let max = Place.of("max")
        static let failed = Place.of("failed")
        static let outstanding = Place.of("outstanding")
        static let bounds = Place.of("bounds")

        private static func of(_ name: String) -> Int { 2 + (MetricsCSV.columns.firstIndex(of: name) ?? 0) }
    }

    /// Passes on each row that was written completely.
    ///
    /// The header, invalid lines, and a last line without its line break are skipped.
    mutating func scan(_ bytes: UnsafeBufferPointer<UInt8>, _ body: (TimelineScanner, Row) -> Void) {
        var start = 0
        while start < bytes.count {
            let end = self.split(bytes, from: start)
            guard end < bytes.count else { return }
            if let row = self.row(bytes, start..<end) { body(self, row) }
            start = end + 1
        }
    }

    /// Finds the cells of a line; the end of the line, or of the bytes.
    private mutating func split(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        self.cells.removeAll(keepingCapacity: true)
        var cell = start
        var isQuoted = false
        var place = start
        // A line feed ends a line even in a quoted cell: the writer leaves none in a name or label.
        while place < bytes.count, bytes[place] != 0x0A {
            if bytes[place] == 0x22 {
                isQuoted.toggle()
            } else if bytes[place] == 0x2C, !isQuoted {
                self.cells.append(cell..<place)
                cell = place + 1
            }
            place += 1
        }
        self.cells.append(cell..<place)
        if isQuoted { self.cells.removeAll(keepingCapacity: true) }
        return place
    }

    private mutating func row(_ bytes: UnsafeBufferPointer<UInt8>, _ line: Range<Int>) -> Row? {
        guard self.cells.count == Self.width || self.cells.count == Self.firstWidth,
            let second = Self.whole(bytes, self.cells[0])
        else { return nil }
        let front = self.cells[Place.name].lowerBound..<self.cells[Place.unit].upperBound
        guard let head = self.head(UnsafeBufferPointer(rebasing: bytes[front]), front.lowerBound) else { return nil }
        let cells = self.cells
        func number(_ place: Int) -> Double { Self.number(bytes, cells[place]) }
        var row = Row(
            second: second,
            phase: self.phase(UnsafeBufferPointer(rebasing: bytes[self.cells[1]])),
            head: head
        )
        switch self.heads[head].kind {
        case .duration:
            row.count = number(Place.count)
            row.min = number(Place.min)
            row.p50 = number(Place.p50)
            row.p99 = number(Place.p99)
            row.max = number(Place.max)
            guard !row.min.isNaN, !row.max.isNaN else { return nil }
            guard cells.count == Self.width else { break }
            let failed = UInt64(bounded: number(Place.failed))
            let outstanding = UInt64(bounded: number(Place.outstanding))
            guard failed > 0 || outstanding > 0 else { break }
            row.unanswered = UnansweredReading(failed: failed, outstanding: outstanding)
            let bounds = String(decoding: bytes[cells[Place.bounds]], as: UTF8.self)
            row.bounds = bounds.split(separator: " ").map { String($0) }
        case .counter:
            row.value = number(Place.value)
            row.rate = number(Place.rate)
            guard !row.value.isNaN else { return nil }
        case .gauge:
            row.value = number(Place.value)
            guard !row.value.isNaN else { return nil }
        }
        return row
    }

    // MARK: - What rows share

    /// `offset` is the place of `text` in the bytes that the cells are ranges of.
    private mutating func head(_ text: UnsafeBufferPointer<UInt8>, _ offset: Int) -> Int? {
        // Intervals have the same rows in the same order.
        if let last = self.lastHead, case let next = self.following[last], self.texts[next].elementsEqual(text) {
            self.lastHead = next
            return next
        }
        let key = Array(text)
        let found: Int?
        if let known = self.known[key] {
            found = known
        } else {
            found = self.newHead(text, offset)
            if found != nil {
                self.texts.append(key)
                self.following.append(self.following.count)
            }
            self.known[key] = .some(found)
        }
        guard let found else { return nil }
        if let last = self.lastHead { self.following[last] = found }
        self.lastHead = found
        return found
    }

    private mutating func newHead(_ text: UnsafeBufferPointer<UInt8>, _ offset: Int) -> Int? {
        func cell(_ place: Int) -> String {
            let range = self.cells[place]
            return Self.text(
                UnsafeBufferPointer(rebasing: text[(range.lowerBound - offset)..<(range.upperBound - offset)])
            )
        }
        guard let labels = Labels(parsing: cell(Place.labels)), let kind = Metric.Kind(rawValue: cell(Place.type))
        else {
            return nil
        }
        let unit = cell(Place.unit)
        let series = Series(name: cell(Place.name), labels: labels)
        self.heads.append(Head(series: series, unit: unit.isEmpty ? nil : unit, kind: kind))
        return self.heads.count - 1
    }

    private mutating func phase(_ text: UnsafeBufferPointer<UInt8>) -> Int {
        if let last = self.lastPhase, last.text.elementsEqual(text) { return last.place }
        let key = Array(text)
        let place: Int
        if let known = self.knownPhases[key] {
            place = known
        } else {
            place = self.phases.count
            self.phases.append(Self.text(text))
            self.knownPhases[key] = place
        }
        self.lastPhase = (key, place)
        return place
    }

    // MARK: - Cells

    private static func text(_ cell: UnsafeBufferPointer<UInt8>) -> String {
        let text = String(decoding: cell, as: UTF8.self)
        guard cell.contains(0x22) else { return text }
        return CSV.cells(of: text[...])?.first ?? text
    }

    private static func whole(_ bytes: UnsafeBufferPointer<UInt8>, _ cell: Range<Int>) -> Int? {
        guard !cell.isEmpty, cell.count <= 15 else { return nil }
        var value = 0
        for place in cell {
            let digit = Int(bytes[place]) - 0x30
            guard digit >= 0, digit <= 9 else { return nil }
            value = value * 10 + digit
        }
        return value
    }

    private static let powers: [Double] = (0...22).map { (0..<$0).reduce(1) { power, _ in power * 10 } }

    /// NaN for an empty cell, and for one that is no number.
    private static func number(_ bytes: UnsafeBufferPointer<UInt8>, _ cell: Range<Int>) -> Double {
        guard !cell.isEmpty else { return .nan }
        var digits: UInt64 = 0
        var decimals = 0
        var isFraction = false
        var isShort = cell.count <= 20
        for place in cell where isShort {
            let byte = bytes[place]
            if byte == 0x2E, !isFraction {
                isFraction = true
            } else if byte >= 0x30, byte <= 0x39, digits < 900_000_000_000_000 {
                digits = digits * 10 + UInt64(byte - 0x30)
                decimals += isFraction ? 1 : 0
            } else {
                isShort = false
            }
        }
        // Below 2^53 and with a power up to 10^22, one division is rounded correctly.
        if isShort, cell.count > (isFraction ? 1 : 0) { return Double(digits) / self.powers[decimals] }
        return Double(String(decoding: bytes[cell], as: UTF8.self)) ?? .nan
    }
}

/// Tells at which rows a new interval begins.
///
/// A second in which a stage ended is two intervals. The second one begins with durations again, or with a series that
/// was there before.
struct TimelineSplit {
    private var last: (second: Int, phase: Int, isDuration: Bool)?
    private var interval = 0
    /// For each head the interval that had it last.
    private var seen: [Int] = []

    mutating func begins(second: Int, phase: Int, head: Int, isDuration: Bool) -> Bool {
        while self.seen.count <= head { self.seen.append(0) }
        let isNew =
            self.last.map {
                $0.second != second || $0.phase != phase || self.seen[head] == self.interval
                    || isDuration && !$0.isDuration
            } ?? true
        if isNew { self.interval += 1 }
        self.seen[head] = self.interval
        self.last = (second, phase, isDuration)
        return isNew
    }
}
