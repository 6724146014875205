import Ledger
import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import Testing
import VirtualServers
import Workloads

@Suite("Devices that sleep")
struct CycleTests {
    /// The result of a plain count of all due times.
    private struct Naive: Equatable {
        var (offered, sent, skipped, replaced, left) = (0, 0, 0, 0, 0)

        init(_ cycle: Cycle, clients: Int, rate: Double, seconds: Int64, seed: UInt64) {
            let schedule = OperationSchedule(pace: .rate(perSecond: rate), clients: clients)
            let end = TimeAmount.seconds(seconds)
            for client in 0..<clients {
                var (turn, length) = cycle.first(of: client)
                var (change, operation, away) = (length, UInt64(0), 0)
                while let due = schedule.due(client: client, own: operation), due < end {
                    while change <= due {
                        turn += 1
                        length = cycle.length(of: turn, of: client, seed: seed)
                        if turn % 2 == 1 { self.left += 1 }
                        (change, away) = (change + length, 0)
                    }
                    operation += 1
                    guard turn % 2 == 1, cycle.due != .queue else {
                        self.offered += 1
                        continue
                    }
                    away += 1
                    if cycle.due == .skip {
                        self.skipped += 1
                    } else if away > 1 {
                        self.replaced += 1
                    } else {
                        self.offered += 1
                    }
                }
                while change < end {
                    turn += 1
                    if turn % 2 == 1 { self.left += 1 }
                    change = change + cycle.length(of: turn, of: client, seed: seed)
                }
            }
            self.sent = self.offered
        }
    }

    static let cases: [(Cycle.Due, jitter: Double, cuts: Bool)] =
        Cycle.Due.allCases.flatMap { due in [(due, 0, false), (due, 0.2, false), (due, 0.5, true)] }

    @Test("500 of them for 60 s: what is offered, sent, skipped and replaced is arithmetic", arguments: Self.cases)
    func books(due: Cycle.Due, jitter: Double, cuts: Bool) throws {
        let cycle = Cycle(online: .seconds(2), offline: .seconds(3), jitter: jitter, cuts: cuts, due: due)
        var setup = MQTTVirtualRun.Setup(publishers: 500, subscribers: 1, rate: 499, duration: .seconds(60))
        setup.topology = .fanIn
        setup.departures = DeparturePlan(cycle: cycle, seed: 7)
        let run = try MQTTVirtualRun(setup)
        run.perform()
        let naive = Naive(cycle, clients: 500, rate: 499, seconds: 60, seed: 7)
        let qos: Labels = ["qos": "1"]
        #expect(run.count("publish_offered", qos) == naive.offered)
        #expect(run.count("publish_sent", qos) == naive.sent)
        #expect(run.count("publish_acked", qos) == naive.sent)
        #expect(run.count("publish_skipped", qos) == naive.skipped)
        #expect(run.count("publish_replaced", qos) == naive.replaced)
        #expect(run.count("publish_not_sent", qos) == 0)
        #expect(run.count("disconnects", ["reason": "cycle"]) == naive.left)
        #expect(run.count("departures_missed", ["reason": "cycle"]) == 0)
        #expect(naive.offered + naive.skipped + naive.replaced == 60 * 499)
        #expect(run.imbalances == [])
        #expect(run.reconciliation.rows.first?.received == UInt64(naive.sent))
        #expect(run.errorCounts == [:])
        // A message that waited counts from due: queued up to the time offline, the latest up to the time between two.
        let longest = Double(run.values("publish_ack_duration", qos.adding("leg", "puback")).all.max ?? 0) / 1e9
        switch due {
        case .queue: #expect(longest > 2.5 && longest <= 3 * (1 + jitter) + 0.01)
        case .latest: #expect(longest > 0.8 && longest <= 500.0 / 499 + 0.01)
        case .skip: #expect(longest < 0.01)
        }
    }

    @Test("a goodbye awaits the answers, and a client without them has not slept")
    func goodbye() throws {
        let cycle = Cycle(online: .seconds(1), offline: .seconds(1), due: .skip)
        var setup = MQTTVirtualRun.Setup(rate: 10, duration: .seconds(6), latency: .milliseconds(200))
        setup.departures = DeparturePlan(cycle: cycle)
        let run = try MQTTVirtualRun(setup)
        // From 2 s on no PUBACK comes, and the client stays up.
        run.network.rewrite = { [unowned run] bytes in
            guard run.now > run.origin + .seconds(2) else { return bytes }
            return UnansweredTests.replacing(bytes) { $0[0] == 0x40 ? [] : $0 }
        }
        run.perform()
        #expect(run.count("departures_missed", ["reason": "cycle"]) > 0)
        #expect(run.count("publish_excused", ["qos": "1"]) == 0)
        #expect(run.imbalances == [])
    }

    @Test("devices that sleep through the load come back at its end with what they kept", arguments: Cycle.Due.allCases)
    func neverAwake(due: Cycle.Due) throws {
        let cycle = Cycle(online: .seconds(1), offline: .seconds(60), due: due)
        var setup = MQTTVirtualRun.Setup(publishers: 20, subscribers: 1, rate: 20, duration: .seconds(3))
        setup.topology = .fanIn
        setup.departures = DeparturePlan(cycle: cycle)
        let run = try MQTTVirtualRun(setup)
        run.perform()
        let qos: Labels = ["qos": "1"]
        #expect(run.count("publish_sent", qos) == run.count("publish_offered", qos))
        #expect(run.count("publish_not_sent", qos) == 0 && run.count("publish_acked", qos) > 0)
        let left = run.count("publish_skipped", qos) + run.count("publish_replaced", qos)
        #expect(run.count("publish_offered", qos) + left == 60)
        #expect(run.imbalances == [])
    }

    @Test("a storm that meets devices on their way to sleep leaves none away too long", arguments: Cycle.Due.allCases)
    func storm(due: Cycle.Due) throws {
        let cycle = Cycle(online: .seconds(1), offline: .seconds(1), due: due)
        var setup = MQTTVirtualRun.Setup(publishers: 20, rate: 200, duration: .seconds(10), drain: .seconds(5))
        (setup.subscribers, setup.topology, setup.latency) = (1, .fanIn, .milliseconds(150))
        let storms = (1...9).map { DeparturePlan.Storm(share: 1, at: .milliseconds(1_050 * Int64($0))) }
        setup.departures = DeparturePlan(storms: storms, cycle: cycle)
        let run = try MQTTVirtualRun(setup)
        run.perform()
        let qos: Labels = ["qos": "1"]
        let left = run.count("publish_skipped", qos) + run.count("publish_replaced", qos)
        #expect(run.count("publish_offered", qos) + left == 2_000)
        if due == .queue { #expect(run.count("publish_not_sent", qos) == 0) }
        // Half of the time online, less a login behind each of the storms.
        if due == .skip { #expect(run.count("publish_sent", qos) > 600) }
        let (sent, acked) = (run.count("publish_sent", qos), run.count("publish_acked", qos))
        // The storms cut off what had no answer.
        #expect(UInt64(sent) == UInt64(acked) + (run.result.books[.atLeastOnce]?.excused ?? 0))
        #expect(run.count("publish_offered", qos) == sent + run.count("publish_not_sent", qos))
    }

    @Test("the share that is online stays near its part of the cycle", arguments: [1, 3, 100, 499])
    func spread(clients: Int) {
        let cycle = Cycle(online: .seconds(30), offline: .seconds(270))
        for second in stride(from: Int64(0), to: 300, by: 7) {
            let online = (0..<clients).count { client in
                let (turn, length) = cycle.first(of: client)
                let place =
                    (turn == 0 ? 30 - length.nanoseconds / 1_000_000_000 : 300 - length.nanoseconds / 1_000_000_000)
                return (place + second) % 300 < 30
            }
            #expect(abs(online - clients / 10) <= 2)
        }
    }
}
