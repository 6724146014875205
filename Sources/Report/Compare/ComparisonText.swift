import Measurement

/// A comparison for a terminal: what was judged, then what else differs.
package struct ComparisonText {
    private let comparison: Comparison
    private let style: TerminalStyle
    private let showsAll: Bool

    /// `showsAll`: also what does not differ.
    package init(_ comparison: Comparison, style: TerminalStyle = TerminalStyle(), showsAll: Bool = false) {
        self.comparison = comparison
        self.style = style
        self.showsAll = showsAll
    }

    package var text: String {
        let state = self.style.paint(self.comparison.state, self.ink)
        var lines = ["\(state)  \(self.comparison.headline)"]
        for note in self.comparison.notes {
            for (number, line) in "! \(note)".wrapped(at: self.width - 4).enumerated() {
                lines.append((number == 0 ? "  " : "    ") + line)
            }
        }
        lines += self.section("Judged", self.comparison.judged, showsLimit: true)
        let others = self.comparison.figures.filter { $0.gate == nil }
        let shown = self.showsAll ? others : others.filter { $0.finding != .same }
        lines += self.section(self.showsAll ? "Not judged" : "Not judged, but different", shown, showsLimit: false)
        if let rest = Comparison.rest(others.count - shown.count) { lines += ["", rest] }
        return lines.joined(separator: "\n") + "\n"
    }

    private var ink: TerminalStyle.Ink {
        let isOpen = self.comparison.isIndicative || self.comparison.isUndecided
        return self.comparison.hasFailed ? .red : isOpen ? .yellow : .green
    }

    private var width: Int { min(max(self.style.width, 60), 100) }

    private func section(_ title: String, _ figures: [ComparedFigure], showsLimit: Bool) -> [String] {
        guard !figures.isEmpty else { return [] }
        let interval = self.comparison.intervalTitle
        var table = TextTable([title, "base", "new", "change", interval, showsLimit ? "limit" : "", ""])
        for figure in figures {
            let finding = figure.findingText(hasFailed: self.comparison.hasFailed)
            table.add([figure.fullTitle] + figure.texts + [figure.limitText ?? "", finding])
        }
        var lines = table.lines()
        lines[0] = self.style.paint(lines[0], .bold)
        for (index, figure) in figures.enumerated() where figure.gate?.isBroken == true {
            lines[index + 1] = self.style.paint(lines[index + 1], self.ink)
        }
        return [""] + lines
    }
}

extension Comparison {
    /// The confidence of pairs is no round number, and so high that it covers all looks.
    package var intervalTitle: String { self.isPaired ? "interval" : "95 % interval" }

    package static let indicative = "two single runs cannot show run-to-run noise"

    /// `WORSE`, `INDICATIVE`, `UNDECIDED`, `BETTER`, `NO DIFFERENCE` or `NOTHING JUDGED`.
    package var state: String {
        if self.hasFailed { return "WORSE" }
        let gates = self.judged.compactMap(\.gate)
        if gates.isEmpty { return "NOTHING JUDGED" }
        if self.isIndicative { return "INDICATIVE" }
        return self.isUndecided ? "UNDECIDED" : gates.allSatisfy(\.isInside) ? "NO DIFFERENCE" : "BETTER"
    }

    /// Whether a judged figure may have got worse, or not.
    package var isUndecided: Bool { self.judged.contains { $0.gate?.isUndecided == true } }

    package var headline: String {
        let sides =
            "\(Self.runs(self.base.count)) of base\(Self.titles(self.base)), \(self.new.count) of new\(Self.titles(self.new))"
        let (broken, judged) = (self.regressions.count, self.judged.count)
        guard judged > 0 else { return sides }
        let words =
            broken == 0
            ? "none of \(judged) judged figures regressed beyond its limit"
            : "\(broken) of \(judged) judged figures regressed beyond \(broken == 1 ? "its limit" : "their limits")"
        let undecided = self.judged.count { $0.gate?.isUndecided == true }
        return "\(words)\(undecided == 0 ? "" : ", \(undecided) undecided") · \(sides)"
    }

    /// The titles and the servers of a side in parentheses, if it has any.
    private static func titles(_ side: [ComparedRun]) -> String {
        let words = RunTitle.words(side) + side.flatMap { $0.record.servers ?? [] }.words
        return words.isEmpty ? "" : " (\(words.joined(separator: ", ")))"
    }

    /// Facts that the reader has to know before the figures.
    package var notes: [String] {
        var notes: [String] = []
        if self.isIndicative {
            let status =
                self.isStrict
                ? "a strict comparison exits 99 for a regression all the same"
                : "it exits 0 whatever it finds; a strict one exits 99 for a regression"
            notes.append("\(Self.indicative), so this comparison is indicative: \(status)")
        }
        if self.copies > 0 {
            notes.append("\(Self.runs(self.copies)) left out: identical to another run of that side")
        }
        if self.isSingle {
            notes.append(
                "the noise between runs is assumed: 5 % of a median, 15 % of a p99 or a server's CPU, 3 % of a rate; "
                    + "compare several runs of each side, taken in turn, as clamor run --until-decided does"
            )
        } else if min(self.base.count, self.new.count) < 4 {
            notes.append("few runs make wide intervals; five runs of each side are a good number")
        }
        if self.figures.contains(where: { $0.measuredChange != nil }) {
            notes.append(
                "the host took \(Self.stolen(self.base)) of the CPU for others in the runs of base and "
                    + "\(Self.stolen(self.new)) in the runs of new, on average; changes are adjusted for the difference"
            )
        }
        for run in self.base + self.new {
            guard let verdict = run.record.verdict, verdict.state != .valid else { continue }
            let what =
                switch verdict.state {
                case .generatorLimited: "was limited by the generator, so it measured the generator and not the server"
                case .unreconciled: "could not account for every message"
                case .aborted, .valid: "was aborted"
                }
            notes.append("\(run.path) \(what)")
        }
        let versions = Set((self.base + self.new).map(\.record.tool.version))
        if versions.count > 1 {
            notes.append("the runs are of different versions of clamor: \(versions.sorted().joined(separator: ", "))")
        }
        return notes
    }

    private static func stolen(_ runs: [ComparedRun]) -> String {
        Words.percent(runs.reduce(0) { $0 + ($1.record.generator.hostSteal ?? 0) } / Double(runs.count))
    }

    static func runs(_ count: Int) -> String { count == 1 ? "1 run" : "\(count) runs" }

    static func rest(_ count: Int) -> String? {
        count > 0 ? "\(count) further figure\(count == 1 ? " shows" : "s show") no difference." : nil
    }
}
