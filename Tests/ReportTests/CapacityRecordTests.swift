import Foundation
import Measurement
import Report
import Testing

@Suite("Capacity record")
struct CapacityRecordTests {
    private typealias Answer = CapacityRecord.Answer

    private static let spent = "60 steps are the most of a search, and more were to be made"

    static let answers: [(answer: CapacityRecord.Answer, line: String)] = [
        (
            Answer(kind: "found", load: 20_000, low: 19_500, high: 20_500),
            "CAPACITY  20,000/s hold · interval 19,500/s … 20,500/s"
        ),
        (
            Answer(kind: "found", load: 20_000, low: 0, high: 40_000, reason: spent),
            "CAPACITY  20,000/s hold · interval 0/s … 40,000/s · \(spent)"
        ),
        (
            Answer(kind: "at-least", load: 5_000, low: 5_000),
            "CAPACITY  at least 5,000/s; a larger load was not offered"
        ),
        (Answer(kind: "at-least", load: 5_000, low: 5_000, reason: spent), "CAPACITY  at least 5,000/s · \(spent)"),
        (Answer(kind: "nothing-holds", high: 10), "NOTHING HOLDS  not even 10/s"),
        (Answer(kind: "nothing-holds", high: 10, reason: spent), "NOTHING HOLDS  not even 10/s · \(spent)"),
        (
            Answer(kind: "generator-limited", load: 16_000, high: 32_000, reason: "loop 0 was busy"),
            "GENERATOR-LIMITED  at 32,000/s; 16,000/s held: loop 0 was busy"
        ),
        (Answer(kind: "interrupted", load: 1_000), "INTERRUPTED  1,000/s held until then"),
        (Answer(kind: "interrupted"), "INTERRUPTED  before anything held"),
        (
            Answer(kind: "interrupted", load: 1_000, reason: "step 3: connection refused"),
            "INTERRUPTED  1,000/s held until then · step 3: connection refused"
        ),
    ]

    @Test("the headline says what was found, and where the search was not at its end why", arguments: answers)
    func headline(_ row: (answer: CapacityRecord.Answer, line: String)) {
        var record = CapacityRecord(command: ["pub"], varies: "rate", objectives: [], holdSeconds: 20)
        record.answer = row.answer
        #expect(record.summary(files: nil) == "\n\(row.line)\n")
    }

    private func step(_ load: Double) -> CapacityRecord.Step {
        CapacityRecord.Step(
            number: 1,
            load: load,
            phase: "doubling",
            verdict: "held",
            reason: nil,
            directory: "steps/1"
        )
    }

    @Test("a step of clients that only connect has the times of their connects, and the search its server and host")
    func connects() throws {
        var record = CapacityRecord(command: ["conn"], varies: "clients", objectives: [], holdSeconds: 1)
        var run = Samples.conn
        run.plan["targets"] = .array([.string("broker.example:1883")])
        run.servers = [ServerRecord(product: "mosquitto", version: "2.0.11", source: "$SYS")]
        let step = record.add(self.step(5_000), measuredBy: run, Timeline())
        #expect(record.steps == [step])
        #expect(step.throughput == nil && step.concurrency == 5_000)
        // The whole of each connect, and not its phases.
        let p99 = try #require(step.p99Seconds)
        #expect((0.1235...0.125).contains(p99))
        let words = ["server broker.example:1883", "mosquitto 2.0.11", "clamor 0.1.0", "Example CPU", "cores: 2"]
        #expect(record.environment == words)
        #expect(record.json.contains("\"environment\""))
    }

    @Test("a step of messages has the times of their answers")
    func messages() throws {
        var record = CapacityRecord(command: ["pubsub"], varies: "rate", objectives: [], holdSeconds: 1)
        let step = record.add(self.step(12_000), measuredBy: Samples.pubsub, Timeline())
        #expect(step.throughput == 8_000)
        let (mean, p99) = (try #require(step.meanSeconds), try #require(step.p99Seconds))
        #expect(p99 < 0.002_01 && step.concurrency == mean * 8_000)
        #expect(step.bounds == nil && !record.line(step).contains("≥"))
    }

    @Test("a step of messages without an answer has lower bounds")
    func bounds() throws {
        var record = CapacityRecord(command: ["pub"], varies: "rate", objectives: [], holdSeconds: 1)
        var run = try UnansweredReportTests.record
        run.metrics.removeAll { $0.name == "publish_ack_duration" && $0.labels["qos"] != "1" }
        let step = record.add(self.step(1_000), measuredBy: run, Timeline())
        #expect(step.bounds == ["mean_seconds", "p99_seconds"])
        #expect(record.line(step).contains("p99 ≥ 6.00 s") && record.csv.contains("mean_seconds p99_seconds"))
        let read = try JSONDecoder().decode(CapacityRecord.self, from: Data(record.json.utf8))
        #expect(read == record)
    }
}
