import Ledger
import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import NIOEmbedded
import Testing
import VirtualServers
import Workloads

/// On a virtual clock nothing takes time but the fault, so it is known which messages are slow, and when each of their
/// times was.
@Suite("The slowest messages of a run have their exact times and clients")
struct SlowestRunTests {
    /// The times of the messages that were due in the run's only stall.
    private func dues(_ run: MQTTVirtualRun, in stall: Range<NIODeadline>, perSecond: Int64) -> [NIODeadline] {
        (0..<10 * perSecond).map { run.origin + .nanoseconds($0 * 1_000_000_000 / perSecond) }
            .filter { stall.contains($0) }
    }

    @Test(
        "a broker that stalls: what was due first waits longest, and was written when the window let it",
        arguments: QoS.allCases,
        [16, 65_535]
    )
    func stall(qos: QoS, window: Int) throws {
        let run = try MQTTVirtualRun(.init(faults: "stall 2s@5s", qualities: [qos], rate: 200, window: window))
        run.perform()
        let stall = try #require(run.network.stalls.first)
        let late = self.dues(run, in: stall, perSecond: 200).prefix(RunRecord.slowestLimit)
        let end = run.seconds(stall.upperBound)
        let slowest = run.slowest
        #expect(slowest.count == RunRecord.slowestLimit && late.count == RunRecord.slowestLimit)
        for (number, (message, due)) in zip(slowest, late).enumerated() {
            var expected = SlowMessage(
                metric: "delivery_duration",
                seconds: Double((stall.upperBound - due).nanoseconds) / 1e9,
                due: run.seconds(due),
                client: run.workload.clientID(0)
            )
            expected.received = end
            expected.receiver = run.workload.clientID(1)
            expected.qos = Int(qos.rawValue)
            // At QoS 0 nothing is answered, and the time of the write is not known where the message arrives.
            if qos != .atMostOnce {
                expected.written = number < window ? run.seconds(due) : end
                expected.acknowledged = end
            }
            #expect(message == expected)
        }
    }

    @Test("without receivers there are answers alone")
    func answers() throws {
        let run = try MQTTVirtualRun(.init(faults: "stall 2s@5s", subscribers: 0, topology: .fanIn))
        run.perform()
        let stall = try #require(run.network.stalls.first)
        let late = self.dues(run, in: stall, perSecond: 100).prefix(RunRecord.slowestLimit)
        #expect(run.slowest.map(\.due) == late.map(run.seconds))
        #expect(run.slowest.allSatisfy { $0.metric == "publish_ack_duration" && $0.received == nil })
        #expect(run.slowest.allSatisfy { $0.acknowledged == run.seconds(stall.upperBound) })
    }

    @Test("fan-out: a message is slow at each of its receivers, and its answer is with all of them")
    func fanOut() throws {
        let run = try MQTTVirtualRun(.init(faults: "stall 2s@5s", subscribers: 3, topology: .fanOut))
        run.perform()
        let stall = try #require(run.network.stalls.first)
        let late = self.dues(run, in: stall, perSecond: 100).flatMap { due in
            (1...3).map { "\(run.seconds(due)) \(run.workload.clientID($0))" }
        }
        // Of the last message not all receivers have room.
        #expect(run.slowest.prefix(99).map { "\($0.due) \($0.receiver ?? "")" } == Array(late.prefix(99)))
        #expect(run.slowest.allSatisfy { $0.metric == "delivery_duration" && $0.acknowledged == $0.received })
    }

    @Test("a share group: the receiver is not known, the rest is")
    func shared() throws {
        let run = try MQTTVirtualRun(.init(faults: "stall 2s@5s", subscribers: 3, topology: .shared, window: 65_535))
        run.perform()
        let stall = try #require(run.network.stalls.first)
        let late = self.dues(run, in: stall, perSecond: 100).prefix(RunRecord.slowestLimit)
        #expect(run.slowest.map(\.due) == late.map(run.seconds))
        #expect(run.slowest.allSatisfy { $0.receiver == nil && $0.received == run.seconds(stall.upperBound) })
        #expect(run.slowest.allSatisfy { $0.client == run.workload.clientID(0) && $0.written == $0.due })
    }

    @Test("a request is slow to its answer, and the server acknowledged it")
    func request() throws {
        let run = try MQTTVirtualRun(.init(faults: "stall 2s@5s", topology: .request, window: 65_535))
        run.perform()
        let stall = try #require(run.network.stalls.first)
        let late = self.dues(run, in: stall, perSecond: 100).prefix(RunRecord.slowestLimit)
        #expect(run.slowest.map(\.due) == late.map(run.seconds))
        for message in run.slowest {
            #expect(message.metric == "request_duration" && message.client == run.workload.clientID(0))
            #expect(message.receiver == message.client)
            #expect(message.acknowledged == run.seconds(stall.upperBound) && message.received == message.acknowledged)
        }
    }

    @Test("what was due in the warm-up is left out, however slow", arguments: [false, true])
    func warmup(asStage: Bool) throws {
        var setup = MQTTVirtualRun.Setup(faults: "stall 1s@500ms")
        (setup.warmup, setup.duration) = (.seconds(3), .seconds(2))
        if asStage { setup.stages = [("warm", .seconds(3), false), ("load", .seconds(2), true)] }
        let run = try MQTTVirtualRun(setup)
        run.perform()
        let stall = try #require(run.network.stalls.first)
        #expect(stall.contains(run.origin + .seconds(1)))
        #expect(run.slowest.count == RunRecord.slowestLimit)
        #expect(run.slowest.allSatisfy { $0.seconds == 0 && $0.due >= run.seconds(run.origin + .seconds(3)) })
    }

    // MARK: - XMPP

    @Test(
        "XMPP: messages, presences, room messages and pings",
        arguments: [XMPPLoad.Work.message, .presence, .muc, .ping]
    )
    func stanzas(_ work: XMPPLoad.Work) throws {
        let run = XMPPVirtualRun(.init(work: work, clients: 4))
        run.perform()
        let numbers = Dictionary(uniqueKeysWithValues: (0..<4).map { (run.workload.clientID($0), $0) })
        let slowest = run.slowest
        // 10/s for 2 s; a room sends each to its sender too.
        #expect(slowest.count == (work == .muc ? 40 : 20))
        for message in slowest {
            let sender = try #require(message.client.flatMap { numbers[$0] })
            #expect(message.seconds == 0.002 && message.written == message.due && message.qos == nil)
            if work == .ping {
                #expect(message.metric == "iq_duration" && message.receiver == nil && message.received == nil)
                #expect(abs((message.acknowledged ?? 0) - message.due - 0.002) < 1e-9)
                continue
            }
            #expect(message.metric == "delivery_duration" && message.acknowledged == nil)
            #expect(abs((message.received ?? 0) - message.due - 0.002) < 1e-9)
            let receiver = try #require(message.receiver.flatMap { numbers[$0] })
            // Client k is in group k mod 2; neighbours write to each other.
            if run.load.hasGroups { #expect(sender % 2 == receiver % 2) } else { #expect(sender != receiver) }
        }
    }

    // MARK: - Answers and arrivals

    /// One list from what two loops recorded of publisher 0.
    private func list(_ entries: (_ ack: DurationID, _ delivery: DurationID) -> [[SlowEntry]]) throws -> [SlowMessage] {
        let run = try MQTTVirtualRun(.init(subscribers: 2, topology: .fanOut))
        var catalog = run.workload.catalog
        let ack = catalog.duration("publish_ack_duration", ["qos": "1", "leg": "puback"])
        let delivery = catalog.duration("delivery_duration", ["qos": "1"])
        var accumulator = RunAccumulator(catalog: run.workload.catalog)
        let samples = entries(ack, delivery).enumerated().map { loop, entries in
            let meter = LoopMeter(catalog: run.workload.catalog, loop: loop)
            for entry in entries { meter.keepSlow(entry, lane: MetricLane.measured) }
            return meter.swap()
        }
        _ = accumulator.add(second: 0, phase: "measure", samples: samples)
        let groups = [SlowMessage.Group("fleet", run.workload)]
        return SlowMessage.slowest(accumulator.slowest(), of: groups, since: .uptimeNanoseconds(1_000)) ?? []
    }

    private func entry(
        _ kind: SlowKind,
        _ metric: DurationID,
        _ duration: Int64,
        sequence: UInt64 = 5,
        sender: UInt32 = 0,
        to receiver: UInt32? = nil
    ) -> SlowEntry {
        var entry = SlowEntry(kind, metric, duration: duration, due: 3_000, sender: sender, sequence: sequence)
        entry.receiver = receiver
        entry.loopLag = duration / 10
        if kind == .answer { entry.written = 4_000 }
        return entry
    }

    @Test(
        "an answer that is slower than the arrivals of its message gives the slowest of them its name",
        arguments: [1, 2]
    )
    func answerIsSlower(loops: Int) throws {
        let list = try self.list { ack, delivery in
            let answer = [self.entry(.answer, ack, 9_000)]
            let arrivals = [
                self.entry(.arrival, delivery, 7_000, to: 1), self.entry(.arrival, delivery, 8_000, to: 2),
                self.entry(.arrival, delivery, 2_000, sequence: 6, to: 1),
            ]
            return loops == 1 ? [answer + arrivals] : [answer, arrivals]
        }
        #expect(list.map(\.metric) == ["publish_ack_duration", "delivery_duration", "delivery_duration"])
        #expect(list.map(\.seconds) == [9e-6, 7e-6, 2e-6])
        #expect(list.map(\.acknowledged) == [11e-6, 11e-6, nil])
        #expect(list.map(\.received) == [10e-6, 9e-6, 4e-6])
        #expect(list.map(\.written) == [3e-6, 3e-6, nil])
        #expect(list.map(\.loopLag) == [9e-7, 7e-7, 2e-7])
        #expect(list.allSatisfy { $0.due == 2e-6 && $0.group == "fleet" && $0.qos == 1 })
    }

    @Test("a sender of another run has no name here, and its message no answer")
    func stranger() throws {
        let list = try self.list { _, delivery in [[self.entry(.arrival, delivery, 7_000, sender: 1, to: 1)]] }
        #expect(list.map(\.client) == [nil])
        #expect(list[0].received != nil && list[0].acknowledged == nil && list[0].group == "fleet")
    }

    @Test("requests that a client wrote at one time are entries of their own")
    func equals() throws {
        let list = try self.list { ack, _ in [Array(repeating: self.entry(.answer, ack, 5_000), count: 3)] }
        #expect(list.count == 3)
    }
}
