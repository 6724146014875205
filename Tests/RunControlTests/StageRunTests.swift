import EmbeddedBroker
import Measurement
import Report
import RunControl
import TestSupport
import Testing

@Suite("Stages and load models")
struct StageRunTests {
    /// The value of a counter of the whole run, or of one stage.
    private func count(_ record: RunRecord, _ name: String, _ labels: Labels) -> Int? {
        record.metrics.first { $0.name == name && $0.labels == labels }?.counter.map { Int($0.value) }
    }

    /// That the run is sound, and that so many clients of the group left in the stage `away`, and in no other.
    private func expectAllAway(_ run: VirtualClamor, group: String, clients: Int) {
        #expect(run.status == 0, "\(run.errors) \(run.record.thresholds)")
        #expect(run.record.isSound, "\(run.record.reasonCodes)")
        let left: Labels = ["group": group, "reason": "offline"]
        #expect(self.count(run.record, "disconnects", left) == clients)
        #expect(self.count(run.record, "disconnects", left.adding("stage", "away")) == clients)
        #expect(self.count(run.record, "departures_missed", left) == 0)
    }

    @Test("subscribers that are away for a stage get all of it when they are back")
    func offline() throws {
        let run = try VirtualClamor.of(
            scenario:
                """
                target: embedded
                seed: 3
                groups:
                  a:
                    clients: 4
                    subscribers: 4
                    connect: { clean: false, session_expiry: 5m }
                    publish: { qos: 1, size: 64, rate: 100/s }
                stages:
                  - { name: up, for: 1s }
                  - { name: away, for: 1s, offline: true }
                  - { name: back, for: 1s, load: 50% }
                thresholds:
                  - "delivery_lost == 0"
                """
        )
        let record = run.record
        self.expectAllAway(run, group: "a", clients: 4)
        let book = try #require(record.books.first)
        #expect(book.balances)
        #expect([book.expected, book.received, book.lost] == [250, 250, 0])
        // The first messages waited for the end of the stage.
        let waited = record.duration("delivery_duration", ["stage": "away"])
        // Messages in flight at the disconnect may arrive twice.
        #expect((waited?.count ?? 0) >= 100)
        #expect((waited?.max ?? 0) > 0.9)
        #expect(record.duration("reconnect_duration", ["phase": "total"])?.count == 4)
    }

    @Test("devices that are away for a stage get all of it when they are back, and send what was due")
    func absentDevices() throws {
        let run = try VirtualClamor.of(
            scenario:
                """
                target: embedded
                seed: 3
                groups:
                  devices:
                    clients: 4
                    connect: { clean: false, session_expiry: 5m }
                    publish: { topic: "device/%i/up", qos: 1, size: 64, rate: 40/s }
                    subscribe: [{ filter: "device/%i/down", qos: 1 }]
                  service:
                    clients: 1
                    publish: { topic: "device/%rand_4/down", qos: 1, size: 64, rate: 40/s }
                stages:
                  - { name: up, for: 1s }
                  - { name: away, for: 1s, offline: true }
                  - { name: back, for: 1s }
                thresholds:
                  - "delivery_lost == 0"
                """
        )
        let record = run.record
        self.expectAllAway(run, group: "devices", clients: 4)
        #expect(record.books.compactMap(\.received).reduce(0, +) == 120)
        let sent = record.duration("publish_ack_duration", ["group": "devices", "stage": "away"])
        #expect(sent?.count == 40)
        #expect((sent?.max ?? 0) > 0.9)
    }

    @Test("stages with fewer clients: the others are absent, and their operations are not offered")
    func turnouts() throws {
        let run = try VirtualClamor.of(
            scenario:
                """
                target: embedded
                seed: 3
                groups:
                  a:
                    clients: 10
                    subscribers: 1
                    topology: fan-in
                    publish: { qos: 1, size: 64, rate: 200/s }
                stages:
                  - { name: few, for: 2s, clients: 2 }
                  - { name: all, for: 2s }
                  - { name: half, for: 2s, clients: 50% }
                thresholds:
                  - "delivery_lost == 0"
                """
        )
        let record = run.record
        #expect(run.status == 0, "\(run.errors) \(record.thresholds)")
        #expect(record.isSound, "\(record.reasonCodes)")
        #expect(record.errors.isEmpty)
        // Each of the ten publishers has 20 a second.
        let whole: Labels = ["group": "a", "qos": "1"]
        for (stage, offered) in [("few", 80), ("all", 400), ("half", 200)] {
            #expect(self.count(record, "publish_offered", whole.adding("stage", stage)) == offered, "\(stage)")
        }
        let book = try #require(record.books.first)
        #expect(book.balances)
        #expect(book.offered == 680)
        #expect(book.lost == 0)
        // Two publishers and the subscriber come first, the other eight when it is their turn, and five leave again.
        let left: Labels = ["group": "a", "reason": "inactive"]
        #expect(self.count(record, "disconnects", left) == 5)
        #expect(self.count(record, "disconnects", left.adding("stage", "half")) == 5)
        #expect(self.count(record, "departures_missed", left) == 0)
        #expect(record.duration("connect_duration", ["phase": "total"])?.count == 11)
        #expect(self.count(record, "reconnects", ["group": "a"]) == 0)
    }

    @Test("before MQTT 5 a session outlives its run, and the next run with its client ids says so")
    func sessionsStay() throws {
        let host = VirtualClamor.Host()
        let line = "sub -h embedded -V 4 -c 3 -C false --seed 3 -q 1 --duration 1s"
        #expect(try VirtualClamor.of(line, on: host).status == 0)
        let again = try VirtualClamor.of(line, on: host)
        #expect(again.status == 69)
        #expect(again.record.errors.map(\.kind) == ["session"])
    }

    private static let staged = """
        name: staged
        target: embedded
        seed: 3
        groups:
          a:
            clients: 10
            subscribers: 2
            topology: fan-in
            connect: { clean: false, session_expiry: 5m }
            publish: { qos: 1, size: 64, rate: 200/s }
        stages:
          - { name: settle, for: 1s, load: 50%, warmup: true }
          - { name: peak, for: 2s }
          - { name: storm, for: 1s, load: 25%, reconnect: 40% }
        thresholds:
          - "publish_acked{stage=peak} > 0"
          - "publish_ack_duration{stage=peak} p99 < 10s"
          - "publish_offered{stage=storm} count == 50"
          - "delivery_lost == 0"
        """

    @Test("each stage has what was asked of it, the whole run the sum, and the thresholds of a stage hold")
    func stages() throws {
        let run = try VirtualClamor.of(scenario: Self.staged)
        let record = run.record
        #expect(run.status == 0, "\(run.errors) \(record.thresholds)")
        #expect(record.isSound, "\(record.reasonCodes)")
        #expect(record.thresholds.map(\.ok) == [true, true, true, true])
        #expect(record.stages.map(\.name) == ["connect", "settle", "peak", "storm", "drain"])
        #expect(record.stages.map(\.measured) == [false, false, true, true, false])
        for (stage, seconds) in zip(record.stages[1...3], [1, 2, 1] as [Double]) {
            #expect(abs(stage.durationSeconds - seconds) < 1e-6, "\(stage.name)")
        }
        // 200/s at a half, as it is and at a quarter, for 1, 2 and 1 s.
        let whole: Labels = ["group": "a", "qos": "1"]
        #expect(self.count(record, "publish_offered", whole) == 550)
        for (stage, offered) in [("settle", 100), ("peak", 400), ("storm", 50)] {
            let labels = whole.adding("stage", stage)
            #expect(self.count(record, "publish_offered", labels) == offered, "\(stage)")
            let ack = record.metrics.first {
                $0.name == "publish_ack_duration" && $0.labels == labels.adding("leg", "puback")
            }
            // Messages in flight when the connection was cut have no answer.
            let failed = stage == "settle" ? 0 : record.books.first?.failed ?? 0
            let answered = ack?.duration?.count ?? 0
            #expect(answered <= UInt64(offered) && answered + failed >= UInt64(offered), "\(stage)")
        }
        let all = record.metrics.first {
            $0.name == "publish_ack_duration" && $0.labels == whole.adding("leg", "puback")
        }
        // The warm-up is left out of it.
        #expect((all?.duration?.count ?? 0) + (record.books.first?.failed ?? 0) == 450)
        let rate = record.metrics.first { $0.name == "publish_offered" && $0.labels == whole }?.counter?.rate
        #expect(abs((rate ?? 0) - 150) < 0.01)
        #expect(record.books.allSatisfy { $0.balances && $0.lost == 0 })
        // 40 % of 12 clients, spread over the last second.
        let left: Labels = ["group": "a", "reason": "storm"]
        let missed = self.count(record, "departures_missed", left) ?? 0
        #expect((self.count(record, "disconnects", left) ?? 0) + missed == 5)
        #expect(self.count(record, "disconnects", left.adding("stage", "peak")) == 0)
        let plan = record.plan["stages"].map { "\($0)" } ?? ""
        #expect(plan.contains("settle") && plan.contains("storm"))
        // The summary counts nothing twice.
        let text = Summary(record, detail: .full, files: nil, page: nil, style: TerminalStyle()).text
        #expect(text.contains("a QoS 1  offered 550 = sent 550 + not sent 0"), "\(text)")
    }

    @Test("a stage's broken threshold fails the run, 99, and names no other")
    func broken() throws {
        let run = try VirtualClamor.of(
            scenario:
                Self.staged.replacing("p99 < 10s", with: "p99 < 1ns").replacing("reconnect: 40%", with: "reconnect: 0%")
        )
        #expect(run.status == 99)
        #expect(run.record.thresholds.map(\.ok) == [true, false, true, true])
    }

    @Test("Poisson arrivals leave as the seed says, twice the same; who thinks sends no faster than that")
    func models() throws {
        func run(_ seed: Int) throws -> RunRecord {
            try VirtualClamor.of(
                scenario:
                    """
                    target: embedded
                    seed: \(seed)
                    duration: 2s
                    groups: { a: { clients: 5, publish: { qos: 1, rate: 300/s, arrivals: poisson } } }
                    """
            ).record
        }
        let first = try run(5)
        let offered = first.count("publish_offered")
        #expect(abs(offered - 600) < 120)
        #expect(try run(5).count("publish_offered") == offered)
        #expect(first.books.allSatisfy { $0.balances })
        let closed = try VirtualClamor.of(
            scenario:
                """
                target: embedded
                duration: 2s
                groups: { a: { clients: 4, publish: { qos: 1, think: 500ms } } }
                """
        ).record
        // Each of them at most every 500 ms: once in the first, and 3 times more where the host is not busy.
        #expect((4...16).contains(closed.count("publish_acked")))
    }
}
