extension Threshold {
    /// Parses a threshold.
    ///
    /// `text`: in the form that `Threshold` describes.
    package static func parse(_ text: String) throws(ThresholdError) -> Threshold {
        var parser = ThresholdParser(text)
        return try parser.threshold()
    }

    /// Parses the part before a threshold's comparison: a metric, its labels and a field.
    package static func parseSubject(
        _ text: String
    ) throws(ThresholdError) -> (name: String, labels: Labels, field: Field?) {
        var parser = ThresholdParser(text)
        return try parser.subject()
    }
}

private struct ThresholdParser {
    private static let example = "write it like 'publish_ack_duration{qos=1} p99 < 50ms'"
    private static let fields = "count, rate, min, mean, max, slope or a percentile such as p99.9"

    private let expression: String
    private var rest: Substring

    init(_ text: String) {
        self.expression = String(text.trimmed)
        self.rest = self.expression[...]
    }

    mutating func threshold() throws(ThresholdError) -> Threshold {
        let (name, labels, field) = try self.figure(like: Self.example)
        let comparison = try self.comparison()
        let (limit, unit) = try self.value()
        let word = self.rest.trimmed
        guard word.isEmpty || word == "abort" else {
            throw self.error("'\(word)' after the value is not understood; only 'abort' may follow")
        }
        let threshold = Threshold(
            expression: self.expression,
            name: name,
            labels: labels,
            field: field,
            comparison: comparison,
            limit: limit,
            unit: unit,
            aborts: word == "abort"
        )
        if let problem = threshold.unitProblem { throw self.error(problem) }
        return threshold
    }

    mutating func subject() throws(ThresholdError) -> (name: String, labels: Labels, field: Threshold.Field?) {
        let figure = try self.figure(like: "write it like 'publish_ack_duration{qos=1} p99'")
        let rest = self.rest.trimmed
        guard rest.isEmpty else { throw self.error("'\(rest)' after the field is not understood") }
        return figure
    }

    /// Parses a metric, its labels and a field; an error names the `example`.
    private mutating func figure(
        like example: String
    ) throws(ThresholdError) -> (name: String, labels: Labels, field: Threshold.Field?) {
        let name = String(self.take { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") })
        guard let first = name.first, first.isLetter else { throw self.error("no metric name; \(example)") }
        let labels = try self.labels()
        return (name, labels, try self.field(of: name))
    }

    /// Parses `{qos=1, leg="puback"}`.
    private mutating func labels() throws(ThresholdError) -> Labels {
        self.skipSpaces()
        guard self.rest.first == "{" else { return Labels() }
        guard let end = self.rest.firstIndex(of: "}") else { throw self.error("the '{' has no '}'") }
        let inner = self.rest[self.rest.index(after: self.rest.startIndex)..<end]
        self.rest = self.rest[self.rest.index(after: end)...]
        var labels: [String: String] = [:]
        for part in inner.split(separator: ",") {
            guard let equals = part.firstIndex(of: "=") else {
                throw self.error("label '\(part.trimmed)' has no value; write {qos=1}")
            }
            let key = String(part[..<equals].trimmed)
            let value = String(part[part.index(after: equals)...].trimmed.unquoted)
            guard !key.isEmpty, !value.isEmpty else {
                throw self.error("label '\(part.trimmed)' is incomplete; write {qos=1}")
            }
            guard labels.updateValue(value, forKey: key) == nil else {
                throw self.error("label '\(key)' is given twice")
            }
        }
        return Labels(labels)
    }

    private mutating func field(of name: String) throws(ThresholdError) -> Threshold.Field? {
        self.skipSpaces()
        let word = self.take { !$0.isWhitespace && !"<>=!".contains($0) }
        switch word {
        case "":
            if name.hasSuffix("_duration") || name.hasSuffix("_lag") {
                throw self.error("a duration needs a field: \(Self.fields)")
            }
            return nil
        case _ where name == Threshold.errorRate:
            throw self.error("error_rate has no fields; write 'error_rate < 0.1%'")
        case "count": return .count
        case "rate": return .rate
        case "min": return .min
        case "mean": return .mean
        case "max": return .max
        case "slope": return .slope
        default:
            guard word.first == "p", let percent = Double.plain(word.dropFirst()), percent <= 100 else {
                throw self.error("'\(word)' is not a field; use \(Self.fields)")
            }
            return .percentile(percent)
        }
    }

    private mutating func comparison() throws(ThresholdError) -> Threshold.Comparison {
        self.skipSpaces()
        let word = self.take { "<>=!".contains($0) }
        guard let comparison = Threshold.Comparison(rawValue: String(word)) else {
            let found = word.isEmpty ? "no comparison" : "'\(word)' is not a comparison"
            throw self.error("\(found); use <, <=, >, >=, == or !=")
        }
        return comparison
    }

    private mutating func value() throws(ThresholdError) -> (Double, Threshold.Unit) {
        self.skipSpaces()
        let digits = self.take { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard let number = Double.plain(digits) else {
            throw self.error("no number after the comparison; \(Self.example)")
        }
        self.skipSpaces()
        if self.rest.trimmed == "abort" { return (number, .plain) }
        let word = self.take { !$0.isWhitespace }
        if word == "/s" { return (number, .perSecond) }
        let unit = word.hasSuffix("/h") ? word.dropLast(2) : word
        guard let known = Self.units.first(where: { $0.names.contains(String(unit)) }) else {
            throw self.error("'\(word)' is not a unit; use ns, us, ms, s, %, MiB or /s, or none; of a slope with /h")
        }
        guard word.hasSuffix("/h") else { return (number * known.scale, known.unit) }
        return (number * known.scale, known.unit == .time ? .timePerHour : .perHour)
    }

    private static let units: [(names: [String], scale: Double, unit: Threshold.Unit)] = [
        ([""], 1, .plain), (["ns"], 1e-9, .time),
        // Both the micro sign and the Greek letter are accepted.
        (["us", "\u{B5}s", "\u{3BC}s"], 1e-6, .time), (["ms"], 1e-3, .time), (["s"], 1, .time),
        (["%"], 0.01, .share), (["kB"], 1e3, .plain), (["MB"], 1e6, .plain), (["GB"], 1e9, .plain),
        (["KiB"], 1024, .plain), (["MiB"], 1_048_576, .plain), (["GiB"], 1_073_741_824, .plain),
    ]

    private mutating func take(while isWanted: (Character) -> Bool) -> Substring {
        let taken = self.rest.prefix(while: isWanted)
        self.rest = self.rest.dropFirst(taken.count)
        return taken
    }

    private mutating func skipSpaces() { self.rest = self.rest.drop { $0.isWhitespace } }
    private func error(_ problem: String) -> ThresholdError { ThresholdError(self.expression, problem) }
}

extension Threshold {
    /// The error in the limit's unit, if any.
    fileprivate var unitProblem: String? {
        let isDuration = self.name.hasSuffix("_duration") || self.name.hasSuffix("_lag")
        switch (self.field, self.unit) {
        case (.slope, _) where self.aborts: return "a slope is known when the run has ended; leave abort out"
        case (.slope, .timePerHour) where isDuration, (.slope, .perHour) where !isDuration: return nil
        case (.slope, _):
            let form = isDuration ? "a time per hour, such as 1ms/h" : "a value per hour, such as 1MiB/h"
            return "a slope is compared with \(form)"
        case (_, .perHour), (_, .timePerHour): return "only slope is compared with a value per hour"
        case (_, .share) where isDuration: return "a duration is not compared with a share; use ns, us, ms or s"
        case (.count, .plain), (.rate, .perSecond), (.rate, .plain): return nil
        case (.count, _): return "count is compared with a plain number"
        case (.rate, _): return "rate is compared with a number per second, such as 50000/s"
        case (_, .perSecond): return "only rate is compared with a number per second"
        case (.percentile, let unit) where unit != .time: return "a percentile is compared with a time, such as 50ms"
        case (_, let unit) where isDuration && unit != .time: return "a duration is compared with a time, such as 50ms"
        default: break
        }
        if self.name == Self.errorRate, self.unit == .time {
            return "error_rate is compared with a share, such as 0.1%"
        }
        return nil
    }

    /// Whether a run that records these metrics has none of the threshold's name.
    package func isAbsent(in catalog: MetricCatalog) -> Bool {
        // Rare events, such as errors, and watched servers are known only while the run goes on.
        if self.name == Self.errorRate || self.definition?.role == .server { return false }
        if let metric = self.definition, metric.isRare {
            return metric.role == .ledger && !catalog.names.contains(MetricDefinition.deliveryReceived.name)
                && !catalog.names.contains(MetricDefinition.deliveryLost.name)
        }
        return !catalog.names.contains(self.name)
    }

    /// The error of the threshold for a run that records these metrics: an unknown name or label.
    package func problem(in catalog: MetricCatalog) -> ThresholdError? {
        if let words = self.slopeProblem { return ThresholdError(self.expression, words) }
        if self.labels[Labels.stage] != nil {
            return self.stageProblem(in: catalog) ?? self.withoutStage.problem(in: catalog)
        }
        // Error kinds are known only after they occur.
        if self.name == Self.errorRate { return self.labelProblem(in: catalog, known: []) }
        if let metric = self.definition, metric.isRare || metric.role == .server {
            return metric.isSettled && self.field == .rate
                ? self.rateProblem : self.labelProblem(in: catalog, known: metric.labels)
        }
        let named = catalog.all.filter { $0.name == self.name }
        guard let kind = named.first?.kind else {
            return ThresholdError(self.expression, "this run has no metric '\(self.name)'; name another")
        }
        let isDuration = kind == .duration
        guard named.contains(where: { $0.labels.contains(self.labels) }) else {
            let known = named.map { "{\($0.labels.all.map { "\($0.key)=\($0.value)" }.joined(separator: ","))}" }
            return ThresholdError(
                self.expression,
                "\(self.name) has no such labels; it has \(known.joined(separator: " "))"
            )
        }
        switch self.field {
        case .rate where Self.settled.contains(self.name): return self.rateProblem
        case .rate where catalog.gauges.contains { $0.name == self.name }:
            return ThresholdError(self.expression, "a level has no rate; use max or mean")
        case .rate where isDuration: return ThresholdError(self.expression, "a duration has no rate; use count")
        case nil where isDuration: return ThresholdError(self.expression, "a duration needs a field, such as p99")
        case .percentile(let percent) where !isDuration && !(percent == 50 && self.isSingle(in: catalog)):
            let known =
                self.isSingle(in: catalog) ? "of \(self.name) only p50 is known" : "only durations have percentiles"
            return ThresholdError(self.expression, known)
        default: return self.sumProblem(in: catalog)
        }
    }

    /// The error of a slope that no run has.
    private var slopeProblem: String? {
        guard self.field == .slope else { return nil }
        if self.labels[Labels.stage] != nil { return "a slope is of the whole measured phase; leave 'stage' out" }
        let metric = MetricDefinition.named(self.name)
        let isLevel = metric.kind == .gauge && [.server, .process].contains(metric.role)
        guard metric.kind != .duration, !isLevel else { return nil }
        return "\(self.name) has no slope; durations have one, and levels of server, generator and host"
    }

    private var rateProblem: ThresholdError {
        ThresholdError(self.expression, "\(self.name) is known when the run has ended, and has no rate; use count")
    }

    /// The error in the labels of a metric outside the catalog, which has these labels and the group's name.
    private func labelProblem(in catalog: MetricCatalog, known: [String]) -> ThresholdError? {
        let groups = Set(catalog.all.compactMap { $0.labels[Labels.group] })
        let keys = known + (groups.isEmpty ? [] : [Labels.group])
        if let other = self.labels.all.first(where: { !keys.contains($0.key) }) {
            let words = keys.isEmpty ? "it has none here" : "it has \(keys.joined(separator: ", "))"
            return ThresholdError(self.expression, "\(self.name) has no label '\(other.key)'; \(words)")
        }
        guard let group = self.labels[Labels.group], !groups.contains(group) else { return nil }
        let names = groups.sorted().joined(separator: ", ")
        return ThresholdError(self.expression, "there is no group '\(group)'; there are \(names)")
    }

    private func isSingle(in catalog: MetricCatalog) -> Bool {
        catalog.gauges.contains { $0.name == self.name && $0.merge == .none }
    }

    /// The error if the selected values cannot be added up.
    private func sumProblem(in catalog: MetricCatalog) -> ThresholdError? {
        guard self.field != .count else { return nil }
        let gauges = catalog.gauges.filter { $0.name == self.name && $0.merge == .none }.map(\.labels)
        let rates = catalog.counters.filter { $0.name == self.name && !$0.ratesAddUp }.map(\.labels)
        let chosen = (gauges + (self.field == .rate ? rates : [])).filter { $0.contains(self.labels) }
        guard chosen.count > 1, let first = chosen.first else { return nil }
        let example = first.all.map { "\($0.key)=\($0.value)" }.joined(separator: ",")
        return ThresholdError(
            self.expression,
            "that of \(chosen.count) cannot be added up; name one, such as \(self.name){\(example)}"
        )
    }
}

extension Double {
    /// Digits with at most one decimal point; no sign, exponent, infinity or hexadecimal.
    fileprivate static func plain(_ text: Substring) -> Double? {
        guard text.first?.isNumber == true, text.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }) else {
            return nil
        }
        return Double(text)
    }
}

extension Substring {
    fileprivate var unquoted: Substring {
        self.count >= 2 && self.first == "\"" && self.last == "\"" ? self.dropFirst().dropLast() : self
    }
}
