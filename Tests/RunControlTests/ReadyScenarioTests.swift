import Measurement
import RunControl
import Scenario
import TestSupport
import Testing
import clamor

@Suite("The ready scenarios of clamor init, shortened")
struct ReadyScenarioTests {
    static func text(_ name: String) throws -> String {
        try #require(ReadyScenario.all.first { $0.name == name }).text
    }

    /// `NAME=VALUE` pairs, separated by blanks.
    static func flags(_ variables: String) -> String {
        variables.split(separator: " ").map { "--set \($0)" }.joined(separator: " ")
    }

    @Test(
        "on the core of the embedded broker",
        arguments: [
            ("fleet", "DEVICES=10 RATE=100/s SETTLE=1s PEAK=1s STORM=1s P99=30s", 3),
            ("door-access-mqtt", "DOORS=5 PHONES=5 SETTLE=1s PEAK=1s P99=30s", 2),
            ("sleepy-fleet", "DEVICES=10 ONLINE=1s OFFLINE=2s EVERY=1s HOLD=6s P99=30s", 1),
            ("fan-out", "LISTENERS=8 STEP=1s P99=30s", 3),
            ("login-storm", "CLIENTS=12 CALM=1s STORM=1s AFTER=1s P99=30s", 3),
            ("session-drain", "PAIRS=6 STEADY=1s AWAY=1s AFTER=1s P99=30s", 3),
            ("overload", "DEVICES=10 RATE=100/s BEFORE=1s OVERLOAD=1s AFTER=1s P99=30s", 3),
            ("retained-storm", "RATE=30/s WATCHERS=5 SET=1s STORM=1s AGAIN=1s P99=30s", 3),
            ("subscribe-sequence", "CLIENTS=3 FILTERS=20 HOLD=1s P99=30s", 1),
            ("request-response", "CLIENTS=8 SETTLE=1s PEAK=1s P99=30s TIMEOUT=30s", 2),
            ("ombs-connect", "CLIENTS=20 DURATION=1s", 1), ("ombs-connect-large", "SCALE=20 DURATION=1s", 1),
            ("ombs-fan-out", "SUBSCRIBERS=9 DURATION=5s", 1), ("ombs-fan-out-large", "SCALE=9 DURATION=1s", 1),
            ("ombs-point-to-point", "PAIRS=9 DURATION=3s", 1),
            ("ombs-point-to-point-large", "SCALE=9 DURATION=3s", 1),
            ("ombs-shared", "PUBLISHERS=9 DURATION=3s", 1),
            ("ombs-shared-large", "SCALE=9 SUBSCRIBERS=3 DURATION=3s", 1),
        ]
    )
    func embedded(name: String, variables: String, stages: Int) throws {
        let run = try VirtualClamor.of(scenario: Self.text(name), Self.flags(variables))
        #expect(run.status == 0, "\(run.errors) \(run.record.thresholds)")
        #expect(run.record.isSound, "\(run.record.reasonCodes)")
        #expect(run.record.stages.count == stages + 2)
        #expect(run.record.books.allSatisfy { $0.balances && $0.lost == 0 || $0.lost == nil })
    }

    /// Two seconds after the first client the broker says nothing more.
    @Test(
        "none of them succeeds with a broker that hangs half-way",
        arguments: [
            ("fleet", "DEVICES=10 RATE=100/s SETTLE=1s PEAK=3s STORM=1s"),
            ("door-access-mqtt", "DOORS=5 PHONES=5 SETTLE=1s PEAK=3s"),
            ("sleepy-fleet", "DEVICES=10 ONLINE=1s OFFLINE=2s EVERY=1s HOLD=6s"),
            ("fan-out", "LISTENERS=8 STEP=1500ms RATE=20/s RATE2=20/s RATE4=20/s"),
            ("login-storm", "CLIENTS=12 CALM=1s STORM=1s AFTER=2s"),
            ("session-drain", "PAIRS=6 STEADY=1s AWAY=1s AFTER=2s"),
            ("overload", "DEVICES=10 RATE=100/s BEFORE=1s OVERLOAD=1s AFTER=4s"),
            ("request-response", "CLIENTS=8 SETTLE=1s PEAK=3s"),
        ]
    )
    func hang(name: String, variables: String) throws {
        let text = try Self.text(name).replacing("drain: 30s", with: "drain: 2s")
        let flags = Self.flags("\(variables) P99=30s TARGET=mqtt://127.0.0.1:1883")
        let run = try VirtualClamor.of(scenario: text, flags, on: VirtualClamor.Host("--stall 10m@2s"))
        #expect([69, 99].contains(run.status), "\(run.errors) \(run.record.thresholds)")
        #expect(run.record.books.allSatisfy { $0.balances && $0.lost ?? 0 == 0 })
        #expect(run.record.books.contains { $0.outstanding ?? 0 > 0 })
    }
}
