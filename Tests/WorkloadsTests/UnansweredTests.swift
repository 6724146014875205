import Ledger
import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import RunResult
import Testing
import VirtualServers
import Workloads

/// Servers that lie by silence: whatever was due is answered, failed or outstanding, and every figure says so.
@Suite("Publishes without an answer")
struct UnansweredTests {
    private func run(_ qos: QoS, ackTimeout: TimeAmount = .seconds(30)) throws -> MQTTVirtualRun {
        try MQTTVirtualRun(
            .init(
                qualities: [qos],
                rate: 100,
                duration: .seconds(4),
                latency: .milliseconds(1),
                ackTimeout: ackTimeout
            )
        )
    }

    /// The last leg of a publish.
    private static func leg(_ qos: QoS) -> Labels {
        ["qos": "\(qos.rawValue)", "leg": qos == .atLeastOnce ? "puback" : "pubcomp"]
    }

    /// Each such run has ends that add up, and as many samples as operations.
    private func checkEnds(_ run: MQTTVirtualRun, _ qos: QoS, isHung: Bool = false) throws -> Books {
        // A server that hangs does not answer DISCONNECT with its FIN.
        #expect(run.wasAborted == isHung)
        #expect(run.reconciliation.problems.isEmpty)
        let books = try #require(run.record.books.first)
        #expect(books.imbalances == [])
        let acked = try #require(books.acked)
        let failed = try #require(books.failed) + (try #require(books.timedOut))
        let outstanding = try #require(books.outstanding)
        #expect(books.offered == acked + failed + outstanding)
        #expect(outstanding == (books.notSent ?? 0) + (books.inFlight ?? 0))
        let counter = run.record.metrics.first { $0.name == "publish_outstanding" }?.counter
        #expect(counter?.value == Double(outstanding))

        let response = run.values("publish_ack_duration", Self.leg(qos))
        #expect(response.answered.count == acked)
        #expect(response.unanswered.failed == failed)
        #expect(response.unanswered.outstanding == outstanding)
        #expect(response.unanswered.ages.count == failed + outstanding)
        // A message that was never written has no service time.
        let service = run.values("publish_service_duration", Self.leg(qos))
        #expect(service.count == response.count - (books.notSent ?? 0))
        if qos == .exactlyOnce {
            #expect(run.values("publish_ack_duration", ["qos": "2", "leg": "pubrec"]).count == response.count)
        }
        let errors = failed + outstanding
        let operations = try #require(books.offered) + 3
        let rate = try #require(try run.judge("error_rate < 0.1%").value)
        #expect(abs(rate - Double(errors) / Double(operations)) < 1e-9)
        return books
    }

    @Test(
        "a server that falls silent: all that was due is outstanding, sent or not",
        arguments: [QoS.atLeastOnce, .exactlyOnce]
    )
    func silent(_ qos: QoS) throws {
        let run = try self.run(qos)
        run.at(.milliseconds(2_005)) { [unowned run] in run.network.rewrite = { _ in [] } }
        run.perform()
        let books = try self.checkEnds(run, qos, isHung: true)
        #expect(books.offered == 400 && books.failed == 0 && books.timedOut == 0)
        // The window is full, and no other message could be sent.
        #expect(books.inFlight == 16)
        #expect((190...205).contains(books.acked ?? 0))

        let row = run.row(qos)
        #expect(row.lost == 0)
        // One delivery was due for each publish, sent or not.
        #expect(UInt64(row.received) + run.outstanding(qos) == 400)
        #expect(books.deliveryOutstanding == run.outstanding(qos))

        let p99 = try #require(run.values("publish_ack_duration", Self.leg(qos)).percentile(99))
        #expect(p99.high == nil && p99.low > 3_000_000_000)
        let metric = run.record.metrics.first { $0.name == "publish_ack_duration" && $0.labels == Self.leg(qos) }
        let reading = try #require(metric?.duration)
        #expect(Set(["mean", "p90", "p95", "p99", "p999", "p9999", "max"]).isSubset(of: reading.bounds))
        #expect(reading.isBound(\.p99) && reading.isBound(\.max) && !reading.isBound(\.min))

        #expect(try run.judge("publish_ack_duration p99 < 250ms").state == .broken)
        #expect(try run.judge("publish_ack_duration p99 < 10s").state == .undecided)
        #expect(try run.judge("publish_ack_duration p10 < 250ms").state == .met)
        #expect(try run.judge("error_rate < 0.1%").state == .broken)
        let lost = try run.judge("delivery_lost == 0")
        #expect(lost.state == .undecided && lost.value == 0 && lost.high == Double(run.outstanding(qos)))
        #expect(try run.judge("publish_outstanding == 0").state == .broken)

        // The first message without an answer was due at 2 s; the last sample is at the end of the drain, at 6 s.
        let oldest = try #require(run.record.metrics.first { $0.name == "oldest_outstanding" }?.gauge?.max)
        #expect((2.9...4.1).contains(oldest))
        #expect(try run.judge("oldest_outstanding max < 1s").state == .broken)
    }

    @Test("where all is answered, nothing gets old", arguments: [QoS.atLeastOnce, .exactlyOnce])
    func answered(_ qos: QoS) throws {
        let run = try self.run(qos)
        run.perform()
        let oldest = try #require(run.record.metrics.first { $0.name == "oldest_outstanding" }?.gauge)
        #expect(oldest.max ?? 1 < 0.1 && oldest.value == 0)
    }

    @Test(
        "a server that refuses some: they failed, and their deliveries may come",
        arguments: [QoS.atLeastOnce, .exactlyOnce]
    )
    func refuses(_ qos: QoS) throws {
        let run = try self.run(qos)
        // PUBACK with 0x97, Quota exceeded; PUBCOMP knows only 0x92, Packet Identifier not found.
        let (head, reason): (UInt8, UInt8) = qos == .atLeastOnce ? (0x40, 0x97) : (0x70, 0x92)
        var count = 0
        run.network.rewrite = { bytes in
            Self.replacing(bytes) { packet in
                guard packet[0] == head, packet[1] == 2 else { return packet }
                count += 1
                return count.isMultiple(of: 10) ? [head, 3] + packet[2...] + [reason] : packet
            }
        }
        run.perform()
        let books = try self.checkEnds(run, qos)
        #expect(books.offered == 400 && books.failed == 40 && books.outstanding == 0)
        #expect(run.row(qos).lost == 0 && run.row(qos).received == 400)
        let p99 = try #require(run.values("publish_ack_duration", Self.leg(qos)).percentile(99))
        #expect(!p99.isExact && p99.high == nil)
        #expect(try run.judge("delivery_lost == 0").state == .met)
        #expect(try run.judge("error_rate < 20%").state == .met)
    }

    @Test("answers that never come time out: they failed at that age", arguments: [QoS.atLeastOnce, .exactlyOnce])
    func timesOut(_ qos: QoS) throws {
        let run = try self.run(qos, ackTimeout: .milliseconds(500))
        let head: UInt8 = qos == .atLeastOnce ? 0x40 : 0x70
        var count = 0
        run.network.rewrite = { bytes in
            Self.replacing(bytes) { packet in
                guard packet[0] == head else { return packet }
                count += 1
                // A window of 16 does not bear 20 of them unless each gives its place back.
                return count.isMultiple(of: 20) ? [] : packet
            }
        }
        run.perform()
        let books = try self.checkEnds(run, qos)
        #expect(books.offered == 400 && books.timedOut == 20 && books.outstanding == 0)
        let values = run.values("publish_ack_duration", Self.leg(qos))
        #expect(values.unanswered.ages.min ?? 0 >= 500_000_000)
        let p99 = try #require(values.percentile(99))
        #expect(p99.high == nil && p99.low >= 499_000_000)
        let p50 = try #require(values.percentile(50))
        #expect(p50.isExact)
        #expect(try run.judge("delivery_lost == 0").state == .met)
        #expect(try run.judge("publish_ack_duration p99 < 250ms").state == .broken)
    }

    @Test("what was due at QoS 0 when the connection was gone is outstanding")
    func unsent() throws {
        let run = try MQTTVirtualRun(
            .init(
                faults: "disconnect-every 500ms",
                qualities: [.atMostOnce],
                rate: 100,
                duration: .seconds(2),
                latency: .milliseconds(1)
            )
        )
        run.perform()
        let books = try #require(run.record.books.first)
        #expect(books.imbalances == [] && books.offered == 200)
        let unsent = try #require(books.notSent)
        #expect(unsent > 50 && books.outstanding ?? 0 >= unsent)
        #expect(try run.judge("error_rate == 0").state == .broken)
    }

    @Test("what the plan cuts off without an answer is excused", arguments: QoS.allCases)
    func excused(_ qos: QoS) throws {
        let run = try MQTTVirtualRun(
            .init(
                publishers: 4,
                subscribers: 4,
                qualities: [qos],
                rate: 100,
                duration: .seconds(2),
                latency: .milliseconds(60),
                departures: DeparturePlan(storms: [.init(share: 0.5, at: .seconds(1))])
            )
        )
        run.perform()
        let books = try #require(run.record.books.first)
        #expect(books.imbalances == [] && run.reconciliation.problems.isEmpty)
        let excused = try #require(books.excused)
        #expect(books.offered == 200 && books.failed == 0 && excused > 0 && excused < 100)
        #expect(try run.judge("error_rate == 0").state == .met)
        let counter = run.record.metrics.first { $0.name == "publish_excused" }?.counter
        #expect(counter?.value == Double(excused))
        guard qos != .atMostOnce else { return }
        let unsent = books.notSent ?? 0
        #expect(books.acked == 200 - excused - unsent)
        // There is no answer, and none is owed: it has no sample.
        #expect(run.values("publish_ack_duration", Self.leg(qos)).count == 200 - excused)
    }

    @Test("a client whose CONNACK forbids its work has a connect that failed")
    func forbidden() throws {
        let run = try MQTTVirtualRun(.init(publishers: 2, subscribers: 2, duration: .seconds(1), pace: .closed))
        run.network.rewrite = { bytes in
            Self.replacing(bytes) { packet in
                guard packet[0] == 0x20 else { return packet }
                // Maximum QoS 0 (§3.2.2.3.4), behind flags, code and the length of the properties.
                return [0x20, packet[1] + 2] + packet[2...3] + [packet[4] + 2, 0x24, 0] + packet[5...]
            }
        }
        run.perform()
        let connects = run.values("connect_duration", ["phase": "total"])
        #expect(connects.unanswered.failed == 2 && connects.answered.count == 2)
        // Four connects and two subscriptions.
        #expect(try run.judge("error_rate == 0").value == 2.0 / 6)
    }

    enum TurnFault: CaseIterable { case none, slow, silent, refuses, cuts }

    @Test("each change of a subscription is answered, failed or outstanding", arguments: TurnFault.allCases)
    func turns(_ fault: TurnFault) throws {
        let run = try MQTTVirtualRun(
            .init(
                faults: fault == .cuts ? "disconnect-every 500ms" : "",
                rate: 10,
                duration: .seconds(2),
                latency: .milliseconds(fault == .slow ? 60 : 1),
                turns: 40
            )
        )
        var answers = 0
        run.network.rewrite = { bytes in
            Self.replacing(bytes) { packet in
                guard packet[0] == 0x90 else { return packet }
                answers += 1
                // The first is that of the subscription of the load.
                if fault == .silent { return answers > 40 ? [] : packet }
                guard fault == .refuses, answers > 1, answers.isMultiple(of: 4) else { return packet }
                return packet.dropLast() + [0x97]
            }
        }
        run.perform()
        func count(_ end: String) -> UInt64 { UInt64(run.count("subscription_churn_\(end)")) }
        #expect(count("done") + count("missed") + count("failed") + count("unfinished") == 80)
        let subscribed = run.values("subscription_churn_duration", ["leg": "suback"])
        let unsubscribed = run.values("subscription_churn_duration", ["leg": "unsuback"])
        #expect(subscribed.count == 80)
        #expect(unsubscribed.answered.count == count("done"))
        let (failed, open) = (subscribed.unanswered.failed, subscribed.unanswered.outstanding)
        let rate = try run.judge("error_rate == 0")
        let isMet = rate.state == .met
        if fault != .cuts {
            // 20 publishes, two connects, one SUBSCRIBE; and SUBSCRIBE and UNSUBSCRIBE of the turns.
            let operations = 23 + subscribed.count + unsubscribed.count
            let errors = failed + open + unsubscribed.unanswered.ages.count
            #expect(rate.value == Double(errors) / Double(operations))
        }
        switch fault {
        case .none:
            #expect(failed + open == 0 && isMet)
        case .slow:
            // A turn takes 240 ms, and one is due every 25 ms.
            #expect(failed == 0 && open == count("missed") && open > 40 && !isMet)
            #expect(subscribed.unanswered.ages.min ?? 0 < 500_000_000)
        case .silent:
            #expect(failed == 0 && open == 41 && count("missed") == 39 && !isMet)
            // The age of the first one that was not begun.
            #expect(subscribed.unanswered.ages.max ?? 0 > 900_000_000)
        case .refuses:
            #expect(failed == 20 && open == 0 && !isMet)
        case .cuts:
            #expect(open > 0 && !isMet)
        }
    }

    @Test("answers that come after the time for them change no end")
    func late() throws {
        let run = try MQTTVirtualRun(
            .init(rate: 20, duration: .seconds(2), latency: .milliseconds(1), ackTimeout: .milliseconds(500))
        )
        // The subscription is in time, and no answer to a message is.
        run.network.rewrite = { [unowned run] bytes in
            if bytes[0] == 0x90 { run.network.latency = .milliseconds(300) }
            return bytes
        }
        run.perform()
        let books = try #require(run.record.books.first)
        #expect(books.imbalances == [] && run.reconciliation.problems.isEmpty)
        #expect(books.offered == 40 && books.timedOut == 40 && books.acked == 0)
        // Their deliveries came, whatever became of the answers.
        let row = run.row(.atLeastOnce)
        #expect(row.lost == 0)
        #expect(row.expected == 40)
        #expect(row.received == 40)
    }

    @Test("answers behind the end of the drain change no end", arguments: [QoS.atLeastOnce, .exactlyOnce])
    func behindTheDrain(_ qos: QoS) throws {
        let run = try MQTTVirtualRun(
            .init(
                qualities: [qos],
                rate: 10,
                duration: .seconds(2),
                drain: .seconds(1),
                latency: .milliseconds(qos == .atLeastOnce ? 1_600 : 800)
            )
        )
        run.perform()
        let books = try self.checkEnds(run, qos, isHung: run.wasAborted)
        // Answers take 3.2 s: the first of 20 comes after the drain.
        #expect(books.offered == 20 && books.acked == 0 && books.outstanding == 20)
        #expect(run.values("publish_ack_duration", Self.leg(qos)).unanswered.ages.max ?? 0 <= 3_110_000_000)
        #expect(try run.judge("error_rate == 0").state == .broken)
    }

    /// PUBACK 0x10, No matching subscribers (MQTT 5.0 §3.4.2.1), where one matches.
    @Test("what a server admits is lost, and not once the subscriber has left", arguments: [false, true])
    func admits(isLate: Bool) throws {
        let run = try MQTTVirtualRun(
            .init(
                rate: 40,
                duration: .seconds(1),
                // Both ways take longer than the drain.
                latency: .milliseconds(isLate ? 1_600 : 1)
            )
        )
        run.network.rewrite = { bytes in
            Self.replacing(bytes) { packet in
                if packet[0] == 0x40 { return [0x40, 3] + packet[2...] + [0x10] }
                return packet[0] >> 4 == 3 ? [] : packet
            }
        }
        run.perform()
        let row = try #require(run.reconciliation.rows.first)
        #expect(row.lostBy[.serverAdmitted] ?? 0 == (isLate ? 0 : 40))
        #expect(row.received == 0 && (row.lost ?? 0) + (row.outstanding ?? 0) == (isLate ? row.expected : 40))
    }

    @Test("later messages prove the loss of one that was sent once, and not of one that was sent again")
    func sentAgain() throws {
        let run = try MQTTVirtualRun(
            .init(
                duration: .seconds(1),
                drain: .seconds(5),
                reconnects: 3,
                latency: .milliseconds(10),
                isPersistent: true
            )
        )
        // Five messages never reach the subscriber. Answers take 20 ms, so the last of the five are sent again.
        run.at(.milliseconds(500)) { [unowned run] in run.network.cut(0) }
        run.network.rewrite = { bytes in
            Self.replacing(bytes) { packet in
                let header = packet.suffix(48).withUnsafeBytes { PayloadHeader.read($0) }
                return header.map { (45..<50).contains($0.sequence) } ?? false ? [] : packet
            }
        }
        run.perform()
        let row = try #require(run.reconciliation.rows.first)
        let again = run.counter("publish_resent", .atLeastOnce)
        #expect((1...4).contains(again))
        #expect(row.lostBy == [.violated: 5 - again, .withheld: again])
        #expect(row.lost == 5 && row.outstanding == 0 && row.received == 95)
    }

    @Test("a subscriber whose server no longer answers its pings is owed what was due")
    func silentSubscriber() throws {
        let run = try MQTTVirtualRun(
            .init(rate: 20, duration: .seconds(8), keepAlive: 1, latency: .milliseconds(1))
        )
        // The publisher is client 0; the subscriber has heard a second of the load.
        run.network.hangs = { [unowned run] client in
            client == 1 && run.origin != .distantPast && run.now >= run.origin + .seconds(1)
        }
        run.perform()
        let books = try #require(run.record.books.first)
        #expect(books.imbalances == [] && books.acked == 160)
        #expect(books.expected == 160 && books.lost == 0)
        #expect((15...25).contains(books.received ?? 0))
        #expect(books.deliveryOutstanding == 160 - (books.received ?? 0))
        #expect(try run.judge("delivery_lost == 0").state == .undecided)
    }

    /// A client is one connect, and a subscriber one SUBSCRIBE, however they end.
    @Test("connects and subscriptions that are refused, or not answered, are samples with their age", arguments: 0..<4)
    func notUp(_ row: Int) throws {
        let (head, isRefused): (UInt8, Bool) = (row < 2 ? 0x20 : 0x90, row.isMultiple(of: 2))
        let run = try MQTTVirtualRun(
            .init(
                publishers: 4,
                subscribers: 4,
                duration: .seconds(1),
                latency: .milliseconds(1),
                ackTimeout: .seconds(2)
            )
        )
        var count = 0
        run.network.rewrite = { bytes in
            Self.replacing(bytes) { packet in
                guard packet[0] == head else { return packet }
                count += 1
                guard count.isMultiple(of: 2) else { return packet }
                if !isRefused { return [] }
                // Not authorized: the second byte of CONNACK, the last one of SUBACK.
                if head == 0x20 { return [0x20, 3, 0, 0x87, 0] }
                return packet.dropLast() + [0x87]
            }
        }
        run.perform()
        let name = head == 0x20 ? "connect_duration" : "subscribe_duration"
        let values = run.values(name, head == 0x20 ? ["phase": "total"] : [:])
        #expect(values.answered.count == (head == 0x20 ? 4 : 2))
        #expect(values.unanswered.failed == values.answered.count && values.unanswered.outstanding == 0)
        let age = try #require(values.unanswered.ages.max)
        #expect(isRefused ? age < 10_000_000 : age > 1_900_000_000)
        #expect(run.values("connect_duration", ["phase": "total"]).count == 8)
        #expect(try run.judge("\(name) p90 < 10s").state != .met)
        #expect(try run.judge("\(name) count == \(values.answered.count)").state == .met)
        #expect(try run.judge("error_rate == 0").state == .broken)
    }

    @Test("a client that is on its way back when the run ends has a connect that is outstanding")
    func notBack() throws {
        let run = try MQTTVirtualRun(
            .init(subscribers: 0, duration: .seconds(2), reconnects: 10, latency: .milliseconds(1))
        )
        run.at(.milliseconds(500)) { [unowned run] in
            run.network.hangs = { _ in true }
            run.network.cut(0)
        }
        run.perform()
        let back = run.values("reconnect_duration", ["phase": "total"]).unanswered
        #expect(back.outstanding == 1 && back.failed == 0)
        #expect(back.ages.max ?? 0 > 3_000_000_000)
        let downtime = run.values("downtime_duration").unanswered
        #expect(downtime.outstanding == 1 && downtime.ages.max ?? 0 > back.ages.max ?? 0)
        #expect(run.values("connect_duration", ["phase": "total"]).count == 1)
    }

    /// Replaces packets in bytes of whole packets.
    static func replacing(_ bytes: [UInt8], _ replace: ([UInt8]) -> [UInt8]) -> [UInt8] {
        var (all, rest) = ([UInt8](), bytes[...])
        while rest.count > 1 {
            var (length, shift, end) = (0, 0, rest.startIndex + 1)
            while end < rest.endIndex {
                let byte = rest[end]
                length |= Int(byte & 0x7F) << shift
                (shift, end) = (shift + 7, end + 1)
                if byte < 0x80 { break }
            }
            all += replace(Array(rest[..<(end + length)]))
            rest = rest[(end + length)...]
        }
        return all + rest
    }
}

extension MQTTVirtualRun {
    /// The record that the run has in the end, as far as objectives need it.
    var record: RunRecord {
        var record = RunRecord(
            command: ["clamor", "pubsub"],
            tool: ToolRecord(name: "clamor", version: "0"),
            host: HostFacts(),
            plan: [:],
            startedAt: "2026-11-21T01:37:09Z"
        )
        record.metrics = self.all
        let delivery = self.delivery
        let account = self.workload.account([self.result], delivery: delivery, record: record)
        record.books = account.books
        record.ledger = account.ledger
        record.metrics += account.metrics
        record.metrics.add(delivery.account.absent)
        if let reconciliation = delivery.reconciliation {
            record.metrics += reconciliation.metrics(self.workload.plan.places, hasGroups: false, hasGaps: false)
        }
        return record
    }

    func judge(_ expression: String) throws -> ThresholdResult {
        try Threshold.parse(expression).evaluate(in: self.record)
    }
}
