import Foundation

/// All that was measured for one workload.
struct Outcome {
    let workload: Workload
    private(set) var runs: [SingleRun] = []
    /// By pair, what each side measured.
    private(set) var pairs: [[Side: [String: Double]]] = []
    /// Why it was given up.
    var problem: String?

    init(workload: Workload) { self.workload = workload }

    mutating func add(_ figures: [String: Double], _ runs: [SingleRun], side: Side, pair: Int) {
        while self.pairs.count < pair { self.pairs.append([:]) }
        self.pairs[pair - 1][side] = figures
        self.runs += runs.map { run in
            var run = run
            (run.row, run.pair, run.side) = (self.workload.name, pair, side)
            return run
        }
    }

    private func values(_ side: Side, _ key: String) -> [Double] { self.pairs.compactMap { $0[side]?[key] } }

    /// The lines of the table that have figures.
    var table: [TableLine] {
        if let problem {
            return [TableLine(row: self.workload.name, label: self.workload.lines[0].label, problem: problem)]
        }
        return self.workload.lines.compactMap { line in
            let clamor = self.values(.clamor, line.key)
            guard let median = clamor.median else { return nil }
            let reference = line.hasReference ? self.values(.reference, line.key) : []
            let ratios = self.pairs.compactMap { pair -> Double? in
                guard let ours = pair[.clamor]?[line.key], let theirs = pair[.reference]?[line.key], theirs > 0,
                    line.hasReference
                else { return nil }
                return ours / theirs
            }
            var table = TableLine(row: self.workload.name, label: line.label, unit: line.unit)
            table.reference = reference.median
            table.clamor = median
            table.ratio = ratios.median
            let spread = ratios.isEmpty ? clamor : ratios
            table.lowest = spread.min()
            table.highest = spread.max()
            (table.goal, table.isHeld) = Self.judge(line.goal, median: median, ratio: ratios.median)
            table.note = [self.note(line), line.peer].compactMap { $0 }.joined(separator: "; ")
            if table.note?.isEmpty == true { table.note = nil }
            return table
        }
    }

    private static func judge(_ goal: Goal, median: Double, ratio: Double?) -> (text: String, isHeld: Bool?) {
        switch goal {
        case .atMostTimes(let limit): ("≤ \(limit.plain) ×", ratio.map { $0 <= limit })
        case .atLeastTimes(let limit): ("≥ \(limit.plain) ×", ratio.map { $0 >= limit })
        case .atMost(let limit): ("≤ \(limit.plain)", median <= limit)
        case .atLeast(let limit): ("≥ \(limit.plain)", median >= limit)
        case .none: ("", nil)
        }
    }

    /// Names the core that set the pace, if it was not the billed one.
    private func note(_ line: Line) -> String? {
        guard line == self.workload.lines.first else { return nil }
        if self.workload.name == "broker" {
            let share = [Side.reference, .clamor].compactMap { self.values($0, "client_share").median }
            guard let highest = share.max(), highest > 0.9 else { return nil }
            return "the C client's core was the limit (\((highest * 100).short) % busy): the brokers' CPU tells more"
        }
        let busy = [(Side.reference, "C"), (.clamor, "Clamor")].compactMap { side, name -> String? in
            guard let share = self.values(side, "server_share").median, share > 0.9 else { return nil }
            return "\(name) \((share * 100).short) %"
        }
        return busy.isEmpty ? nil : "the server's core was the limit (\(busy.joined(separator: ", ")))"
    }
}

/// One line as it is printed and written.
struct TableLine: Codable {
    var row: String
    var label: String
    var unit = ""
    var reference: Double?
    var clamor: Double?
    /// The median of the pairs' ratios.
    var ratio: Double?
    /// Of the ratios; of Clamor's figures where there is no ratio.
    var lowest: Double?
    var highest: Double?
    var goal = ""
    var isHeld: Bool?
    var note: String?
    var problem: String?

    init(row: String, label: String, unit: String) { (self.row, self.label, self.unit) = (row, label, unit) }

    init(row: String, label: String, problem: String) {
        (self.row, self.label, self.problem) = (row, label, problem)
    }

    private var verdict: String {
        if self.problem != nil { return "**not measured**" }
        guard let isHeld else { return "" }
        return isHeld ? "held" : "**missed**"
    }

    var markdown: String {
        let cells = [
            self.label + (self.unit.isEmpty ? "" : ", \(self.unit)"), self.reference?.short ?? "–",
            self.clamor?.short ?? "–", self.ratio.map { $0.ratioText } ?? "–", self.spread, self.goal, self.verdict,
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }

    private var spread: String {
        guard let lowest, let highest else { return "–" }
        return self.ratio == nil ? "\(lowest.short)–\(highest.short)" : "\(lowest.ratioText)–\(highest.ratioText)"
    }

    var progress: String {
        if let problem { return "\(self.row): not measured: \(problem)" }
        let figures = [
            self.reference.map { "reference \($0.short)" }, self.clamor.map { "clamor \($0.short)" },
            self.ratio.map { "ratio \($0.ratioText) (\(self.spread))" },
        ].compactMap { $0 }.joined(separator: ", ")
        return "\(self.row): \(self.label): \(figures) \(self.unit) \(self.goal) \(self.verdict)"
    }
}

/// `limits.md` and `limits.json`.
struct Report: Codable {
    let schema: String
    let host: Host
    let durationSeconds: Double
    let table: [TableLine]
    let runs: [SingleRun]

    init(host: Host, results: [Outcome], seconds: Double) {
        self.schema = "clamor.limits/1"
        self.host = host
        self.durationSeconds = seconds
        self.table = results.flatMap(\.table)
        self.runs = results.flatMap(\.runs)
    }

    var markdown: String {
        let notes = self.table.compactMap { line in
            (line.problem ?? line.note).map { "- \(line.label): \($0)." }
        }
        let counts = (self.table.count { $0.isHeld == true }, self.table.count { $0.isHeld == false })
        return """
            | work | C (or mosquitto) | Clamor | ratio | min–max | goal | |
            | --- | ---: | ---: | ---: | ---: | --- | --- |
            \(self.table.map(\.markdown).joined(separator: "\n"))

            \(counts.0) goals held, \(counts.1) missed\(notes.isEmpty ? "." : ".\n\n" + notes.joined(separator: "\n"))
            """
    }

    private var page: String {
        """
        # Clamor's cost compared with plain C

        Made by `make limits` in \((self.durationSeconds / 60).short) minutes. Each figure is the median of the runs, \
        C and Clamor in turn, each ratio the median of the pairs' ratios, beside it the smallest and the largest.
        CPU-µs are user and system time of the whole client process, as `wait4` bills it, over the messages that the \
        server counted or acknowledged too. Where the load is a rate, a run of one second is taken off; where it is \
        connects, one of ten clients, and both are sampled while all clients are up. The brokers' own CPU is the \
        server's.

        \(self.host.markdown)

        \(self.markdown)

        """
    }

    func write(to directory: String) throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let json = try encoder.encode(self) + Data("\n".utf8)
        try json.write(to: URL(filePath: "\(directory)/limits.json"))
        try Data(self.page.utf8).write(to: URL(filePath: "\(directory)/limits.md"))
    }
}

extension [Double] {
    var median: Double? {
        guard !self.isEmpty else { return nil }
        let sorted = self.sorted()
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }
}

extension Double {
    /// Three digits that count.
    var short: String {
        let magnitude = abs(self)
        let decimals = magnitude >= 100 || magnitude == 0 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3
        return String(format: "%.\(decimals)f", self)
    }

    var ratioText: String { String(format: "%.2f", self) }

    /// Without a fraction that is 0.
    var plain: String { self == self.rounded() ? String(Int(self)) : String(self) }
}
