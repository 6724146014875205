import Foundation
import Measurement

/// The article on metrics: its prose with the tables that the table of metrics makes.
///
/// A section's first table is made; what the section says besides stays.
enum MetricReference {
    static let path = "Sources/clamor/Clamor.docc/Metrics.md"

    static func text(of article: String) -> String {
        var lines: [Substring] = []
        var rows: [String]?
        for line in article.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("## ") {
                let section = MetricDefinition.sections.first { $0.title == line.dropFirst(3) }
                rows = section.map { Self.table($0.metrics) }
            }
            guard let made = rows, line.hasPrefix("|") else {
                if rows?.isEmpty == true { rows = nil }
                lines.append(line)
                continue
            }
            lines += made.map { $0[...] }
            rows = []
        }
        return lines.joined(separator: "\n")
    }

    private static func table(_ metrics: [MetricDefinition]) -> [String] {
        ["| metric | labels | type | meaning |", "| --- | --- | --- | --- |"]
            + metrics.map { metric in
                let labels = metric.labels.map { "`\($0.replacing("|", with: "\\|"))`" }.joined(separator: ", ")
                let unit = metric.unit.flatMap { metric.kind == .duration ? nil : ", \($0)" } ?? ""
                let cells = ["`\(metric.name)`", labels, metric.kind.rawValue + unit, metric.help]
                return "| " + cells.joined(separator: " | ").replacing("  |", with: " |") + " |"
            }
    }
}
