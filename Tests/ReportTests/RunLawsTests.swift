import Foundation
import Measurement
import Report
import TestSupport
import Testing

@Suite("Laws between the figures of a result")
struct RunLawsTests {
    /// One figure of a sound record is changed, and breaks the law with these words.
    struct Change: CustomTestStringConvertible, Sendable {
        let words: String
        let make: @Sendable (inout RunRecord) -> Void
        var testDescription: String { self.words }

        init(_ words: String, _ make: @escaping @Sendable (inout RunRecord) -> Void) {
            self.words = words
            self.make = make
        }

        static func duration(_ words: String, _ make: @escaping @Sendable (inout DurationReading) -> Void) -> Change {
            Change(words) { record in
                guard let place = record.metrics.firstIndex(where: { $0.name == "delivery_duration" }),
                    var reading = record.metrics[place].duration
                else { return }
                make(&reading)
                record.metrics[place].reading = .duration(reading)
            }
        }

        static func counter(_ name: String, _ words: String, _ value: Double, rate: Double? = nil) -> Change {
            Change(words) { record in
                guard let place = record.metrics.firstIndex(where: { $0.name == name }) else { return }
                record.metrics[place].reading = .counter(CounterReading(value: value, rate: rate))
            }
        }
    }

    private static var sound: RunRecord {
        var record = Samples.pubsub
        record.population = ClientCounts(planned: 2_000, up: 2_000)
        record.ledger.lost = ["violated": 0]
        record.findings = FindingsRecord(sentence: "nothing broke")
        return record
    }

    static let changes: [Change] = [
        .duration("a percentile is above the next") { $0.p50 = $0.p999 * 2 },
        .duration("the mean is not between min and max") { $0.mean = $0.max * 2 },
        .duration("by its histogram") { $0.p99 *= 0.9 },
        .duration("count is 7, and 1000 by its histogram") { $0.count = 7 },
        .duration("its histogram is damaged") { $0.histogram = "HISTFAAA" },
        .duration("its histogram is damaged") { $0.unanswered = UnansweredReading(failed: 2_000, outstanding: 0) },
        .counter("bytes_sent", "bytes_sent is -1", -1),
        .counter("bytes_sent", "more than its value", 100, rate: 50),
        .counter("publish_offered", "QoS 0: offered is 40000, and 39999.0 among the metrics", 39_999),
        .counter("delivery_expected", "the books have 120000.0 expected, and the metrics 1200", 40_000 - 118_800),
        .counter("delivery_lost", "the ledger lost 0.0, and the metrics have 3.0", 3),
        Change("answered publishes with a duration") {
            for place in $0.metrics.indices where $0.metrics[place].name == "publish_acked" {
                $0.metrics[place].reading = .counter(CounterReading(value: 900, rate: nil))
            }
        },
        Change("expected 40000 is not received 39998 + lost 0") { $0.books[1].received = 39_998 },
        Change("run: 2001 clients up of 2000") { $0.population?.up = 2_001 },
        Change("2000.0 connects are more than 1999.0 planned clients") { $0.population = ClientCounts(planned: 1_999) },
        Change("disconnects are more than") {
            $0.metrics.append(Samples.counter("disconnects", ["reason": "reset"], 2_001))
        },
        Change("reconnects is 5.0, and 3.0 have a duration") {
            $0.metrics.append(Samples.counter("reconnects", [:], 5))
            let back = Samples.duration("reconnect_duration", ["phase": "total"], Samples.ramp(3, step: 1_000))
            if let back { $0.metrics.append(back) }
        },
        Change("the list has 0.0 errors, and the metrics 2.0") {
            $0.metrics.append(Samples.counter("errors", ["kind": "reset"], 2))
        },
        Change("2001.0 clients at once of 2000.0") {
            let reading = GaugeReading(value: 5, min: 0, mean: 5, max: 2_001)
            $0.metrics.append(Metric(name: "clients", labels: ["state": "connected"], reading: .gauge(reading)))
        },
        Change("is not between its min and max") {
            let reading = GaugeReading(value: 5, min: 6, mean: 5, max: 7)
            $0.metrics.append(Metric(name: "store_queue", reading: .gauge(reading)))
        },
        Change("begins before the stage in front of it ends") { $0.stages[1].start = 1 },
        Change("drain ends at") { $0.stages[2].durationSeconds = 1 },
        Change("the longest silence: 13.0 s in a run of 12.345 s") {
            $0.findings?.longestSilence = FindingPoint(second: 1, value: 13)
        },
        Change("all clients were up: 20.0 s") { $0.findings?.allUpSeconds = 20 },
        Change("a share of seconds is above 1") { $0.findings?.withinObjective = 1.2 },
        Change("more clients up than planned") {
            $0.findings?.clientsUp = 3
            $0.findings?.clientsPlanned = 2
        },
        Change("an event loop used 1.2 of a core") { $0.generator.loopCPUShares = [1.2] },
        Change("40.0 CPU seconds are more than 2 cores have") { $0.generator.cpuSeconds = 40 },
        Change("the verdict is valid with 1 reasons") {
            let text = #"{"state":"valid","reasons":[{"code":"books","text":"wrong"}]}"#
            $0.verdict = try? JSONDecoder().decode(Verdict.self, from: Data(text.utf8))
        },
        Change("'delivery_lost count == 0' is broken, and met by the metrics") { $0.thresholds[1].state = .broken },
    ]

    @Test("a sound result breaks none")
    func sound() {
        #expect(RunLaws(Self.sound).broken == [])
    }

    @Test("a figure that was changed breaks one", arguments: changes)
    func changed(_ change: Change) {
        var record = Self.sound
        change.make(&record)
        let broken = RunLaws(record).broken
        #expect(broken.contains { $0.contains(change.words) }, "\(broken)")
    }

    @Test("the streamed files have what the record has")
    func files() throws {
        let folder = try ScratchFolder()
        let run = SimulatedRun()
        let writer = try run.write(folder.path("out"), intervals: 6)
        _ = try writer.finish(run.ended)
        // The simulated run acknowledges half of what it answers.
        let own = try RunLaws(directory: folder.path("out")).broken
        #expect(own.allSatisfy { $0.contains("answered publishes") }, "\(own)")
        for (file, old, new, words) in [
            ("timeline.csv", "publish_sent,qos=1,counter,,100", "publish_sent,qos=1,counter,,101", "timeline.csv has"),
            ("latency.hlog", "Tag=connect_duration;phase=total", "Tag=other;phase=total", "latency.hlog has 0 of 20"),
        ] {
            let text = try String(contentsOfFile: folder.path("out/\(file)"), encoding: .utf8)
            #expect(text.contains(old))
            _ = try folder.write(text.replacingOccurrences(of: old, with: new), to: "out/\(file)")
            let broken = try RunLaws(directory: folder.path("out")).broken
            #expect(broken.contains { $0.hasPrefix(words) }, "\(broken)")
            _ = try folder.write(text, to: "out/\(file)")
        }
    }
}
