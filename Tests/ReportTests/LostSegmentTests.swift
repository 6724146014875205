import Foundation
import Measurement
import Report
import Testing

@Suite("A run whose segments are not all there, or that a threshold ended")
struct LostSegmentTests {
    let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    private func refusal(_ directories: [String], _ lost: [LostSegment]) -> [String] {
        do throws(SegmentSet.Refusal) {
            _ = try SegmentSet(directories, without: lost)
            return []
        } catch {
            return error.lines.map { $0.replacing(self.folder.path + "/", with: "") }
        }
    }

    private func merged(
        _ runs: SegmentRuns,
        without lost: [LostSegment],
        thresholds: [String] = []
    ) throws -> RunRecord {
        let all = try runs.write(in: self.folder)
        let left = all.enumerated().filter { index, _ in !lost.contains { $0.index == index + 1 } }.map(\.element)
        return MergedRun(try SegmentSet(left, without: lost), command: [], thresholds: thresholds).record
    }

    // MARK: - Lost segments

    @Test("a segment is missing unless it is lost, and it is not lost if it is there")
    func named() throws {
        let all = try SegmentRuns(4).write(in: self.folder)
        let second = LostSegment(index: 2, words: "host b, lost 12 s after the begin")
        #expect(self.refusal([all[0], all[2], all[3]], [second]) == [])
        #expect(self.refusal([all[0], all[2]], [second]) == ["segment 4 of 4 is missing; merge needs all of them"])
        #expect(self.refusal(all, [second]) == ["segment 2 of 4 is given, 2, and cannot be lost"])
        let fifth = LostSegment(index: 5, words: "")
        #expect(self.refusal(all, [fifth]) == ["segment 5 of 4 is not there and cannot be lost"])
        #expect(self.refusal([], [second]) == ["there is no segment to merge"])
    }

    @Test("the figures of the others are no figures of the whole, and say so")
    func verdict() throws {
        let lost = [
            LostSegment(index: 3, words: "host c, stalled"), LostSegment(index: 1, words: "host a, lost before"),
        ]
        let record = try self.merged(SegmentRuns(4), without: lost)
        #expect(record.verdict?.state == .unreconciled)
        #expect(record.verdict?.reasons.map(\.code) == ["segment-lost"])
        #expect(
            record.verdict?.reasons.map(\.text) == [
                "the figures are of 2 of 4 segments, without segments 1 (host a, lost before), 3 (host c, stalled)"
            ]
        )
        #expect(record.verdict?.reasons.first?.measured == 2)
        #expect(record.segment.lost?.map(\.index) == [1, 3] && record.segment.merged == 2)
        #expect(record.books.map(\.sent) == [800 * 6])
    }

    @Test("a worse verdict of another segment stays")
    func worse() throws {
        var runs = SegmentRuns(2)
        var aborted = Verdict()
        aborted.add(.aborted, Verdict.Reason(code: "interrupted", text: "a signal ended it"))
        runs.segments[0].record.verdict = aborted
        let record = try self.merged(runs, without: [LostSegment(index: 2, words: "host b")])
        #expect(record.verdict?.state == .aborted)
        #expect(record.verdict?.reasons.map(\.code) == ["interrupted", "segment-lost"])
        #expect(
            record.verdict?.reasons.last?.text == "the figures are of 1 of 2 segments, without segment 2 (host b)"
        )
    }

    @Test("without a part of the ledger, neither what was expected nor what was lost is known")
    func ledger() throws {
        let thresholds = ["delivery_lost == 0", "delivery_duplicated{qos=1} count < 5", "publish_sent count > 0"]
        for (index, words) in [(1, "host a"), (2, "host b")] {
            let folder = try TemporaryFolder()
            let all = try SegmentRuns.joint(received: [0, 1, 2]).write(in: folder)
            let set = try SegmentSet([all[2 - index]], without: [LostSegment(index: index, words: words)])
            let record = MergedRun(set, command: [], thresholds: thresholds).record
            #expect(!record.metrics.contains { $0.name.hasPrefix("delivery_") })
            #expect(record.books.allSatisfy { $0.expected == nil && $0.received == nil && $0.lost == nil })
            #expect(!record.ledger.on && record.ledger.pending == nil && record.ledger.lost == nil)
            #expect(record.ledger.reason == "segment \(index) is lost, so what was expected is not known")
            // A count that is not known is not 0.
            #expect(record.thresholds.suffix(3).map(\.ok) == [false, false, true])
            #expect(record.thresholds.suffix(3).map { $0.value == nil } == [true, true, false])
            #expect(record.verdict?.reasons.map(\.code) == ["segment-lost"])
        }
    }

    @Test("what a group balanced by itself is known of the others")
    func groups() throws {
        let thresholds = ["delivery_lost{group=chat} == 1", "delivery_lost{group=devices} == 0", "delivery_lost < 9"]
        let record = try self.merged(
            .groups,
            without: [LostSegment(index: 2, words: "host b")],
            thresholds: thresholds
        )
        #expect(record.thresholds.suffix(3).map(\.ok) == [true, false, false])
        #expect(record.groups?.map(\.ledger.on) == [false, false, false, true])
        #expect(record.groups?.last?.ledger.lost == ["dropped": 1])
        #expect(record.metrics.filter { $0.name.hasPrefix("delivery_") }.map(\.labels[Labels.group]) == ["chat"])
    }

    // MARK: - A threshold that ended the run

    private static let sentence = "publish_sent count == 4800"

    @Test("a threshold that ended the run is failed, whatever the figures are in the end")
    func broken() throws {
        let set = try SegmentSet(SegmentRuns(3).write(in: self.folder))
        let whole = MergedRun(set, command: []).record
        #expect(whole.thresholds.map(\.ok) == [false, true])
        let record = MergedRun(set, command: [], broken: Self.sentence).record
        #expect(record.thresholds.map(\.expression) == whole.thresholds.map(\.expression))
        #expect(record.thresholds.map(\.ok) == [false, false] && record.thresholds.last?.value == 4_800)
        #expect(record.verdict?.state == .aborted)
        #expect(record.verdict?.reasons == [.threshold(Self.sentence)])
    }

    @Test("that the segments were ended is no reason of its own", arguments: ["interrupted", "threshold"])
    func followed(_ code: String) throws {
        var runs = SegmentRuns(3)
        for index in runs.segments.indices {
            var verdict = Verdict()
            verdict.add(.aborted, Verdict.Reason(code: code, text: "it was ended"))
            if index == 1 { verdict.add(.generatorLimited, Verdict.Reason(code: "unsent", text: "1 % was unsent")) }
            runs.segments[index].record.verdict = verdict
        }
        let set = try SegmentSet(runs.write(in: self.folder))
        let reasons = MergedRun(set, command: [], broken: Self.sentence).record.verdict?.reasons ?? []
        #expect(reasons.map(\.code) == ["threshold", "unsent"])
        #expect(reasons.last?.text == "segment 2: 1 % was unsent")
        // Without a broken threshold of the whole it is.
        #expect(MergedRun(set, command: []).record.verdict?.reasons.map(\.code) == [code, code, "unsent", code])
    }

    @Test("a threshold of the merge alone may end the run too")
    func added() throws {
        let set = try SegmentSet(SegmentRuns(2).write(in: self.folder))
        let record = MergedRun(set, command: [], broken: "errors count < 100 abort").record
        #expect(record.thresholds.map(\.expression).last == "errors count < 100 abort")
        #expect(record.thresholds.map(\.ok).last == false)
    }
}
