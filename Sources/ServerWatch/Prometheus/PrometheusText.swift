/// One series of a scrape.
package struct PrometheusSample: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case counter, gauge
    }

    package var name: String
    /// `key=value,key=value`, sorted by key; empty without labels.
    package var labels: String
    package var kind: Kind
    package var value: Double

    package init(name: String, labels: String = "", kind: Kind, value: Double) {
        self.name = name
        self.labels = labels
        self.kind = kind
        self.value = value
    }
}

/// The text of an exporter, in Prometheus's format 0.0.4 or OpenMetrics 1.0.
///
/// The bytes may be anything: a line that breaks the format is left out. Buckets of histograms, times of creation and
/// values that are no finite number are left out too.
package struct PrometheusText: Hashable, Sendable {
    /// The series that match, in the text's order, at most ``mostKept``.
    package private(set) var samples: [PrometheusSample] = []
    /// The number of series that match, at most ``mostParsed``.
    package private(set) var matching = 0

    package static let mostBytes = 8 << 20
    package static let mostKept = 200
    package static let mostParsed = 10_000
    static let longestLine = 65_536

    private enum Family {
        case counter, gauge, histogram, summary
    }

    private var families: [String: Family] = [:]
    private var seen: Set<[String]> = []

    /// - Parameters:
    ///   - bytes: the text; bytes beyond ``mostBytes`` are not read.
    ///   - patterns: the series to keep; empty keeps all.
    package init(_ bytes: [UInt8], patterns: [SeriesPattern] = []) {
        var start = 0
        let end = min(bytes.count, Self.mostBytes)
        while start < end, self.matching < Self.mostParsed {
            let line = bytes[start..<end].prefix { $0 != UInt8(ascii: "\n") }
            start = line.endIndex + 1
            // The last line of a text that was cut is not known whole.
            if line.endIndex == Self.mostBytes { break }
            if line.count <= Self.longestLine { self.take(line, patterns) }
        }
        self.families = [:]
        self.seen = []
    }

    /// The labels of a series that is the whole text; `nil` if it is none.
    static func labels(of text: String) -> [String: String]? {
        var cursor = TextCursor(Array(text.utf8)[...])
        guard let series = cursor.series(), cursor.peek == nil else { return nil }
        return Dictionary(series.labels, uniquingKeysWith: { $1 })
    }

    private mutating func take(_ line: ArraySlice<UInt8>, _ patterns: [SeriesPattern]) {
        var cursor = TextCursor(line)
        cursor.skipBlanks()
        guard let first = cursor.peek else { return }
        if first == UInt8(ascii: "#") { return self.takeComment(&cursor) }
        guard let series = cursor.series() else { return }
        cursor.skipBlanks()
        guard let value = Double(cursor.word()), value.isFinite else { return }
        let (family, kind) = self.kind(of: series.name)
        guard let kind else { return }
        guard patterns.isEmpty || patterns.contains(where: { $0.matches(series.name, family, series.labels) }) else {
            return
        }
        let labels = series.labels.sorted { ($0.key, $0.value) < ($1.key, $1.value) }
            .map { "\($0.key)=\($0.value)" }.joined(separator: ",")
        let sample = PrometheusSample(
            name: LabelText.safe(series.name),
            labels: LabelText.safe(labels),
            kind: kind,
            value: value
        )
        // A series that occurs twice has no certain value; the first one stands.
        guard self.seen.insert([sample.name, sample.labels]).inserted else { return }
        self.matching += 1
        if self.samples.count < Self.mostKept { self.samples.append(sample) }
    }

    /// `# TYPE name kind`; every other comment is text.
    private mutating func takeComment(_ cursor: inout TextCursor) {
        guard cursor.word() == "#" else { return }
        cursor.skipBlanks()
        guard cursor.word() == "TYPE", self.families.count < Self.mostParsed else { return }
        cursor.skipBlanks()
        guard let name = cursor.name() else { return }
        cursor.skipBlanks()
        switch cursor.word() {
        case "counter": self.families[name] = .counter
        case "histogram", "gaugehistogram": self.families[name] = .histogram
        case "summary": self.families[name] = .summary
        default: self.families[name] = .gauge
        }
    }

    /// The family of a series, and `nil` for a kind that is left out.
    private func kind(of name: String) -> (family: String, kind: PrometheusSample.Kind?) {
        if let family = self.families[name] {
            switch family {
            case .counter: return (name, .counter)
            case .gauge, .summary: return (name, .gauge)
            case .histogram: return (name, nil)
            }
        }
        let suffixes: [(text: String, families: [Family], kind: PrometheusSample.Kind?)] = [
            ("_total", [.counter], .counter),
            ("_count", [.histogram, .summary], .counter), ("_sum", [.histogram, .summary], .counter),
            ("_gcount", [.histogram], .gauge), ("_gsum", [.histogram], .gauge),
            ("_bucket", [.histogram], nil), ("_created", [.counter, .histogram, .summary], nil),
        ]
        for suffix in suffixes where name.hasSuffix(suffix.text) {
            let base = String(name.dropLast(suffix.text.count))
            if let family = self.families[base], suffix.families.contains(family) { return (base, suffix.kind) }
        }
        return (name, name.hasSuffix("_total") ? .counter : .gauge)
    }
}

/// Reads a line of an exporter's text from the left.
private struct TextCursor {
    private let line: ArraySlice<UInt8>
    private var place: Int

    init(_ line: ArraySlice<UInt8>) {
        self.line = line
        self.place = line.startIndex
    }

    var peek: UInt8? { self.place < self.line.endIndex ? self.line[self.place] : nil }
    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }

    mutating func skipBlanks() {
        while let byte = self.peek, Self.isBlank(byte) { self.place += 1 }
    }

    private mutating func take(while isRight: (UInt8) -> Bool) -> String {
        let start = self.place
        while let byte = self.peek, isRight(byte) { self.place += 1 }
        return String(decoding: self.line[start..<self.place], as: UTF8.self)
    }

    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard let byte = self.peek, UInt32(byte) == character.value else { return false }
        self.place += 1
        return true
    }

    /// The text up to the next blank.
    mutating func word() -> String { self.take { !Self.isBlank($0) } }

    /// A name, with or without quotes; `nil` if there is none.
    mutating func name() -> String? {
        if self.peek == UInt8(ascii: "\"") { return self.quoted() }
        let name = self.take { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: ":"):
                true
            default: false
            }
        }
        return name.isEmpty ? nil : name
    }

    /// A text in quotes, with `\"`, `\\` and `\n`.
    private mutating func quoted() -> String? {
        guard self.skip("\"") else { return nil }
        var text: [UInt8] = []
        while let byte = self.peek {
            self.place += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let next = self.peek else { return nil }
                self.place += 1
                text.append(next == UInt8(ascii: "n") ? UInt8(ascii: "\n") : next)
            default: text.append(byte)
            }
        }
        return nil
    }

    /// `name{key="value",...}`, or `{"name",key="value",...}` for a name of any characters.
    mutating func series() -> (name: String, labels: [(key: String, value: String)])? {
        var name = self.peek == UInt8(ascii: "{") ? nil : self.name()
        if name == nil, self.peek != UInt8(ascii: "{") { return nil }
        var labels: [(key: String, value: String)] = []
        self.skipBlanks()
        if self.skip("{") {
            self.skipBlanks()
            while !self.skip("}") {
                guard let key = self.name() else { return nil }
                self.skipBlanks()
                if self.skip("=") {
                    self.skipBlanks()
                    guard let value = self.quoted() else { return nil }
                    labels.append((key, value))
                } else {
                    guard name == nil else { return nil }
                    name = key
                }
                self.skipBlanks()
                guard self.skip(",") || self.peek == UInt8(ascii: "}") else { return nil }
                self.skipBlanks()
            }
        }
        return name.map { ($0, labels) }
    }
}
