import Glibc
import Measurement

/// `clamor compare --json`, schema `clamor.compare/1`.
package enum ComparisonJSON {
    package static let schema = "clamor.compare/1"

    package static func text(_ comparison: Comparison) throws(ResultError) -> String {
        let document = Document(
            schema: self.schema,
            ok: !comparison.hasFailed,
            indicative: comparison.isIndicative,
            confidence: comparison.confidence,
            state: comparison.state.lowercased(),
            falseAlarms: comparison.isPaired ? Comparison.pairedFalseAlarms : Comparison.falseAlarms,
            paired: comparison.isPaired,
            planHash: (comparison.base + comparison.new).first.map { PlanIdentity($0.record).hash },
            base: comparison.base.map(Run.init),
            new: comparison.new.map(Run.init),
            notes: comparison.notes,
            figures: comparison.figures.map(Figure.init)
        )
        return try PrettyJSON.text(document, path: "comparison", isSnakeCase: true)
    }

    private struct Document: Encodable {
        var schema: String
        var ok: Bool
        var indicative: Bool
        var confidence: Double
        var state: String
        var falseAlarms: Double
        var paired: Bool
        var planHash: String?
        var base: [Run]
        var new: [Run]
        var notes: [String]
        var figures: [Figure]
    }

    private struct Run: Encodable {
        var directory: String
        var startedAt: String
        var verdict: String?

        init(_ run: ComparedRun) {
            self.directory = run.path
            self.startedAt = run.record.startedAt
            self.verdict = run.record.verdict?.state.rawValue
        }
    }

    private struct Figure: Encodable {
        var name: String
        var labels: Labels
        var field: String
        var unit: String?
        var better: MetricDefinition.Direction
        var base: Double?
        var new: Double?
        var change: Double?
        var changeLow: Double?
        var changeHigh: Double?
        var measuredChange: Double?
        var basis: ComparedFigure.Basis
        var finding: ComparedFigure.Finding
        var judged: Judged?

        init(_ figure: ComparedFigure) {
            self.name = figure.name
            self.labels = figure.labels
            self.field = figure.field.text
            self.unit = figure.unit
            self.better = figure.direction
            self.base = figure.base.flatMap { $0.significant(9) }
            self.new = figure.new.flatMap { $0.significant(9) }
            // Drawn, so good to a few digits.
            self.change = figure.change.flatMap { $0.significant(6) }
            self.changeLow = figure.interval?.lowerBound.significant(6)
            self.changeHigh = figure.interval?.upperBound.significant(6)
            self.measuredChange = figure.measuredChange.flatMap { $0.significant(6) }
            self.basis = figure.basis
            self.finding = figure.finding
            self.judged = figure.gate.map(Judged.init)
        }
    }

    private struct Judged: Encodable {
        var limit: Double
        var probability: Double
        var adjusted: Double?
        var ok: Bool
        var undecided: Bool
        var inside: Bool
        var runsToDecide: Int?

        init(_ gate: ComparedFigure.Gate) {
            self.limit = gate.limit
            self.probability = gate.probability.significant(4) ?? 0
            self.adjusted = gate.adjusted.map { $0.significant(4) ?? 0 }
            self.ok = !gate.isBroken
            self.undecided = gate.isUndecided
            self.inside = gate.isInside
            self.runsToDecide = gate.runs
        }
    }
}

extension Double {
    /// Rounds to significant digits; `nil` for NaN and infinity, and 0 for values close to it.
    fileprivate func significant(_ digits: Int) -> Double? {
        guard self.isFinite, abs(self) < 1e290 else { return nil }
        guard abs(self) > 1e-290 else { return 0 }
        let places = digits - 1 - Int(log10(abs(self)).rounded(.down))
        let scale = pow(10, Double(abs(places)))
        return places >= 0 ? (self * scale).rounded() / scale : (self / scale).rounded() * scale
    }
}
