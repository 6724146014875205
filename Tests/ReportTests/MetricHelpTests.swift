import Foundation
import Measurement
import Report
import Testing

@Suite("The table of metrics")
struct MetricHelpTests {
    /// A metric as the article on metrics has it.
    struct Row: Hashable {
        var name: String
        var kind: String
        var unit: String?
    }

    static func article() throws -> String {
        let article = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources/clamor/Clamor.docc/Metrics.md")
        return try String(contentsOf: article, encoding: .utf8)
    }

    static func rows() throws -> [Row] {
        var rows: [Row] = []
        var column: Int?
        for line in try self.article().split(
            separator: "\n",
            omittingEmptySubsequences: false
        ) {
            guard line.hasPrefix("|") else {
                column = nil
                continue
            }
            // A bar within a cell is written \|.
            let cells = line.replacing("\\|", with: "/").split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            if cells.first == "metric" { column = cells.firstIndex(of: "type") }
            guard let column, cells.first?.hasPrefix("`") == true else { continue }
            let names = cells[0].split(separator: "`").filter { !$0.hasPrefix(",") }.map(String.init)
            let types = cells[column].split(separator: ", ").map(String.init)
            for (place, name) in names.enumerated() {
                let kinds = types.filter { Metric.Kind(rawValue: $0) != nil }
                let kind = kinds.count > 1 ? kinds[place] : kinds[0]
                rows.append(Row(name: name, kind: kind, unit: types.first { Metric.Kind(rawValue: $0) == nil }))
            }
        }
        return rows
    }

    @Test("has the metrics of the article, with their types, and no others")
    func article() throws {
        let rows = try Self.rows()
        #expect(Set(rows.map(\.name)) == Set(MetricDefinition.all.map(\.name)))
        for row in rows {
            let help = try #require(MetricDefinition.of(row.name), "\(row.name)")
            #expect(help.kind.rawValue == row.kind, "\(row.name)")
            if let unit = row.unit, unit != "seconds" || help.unit != nil {
                #expect(help.unit == unit, "\(row.name)")
            }
        }
    }

    @Test("the names in Prometheus that the article has are names of samples or families")
    func prometheusNames() throws {
        let names = Set(try Self.article().matches(of: /`(clamor_[a-z0-9_]*[a-z0-9])`/).map { String($0.1) })
        #expect(names.count > 5)
        let families = MetricDefinition.all.map { PrometheusName($0).family }
        #expect(names.isSubset(of: GrafanaDashboardTests.names.union(families)))
    }

    /// Keys and columns of files that have the name of a metric.
    private static let columns = [
        "MetricsCSV.swift": Set(["decode_packets", "decode_bytes"]), "SlowMessage.swift": ["loop_lag"],
        "Books.swift": ["delivery_outstanding"],
        "CapacityLimit.swift": [
            "server_cpu", "server_thread_cpu", "server_memory_bytes", "server_descriptors", "generator_cpu",
            "host_cpu_idle",
        ],
    ]

    @Test("no name of a metric is written in the sources but in the table")
    func literals() throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources")
        let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)
        // Words of one part, such as "clients", are used for other things too.
        let names = Set(MetricDefinition.all.map(\.name).filter { $0.contains("_") })
        let table = try String(
            contentsOf: sources.appending(path: "Measurement/Metrics/MetricTable.swift"),
            encoding: .utf8
        )
        let rows = table.matches(of: /= (?:duration|counter|gauge)\("([a-z_]+)"/).map { String($0.1) }
        #expect(rows.sorted() == MetricDefinition.all.map(\.name).sorted(), "each row is in the array of its section")
        var count = 0
        for case let file as URL in try #require(files)
        where file.pathExtension == "swift" && file.lastPathComponent != "MetricTable.swift" {
            count += 1
            let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            let code = lines.filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: "\n")
            let written = Set(code.matches(of: /"([a-z_]+)"/).map { String($0.1) }).intersection(names)
            #expect(written.subtracting(Self.columns[file.lastPathComponent] ?? []) == [], "\(file.path)")
        }
        #expect(count > 800)
    }

    @Test("each metric has one sentence", arguments: MetricDefinition.all)
    func sentence(_ help: MetricDefinition) {
        #expect(help.help.hasSuffix(".") && !help.help.dropLast().contains("."))
        #expect(help.help.first?.isUppercase == true)
        #expect(help.help.split(separator: " ").count <= 25)
    }

    @Test("no two metrics share the name of a sample")
    func samples() {
        let names = MetricDefinition.all.flatMap { PrometheusName($0).samples }
        #expect(Set(names).count == names.count)
        #expect(Set(MetricDefinition.all.map(\.name)).count == MetricDefinition.all.count)
    }

    @Test("the units of a record's metrics are those of the table", arguments: [Samples.pubsub, Samples.decode])
    func units(_ record: RunRecord) throws {
        for metric in record.metrics {
            let help = try #require(MetricDefinition.of(metric.name), "\(metric.name)")
            #expect(metric.unit == help.unit, "\(metric.name)")
            #expect(metric.type == help.kind.rawValue, "\(metric.name)")
        }
    }
}
