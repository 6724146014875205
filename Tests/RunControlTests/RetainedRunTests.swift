import Foundation
import Measurement
import RunResult
import TestSupport
import Testing

@Suite("Retained copies and shapes of SUBSCRIBE, from the words to the files")
struct RetainedRunTests {
    private static func storm(_ variables: String) throws -> VirtualClamor {
        try VirtualClamor.of(scenario: ReadyScenarioTests.text("retained-storm"), ReadyScenarioTests.flags(variables))
    }

    @Test(
        "each SUBSCRIBE of a storm and after a cut is owed every topic, and gets it",
        arguments: [(1, 20), (2, 20), (6, 40), (25, 7)]
    )
    func storm(_ watchers: Int, _ rate: Int) throws {
        let run = try Self.storm("RATE=\(rate)/s WATCHERS=\(watchers) SET=1s STORM=1s AGAIN=2s P99=30s")
        #expect(run.status == 0, "\(run.errors)")
        // One watcher is there before the first value.
        let visits = watchers - 1 + watchers
        #expect(run.record.count("retained_expected") == visits * rate)
        #expect(run.record.count("retained_lost") == 0)
        #expect(run.record.count("retained_outstanding") == 0)
        let copies = run.record.metrics.filter { $0.name == "received" && $0.labels["retained"] == "true" }
        #expect(copies.filter { $0.labels["stage"] == nil }.compactMap(\.counter?.value) == [Double(visits * rate)])
        for which in ["first", "last"] {
            let labels: Labels = ["group": "watchers", "which": which]
            #expect(run.record.duration("retained_duration", labels)?.count == UInt64(visits))
        }
        #expect(run.record.books.allSatisfy { $0.balances && $0.lost == 0 || $0.lost == nil })
    }

    @Test("a broker that hangs before the second SUBSCRIBE of each lets no run pass")
    func hang() throws {
        let flags = ReadyScenarioTests.flags(
            "RATE=30/s WATCHERS=3 SET=1s STORM=2s AGAIN=2s P99=30s TARGET=mqtt://127.0.0.1:1883"
        )
        let scenario = try ReadyScenarioTests.text("retained-storm").replacing("drain: 10s", with: "drain: 2s")
        let run = try VirtualClamor.of(scenario: scenario, flags, on: VirtualClamor.Host("--stall 10m@2s"))
        #expect([69, 99].contains(run.status), "\(run.errors)")
        #expect(run.record.count("retained_expected") == 60)
        #expect(run.record.count("retained_lost") == 0)
    }

    @Test(
        "values that change and are cleared, beside clients that come and go: no copy is lost or stale",
        arguments: 0..<6
    )
    func changing(_ seed: Int) throws {
        let run = try VirtualClamor.of(
            scenario: """
                seed: \(seed)
                target: embedded
                duration: 4s
                groups:
                  setters:
                    clients: 4
                    publish:
                      - { name: value, topic: "state/%i", qos: 1, size: 64, retain: true, rate: 40/s }
                      - { name: clear, topic: "state/%i", qos: 1, size: 0, retain: true, rate: 7/s }
                      - { name: live, topic: "state/live/%i", qos: 1, size: 64, rate: 20/s }
                  watchers:
                    clients: 5
                    churn: 10/s
                    subscribe: [{ filter: "state/#", qos: 1, retain_handling: \(seed % 3) }]
                  workers:
                    clients: 2
                    churn: 2/s
                    subscribe: [{ filter: "$share/g/state/+", qos: 1 }]
                """
        )
        #expect(run.record.count("retained_lost") == 0)
        #expect(run.record.count("retained_stale") == 0)
        #expect((run.record.count("retained_expected") > 20) == (seed % 3 != 2))
    }

    @Test("an UNSUBSCRIBE without its UNSUBACK is an error, and makes no run that passes")
    func unsubscribe() throws {
        let run = try VirtualClamor.of(
            "sub -h 127.0.0.1 -c 2 -t a/%i -d 3s --drain 2s --unsubscribe --threshold error_rate==0",
            on: VirtualClamor.Host("--stall 10m@2s")
        )
        #expect(run.status != 0)
        #expect(run.record.duration("unsubscribe_duration")?.count == 2)
        #expect(run.record.duration("unsubscribe_duration")?.answered == 0)
    }

    static let shapes: [(flags: String, packets: Int, seconds: Double)] = [
        ("--filter-count 20", 3, 0), ("--filter-count 20 --subscribe-packets one", 3, 0),
        ("--filter-count 20 --subscribe-packets each", 60, 0),
        ("--filter-count 20 --subscribe-packets each --subscribe-pace 10/s", 60, 1.9),
    ]

    @Test("SUBSCRIBE packets are counted and spaced as they are asked for", arguments: shapes)
    func shape(_ row: (flags: String, packets: Int, seconds: Double)) throws {
        let run = try VirtualClamor.of("sub -h embedded -c 3 -t a/%i/%s/# -d 1s --unsubscribe \(row.flags)")
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.duration("subscribe_duration")?.count == UInt64(row.packets))
        #expect(run.record.duration("unsubscribe_duration")?.count == 3)
        #expect(run.record.duration("subscribe_duration")?.max ?? 1 < 0.01)
        let up = try #require(run.record.findings?.allUpSeconds)
        #expect(up >= row.seconds && up < row.seconds + 0.2)
    }

    @Test("a SUBSCRIBE in a sequence without its SUBACK ends its client's part")
    func timeout() throws {
        let run = try VirtualClamor.of(
            "sub -h 127.0.0.1 -c 2 -t a/%i/%s --filter-count 40 --subscribe-packets each --subscribe-pace 20/s -d 1s",
            on: VirtualClamor.Host("--stall 1h@1s")
        )
        #expect(run.status != 0)
        #expect(run.record.errors.contains { $0.kind == "timeout" && $0.example.contains("no SUBACK") })
        // Forty packets of each of two clients were due, until the run gave up.
        let packets = try #require(run.record.duration("subscribe_duration"))
        #expect(packets.count == 80 && (36...44).contains(packets.answered), "\(packets.count) \(packets.answered)")
    }
}
