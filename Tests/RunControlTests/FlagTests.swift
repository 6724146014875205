import EmbeddedBroker
import Foundation
import Measurement
import Report
import RunControl
import TestSupport
import Testing

@Suite("Flags of a run do what they say")
struct FlagTests {
    @Test("a threshold that holds is exit 0, one that is broken 99 and named")
    func thresholds() throws {
        let line = "pubsub -h embedded -c 2 -q 1 -L 20 --threshold"
        let held = try VirtualClamor.of(
            line,
            "delivery_lost == 0",
            "--threshold",
            "publish_sent{qos=1} count == 20"
        )
        #expect(held.status == 0)
        #expect(held.errors.isEmpty)
        #expect(held.record.thresholds.map { $0.ok } == [true, true])

        let broken = try VirtualClamor.of(line, "publish_sent count > 20")
        #expect(broken.status == 99)
        #expect(broken.errorLines.count == 1)
        #expect(broken.errors.contains("publish_sent count > 20"))
        #expect(broken.record.thresholds.map { $0.ok } == [false])
        #expect(broken.record.isSound)
    }

    @Test("a broken threshold with abort ends the run")
    func abort() throws {
        let run = try VirtualClamor.of(
            "pub -h embedded -c 1 -q 1 -s 64 --rate 100/s --duration 1h --threshold",
            "publish_sent count < 50 abort"
        )
        #expect(run.status == 99)
        #expect(run.record.state == .aborted)
        #expect(run.record.reasonCodes.contains("threshold"))
        #expect(run.record.count("publish_sent") >= 50)
    }

    @Test("a step of a search ends once its objective cannot be met any more, and not before")
    func endsDecided() throws {
        let line = "pubsub -h embedded -c 1 -q 1 -s 64 --rate 100/s --duration 100s --end-decided --broker"
        let objective = "delivery_duration p99 < 50ms"
        // More than 1 % of 10,000 messages come late after a second, and a part of a second has no verdict.
        let slow = try VirtualClamor.of(line, "--delay 100ms", "--threshold", objective)
        #expect(slow.status == 99 && slow.record.state == .aborted)
        #expect((100..<1_000).contains(slow.record.count("publish_sent")))
        let fast = try VirtualClamor.of(line, "--delay 10ms", "--threshold", objective)
        #expect(fast.status == 0 && fast.record.count("publish_sent") == 10_000)
    }

    @Test("--per-client writes a row for each client, whose sums are the run's counts")
    func perClient() throws {
        let run = try VirtualClamor.of("pubsub -h embedded -c 5 -q 0,1,2 -L 100 --per-client --prefix p")
        #expect(run.status == 0)
        let lines = try String(contentsOfFile: "\(run.directory)/clients.csv", encoding: .utf8).split(
            separator: "\n"
        )
        let rows = lines.map { CSV.cells(of: $0) ?? [] }
        let ids = try #require(rows[0].firstIndex(of: "id"))
        let wanted = (1...5).flatMap { ["p-pub-\($0)", "p-sub-\($0)"] }
        #expect(Set(rows.dropFirst().map { $0[ids] }) == Set(wanted))
        for (column, metric) in [("sent", "publish_sent"), ("received", "received"), ("acked", "publish_acked")] {
            let index = try #require(rows[0].firstIndex(of: column))
            #expect(rows.dropFirst().reduce(0) { $0 + (Int($1[index]) ?? 0) } == run.record.count(metric))
        }
    }

    @Test(
        "as many messages as the plan has, on the broker's side as well",
        arguments: [
            ("-c 7 -q 0 -L 1000", 1000),
            ("-c 3 -q 0 -L 1000 -F 64", 1000),
            ("-c 2 -q 1 --rate 500/s --duration 1s", 500),
            ("-c 4 -q 2 -I 100 --duration 1s", 40),
            ("-c 4 -q 1 -I 100 --warmup 500ms --duration 500ms", 40),
            ("-c 2 -q 1 --rate 2000/s -L 300 --duration 1h", 300),
        ]
    )
    func planned(_ flags: String, _ count: Int) throws {
        let run = try VirtualClamor.of("pub -h embedded -s 64 \(flags)")
        #expect(run.status == 0)
        #expect(run.record.count("publish_offered") == count)
        #expect(run.record.count("publish_sent") == count)
        #expect(run.broker.received.total == count)
    }

    @Test("publishers wait for all clients, and with --no-wait they do not")
    func noWait() throws {
        // All are up 2 s after the first, and a load at once is still under way then.
        let line = "pub -h embedded -c 5 -q 1 --rate 50/s -R 2/s --duration 3s"
        let waiting = try VirtualClamor.of(line)
        #expect(waiting.status == 0)
        #expect(waiting.record.stages.first?.name == "connect")
        #expect((waiting.record.stages.first?.durationSeconds ?? 0) > 1.99)

        let atOnce = try VirtualClamor.of("\(line) --no-wait")
        #expect(atOnce.status == 0)
        #expect((atOnce.record.stages.first { $0.name == "connect" }?.durationSeconds ?? 0) < 1.99)
        #expect(atOnce.record.count("publish_sent") == 150)
    }
}
