import Foundation
import Measurement
import Report
import Testing

@Suite("The histogram log")
struct HistogramLogTests {
    typealias Lane = TimelineInterval.Lane

    static let tags: [(String, Labels, String)] = [
        ("schedule_lag", [:], "schedule_lag"),
        ("publish_ack_duration", ["qos": "1", "leg": "puback"], "publish_ack_duration;leg=puback;qos=1"),
        ("delivery_duration", ["stage": "peak, 2 m;é=%"], "delivery_duration;stage=peak%2C%202%20m%3B%C3%A9%3D%25"),
    ]

    @Test("writes tags without comma, blank or line break, and reads them back", arguments: tags)
    func tagForm(_ name: String, _ labels: Labels, _ tag: String) throws {
        let series = Series(name: name, labels: labels)
        for (isMeasured, mark) in [(true, ""), (false, ";measured=no")] {
            #expect(HistogramLog.tag(series, isMeasured: isMeasured) == tag + mark)
            let parsed = try #require(HistogramLog.parse(tag: tag + mark))
            #expect(parsed.series == series && parsed.isMeasured == isMeasured)
        }
    }

    @Test("refuses tags of other shapes", arguments: ["", "a;b", "a;b=%4", "a;b=%zz", "%FF"])
    func otherTags(_ tag: String) { #expect(HistogramLog.parse(tag: tag) == nil) }

    static let intervals = [
        TimelineInterval(
            second: 0,
            phase: "connect",
            seconds: 1,
            metrics: [],
            lanes: [lane("connect_duration", ["phase": "total"], max: 0.012_345_678, "HISTFA")]
        ),
        TimelineInterval(
            second: 1,
            phase: "measure",
            seconds: 0.5,
            metrics: [],
            lanes: [
                lane("publish_ack_duration", ["qos": "1", "leg": "puback"], max: 0.000_000_6, "HISTFB"),
                lane("publish_ack_duration", ["qos": "1", "leg": "puback"], measured: false, max: 600, "HISTFC"),
            ]
        ),
        TimelineInterval(second: 2, phase: "drain", seconds: 1, metrics: [], lanes: []),
    ]

    static func lane(_ name: String, _ labels: Labels, measured: Bool = true, max: Double, _ encoded: String) -> Lane {
        Samples.lane(name, labels, measured: measured, max: max, encoded)
    }

    static let text =
        HistogramLog.header(startedAt: Samples.startedAt) + intervals.map { HistogramLog.lines($0) }.joined()

    @Test("has the form of version 1.3")
    func golden() throws { try Golden.check(Self.text, "latency.hlog") }

    @Test("gives back, at every cut, the intervals that were whole")
    func everyCut() {
        let whole = HistogramLog.read(Self.text)
        #expect(whole.entries.map(\.encoded) == ["HISTFA", "HISTFB", "HISTFC"])
        #expect(whole.entries.map(\.start) == [0, 1, 1])
        #expect(whole.entries.map(\.length) == [1, 0.5, 0.5])
        #expect(whole.lastInterval == 2)

        let bytes = Array(Self.text.utf8)
        var seen: Set<Int> = []
        for cut in bytes.indices {
            let contents = HistogramLog.read(String(decoding: bytes[..<cut], as: UTF8.self))
            guard let last = contents.lastInterval else { continue }
            seen.insert(last)
            #expect(contents.entries == whole.entries.filter { Int($0.start) <= last })
        }
        #expect(seen == [0, 1])
    }

    @Test("reads the logs of other writers, which have no end marks")
    func otherWriters() {
        let text = "#[Histogram log format version 1.3]\nTag=A,0.127,1.007,2.769,HISTFAAAA\n0.1,1,2,HISTFB\nTag=B,1,"
        let contents = HistogramLog.read(text)
        #expect(contents.entries == [HistogramLog.Entry(tag: "A", start: 0.127, length: 1.007, encoded: "HISTFAAAA")])
        #expect(contents.lastInterval == nil)
    }
}
