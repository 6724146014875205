import Measurement

/// Writes families and samples in one of the two formats, and keeps them unique.
struct PrometheusWriter {
    enum FamilyType: String {
        case counter, gauge, histogram, info
    }

    /// Labels as they stand between the braces, without a comma at the end.
    typealias LabelText = [UInt8]

    private let format: PrometheusFormat
    private var bytes: [UInt8] = []
    /// Names of families and their samples so far.
    private var names: Set<String> = []
    /// Labels of the current family.
    private var seen: Set<LabelText> = []

    private static let bucketLabels = PrometheusPage.bounds.map { Self.number(Double($0) / 1e9) }

    init(_ format: PrometheusFormat) {
        self.format = format
        self.bytes.reserveCapacity(1 << 16)
    }

    /// A number as both formats want a bound: `0.001`, and `1.0` for a whole one.
    ///
    /// OpenMetrics 1.0, "Canonical Numbers".
    private static func number(_ value: Double) -> String {
        let text = Words.plain(value)
        return text.contains(".") ? text : text + ".0"
    }

    /// Writes the lines that describe a family; false, and nothing written, if one of its names is taken.
    mutating func begin(_ family: String, _ type: FamilyType, unit: String? = nil, _ help: String) -> Bool {
        let suffixes =
            switch type {
            case .counter: ["", "_total"]
            case .gauge: [""]
            case .histogram: ["", "_bucket", "_sum", "_count"]
            case .info: ["", "_info"]
            }
        let samples = suffixes.map { family + $0 }
        guard self.names.isDisjoint(with: samples) else { return false }
        self.names.formUnion(samples)
        self.seen.removeAll(keepingCapacity: true)
        let isOpen = self.format == .openMetrics
        // The text format has no families of counters, and no type for facts.
        let name = !isOpen && (type == .counter || type == .info) ? samples[1] : family
        self.line("# HELP ", name, self.escaped(help))
        self.line("# TYPE ", name, !isOpen && type == .info ? "gauge" : type.rawValue)
        if isOpen, let unit { self.line("# UNIT ", name, unit) }
        return true
    }

    private mutating func line(_ start: String, _ name: String, _ rest: String) {
        self.write(start)
        self.write(name)
        self.bytes.append(UInt8(ascii: " "))
        self.write(rest)
        self.bytes.append(UInt8(ascii: "\n"))
    }

    private func escaped(_ help: String) -> String {
        let text = help.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
        return self.format == .openMetrics ? text.replacing("\"", with: "\\\"") : text
    }

    /// The text of labels; nil if the current family already has them.
    ///
    /// An empty value is the same as no label. A name that is taken by another one with other characters gets a number.
    mutating func labels(_ labels: Labels) -> LabelText? {
        var text: LabelText = []
        var keys: Set<String> = []
        for label in labels.all where !label.value.isEmpty {
            let wanted = PrometheusName.label(label.key)
            var key = wanted
            var number = 2
            while !keys.insert(key).inserted {
                key = "\(wanted)\(number)"
                number += 1
            }
            if !text.isEmpty { text.append(UInt8(ascii: ",")) }
            Self.append(key, label.value, to: &text)
        }
        return self.seen.insert(text).inserted ? text : nil
    }

    private static func append(_ key: String, _ value: String, to text: inout LabelText) {
        text.append(contentsOf: key.utf8)
        text.append(UInt8(ascii: "="))
        text.append(UInt8(ascii: "\""))
        for byte in value.utf8 {
            switch byte {
            case UInt8(ascii: "\n"): text.append(contentsOf: #"\n"#.utf8)
            case UInt8(ascii: "\\"), UInt8(ascii: "\""):
                text.append(UInt8(ascii: "\\"))
                text.append(byte)
            default: text.append(byte)
            }
        }
        text.append(UInt8(ascii: "\""))
    }

    mutating func sample(_ name: String, _ labels: LabelText, _ value: Double) {
        self.sample(name, "", labels, nil, Words.plain(value))
    }

    /// A duration, with one more label.
    mutating func sample(_ name: String, _ labels: LabelText, _ key: String, _ value: String, nanoseconds: Int64) {
        self.sample(name, "", labels, (key, value), Words.plainSeconds(Double(nanoseconds) / 1e9))
    }

    mutating func histogram(_ family: String, _ labels: LabelText, _ histogram: Histogram) {
        for (count, bound) in zip(histogram.cumulativeCounts(upTo: PrometheusPage.bounds), Self.bucketLabels) {
            self.sample(family, "_bucket", labels, ("le", bound), String(count))
        }
        self.sample(family, "_bucket", labels, ("le", "+Inf"), String(histogram.count))
        self.sample(family, "_sum", labels, nil, Words.plainSeconds(histogram.sum / 1e9))
        self.sample(family, "_count", labels, nil, String(histogram.count))
    }

    /// A line: name, labels and value.
    private mutating func sample(
        _ name: String,
        _ suffix: String,
        _ labels: LabelText,
        _ last: (key: String, value: String)?,
        _ value: String
    ) {
        self.write(name)
        self.write(suffix)
        if !labels.isEmpty || last != nil {
            self.bytes.append(UInt8(ascii: "{"))
            self.bytes.append(contentsOf: labels)
            if let last {
                if !labels.isEmpty { self.bytes.append(UInt8(ascii: ",")) }
                Self.append(last.key, last.value, to: &self.bytes)
            }
            self.bytes.append(UInt8(ascii: "}"))
        }
        self.bytes.append(UInt8(ascii: " "))
        self.write(value)
        self.bytes.append(UInt8(ascii: "\n"))
    }

    private mutating func write(_ text: String) { self.bytes.append(contentsOf: text.utf8) }

    /// All that was written, with the end that OpenMetrics wants.
    consuming func finished() -> [UInt8] {
        if self.format == .openMetrics { self.write("# EOF\n") }
        return self.bytes
    }
}
