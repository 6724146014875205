package import Measurement

/// `capacity.json`, schema `clamor.capacity/1`: what a search came to, and every step of it.
package struct CapacityRecord: Codable, Hashable, Sendable {
    package static let currentSchema = "clamor.capacity/1"

    package struct Step: Codable, Hashable, Sendable {
        package var number: Int
        /// The offered load: operations per second, or clients.
        package var load: Double
        /// "doubling", "bisection" or "edge".
        package var phase: String
        /// "held", "broken", "generator-limited" or "disturbed".
        package var verdict: String
        package var reason: String?
        /// Operations done per second.
        package var throughput: Double?
        package var meanSeconds: Double?
        package var p50Seconds: Double?
        package var p99Seconds: Double?
        /// The figures above that are at least so much, by their keys: some operations had no answer.
        package var bounds: [String]?
        /// Operations in flight: throughput × mean (Little's law).
        package var concurrency: Double?
        /// The mean from the write, for messages with an answer.
        package var serviceSeconds: Double?
        package var use: Use?
        /// The cause that kept the load from holding; absent where it held.
        package var limit: Limit?
        package var directory: String

        package init(number: Int, load: Double, phase: String, verdict: String, reason: String?, directory: String) {
            self.number = number
            self.load = load
            self.phase = phase
            self.verdict = verdict
            self.reason = reason
            self.directory = directory
        }

        private enum CodingKeys: String, CodingKey {
            case number, load, phase, verdict, reason, throughput
            case meanSeconds = "mean_seconds"
            case p50Seconds = "p50_seconds"
            case p99Seconds = "p99_seconds"
            case bounds, concurrency
            case serviceSeconds = "service_mean_seconds"
            case use, limit, directory
        }

        private static var latencies:
            [(key: String, figure: DurationReading.Field, field: WritableKeyPath<Self, Double?>)]
        {
            [
                ("mean_seconds", \.mean, \.meanSeconds), ("p50_seconds", \.p50, \.p50Seconds),
                ("p99_seconds", \.p99, \.p99Seconds),
            ]
        }

        fileprivate mutating func take(_ latency: DurationReading) {
            for one in Self.latencies { self[keyPath: one.field] = latency[keyPath: one.figure] }
            let bounds = Self.latencies.filter { latency.isBound($0.figure) }.map(\.key)
            self.bounds = bounds.isEmpty ? nil : bounds
        }

        /// A latency in words; nothing where it is unknown.
        package func words(_ field: KeyPath<Self, Double?>) -> String? {
            let key = Self.latencies.first { $0.field == field }?.key ?? ""
            return self[keyPath: field].map {
                Words.atLeast(Words.duration($0), if: self.bounds?.contains(key) == true)
            }
        }
    }

    package struct Answer: Codable, Hashable, Sendable {
        /// "found", "at-least", "nothing-holds", "generator-limited" or "interrupted".
        package var kind: String
        /// The largest load that held; absent where none did.
        package var load: Double?
        /// The load that held every time, and the load that broke every time.
        package var low: Double?
        package var high: Double?
        /// The limit of the generator; else the reason why the search ended early, such as a step that could not run.
        package var reason: String?
        /// The cause that kept larger loads from holding.
        package var limit: Limit?

        package init(kind: String, load: Double? = nil, low: Double? = nil, high: Double? = nil, reason: String? = nil)
        {
            self.kind = kind
            self.load = load
            self.low = low
            self.high = high
            self.reason = reason
        }
    }

    package var schema = Self.currentSchema
    package var command: [String]
    /// "rate" or "clients".
    package var varies: String
    package var objectives: [String]
    package var holdSeconds: Double
    /// The servers with their versions, this program and the CPU of its host, in words, of the last step.
    package var environment: [String]?
    package var answer: Answer?
    package var steps: [Step] = []

    package init(command: [String], varies: String, objectives: [String], holdSeconds: Double) {
        self.command = command
        self.varies = varies
        self.objectives = objectives
        self.holdSeconds = holdSeconds
    }

    private enum CodingKeys: String, CodingKey {
        case schema, command, varies, objectives
        case holdSeconds = "hold_seconds"
        case environment, answer, steps
    }

    /// Adds a step with its figures; `timeline`: of the run that measured it.
    package mutating func add(_ step: Step, measuredBy run: RunRecord, _ timeline: Timeline) -> Step {
        var step = step
        let rates: [MetricDefinition] = [.publishAcked, .publishSent, .stanzaConfirmed, .stanzaAnswered, .received]
        step.throughput = rates.lazy.compactMap(run.totalRate).first
        var latencies: [MetricDefinition] = [.publishAck, .delivery, .request, .iq, .publishWrite]
        // Clients that send and receive nothing have their connects.
        if step.throughput == nil { latencies.append(.connect) }
        if let latency = latencies.lazy.compactMap(run.merged).first { step.take(latency) }
        if self.varies == "clients" {
            step.concurrency = step.load
        } else if let mean = step.meanSeconds, let throughput = step.throughput {
            step.concurrency = mean * throughput
        }
        step.serviceSeconds = run.merged(.publishService)?.mean
        let facts = StepFacts(run, timeline)
        step.use = Use(of: facts)
        step.limit = self.limit(of: step, facts)
        self.steps.append(step)
        let host = [run.host.cpuModel, run.host.cores.map { "cores: \($0)" }].compactMap(\.self)
        let tool = "\(run.tool.name) \(run.tool.version)"
        // The embedded broker is of the tool's version.
        self.environment = run.serverWords.filter { $0 != tool } + [tool] + host
        return step
    }

    package var json: String { (try? PrettyJSON.text(self, path: "json")) ?? "\n" }

    package var csv: String {
        let names = [
            "number", "load", "phase", "verdict", "throughput", "mean_seconds", "p50_seconds", "p99_seconds",
            "bounds", "concurrency", "service_mean_seconds", "limit",
        ]
        let header = names + Use.columns.map(\.key) + ["reason", "directory"]
        func cell(_ value: Double?) -> String { value.map(Words.plain) ?? "" }
        return self.steps.reduce(into: CSV.row(header)) { text, step in
            let figures = [
                String(step.number), Words.plain(step.load), step.phase, step.verdict, cell(step.throughput),
                cell(step.meanSeconds), cell(step.p50Seconds), cell(step.p99Seconds),
                step.bounds?.joined(separator: " ") ?? "", cell(step.concurrency), cell(step.serviceSeconds),
                step.limit?.kind.rawValue ?? "",
            ]
            let use = Use.columns.map { column in cell(step.use?[keyPath: column.field]) }
            text += CSV.row(figures + use + [step.reason ?? "", step.directory])
        }
    }

    package func line(_ step: Step) -> String {
        let done = step.throughput.map { "did \(Words.rate($0))" }
        let latency = step.words(\.p99Seconds).map { "p99 \($0)" }
        let words = [
            "step \(step.number)", self.text(step.load), step.verdict, done, latency, step.reason,
            step.limit.flatMap { $0.kind == .unknown ? nil : "limit: \($0.kind.rawValue)" },
        ]
        return words.compactMap(\.self).joined(separator: " · ") + "\n"
    }

    /// A load for people.
    package func text(_ load: Double) -> String {
        self.varies == "clients" ? Words.counted(load, "client") : Words.rate(load)
    }

    /// The answer for people.
    package func summary(files: String?) -> String {
        let headline = self.headline
        var lines = ["", [headline.state, headline.words].compactMap(\.self).joined(separator: "  ")]
        if let limit = self.answer?.limit { lines.append("Limit  \(limit.kind.rawValue): \(limit.words)") }
        if let files { lines.append("Files  \(files)/  capacity.json capacity.csv steps/") }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The state of the search in capitals, and the result in words; no words before a search has ended.
    package var headline: (state: String, words: String?) {
        guard let answer = self.answer else { return ("UNFINISHED", nil) }
        let load = answer.load.map(self.text)
        let unsettled = answer.reason.map { " · \($0)" } ?? ""
        switch answer.kind {
        case "found":
            let interval = "\(self.text(answer.low ?? 0)) … \(self.text(answer.high ?? 0))"
            return ("CAPACITY", "\(load ?? "") hold · interval \(interval)\(unsettled)")
        case "at-least":
            let bound = answer.reason == nil ? "; a larger load was not offered" : unsettled
            return ("CAPACITY", "at least \(load ?? "")\(bound)")
        case "nothing-holds":
            return ("NOTHING HOLDS", "not even \(answer.high.map(self.text) ?? "the smallest load")\(unsettled)")
        case "generator-limited":
            let known = load.map { "; \($0) held" } ?? ""
            return ("GENERATOR-LIMITED", "at \(answer.high.map(self.text) ?? "")\(known): \(answer.reason ?? "")")
        default:
            return ("INTERRUPTED", "\(load.map { "\($0) held until then" } ?? "before anything held")\(unsettled)")
        }
    }
}

extension RunRecord {
    /// The figures of all values of the duration, of whole operations.
    fileprivate func merged(_ kind: MetricDefinition) -> DurationReading? {
        var merged = DurationValues()
        for metric in self.metrics where metric.isOf(kind) && metric.labels.isWhole() {
            metric.duration?.decodedValues().map { merged.merge($0) }
        }
        return DurationReading(merged)
    }

    fileprivate func totalRate(_ kind: MetricDefinition) -> Double? {
        self.metrics.counters([kind]).sum { $0.rate }.flatMap { $0 > 0 ? $0 : nil }
    }
}
