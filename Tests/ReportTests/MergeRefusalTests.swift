import Foundation
import Ledger
import Measurement
import Report
import Testing

@Suite("Incomplete or foreign segments are not merged")
struct MergeRefusalTests {
    let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    private func refusal(_ directories: [String]) -> [String] {
        do throws(SegmentSet.Refusal) {
            _ = try SegmentSet(directories)
            return []
        } catch {
            return error.lines.map { $0.replacing(self.folder.path + "/", with: "") }
        }
    }

    @Test("a segment that is missing, or there twice, is named")
    func missing() throws {
        let all = try SegmentRuns(4).write(in: self.folder)
        #expect(self.refusal(all.reversed()) == [])
        #expect(self.refusal([]) == ["there is no segment to merge"])
        #expect(self.refusal([all[0], all[1], all[3]]) == ["segment 3 of 4 is missing; merge needs all of them"])
        #expect(self.refusal([all[2]]) == ["segments 1, 2, 4 of 4 are missing; merge needs all of them"])
        #expect(self.refusal(all + [all[1]]) == ["segment 2 of 4 is given 2 times, 2 and 2; give each once"])
        #expect(
            self.refusal([all[0], all[0], all[1], all[2]]) == [
                "segment 1 of 4 is given 2 times, 1 and 1; give each once",
                "segment 4 of 4 is missing; merge needs all of them",
            ]
        )
    }

    struct Foreign: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let change: @Sendable (inout RunRecord) -> Void

        init(_ line: String, _ change: @escaping @Sendable (inout RunRecord) -> Void) {
            self.testDescription = line
            self.change = change
        }
    }

    static let others = [
        Foreign("2: is of another run than 1") {
            $0.segment.run = SegmentIdentity.run(name: "x", seed: 5, startAt: nil)
        },
        Foreign("2: has another plan than 1") {
            $0.segment.plan = SegmentIdentity.plan(["clients": 1_001], schedule: "")
        },
        Foreign("2: was measured by clamor 0.2.0, and not by 0.1.0 as 1") { $0.tool.version = "0.2.0" },
        Foreign("2: is one of 3 segments, and not of 2 as 1") { $0.segment.count = 3 },
        Foreign("2: has other thresholds than 1") { $0.segment.thresholds = ["errors count == 0"] },
        Foreign("2/run.json: its threshold 'errors count' is invalid") { $0.segment.thresholds = ["errors count"] },
        Foreign("2: is no segment of a run; give the directories of the segments") {
            $0.segment = SegmentRecord(index: 2, count: 2)
        },
        Foreign("2: has not ended; merge needs complete segments") { $0.verdict = nil },
        Foreign("2: has not ended; merge needs complete segments") { $0.durationSeconds = nil },
        Foreign("2/run.json: its schema is 'clamor.run/9', not clamor.run/1 or clamor.run/2") {
            $0.schema = "clamor.run/9"
        },
    ]

    @Test("a segment that does not belong to the first is named, with why", arguments: others)
    func belongs(_ other: Foreign) throws {
        var runs = SegmentRuns(2)
        other.change(&runs.segments[1].record)
        #expect(self.refusal(try runs.write(in: self.folder)) == [other.testDescription])
    }

    @Test("what follows from a plan, its seed and its name is the same in all segments, and in no other run")
    func identity() {
        let plan: [String: JSONValue] = ["clients": 5, "seed": 1, "targets": ["a:1"]]
        func hash(_ key: String, _ value: JSONValue) -> String {
            SegmentIdentity.plan(plan.merging([key: value]) { $1 }, schedule: "s")
        }
        #expect(hash("targets", ["b:1"]) == SegmentIdentity.plan(plan, schedule: "s"))
        #expect(Set([hash("clients", 5), hash("clients", 6), hash("seed", 2), hash("rate", 1)]).count == 4)
        #expect(SegmentIdentity.plan(plan, schedule: "t") != SegmentIdentity.plan(plan, schedule: "s"))
        let runs = [("", 1, nil), ("a", 1, nil), ("", 2, nil), ("", 1, 7)] as [(String, UInt64, Int64?)]
        #expect(Set(runs.map { SegmentIdentity.run(name: $0.0, seed: $0.1, startAt: $0.2) }).count == 4)
    }

    @Test("segments that never went on at the same time are no run")
    func time() throws {
        var runs = SegmentRuns(2)
        runs.segments[1].startedAt += 6_000_000_000
        #expect(
            self.refusal(try runs.write(in: self.folder)) == [
                "2: began at 2026-11-21T01:37:15.123000Z, when 1 had ended, at 2026-11-21T01:37:15.123000Z; the segments "
                    + "of a run must overlap in time"
            ]
        )
    }

    @Test("a directory that a run still writes to, or left when it was cut, is none")
    func partial() throws {
        let all = try SegmentRuns(2).write(in: self.folder)
        try FileManager.default.moveItem(atPath: all[1], toPath: all[1] + ".partial")
        let line = "2.partial: is of a run in progress or an interrupted run; merge needs complete segments"
        #expect(self.refusal([all[0], all[1] + ".partial"]) == [line])
        #expect(self.refusal(all) == ["2/run.json: does not exist"])
    }

    static let files = ["run.json", "timeline.csv", "latency.hlog", "clients.csv"]

    @Test("a file that lost its tail, at whatever byte or line, is not taken for a whole one", arguments: files)
    func tail(_ file: String) throws {
        let all = try SegmentRuns(2).write(in: self.folder)
        let text = try self.folder.read("2/\(file)")
        let bytes = Array(text.utf8)
        // Behind every line but the last, and within the last ones.
        var cuts = bytes.indices.dropLast().filter { bytes[$0] == 0x0A }.map { $0 + 1 }
        cuts += (1...min(400, bytes.count)).map { bytes.count - $0 }
        for cut in cuts {
            // Of JSON the last line break alone says nothing.
            if file == "run.json", cut == bytes.count - 1 { continue }
            try self.folder.write(String(decoding: bytes[..<cut], as: UTF8.self), to: "2/\(file)")
            let lines = self.refusal(all)
            #expect(lines.count == 1 && lines.first?.hasPrefix("2/") == true, "cut at \(cut): \(lines)")
        }
        try self.folder.write(text, to: "2/\(file)")
        #expect(self.refusal(all) == [])
    }

    @Test("a missing file, or one of another segment, is reported", arguments: files)
    func otherFile(_ file: String) throws {
        let all = try SegmentRuns(3).write(in: self.folder)
        try FileManager.default.removeItem(atPath: "\(all[1])/\(file)")
        #expect(self.refusal(all) == ["2/\(file): does not exist"])
        guard file != "clients.csv" else { return }
        try self.folder.write(try self.folder.read("3/\(file)"), to: "2/\(file)")
        #expect(self.refusal(all).count == 1)
    }

    @Test("both streamed files cut at the same second do not hold what the record says")
    func bothCut() throws {
        let all = try SegmentRuns(2).write(in: self.folder)
        let timeline = try self.folder.read("2/timeline.csv").split(separator: "\n").filter { !$0.hasPrefix("5,") }
        let log = try self.folder.read("2/latency.hlog").split(separator: "\n", omittingEmptySubsequences: false)
        let end = try #require(log.firstIndex(of: "#[End of interval 4]"))
        let cut = timeline.joined(separator: "\n") + "\n"
        try self.folder.write(cut, to: "2/timeline.csv")
        // Even if the log said that this is all.
        let clients = try self.folder.read("2/clients.csv").utf8.count
        let last = "#[End of segment: timeline.csv \(cut.utf8.count) bytes, clients.csv \(clients) bytes]\n"
        try self.folder.write(log[...end].joined(separator: "\n") + "\n" + last, to: "2/latency.hlog")
        let lines = self.refusal(all)
        #expect(lines.count == 1 && lines[0].hasSuffix("; it has lost some"))
    }

    @Test("a part of a ledger that is missing or cut is refused")
    func ledger() throws {
        let all = try SegmentRuns.joint(received: [0, 1]).write(in: self.folder)
        #expect(self.refusal(all) == [])
        let text = try self.folder.read("2/ledger.csv")
        try self.folder.write(String(text.dropLast()), to: "2/ledger.csv")
        let bytes = text.utf8.count
        #expect(self.refusal(all) == ["2/ledger.csv: has \(bytes - 1) bytes and had \(bytes); it has lost some"])
        try self.folder.write(text.replacing("stream,", with: "strean,"), to: "2/ledger.csv")
        #expect(self.refusal(all) == ["2/ledger.csv: is cut, or not the ledger of its segment"])
        try FileManager.default.removeItem(atPath: "\(all[1])/ledger.csv")
        #expect(self.refusal(all) == ["2/ledger.csv: does not exist"])
    }

    @Test("a ledger of other groups or streams is refused")
    func places() throws {
        var runs = SegmentRuns.groups
        runs.segments[1].ledger?.places.receivers[0].group = "phones"
        #expect(
            self.refusal(try runs.write(in: self.folder)) == ["2: has a ledger of other groups or streams than 1"]
        )
    }

    @Test("a histogram in the record that does not hold what it says is not left out in silence")
    func histogram() throws {
        var runs = SegmentRuns(2)
        let place = try #require(runs.segments[1].record.metrics.firstIndex { $0.name == "publish_ack_duration" })
        var reading = try #require(runs.segments[1].record.metrics[place].duration)
        let text = try #require(reading.histogram)
        reading.histogram = String(text.dropLast(8)) + "AAAAAAAA"
        runs.segments[1].record.metrics[place].reading = .duration(reading)
        let count = reading.count
        #expect(
            self.refusal(try runs.write(in: self.folder)) == [
                "2/run.json: holds 0 of \(count) publish_ack_duration{leg=puback;qos=1}; it has lost some"
            ]
        )
    }

    @Test("a figure that its own histogram does not have is not merged, though the counts agree")
    func figures() throws {
        var runs = SegmentRuns(2)
        let place = try #require(runs.segments[1].record.metrics.firstIndex { $0.name == "publish_ack_duration" })
        var reading = try #require(runs.segments[1].record.metrics[place].duration)
        reading.p99 *= 0.9
        runs.segments[1].record.metrics[place].reading = .duration(reading)
        let lines = self.refusal(try runs.write(in: self.folder))
        let words = "has figures that do not agree: publish_ack_duration{leg=puback;qos=1}: "
        #expect(lines.count == 1 && lines.first?.hasPrefix("2/run.json: \(words)") == true, "\(lines)")
    }

    typealias Lie = (place: String, write: @Sendable (inout RunRecord) -> Void)

    static let lies: [Lie] = [
        ("books.0.offered", { $0.books[0].offered = .max }), ("books.0.acked", { $0.books[0].acked = .max }),
        ("ledger.streams", { $0.ledger.streams = .max }), ("ledger.publishers", { $0.ledger.publishers = .max }),
        ("generator.peakMemoryBytes", { $0.generator.peakMemoryBytes = .max }),
        ("generator.eventLoops", { $0.generator.eventLoops = .max }),
    ]

    @Test("a count whose sum with others would overflow is refused where it is read", arguments: lies)
    func impossible(_ lie: Lie) throws {
        var runs = SegmentRuns(2)
        lie.write(&runs.segments[1].record)
        let lines = self.refusal(try runs.write(in: self.folder))
        #expect(lines == ["2/run.json: \(lie.place) is a count that no run reaches"])
    }

    @Test("all problems are reported, one per line")
    func several() throws {
        let all = try SegmentRuns(3).write(in: self.folder)
        try FileManager.default.removeItem(atPath: "\(all[0])/run.json")
        try self.folder.write("{", to: "3/run.json")
        let lines = self.refusal(all)
        #expect(lines.count == 2)
        #expect(lines.first == "1/run.json: does not exist")
        #expect(lines.last?.hasPrefix("3/run.json: ") == true)
    }
}
