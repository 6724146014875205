import Ledger
import MQTT
import MQTTCodec
import Measurement
import NIOCore
import NIOEmbedded
import Testing
import VirtualServers
import Workloads

/// Clients that keep their flows, on a manual clock: only the store takes time.
@Suite("The gate in front of the store")
struct StoreGateTests {
    private static let commit = TimeAmount.milliseconds(3)

    private func expectAll(_ run: MQTTVirtualRun, _ name: String, _ labels: Labels, _ count: UInt64, _ time: TimeAmount)
    {
        let histogram = run.histogram(name, labels)
        #expect(histogram.count == count, "\(name) \(labels)")
        var planned = Histogram()
        planned.record(time.nanoseconds)
        #expect(histogram.min == planned.min, "\(name) \(labels)")
        #expect(histogram.max == planned.max, "\(name) \(labels)")
    }

    @Test("a publish waits for its commit: its response time has it, its service time and the generator's lag have not")
    func atLeastOnce() throws {
        let run = try MQTTVirtualRun(.init(commits: { _ in .init(Self.commit) }))
        run.perform()
        let labels: Labels = ["qos": "1", "leg": "puback"]
        self.expectAll(run, "publish_ack_duration", labels, 1_000, Self.commit)
        self.expectAll(run, "publish_service_duration", labels, 1_000, .zero)
        self.expectAll(run, "publish_write_duration", ["qos": "1"], 1_000, Self.commit)
        self.expectAll(run, "delivery_duration", ["qos": "1"], 1_000, Self.commit)
        self.expectAll(run, "schedule_lag", [:], 1_000, .zero)
        self.expectAll(run, "publish_blocked_duration", ["qos": "1"], 1_000, .zero)
        // Each commit has one message, and the removal of the one before; the last removal has its own, behind what was
        // due in the measured phase.
        #expect(run.store?.count == 1_001)
        self.expectAll(run, "store_commit_duration", [:], 1_000, Self.commit)
        #expect(run.counter("store_messages", .atLeastOnce) == 1_000)
        #expect(run.all.first { $0.name == "store_changes" }?.counter?.value == 2_000)
        #expect(run.row(.atLeastOnce) == WireOracle.Row(expected: 1_000, received: 1_000))
        #expect(run.store?.kept == [])
        #expect(run.store?.overtaken == [])
        #expect(run.imbalances.isEmpty)
    }

    @Test("[MQTT-4.3.3-4] PUBREL waits for the commit of PUBREC, and a subscriber's PUBREC for that of the message")
    func exactlyOnce() throws {
        let run = try MQTTVirtualRun(.init(qualities: [.exactlyOnce], commits: { _ in .init(Self.commit) }))
        run.perform()
        self.expectAll(run, "publish_ack_duration", ["qos": "2", "leg": "pubrec"], 1_000, Self.commit)
        self.expectAll(run, "publish_service_duration", ["qos": "2", "leg": "pubrec"], 1_000, .zero)
        self.expectAll(run, "publish_ack_duration", ["qos": "2", "leg": "pubcomp"], 1_000, Self.commit * 2)
        self.expectAll(run, "publish_service_duration", ["qos": "2", "leg": "pubcomp"], 1_000, Self.commit)
        #expect(run.all.first { $0.name == "store_recorded" }?.counter?.value == 1_000)
        #expect(run.row(.exactlyOnce) == WireOracle.Row(expected: 1_000, received: 1_000))
        #expect(run.store?.kept == [])
        #expect(run.store?.inbound == 0)
        #expect(run.store?.overtaken == [])
        #expect(run.imbalances.isEmpty)
    }

    @Test("what is not stored yet has its place in the window: a slow store fills it, and nothing more is taken")
    func window() throws {
        // 100/s are offered, and a commit takes 200 ms.
        let run = try MQTTVirtualRun(
            .init(duration: .seconds(2), drain: .seconds(60), window: 4, commits: { _ in .init(.milliseconds(200)) })
        )
        run.perform()
        #expect(run.counter("publish_sent", .atLeastOnce) == 200)
        #expect(try #require(run.histogram("publish_blocked_duration", ["qos": "1"]).max) > 1_000_000_000)
        #expect(run.histogram("schedule_lag", [:]).max == 1)
        #expect(run.histogram("publish_service_duration", ["qos": "1", "leg": "puback"]).max == 1)
        // Messages taken while a commit is in progress fill the window: 1, 3, 1, 3 messages. The last removals have
        // two.
        #expect(run.store?.count == 102)
        #expect(run.imbalances.isEmpty)
    }

    @Test("a lost connection leaves unsent, by their own numbers, the messages that the kernel had not taken")
    func unsentAtLoss() throws {
        // At any time five messages have a number and wait for their commit.
        let run = try MQTTVirtualRun(
            .init(duration: .seconds(1), latency: .milliseconds(1), commits: { _ in .init(.milliseconds(50)) })
        )
        run.at(.milliseconds(400)) { [unowned run] in run.network.links.first { $0.client == 0 }?.makeRoom(0) }
        run.at(.milliseconds(500)) { [unowned run] in run.network.cut(0) }
        run.perform()
        let fate = try #require(run.result.published.fates.first { $0.publisher == 0 })
        let written = Set(run.network.oracle.written.map(\.sequence))
        let unsent = Set((0..<fate.assigned).filter { fate.unsent.contains($0) })
        #expect(!unsent.isEmpty)
        #expect(unsent == Set(0..<fate.assigned).subtracting(written))
        #expect(run.imbalances.isEmpty)
    }

    @Test("a store that fails ends the clients of that commit, and what they had not sent is not sent")
    func fails() throws {
        let run = try MQTTVirtualRun(
            .init(
                publishers: 2,
                subscribers: 2,
                qualities: [.atMostOnce, .atLeastOnce],
                duration: .seconds(2),
                commits: { .init(Self.commit, error: $0 == 11 ? .diskFull(path: "store.db") : nil) }
            )
        )
        run.perform()
        // The first ten of publisher 1; the eleventh and later ones were offered only.
        #expect(run.counter("publish_sent", .atLeastOnce) == 10)
        #expect(run.counter("publish_acked", .atLeastOnce) == 10)
        #expect(run.counter("publish_not_sent", .atLeastOnce) == 90)
        let values = run.values("publish_ack_duration", ["qos": "1", "leg": "puback"])
        #expect(values.answered.count == 10 && values.unanswered.outstanding == 90 && values.count == 100)
        #expect(run.counter("publish_confirmed", .atMostOnce) == 100)
        let error = try #require(run.errors.first { $0.kind == StoreFailure.kind })
        #expect(error.count == 1)
        #expect(error.example == "the store failed: store.db cannot grow: the disk is full")
        #expect(run.row(.atLeastOnce) == WireOracle.Row(expected: 10, received: 10))
        #expect(run.imbalances.isEmpty)
    }

    @Test("a commit that does not return delays the run no longer than its drain, and its clients are reported")
    func hangs() throws {
        let run = try MQTTVirtualRun(
            .init(
                publishers: 2,
                subscribers: 2,
                qualities: [.atMostOnce, .atLeastOnce],
                duration: .seconds(2),
                commits: { .init($0 == 11 ? .hours(1_000) : Self.commit) }
            )
        )
        run.perform()
        #expect(run.wasAborted)
        #expect(run.counter("publish_acked", .atLeastOnce) == 10)
        #expect(run.counter("publish_confirmed", .atMostOnce) == 100)
        let error = try #require(run.errors.first { $0.kind == StoreFailure.lateKind })
        #expect(error.count == 1)
        #expect(error.example == "the store did not answer before the run was over")
        #expect(run.errors.count { $0.kind == StoreFailure.kind } == 0)
        #expect(run.imbalances.isEmpty)
    }

    @Test("a client without open flows is released, even if others wait for the store")
    func leaves() throws {
        // The one message comes to its subscriber 200 ms late, and that commit hangs.
        let run = try MQTTVirtualRun(
            .init(
                faults: "delay 200ms delay-every 1",
                qualities: [.exactlyOnce],
                rate: 1,
                duration: .milliseconds(500),
                drain: .seconds(60),
                commits: { .init($0 == 4 ? .hours(1_000) : Self.commit) }
            )
        )
        run.perform()
        #expect(run.wasAborted)
        #expect(run.store?.count == 4)
        #expect(run.counter("publish_acked", .exactlyOnce) == 1)
        // The publisher ended with the load, not with its drain.
        #expect(run.loop.now - run.origin < .seconds(10))
        #expect(run.errors.map(\.kind) == [StoreFailure.lateKind])
    }

    @Test("a subscription that begins late may have missed what was sent, not what waits for its commit")
    func early() throws {
        let run = try MQTTVirtualRun(
            .init(duration: .seconds(1), drain: .seconds(60), commits: { _ in .init(.milliseconds(200)) })
        )
        var written = 0
        run.perform(step: .milliseconds(10)) { run in
            guard written == 0, run.loop.now >= run.origin + .milliseconds(500) else { return }
            written = run.network.oracle.written.count
            run.work.note(PresenceNews(receiver: 0, visit: 1, event: .began))
        }
        #expect(written > 0)
        let marks = run.marks.filter { $0.visit == 1 }
        #expect(marks.map(\.sequence) == [UInt64(written)])
    }

    @Test("a store failure after a client's end is reported separately")
    func failsLate() throws {
        let run = try MQTTVirtualRun(
            .init(commits: { .init(Self.commit, error: $0 == 1_001 ? .diskFull(path: "store.db") : nil) })
        )
        run.perform()
        #expect(run.counter("publish_acked", .atLeastOnce) == 1_000)
        #expect(run.errors.map(\.kind) == [StoreFailure.lateKind])
        #expect(run.errors.map(\.example) == ["the store failed: store.db cannot grow: the disk is full"])
        #expect(run.imbalances.isEmpty)
    }

    @Test(
        "whatever happens, nothing is sent before it is stored, and the books balance",
        arguments: 1...16 as ClosedRange<UInt64>
    )
    func anything(seed: UInt64) throws {
        var dice = Dice(seed: seed)
        var faults = ""
        if Bool.random(using: &dice) { faults += " drop \(Int.random(in: 1...30, using: &dice))%" }
        if Bool.random(using: &dice) { faults += " duplicate \(Int.random(in: 1...20, using: &dice))" }
        if Bool.random(using: &dice) { faults += " disconnect-every \(Int.random(in: 7...200, using: &dice))ms" }
        if Bool.random(using: &dice) { faults += " stall 300ms@1s" }
        let longest = UInt64.random(in: 1...40, using: &dice)
        let run = try MQTTVirtualRun(
            .init(
                faults: faults,
                publishers: 6,
                subscribers: 6,
                qualities: [.atMostOnce, .atLeastOnce, .exactlyOnce],
                rate: 397,
                duration: .seconds(2),
                window: [1, 3, 16][Int.random(in: 0..<3, using: &dice)],
                reconnects: 1_000,
                reconnectPeriod: .milliseconds(Int64.random(in: 1...30, using: &dice)),
                latency: .microseconds(400),
                seed: seed,
                commits: { number in
                    var dice = Dice(seed: seed &+ UInt64(number))
                    return .init(.milliseconds(Int64(UInt64.random(in: 0...longest, using: &dice))))
                },
                isPersistent: Bool.random(using: &dice)
            )
        )
        let cutsAreLikely = Bool.random(using: &dice)
        run.perform(step: .milliseconds(7)) { run in
            guard cutsAreLikely, Int.random(in: 0..<20, using: &dice) == 0 else { return }
            run.network.links.filter(\.isOpen).randomElement(using: &dice)?.cut()
        }
        let words = Comment(rawValue: "\(faults), persistent \(run.setup.isPersistent)")
        for qos in run.setup.qualities {
            let (row, seen) = (run.row(qos), run.oracleSums(qos))
            if run.setup.isPersistent {
                // The wire shows repetitions that the client drops, and answers that come on another connection.
                #expect(row.received == seen.row.received && row.reordered == seen.row.reordered, words)
            } else {
                #expect(row.agrees(with: seen, outstanding: Int(run.outstanding(qos))), words)
            }
            #expect(
                run.counter("publish_sent", qos) == run.network.oracle.written.count { $0.qos == qos.rawValue },
                words
            )
        }
        for qos in run.setup.qualities where qos != .atMostOnce {
            #expect(
                run.histogram("publish_write_duration", ["qos": "\(qos.rawValue)"]).count
                    == run.counter("publish_sent", qos),
                words
            )
        }
        #expect(run.store?.overtaken == [], words)
        // The remaining messages are those without an answer.
        let left = Set(run.store?.kept.map { [UInt64($0.publisher), $0.sequence] } ?? [])
        let open = run.result.published.fates.reduce(into: Set<[UInt64]>()) { open, fate in
            for sequence in 0..<fate.assigned where fate.unknown.contains(sequence) {
                open.insert([UInt64(fate.publisher), sequence])
            }
        }
        #expect(left.isSubset(of: open), words)
        #expect(run.reconciliation.problems.isEmpty, words)
        #expect(run.imbalances.isEmpty, words)
    }
}
