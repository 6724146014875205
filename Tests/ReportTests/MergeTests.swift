import Foundation
import Measurement
import Report
import Testing

@Suite("Segments of a run are merged")
struct MergeTests {
    let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    private func merged(_ runs: SegmentRuns, thresholds: [String] = []) throws -> MergedRun {
        let directories = try runs.write(in: self.folder)
        return MergedRun(try SegmentSet(directories), command: ["clamor", "merge"], thresholds: thresholds)
    }

    private func metric(_ record: RunRecord, _ name: String, _ labels: Labels = [:]) -> Metric? {
        record.metrics.first { $0.name == name && $0.labels.contains(labels) }
    }

    @Test("durations, counters, errors and clients are those of one run over the joint data", arguments: [1, 2, 3, 7])
    func same(_ count: Int) throws {
        let runs = SegmentRuns(count)
        let record = try self.merged(runs).record
        for metric in runs.whole.metrics where metric.gauge == nil {
            let own = self.metric(record, metric.name, metric.labels)
            // Minimum, maximum, every percentile, mean, deviation, and the histogram itself.
            #expect(own?.duration == metric.duration)
            #expect(own?.counter == metric.counter)
        }
        #expect(record.metrics.count { $0.gauge == nil } == runs.whole.metrics.count { $0.gauge == nil })
        #expect(record.errors == runs.whole.errors)
        #expect(record.clients == runs.whole.clients)
        #expect(record.segment.merged == count && record.segment.count == 1)
        #expect(record.slowest == nil && record.tlsVersions == nil)
    }

    @Test("a merged run has the titles that all segments have")
    func titles() throws {
        var runs = SegmentRuns(2)
        for (index, host) in ["one", "two"].enumerated() {
            runs.segments[index].record.plan["name"] = "nightly"
            runs.segments[index].record.plan["tags"] = .array(["build=42", .string("host=\(host)")])
        }
        let plan = try self.merged(runs).record.plan
        #expect(plan["name"] == "nightly")
        #expect(plan["tags"] == ["build=42"])
    }

    @Test("the slowest messages of all segments, with times since the first one began, and connections by TLS version")
    func slowest() throws {
        var runs = SegmentRuns(3)
        for index in runs.segments.indices {
            runs.segments[index].startedAt += Int64(index) * 250_000_000
            runs.segments[index].record.slowest = (0..<60).map { number in
                let seconds = Double(number * 3 + index)
                var slow = SlowMessage(metric: "delivery_duration", seconds: seconds, due: 2, client: "c-\(index)")
                if number == 59 {
                    (slow.written, slow.acknowledged, slow.received, slow.loopLag) = (3, 4, 5, 0.5)
                }
                return slow
            }
        }
        runs.segments[0].record.tlsVersions = ["TLSv1.3": 3, "TLSv1.2": 1]
        runs.segments[2].record.tlsVersions = ["TLSv1.3": 4]
        let record = try self.merged(runs).record
        let slowest = try #require(record.slowest)
        #expect(slowest.map(\.seconds) == (80..<180).reversed().map { Double($0) })
        #expect(slowest.prefix(3).map(\.client) == ["c-2", "c-1", "c-0"])
        #expect(slowest.prefix(3).map(\.due) == [2.5, 2.25, 2])
        #expect(slowest[0].written == 3.5 && slowest[0].acknowledged == 4.5 && slowest[0].received == 5.5)
        #expect(slowest[0].loopLag == 0.5 && slowest[3].written == nil)
        #expect(record.tlsVersions == ["TLSv1.3": 7, "TLSv1.2": 1])
    }

    @Test("counts are the sums of the segments', and rates too")
    func sums() throws {
        let runs = SegmentRuns(3)
        let record = try self.merged(runs).record
        let parts = runs.segments.map(\.record)
        func sum(_ name: String, _ part: (CounterReading) -> Double?) -> Double {
            parts.reduce(0) { $0 + (self.metric($1, name)?.counter.flatMap(part) ?? 0) }
        }
        let sent = try #require(self.metric(record, "publish_sent")?.counter)
        #expect(sent.value == 4_800 && sent.value == sum("publish_sent") { $0.value })
        #expect(sent.rate == 1_200 && sent.rate == sum("publish_sent") { $0.rate })
        #expect(record.books.map(\.sent) == [4_800] && record.books.map(\.notSent) == [60])
        #expect(record.books.map(\.acked) == [3_000] && record.books.map(\.inFlight) == [1_800])
        #expect(record.ledger.publishers == 9 && record.ledger.on)
        #expect(record.generator.eventLoops == 3 && record.generator.cpuSeconds == 6)
        #expect(record.durationSeconds == 6 && record.stages == SegmentRuns.stages)
    }

    @Test("levels add up, second by second, and loops of different processes stay apart")
    func levels() throws {
        let record = try self.merged(SegmentRuns(3)).record
        let clients = try #require(self.metric(record, "clients")?.gauge)
        // 3 of each for four seconds, then 2, 3 and 4.
        #expect(clients.value == 9 && clients.min == 9 && clients.max == 9)
        let loops = record.metrics.filter { $0.name == "generator_cpu" }
        #expect(loops.map(\.labels) == [["loop": "1/0"], ["loop": "2/0"], ["loop": "3/0"]])
        #expect(loops.compactMap(\.gauge?.value) == [0.25, 0.5, 0.75])
        #expect(LevelRule.of("host_cpu_idle") == .lowest && LevelRule.of("host_cpu_pressure") == .highest)
        #expect(LevelRule.of("generator_memory_bytes") == .sum)
    }

    @Test("the time line has the seconds that the segments have in common, and adds up to the whole")
    func timeline() throws {
        var runs = SegmentRuns(2)
        runs.segments[1].startedAt += 2_000_000_000
        let merged = try self.merged(runs)
        #expect(merged.startedAt == Samples.startedAt && merged.record.durationSeconds == 8)
        #expect(
            merged.intervals.map { "\($0.second) \($0.phase)" } == [
                "0 connect", "1 warmup", "2 connect", "2 measure", "3 warmup", "3 measure", "4 measure", "5 measure",
                "5 drain", "6 measure", "7 drain",
            ]
        )
        func sent(_ second: Int) -> Double {
            merged.intervals.filter { $0.second == second }.flatMap(\.metrics).filter { $0.name == "publish_sent" }
                .reduce(0) { $0 + ($1.counter?.value ?? 0) }
        }
        #expect((0...7).map(sent) == [0, 200, 200, 600, 600, 400, 400, 0])
        for metric in merged.record.metrics {
            let rows = merged.intervals.flatMap(\.metrics).filter {
                $0.name == metric.name && $0.labels == metric.labels
            }
            if let counter = metric.counter {
                #expect(rows.reduce(0) { $0 + ($1.counter?.value ?? 0) } == counter.value)
            }
            guard let duration = metric.duration else { continue }
            let lanes = merged.intervals.flatMap(\.lanes).filter { $0.name == metric.name && $0.measured }
            #expect(lanes.reduce(0) { $0 + $1.count } == duration.count)
        }
    }

    @Test("what was merged is written as any run is, and read again")
    func written() throws {
        let merged = try self.merged(SegmentRuns(3))
        let path = "\(self.folder.path)/all"
        let writer = try RunWriter(ResultDirectory.create(path), record: merged.record, startedAt: merged.startedAt)
        for interval in merged.intervals { try writer.append(interval) { merged.record } }
        _ = try writer.finish(merged.record, clients: merged.clients)
        #expect(try RunJSON.read(directory: path) == merged.record)
        let ids = try self.folder.read("all/clients.csv").split(separator: "\n").map { $0.prefix { $0 != "," } }
        #expect(ids == ["id"] + (1...9).map { "c-\($0)" })
        // The rates of a client are over the time that they were over before.
        #expect(try self.folder.read("all/clients.csv").contains("c-1,1,0.001,100,90,25,"))
        let error = #expect(throws: SegmentSet.Refusal.self) { try SegmentSet([path]) }
        #expect(error?.lines == ["\(path): is merged already; give the directories of the segments"])
    }

    @Test("what was not answered is merged bucket by bucket, as one process would have recorded it")
    func unanswered() throws {
        let runs = SegmentRuns(3, isAnswered: false)
        let merged = try self.merged(runs)
        let own = try #require(self.metric(merged.record, "publish_ack_duration")?.duration)
        let whole = try #require(self.metric(runs.whole, "publish_ack_duration")?.duration)
        #expect(own.unanswered?.failed == 30 && own.unanswered?.outstanding == 30)
        #expect(own.count == whole.count && own.answered == whole.answered)
        #expect(own.bounds == whole.bounds && own.isBound(\.p99))
        let (values, known) = (try #require(own.decodedValues()), try #require(whole.decodedValues()))
        for percent in [50, 90, 99, 99.9, 100] { #expect(values.percentile(percent) == known.percentile(percent)) }
        let rows = merged.intervals.flatMap(\.metrics).compactMap(\.duration?.unanswered)
        #expect(rows.reduce(0) { $0 + $1.failed } == 30 && rows.reduce(0) { $0 + $1.outstanding } == 30)
    }

    @Test("thresholds are judged on the whole, and no segment's own answer counts")
    func thresholds() throws {
        let record = try self.merged(SegmentRuns(3), thresholds: ["errors count == 3", "errors count < 3"]).record
        let median = try #require(self.metric(record, "publish_ack_duration")?.duration?.p50)
        #expect(record.thresholds.map(\.expression).first == "publish_ack_duration p50 < 9ms")
        #expect(record.thresholds.map(\.ok) == [median < 0.009, true, true, false])
        #expect(record.thresholds.map(\.value) == [median, 4_800, 3, 3])
    }

    @Test("the verdict is the worst, with every reason and whose it is")
    func verdict() throws {
        var runs = SegmentRuns(3)
        var limited = Verdict()
        limited.add(
            .generatorLimited,
            Verdict.Reason(code: "unsent", text: "1 % was unsent", measured: 0.01, limit: 0.001)
        )
        runs.segments[1].record.verdict = limited
        var aborted = Verdict()
        aborted.add(.aborted, Verdict.Reason(code: "interrupted", text: "a signal ended it"))
        runs.segments[2].record.verdict = aborted
        let verdict = try #require(try self.merged(runs).record.verdict)
        #expect(verdict.state == .aborted)
        #expect(verdict.reasons.map(\.code) == ["unsent", "interrupted"])
        #expect(verdict.reasons.map(\.text) == ["segment 2: 1 % was unsent", "segment 3: a signal ended it"])
        #expect(verdict.reasons[0].measured == 0.01)
    }

    @Test("books that do not balance in one segment do not balance in all")
    func books() throws {
        var runs = SegmentRuns(2)
        runs.segments[0].record.books[0].sent = 799
        let verdict = try #require(try self.merged(runs).record.verdict)
        #expect(verdict.state == .unreconciled)
        #expect(verdict.reasons.map(\.code) == ["books", "books"])
    }

    @Test("books that balance and that the metrics do not have are not believed")
    func forgedBooks() throws {
        var runs = SegmentRuns(2)
        for column in [\Books.offered, \.sent, \.acked] { runs.segments[1].record.books[0][keyPath: column]? += 1_000 }
        let verdict = try #require(try self.merged(runs).record.verdict)
        #expect(verdict.state == .unreconciled && verdict.reasons.map(\.code) == ["books"])
        #expect(verdict.reasons.first?.text.hasPrefix("segment 2: ") == true)
    }

    @Test("rates that were not at one time are not believed")
    func apart() throws {
        var runs = SegmentRuns(2)
        runs.segments[1].startedAt += 200_000_000
        #expect(try self.merged(runs).record.verdict == .valid)
        let folder = try TemporaryFolder()
        runs.segments[1].startedAt += 1_000_000_000
        let record = MergedRun(try SegmentSet(runs.write(in: folder)), command: []).record
        #expect(record.verdict?.state == .generatorLimited)
        #expect(record.verdict?.reasons.map(\.code) == ["segments-apart"])
        #expect(abs((record.verdict?.reasons.first?.measured ?? 0) - 0.6) < 1e-6)
    }

    @Test("a ledger whose parts are in several segments is balanced as one, to the message")
    func ledgers() throws {
        let runs = SegmentRuns.joint(received: [0, 1, 2, 4, 3, 7, 7, 9])
        let record = try self.merged(runs, thresholds: ["delivery_lost == 0", "delivery_lost == 3"]).record
        func count(_ name: String) -> [Double?] {
            record.metrics.filter { $0.name == name }.map(\.counter?.value)
        }
        #expect(count("delivery_expected") == [10] && count("delivery_lost") == [3])
        #expect(count("delivery_duplicated") == [1] && count("delivery_reordered") == [1])
        #expect(record.books.map(\.expected) == [10] && record.books.map(\.received) == [7])
        #expect(record.books.map(\.lost) == [3] && record.books.map(\.duplicated) == [1])
        #expect(record.books.map(\.sent) == [2_400])
        #expect(record.thresholds.suffix(2).map(\.ok) == [false, true])
        #expect(record.ledger.on && record.ledger.pending == nil && record.ledger.reason == nil)
        #expect(record.ledger.subscriptions == 1 && record.ledger.streams == 1 && record.ledger.overflowed == 0)
        #expect(record.ledger.lost == ["violated": 3] && record.ledger.missing == 3)
        let example = record.ledger.examples?.first
        #expect(example?.finding == .lost && example?.cause == "violated" && example?.sequence == 5)
        #expect(example?.publisher == "publisher 1" && example?.subscriber == "subscriber 1")
        #expect(record.verdict == .valid)
    }

    @Test("one ledger is of all groups that hear each other, and its rows name both sides")
    func groupLedgers() throws {
        let record = try self.merged(.groups, thresholds: ["delivery_lost == 5", "delivery_lost{group=devices} == 2"])
            .record
        let rows = record.metrics.filter { $0.name.hasPrefix("delivery_") }.map { metric in
            "\(metric.name) \(metric.labels) \(Words.plain(metric.counter?.value ?? -1))"
        }
        let (devices, audit) = (
            "from=ops;group=devices;qos=1;stream=command", "from=ops;group=devices+audit;qos=0;stream=report"
        )
        #expect(
            Set(rows) == [
                "delivery_expected \(devices) 15", "delivery_received \(devices) 13",
                "delivery_lost cause=violated;\(devices) 2", "delivery_outstanding \(devices) 0",
                "delivery_missing \(devices) 2",
                "delivery_duplicated from=ops;group=devices;permitted=no;qos=1;stream=command 1",
                "delivery_reordered \(devices) 0",
                "delivery_expected \(audit) 4", "delivery_received \(audit) 3",
                "delivery_lost cause=dropped;\(audit) 1", "delivery_outstanding \(audit) 0",
                "delivery_missing \(audit) 1",
                "delivery_duplicated \(audit) 0", "delivery_reordered \(audit) 0",
                "delivery_lost group=chat;stanza=message 2",
            ]
        )
        #expect(rows.count == Set(rows).count)
        #expect(record.thresholds.suffix(2).map(\.ok) == [true, true])
        #expect(record.verdict == .valid)
    }

    @Test("books and ledgers of a group have what reached it, a share group's in its first group")
    func groupBooks() throws {
        let record = try self.merged(.groups).record
        #expect(record.books.map(\.name) == ["ops QoS 1", "devices QoS 0", "devices QoS 1"])
        #expect(record.books.map(\.expected) == [nil, 4, 15] && record.books.map(\.received) == [nil, 3, 13])
        #expect(record.books.map(\.lost) == [nil, 1, 2] && record.books.map(\.duplicated) == [nil, 0, 1])
        #expect(record.books.map(\.sent) == [2_400, nil, nil])
        let groups = try #require(record.groups)
        #expect(groups.map(\.ledger.lost) == [[:], ["violated": 2, "dropped": 1], [:], ["dropped": 2]])
        #expect(groups.map(\.ledger.missing) == [0, 3, 0, nil])
        #expect(groups.map(\.ledger.subscriptions) == [0, 3, 0, nil])
        #expect(groups.map(\.ledger.streams) == [0, 3, 0, nil] && groups.allSatisfy { $0.ledger.pending == nil })
        #expect(record.ledger.lost == ["violated": 2, "dropped": 3] && record.ledger.subscriptions == 3)
        let examples = groups[1].ledger.examples ?? []
        #expect(examples.map(\.finding) == [.lost, .lost, .duplicated])
        #expect(examples.map(\.cause) == ["violated", "dropped", nil])
        #expect(examples.map(\.sequence) == [3, 2, 1] && examples.map(\.sent) == [1, 1, nil])
        #expect(examples.map(\.acknowledged) == [true, nil, nil] && examples.map(\.expected) == [true, true, nil])
        #expect(
            examples.map(\.publisher) == [
                "publisher 1 of ops, stream command", "publisher 1 of ops, stream report",
                "publisher 2 of ops, stream command",
            ]
        )
        #expect(
            examples.map(\.subscriber) == [
                "subscriber 1 of devices", "subscriber 1 of devices+audit", "subscriber 2 of devices",
            ]
        )
    }

    @Test("losses of segments that each have their own ledger are added up by cause, and no zero stays beside them")
    func causes() throws {
        var runs = SegmentRuns(3)
        let losses: [[String: UInt64]] = [[:], ["violated": 2], ["violated": 1, "dropped": 1]]
        for (index, lost) in losses.enumerated() {
            runs.segments[index].record.ledger.lost = lost
            runs.segments[index].record.ledger.missing = 5
            runs.segments[index].record.ledger.examples = lost.keys.sorted().map { cause in
                var example = LedgerExample(finding: .lost, cause: cause, qos: 1)
                example.sequence = UInt64(index)
                return example
            }
            runs.segments[index].record.metrics +=
                lost.isEmpty
                ? [Samples.counter("delivery_lost", ["qos": "1"], 0)]
                : lost.map { Samples.counter("delivery_lost", ["cause": $0, "qos": "1"], Double($1)) }
        }
        let record = try self.merged(runs, thresholds: ["delivery_lost == 4", "delivery_lost{cause=violated} == 3"])
            .record
        #expect(record.ledger.lost == ["violated": 3, "dropped": 1] && record.ledger.missing == 15)
        #expect(record.ledger.examples?.map(\.cause) == ["violated", "dropped"])
        #expect(record.ledger.examples?.map(\.sequence) == [1, 2])
        #expect(record.metrics.count { $0.name == "delivery_lost" } == 2)
        #expect(record.thresholds.suffix(2).map(\.ok) == [true, true])
    }

    @Test("what makes such a ledger inexact is in the verdict")
    func unreconciled() throws {
        // 10 was never sent.
        let record = try self.merged(SegmentRuns.joint(received: [0, 10])).record
        #expect(record.verdict?.state == .unreconciled)
        #expect(record.verdict?.reasons.map(\.code).contains("ledger-beyond-sent") == true)
    }

    @Test("where the clocks of two hosts were not compared, deliveries between them are not believed")
    func clocks() throws {
        var runs = SegmentRuns.joint(received: [0, 1])
        #expect(try self.merged(runs).record.verdict == .valid)
        runs.segments[1].record.segment.clock?.host = "fedcba9876543210"
        var folder = try TemporaryFolder()
        var record = MergedRun(try SegmentSet(runs.write(in: folder)), command: []).record
        #expect(record.verdict?.state == .unreconciled && record.verdict?.reasons.map(\.code) == ["clock-offset"])
        #expect(record.notes == nil)
        runs.segments[1].record.segment.clock?.errorSeconds = 0.003
        folder = try TemporaryFolder()
        record = MergedRun(try SegmentSet(runs.write(in: folder)), command: []).record
        #expect(record.verdict == .valid)
        #expect(record.notes?.map(\.code) == ["clock-error"] && record.notes?.first?.measured == 0.003)
        #expect(record.notes?.first?.text.hasPrefix("deliveries between segments are known to ±3.00 ms, ") == true)
    }

    @Test("of hosts that differ only what they have in common is said, and all targets are")
    func hosts() throws {
        var runs = SegmentRuns(2)
        runs.segments[1].record.host.cores = 4
        runs.segments[0].record.plan["targets"] = ["a:1", "b:1"]
        runs.segments[1].record.plan["targets"] = ["b:1", "c:1"]
        let record = try self.merged(runs).record
        #expect(record.host.cpuModel == "Example CPU" && record.host.cores == nil)
        #expect(record.plan["targets"] == ["a:1", "b:1", "c:1"])
    }
}
