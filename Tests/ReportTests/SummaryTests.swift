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

    @Test("says of a segment that it is one, and of which, and of merged segments that they are whole")
    func segment() {
        var record = Samples.pubsub
        let words = "segment 2 of 4: a part of the load; clamor merge adds the results of all"
        #expect(!Summary(record).text.contains("segment"))
        record.segment = SegmentRecord(index: 2, count: 4)
        record.segment.run = "0123"
        #expect(Summary(record).text.split(separator: "\n")[1] == "  \(words)")
        #expect(RunMarkdown.text(record).split(separator: "\n")[2] == words[...])
        record.verdict = nil
        #expect(Summary(record).text.split(separator: "\n")[1] == "  \(words)")
        record.segment.merged = 4
        #expect(!Summary(record).text.contains("segment 2") && !RunMarkdown.text(record).contains("segment 2"))
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
