import Foundation
import Measurement
import Report
import Testing

@Suite("The summary")
struct SummaryTests {
    struct Sample: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let record: RunRecord
    }

    static let samples = [
        Sample(testDescription: "pubsub", record: Samples.pubsub),
        Sample(testDescription: "aborted", record: Samples.aborted),
        Sample(testDescription: "conn", record: Samples.conn),
        Sample(testDescription: "decode", record: Samples.decode),
        Sample(testDescription: "decode-xmpp", record: Samples.decodeXMPP),
        Sample(testDescription: "mixed", record: Samples.mixed),
        Sample(testDescription: "begun", record: Samples.begun(["clamor", "pub"])),
        Sample(testDescription: "failed", record: Samples.failed),
        Sample(testDescription: "unconnected", record: Samples.unconnected),
    ]

    @Test("reads as it should", arguments: samples)
    func golden(_ sample: Sample) throws {
        let text = Summary(sample.record, files: "results/runs/20261121-013709-demo").text
        try Golden.check(text, "summary-\(sample.testDescription).txt")
    }

    @Test("keeps to 100 columns, and has no colour unless told", arguments: samples)
    func width(_ sample: Sample) {
        let text = Summary(sample.record, style: TerminalStyle(width: 200)).text
        for line in text.split(separator: "\n") { #expect(line.count <= 100, "\(line)") }
        #expect(!text.contains("\u{1B}"))
    }

    @Test("says the same in colour", arguments: samples)
    func colour(_ sample: Sample) throws {
        let plain = Summary(sample.record).text
        let coloured = Summary(sample.record, style: TerminalStyle(isColoured: true)).text
        #expect(coloured.contains("\u{1B}["))
        #expect(try coloured.replacing(Regex("\u{1B}\\[[0-9;]*m"), with: "") == plain)
    }

    @Test("puts the verdict and its reasons before anything else")
    func verdictFirst() {
        let lines = Summary(Samples.conn).text.split(separator: "\n")
        #expect(lines[0].hasPrefix("GENERATOR-LIMITED  clamor conn"))
        #expect(lines[1].hasPrefix("  ! connects were begun at 18,200/s"))
    }

    static let failures: [(results: [Bool], state: Verdict.State?, line: String)] = [
        ([false, true], .valid, "FAILED 1 of 2 thresholds · measurement valid"),
        ([false], .valid, "FAILED 1 of 1 threshold · measurement valid"),
        ([true, false, false], .generatorLimited, "FAILED 2 of 3 thresholds · measurement generator-limited"),
        ([false, false], .unreconciled, "FAILED 2 of 2 thresholds · measurement unreconciled"),
        ([true, false], .aborted, "FAILED 1 of 2 thresholds · measurement aborted"),
        ([true, false], nil, "FAILED 1 of 2 thresholds · measurement unfinished"),
    ]

    @Test("the first line has the failed thresholds, and the next lines all thresholds", arguments: failures)
    func failedFirst(_ row: (results: [Bool], state: Verdict.State?, line: String)) throws {
        var record = Samples.begun(["clamor", "pub"])
        record.thresholds = row.results.enumerated().map { number, ok in
            ThresholdResult(expression: "errors == \(number)", ok: ok, value: 0)
        }
        record.verdict = row.state.map { state in
            var verdict = Verdict()
            if state != .valid { verdict.add(state, Verdict.Reason(code: "why", text: "a reason")) }
            return verdict
        }
        let lines = Summary(record).text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let rows = row.results.enumerated().map { "  \($1 ? "ok    " : "FAILED")  errors == \($0)  0" }
        #expect(lines.first == row.line)
        #expect(Array(lines.dropFirst().prefix(rows.count)) == rows)
        #expect(lines[rows.count + 2].hasPrefix("clamor pub · "))
        #expect(lines.count { $0.contains("errors == 0") } == 1)
        let coloured = Summary(record, style: TerminalStyle(isColoured: true)).text
        #expect(coloured.hasPrefix("\u{1B}[1;31mFAILED\u{1B}[0m "))
        let heading = "### ❌ clamor pub: " + row.line.replacing("FAILED", with: "failed")
        #expect(RunMarkdown.text(record).hasPrefix("\(heading)\n"))
    }

    static let remedies: [(kind: String?, hint: String)] = [
        ("refused", "Hint  check that the server listens at this host and port"),
        ("resolve", "Hint  check the spelling of the host name, and the name server of this host"),
        ("connack 0x01", "Hint  the server does not speak this version of MQTT; try MQTT 3.1.1"),
        ("connack 0x84", "Hint  the server does not speak this version of MQTT; try MQTT 3.1.1"),
        ("connack 0x86", "Hint  check user name, password and client identifiers; the server's log has its reason"),
        (nil, "Hint  no connect attempt ended; check that the server answers at this host and port"),
    ]

    @Test("a run without any connection shows verdict, errors and a hint, no table of zeros", arguments: remedies)
    func unconnected(_ row: (kind: String?, hint: String)) throws {
        var record = Samples.unconnected
        record.errors = row.kind.map { [ErrorRecord(kind: $0, count: 3, firstAt: "", example: "an example")] } ?? []
        let lines = Summary(record).text.split(separator: "\n").map(String.init)
        let errors = row.kind.map { ["Errors", "  \($0)", "    e.g. an example"] } ?? []
        #expect(lines.count == 2 + errors.count + 1)
        #expect(lines[0].hasPrefix("ABORTED  clamor pub · "))
        #expect(lines[1] == "  ! every connect attempt failed [no-connection]")
        for (line, start) in zip(lines.dropFirst(2), errors) { #expect(line.hasPrefix(start)) }
        #expect(lines.last == row.hint)
    }

    @Test("a group without any connection shows its errors and a hint, beside a group that ran")
    func unconnectedGroup() throws {
        var record = Samples.mixed
        record.verdict?.add(.aborted, Verdict.Reason(code: "no-connection", text: "chat: every connect attempt failed"))
        record.metrics.removeAll { $0.labels["group"] == "chat" && $0.name == "connect_duration" }
        let text = Summary(record).text
        let chat = try #require(text.split(separator: "── chat").last?.split(separator: "\nBooks").first)
        #expect(chat.contains("\nHint  ") && chat.contains("\nErrors "))
        #expect(!chat.contains("Stanzas") && !chat.contains("Delivery"))
        #expect(text.contains("Publish ") && text.components(separatedBy: "Hint").count == 2)
    }

    static let carried: [(count: Int64, cells: [Bool])] = [
        (1, [false, false, false, false]), (2, [true, false, false, false]), (9, [true, false, false, false]),
        (10, [true, true, false, false]), (99, [true, true, false, false]), (100, [true, true, true, false]),
        (999, [true, true, true, false]), (1000, [true, true, true, true]),
    ]

    @Test("a percentile is a dash unless 1 ÷ (1 - p) samples carry it", arguments: carried)
    func percentiles(_ row: (count: Int64, cells: [Bool])) throws {
        var record = Samples.begun(["clamor", "pubsub"])
        record.metrics = [
            Samples.duration("delivery_duration", ["qos": "1"], Samples.ramp(row.count, step: 1_000_000))
        ].compactMap(\.self)
        let lines = Summary(record).text.split(separator: "\n")
        let header = try #require(lines.first { $0.hasPrefix("End to end") })
        #expect(header.split(separator: " ").suffix(6) == ["count", "p50", "p90", "p99", "p99.9", "max"])
        let values = try #require(lines.first { $0.hasPrefix("  QoS 1") }).split(separator: "  ").dropFirst(2)
        #expect(values.dropLast().map { $0.trimmingCharacters(in: .whitespaces) != "–" } == row.cells)
        #expect(values.last?.contains("–") == false)
        let cells = try #require(RunMarkdown.text(record).split(separator: "\n").first { $0.hasPrefix("| delivery") })
        #expect(cells.split(separator: " | ").dropFirst(2).prefix(4).map { $0 != "–" } == row.cells)
    }

    @Test("says of a segment that it is one, and of which, and of merged segments that they are whole")
    func segment() {
        var record = Samples.pubsub
        let words = "segment 2 of 4: a part of the load; clamor merge adds the results of all"
        #expect(!Summary(record).text.contains("segment"))
        record.segment = SegmentRecord(index: 2, count: 4)
        record.segment.run = "0123"
        #expect(Summary(record).text.split(separator: "\n")[1] == "  \(words)")
        #expect(RunMarkdown.text(record).split(separator: "\n")[2] == words[...])
        record.ledger.pending = true
        let losses = "  losses are known only after clamor merge: the other segments hold a part of the ledger"
        #expect(Summary(record).text.split(separator: "\n").contains(losses[...]))
        record.verdict = nil
        #expect(Summary(record).text.split(separator: "\n")[1] == "  \(words)")
        record.segment.merged = 4
        #expect(!Summary(record).text.contains("segment 2") && !RunMarkdown.text(record).contains("segment 2"))
    }

    @Test("counts the stanzas that did not reach every receiver")
    func unfinished() {
        var record = Samples.begun(["clamor", "xmpp", "muc"])
        record.metrics = [
            Samples.counter("muc_fanout_unfinished", [:], 3), Samples.counter("presence_fanout_unfinished", [:], 2),
        ]
        #expect(Summary(record).text.split(separator: "\n").contains("  5 did not reach every receiver"))
    }

    @Test("shows a dash for what is unknown, never a zero")
    func unknown() throws {
        var record = Samples.begun(["clamor", "pub"])
        record.metrics = [
            Samples.counter("publish_offered", ["qos": "0"], 5), Samples.counter("publish_offered", ["qos": "1"], 7),
            Samples.counter("publish_acked", ["qos": "1"], 7),
        ]
        let lines = Summary(record).text.split(separator: "\n").map(String.init)
        #expect(lines.contains("Publish  offered  acked"))
        #expect(lines.contains("  QoS 0        5      –"))
        #expect(lines.contains("  QoS 1        7      7"))
    }
}
