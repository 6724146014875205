import Report

/// A strict reader of both formats, which names every rule that a page breaks.
struct PrometheusParser {
    struct Sample: Hashable {
        var name: String
        var labels: [String: String]
        var value: Double
    }

    private(set) var samples: [Sample] = []
    private(set) var types: [String: String] = [:]
    private(set) var problems: [String] = []
    private var help: Set<String> = []
    private var current: (name: String, type: String)?
    private var seen: Set<String> = []
    private let isOpen: Bool

    init(_ bytes: [UInt8], _ format: PrometheusFormat) {
        self.isOpen = format == .openMetrics
        guard let text = String(validating: bytes, as: UTF8.self) else {
            self.problems = ["not UTF-8"]
            return
        }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        self.check(lines.popLast() == "", "the last line has no end")
        if self.isOpen { self.check(lines.popLast() == "# EOF", "no # EOF at the end") }
        for line in lines { line.hasPrefix("#") ? self.comment(line) : self.sample(line) }
        for (name, type) in self.types {
            self.check(self.help.contains(name), "\(name) has no HELP")
            if type == "histogram" { self.histogram(name) }
        }
    }

    /// The value of the only sample with this name and labels.
    subscript(name: String, labels: [String: String] = [:]) -> Double? {
        self.samples.first { $0.name == name && $0.labels == labels }?.value
    }

    private mutating func check(_ holds: Bool, _ problem: @autoclosure () -> String) {
        if !holds { self.problems.append(problem()) }
    }

    private mutating func comment(_ line: Substring) {
        let parts = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 4, parts[0] == "#" else { return self.problems.append("not understood: \(line)") }
        let (key, name, rest) = (parts[1], parts[2], parts[3])
        self.check(Self.isName(name), "bad name: \(line)")
        switch key {
        case "HELP":
            self.check(self.help.insert(name).inserted, "two HELP of \(name)")
            self.check(!rest.isEmpty, "an empty HELP of \(name)")
            // In the text format an escape, a quotation mark is itself.
            self.check(Self.unescaped(rest, quotes: self.isOpen) != nil, "bad escape in HELP of \(name)")
            self.current = nil
        case "TYPE":
            self.check(self.types.updateValue(rest, forKey: name) == nil, "two TYPE of \(name)")
            let known = ["counter", "gauge", "histogram"] + (self.isOpen ? ["info"] : [])
            self.check(known.contains(rest), "no type of this format: \(rest)")
            self.check(!self.isOpen || rest != "counter" || !name.hasSuffix("_total"), "_total in the family \(name)")
            self.current = (name, rest)
        case "UNIT":
            self.check(self.isOpen, "UNIT is no line of the text format")
            self.check(name.hasSuffix("_" + rest), "\(name) does not end in its unit \(rest)")
        default: self.problems.append("not understood: \(line)")
        }
    }

    private mutating func sample(_ line: Substring) {
        guard let (name, labels, rest) = self.head(line) else { return }
        guard let value = Double(rest), rest.allSatisfy({ "+-.0123456789".contains($0) }) else {
            return self.problems.append("no plain number: \(line)")
        }
        self.check(Self.isName(name), "bad name: \(line)")
        let key = name + labels.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: "\n")
        self.check(self.seen.insert(key).inserted, "twice: \(line)")
        self.samples.append(Sample(name: name, labels: labels, value: value))
        guard let current = self.current else { return self.problems.append("before its TYPE: \(line)") }
        let suffixes =
            switch current.type {
            case "histogram": ["_bucket", "_sum", "_count"]
            case "counter": self.isOpen ? ["_total"] : [""]
            case "info": ["_info"]
            default: [""]
            }
        self.check(suffixes.contains { current.name + $0 == name }, "not of the family \(current.name): \(line)")
        self.check(current.type == "histogram" || labels["le"] == nil, "le outside a histogram: \(line)")
        if current.type == "counter" { self.check(value >= 0, "a counter below 0: \(line)") }
        if current.type == "counter", !self.isOpen { self.check(name.hasSuffix("_total"), "no _total: \(line)") }
    }

    private mutating func head(_ line: Substring) -> (name: String, labels: [String: String], rest: Substring)? {
        guard let brace = line.firstIndex(of: "{") else {
            let parts = line.split(separator: " ", omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                self.problems.append("not name and value: \(line)")
                return nil
            }
            return (String(parts[0]), [:], parts[1])
        }
        var labels: [String: String] = [:]
        var rest = line[line.index(after: brace)...]
        while true {
            guard let quote = rest.firstIndex(of: "\""), rest[..<quote].hasSuffix("="),
                let end = Self.closingQuote(rest[rest.index(after: quote)...])
            else { break }
            let key = String(rest[..<quote].dropLast())
            self.check(Self.isName(key) && !key.contains(":") && !key.hasPrefix("__"), "bad label: \(line)")
            guard let value = Self.unescaped(String(rest[rest.index(after: quote)..<end]), quotes: true) else { break }
            self.check(labels.updateValue(value, forKey: key) == nil, "a label twice: \(line)")
            rest = rest[rest.index(after: end)...]
            if rest.hasPrefix("} ") { return (String(line[..<brace]), labels, rest.dropFirst(2)) }
            guard rest.hasPrefix(",") else { break }
            rest = rest.dropFirst()
        }
        self.problems.append("bad labels: \(line)")
        return nil
    }

    private mutating func histogram(_ name: String) {
        var groups: [[String: String]: [(bound: Double, count: Double)]] = [:]
        for sample in self.samples where sample.name == name + "_bucket" {
            var labels = sample.labels
            let bound = labels.removeValue(forKey: "le") ?? ""
            self.check(bound == "+Inf" || bound.contains("."), "no canonical bound: \(bound)")
            groups[labels, default: []].append((bound == "+Inf" ? .infinity : Double(bound) ?? .nan, sample.value))
        }
        for (labels, buckets) in groups {
            let pairs = zip(buckets, buckets.dropFirst())
            self.check(pairs.allSatisfy { $0.bound < $1.bound }, "bounds of \(name) do not ascend")
            self.check(pairs.allSatisfy { $0.count <= $1.count }, "counts of \(name) are not cumulative")
            self.check(buckets.last?.bound == .infinity, "\(name) has no +Inf")
            self.check(buckets.last?.count == self[name + "_count", labels], "+Inf of \(name) is not its count")
            self.check(self[name + "_sum", labels].map { $0 >= 0 } == true, "\(name) has no sum")
        }
        self.check(!groups.isEmpty, "\(name) has no buckets")
    }

    private static func isName(_ name: String) -> Bool { name.wholeMatch(of: /[a-zA-Z_:][a-zA-Z0-9_:]*/) != nil }

    private static func closingQuote(_ text: Substring) -> Substring.Index? {
        var isEscaped = false
        for index in text.indices {
            if isEscaped {
                isEscaped = false
            } else if text[index] == "\\" {
                isEscaped = true
            } else if text[index] == "\"" {
                return index
            }
        }
        return nil
    }

    /// Nil if a backslash stands before something else than what the format escapes.
    private static func unescaped(_ text: String, quotes: Bool) -> String? {
        var plain = String.UnicodeScalarView()
        var isEscaped = false
        for scalar in text.unicodeScalars {
            switch (isEscaped, scalar) {
            case (false, "\\"):
                isEscaped = true
                continue
            case (true, "n"): plain.append("\n")
            case (true, "\\"): plain.append("\\")
            case (true, "\"") where quotes: plain.append("\"")
            case (true, _): return nil
            default: plain.append(scalar)
            }
            isEscaped = false
        }
        return isEscaped ? nil : String(plain)
    }
}
