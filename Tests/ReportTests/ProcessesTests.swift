import Foundation
import Ledger
import Measurement
import Report
import Testing

@Suite("Processes of one host become a segment")
struct ProcessesTests {
    let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    /// How many processes each segment has.
    static let divisions = [[2, 2, 2], [3, 3], [1, 1], [6], [4, 4]]

    // MARK: - Ledgers

    /// Segment i of N, from 0: the segments i + N × j of N × P.
    private func processes<Part>(_ parts: [Part], _ segment: Int, of count: Int) -> [Part] {
        stride(from: segment, to: parts.count, by: count).map { parts[$0] }
    }

    @Test(
        "the ledgers of segments, each joined before, balance as those of all processes do",
        arguments: divisions,
        0..<6
    )
    func ledgers(_ division: [Int], _ seed: Int) throws {
        let all = DividedLedger(division.reduce(0, +), seed: UInt64(seed)).segments
        let count = division.count
        let segments = try (0..<count).map { segment in
            let own = self.processes(all, segment, of: count)
            return try #require(LedgerCSV.read(LedgerCSV.text(SegmentLedger(joining: own))))
        }
        let (flat, joint) = (Reconciliation(joining: all), Reconciliation(joining: segments))
        #expect(flat.rows.contains { $0.lost ?? 0 > 0 } && flat.rows.contains { $0.duplicated > 0 })
        #expect(joint.rows == flat.rows)
        #expect(joint.examples == flat.examples)
        #expect(joint.problems.map(self.plain) == flat.problems.map(self.plain))
    }

    /// Two pairs of segments may have the same time between them, of which the first one is named.
    private func plain(_ problem: LedgerProblem) -> LedgerProblem {
        guard case .leftEarly(_, _, let time) = problem else { return problem }
        return .leftEarly(subscribers: 0, publishers: 0, nanoseconds: time)
    }

    @Test("segments of one process and of several are joined alike", arguments: 0..<6)
    func mixed(_ seed: Int) {
        let all = DividedLedger(3, seed: UInt64(seed)).segments
        let mixed = [SegmentLedger(joining: [all[0], all[2]]), all[1]]
        #expect(Reconciliation(joining: mixed).rows == Reconciliation(joining: all).rows)
        #expect(Reconciliation(joining: mixed).examples == Reconciliation(joining: all).examples)
    }

    // MARK: - Directories

    private func runs(_ division: [Int], ledgers: Bool) -> SegmentRuns {
        var runs = SegmentRuns(division.reduce(0, +))
        guard ledgers else { return runs }
        let parts = DividedLedger(runs.segments.count, seed: 5).segments
        for (index, part) in parts.enumerated() {
            runs.segments[index].ledger = part
            runs.segments[index].record.ledger.pending = true
            runs.segments[index].record.segment.clock = ClockRecord(host: "0123456789abcdef", realtimeOffset: 0)
            runs.segments[index].record.metrics.append(Samples.counter("delivery_duplicated", ["qos": "1"], 1))
        }
        return runs
    }

    /// Writes a merged run as `clamor merge` does.
    private func write(_ merged: MergedRun, _ name: String) throws -> String {
        let path = "\(self.folder.path)/\(name)"
        let writer = try RunWriter(ResultDirectory.create(path), record: merged.record, startedAt: merged.startedAt)
        for interval in merged.intervals { try writer.append(interval) { merged.record } }
        return try writer.finish(merged.record, clients: merged.clients, ledger: merged.ledger)
    }

    private func host(_ directories: [String], _ index: Int, of count: Int) throws -> MergedRun {
        let set = try SegmentSet(directories, as: SegmentRecord(index: index, count: count))
        return MergedRun(set, command: ["clamor", "run"])
    }

    /// One directory for each segment; a segment of one process may have its own.
    private func hosts(_ all: [String], _ count: Int) throws -> [String] {
        try (0..<count).map { segment in
            let own = self.processes(all, segment, of: count)
            return try self.write(self.host(own, segment + 1, of: count), "host \(segment + 1)")
        }
    }

    /// A record without the names of processes, and in the order of its series.
    private func plain(_ record: RunRecord) -> RunRecord {
        var record = record
        record.metrics = self.plain(record.metrics)
        record.segment.merged = nil
        record.generator.loopCPUShares?.sort()
        return record
    }

    /// Loops have the number of their process, which the divisions have in different orders.
    private func plain(_ metrics: [Metric]) -> [Metric] {
        metrics.map { metric in
            var metric = metric
            if var gauge = metric.gauge {
                // Sums in another order.
                gauge.mean = gauge.mean.map { ($0 * 1e6).rounded() / 1e6 }
                metric.reading = .gauge(gauge)
            }
            guard metric.labels["loop"] != nil else { return metric }
            metric.labels = metric.labels.adding("loop", "\(metric.gauge?.value ?? 0)")
            return metric
        }.sorted { ($0.name, $0.labels) < ($1.name, $1.labels) }
    }

    private func plain(_ intervals: [TimelineInterval]) -> [TimelineInterval] {
        intervals.map { interval in
            var interval = interval
            interval.metrics = self.plain(interval.metrics)
            interval.lanes.sort { ($0.name, $0.labels) < ($1.name, $1.labels) }
            return interval
        }
    }

    @Test(
        "merged segments, each merged before, are what a merge of all processes gives",
        arguments: divisions,
        [false, true]
    )
    func same(_ division: [Int], hasLedgers: Bool) throws {
        let all = try self.runs(division, ledgers: hasLedgers).write(in: self.folder)
        let flat = MergedRun(try SegmentSet(all), command: ["clamor"])
        let joint = MergedRun(try SegmentSet(self.hosts(all, division.count)), command: ["clamor"])
        #expect(self.plain(joint.record).segment == self.plain(flat.record).segment)
        #expect(self.plain(joint.record).metrics == self.plain(flat.record).metrics)
        #expect(joint.record.books == flat.record.books && joint.record.ledger == flat.record.ledger)
        #expect(joint.record.thresholds == flat.record.thresholds && joint.record.thresholds.count == 2)
        #expect(joint.record.clients == flat.record.clients && joint.record.errors == flat.record.errors)
        var (one, other) = (self.plain(joint.record), self.plain(flat.record))
        (one.verdict, other.verdict) = (nil, nil)
        #expect(one == other)
        #expect(joint.record.verdict?.state == flat.record.verdict?.state)
        #expect(joint.record.verdict?.reasons.map(\.code) == flat.record.verdict?.reasons.map(\.code))
        #expect(joint.clients == flat.clients && joint.startedAt == flat.startedAt)
        #expect(self.plain(joint.intervals) == self.plain(flat.intervals))
        #expect(joint.ledger == nil)
    }

    @Test("a directory of one process is a segment as it is, beside segments of several")
    func beside() throws {
        // Segments 1 and 3 of 4 are the processes of segment 1 of 2; another run of the same plan has 2 segments.
        var runs = self.runs([2, 2], ledgers: false)
        runs.segments[1].record.segment.count = 2
        let all = try runs.write(in: self.folder)
        let host = try self.write(self.host([all[2], all[0]], 1, of: 2), "host")
        let merged = MergedRun(try SegmentSet([all[1], host]), command: [])
        #expect(merged.record.books.map(\.sent) == [4_800])
        #expect(merged.record.segment.merged == 2 && merged.record.segment.processes == nil)
        let loops = merged.record.metrics.filter { $0.name == "generator_cpu" }
        #expect(loops.compactMap { $0.labels["loop"] } == ["1/1/0", "1/2/0", "2/0"])
    }

    @Test("such a segment is no whole run: its thresholds, ledger and reasons wait for the others")
    func waiting() throws {
        var runs = self.runs([2, 2], ledgers: true)
        var limited = Verdict()
        limited.add(.generatorLimited, Verdict.Reason(code: "unsent", text: "1 % was unsent"))
        runs.segments[2].record.verdict = limited
        let all = try runs.write(in: self.folder)
        let merged = try self.host([all[0], all[2]], 1, of: 2)
        let record = merged.record
        #expect(record.thresholds.isEmpty && record.segment.thresholds == runs.segments[0].record.segment.thresholds)
        #expect(record.segment.index == 1 && record.segment.count == 2 && record.segment.merged == 2)
        #expect(record.segment.isPart && record.segment.run == runs.segments[0].record.segment.run)
        #expect(record.ledger.pending == true && record.ledger.on && record.ledger.lost == nil)
        #expect(!record.metrics.contains { $0.name.hasPrefix("delivery_") })
        #expect(record.books.allSatisfy { $0.expected == nil && $0.received == nil && $0.lost == nil })
        #expect(record.verdict?.state == .generatorLimited)
        #expect(record.verdict?.reasons.map(\.text) == ["process 2: 1 % was unsent"])
        #expect(merged.ledger?.times.count == 2)
        let host = try self.write(merged, "host")
        #expect(try RunJSON.read(directory: host) == record)
        #expect(try self.folder.read("host/latency.hlog").hasSuffix(" bytes]\n"))
        let other = try self.write(self.host([all[1], all[3]], 2, of: 2), "other")
        let whole = MergedRun(try SegmentSet([host, other]), command: []).record
        #expect(whole.verdict?.reasons.first?.text == "segment 1: process 2: 1 % was unsent")
        #expect(whole.ledger.pending == nil && whole.ledger.lost != nil && !whole.segment.isPart)
    }

    // MARK: - Times

    @Test("levels and phases are those of all processes, even if one began or ended before the others")
    func apart() throws {
        var runs = self.runs([2, 2], ledgers: false)
        for (index, seconds) in [(1, 1), (2, 2)] { runs.segments[index].startedAt += Int64(seconds) * 1_000_000_000 }
        let all = try runs.write(in: self.folder)
        let flat = MergedRun(try SegmentSet(all), command: [])
        let segments = try self.hosts(all, 2)
        let joint = MergedRun(try SegmentSet(segments), command: [])
        // The first process of segment 1 has ended when the second one is in its last two seconds.
        #expect(try RunJSON.read(directory: segments[0]).segment.levels?.isEmpty == false)
        func clients(_ run: MergedRun) -> GaugeReading? { run.record.metrics.first { $0.name == "clients" }?.gauge }
        #expect(clients(joint) == clients(flat) && clients(flat) != nil)
        #expect(joint.record.stages == flat.record.stages)
        #expect(joint.record.verdict?.reasons.map(\.code) == ["segments-apart"])
        #expect(joint.record.verdict == flat.record.verdict)
        #expect(self.plain(joint.intervals) == self.plain(flat.intervals))
    }

    @Test("of clocks that each process had by itself, all count")
    func clocks() throws {
        var runs = self.runs([2, 2], ledgers: true)
        func error(_ seconds: [Double]) throws -> [Double?] {
            for (index, seconds) in seconds.enumerated() where seconds > 0 {
                runs.segments[index].record.segment.clock?.errorSeconds = seconds
                runs.segments[index].record.segment.clock?.correctionSeconds = 1
                runs.segments[index].record.segment.clock?.host = index.isMultiple(of: 2) ? "a" : "b"
                runs.segments[index].record.segment.clock?.reference = "c"
            }
            let folder = try TemporaryFolder()
            let all = try runs.write(in: folder)
            let hosts = try self.hosts(all, 2)
            for host in hosts { try FileManager.default.moveItem(atPath: host, toPath: host + " of \(seconds[0])") }
            let moved = hosts.map { "\($0) of \(seconds[0])" }
            return try [all, moved].map { MergedRun(try SegmentSet($0), command: []).record.notes?.first?.measured }
        }
        // Corrected once for each host.
        #expect(try error([0.25, 0.5, 0.25, 0.5]) == [0.75, 0.75])
        #expect(try error([0.5, 0.25, 0.125, 0.25]) == [0.75, 0.75])
    }

    // MARK: - Refusals

    private func refusal(_ directories: [String], _ index: Int, of count: Int) -> [String] {
        do throws(SegmentSet.Refusal) {
            _ = try SegmentSet(directories, as: SegmentRecord(index: index, count: count))
            return []
        } catch {
            return error.lines.map { $0.replacing(self.folder.path + "/", with: "") }
        }
    }

    @Test("processes of another segment, or not all of this one, are refused")
    func foreign() throws {
        let all = try SegmentRuns(6).write(in: self.folder)
        #expect(self.refusal([all[1], all[4]], 2, of: 3) == [])
        #expect(self.refusal([all[1]], 2, of: 3) == ["segment 5 of 6 is missing; merge needs all of them"])
        #expect(
            self.refusal([all[1], all[4], all[1]], 2, of: 3) == [
                "segment 2 of 6 is given 2 times, 2 and 2; give each once"
            ]
        )
        #expect(self.refusal([all[1], all[3]], 2, of: 3) == ["4: segment 4 of 6 is no process of segment 2 of 3"])
        #expect(
            self.refusal([all[0], all[4]], 1, of: 4) == [
                "1: segment 1 of 6 is no process of segment 1 of 4",
                "5: segment 5 of 6 is no process of segment 1 of 4",
            ]
        )
        #expect(self.refusal([], 1, of: 2) == ["there is no segment to merge"])
    }

    @Test("a host that is missing is named as any segment is")
    func missing() throws {
        let all = try SegmentRuns(4).write(in: self.folder)
        let hosts = try self.hosts(all, 2)
        let error = #expect(throws: SegmentSet.Refusal.self) { try SegmentSet([hosts[1]]) }
        #expect(error?.lines == ["segment 1 of 2 is missing; merge needs all of them"])
    }
}
