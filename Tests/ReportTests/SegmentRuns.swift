import Foundation
import Ledger
import Measurement
import Report

/// A run of some seconds over several segments, as each of them writes it, and as one process would have measured it all.
struct SegmentRuns {
    static let phases = ["connect", "warmup", "measure", "measure", "measure", "drain"]
    static let rest = "publish_acked"

    struct Segment {
        var record: RunRecord
        var intervals: [TimelineInterval]
        var clients: [ClientRow]
        var startedAt: Int64
        var ledger: SegmentLedger?
    }

    var segments: [Segment] = []
    /// One process with the event loops, and the clients, of all.
    private(set) var whole: RunRecord

    /// `count` segments of which number i has 3 clients and, for each message of the first, i messages.
    ///
    /// `isAnswered`: every message, or else some fail or are outstanding in the end.
    init(_ count: Int = 3, isAnswered: Bool = true) {
        var catalog = MetricCatalog()
        let connect = catalog.duration("connect_duration", ["phase": "total"], wholeRun: true)
        let ack = catalog.duration("publish_ack_duration", ["qos": "1", "leg": "puback"])
        let sent = catalog.counter("publish_sent", ["qos": "1"])
        let acked = catalog.counter("publish_acked", ["qos": "1"])
        let clients = catalog.gauge("clients", ["state": "connected"])
        let busy = catalog.gauge("generator_cpu", ["loop": "0"], merge: .highest)
        let meters = (0..<count).map { LoopMeter(catalog: catalog, loop: $0) }
        // Loops of the joint run are distinguished by their number; its gauges are those of one process.
        let joint = (0..<count).map { LoopMeter(catalog: catalog, loop: $0) }
        var accumulators = meters.map { _ in RunAccumulator(catalog: catalog, realtimeOffset: Samples.startedAt) }
        var all = RunAccumulator(catalog: catalog, realtimeOffset: Samples.startedAt)
        var random = SplitMix64(seed: 9)
        var intervals: [[TimelineInterval]] = meters.map { _ in [] }

        for (second, phase) in Self.phases.enumerated() {
            for index in meters.indices {
                for meter in [meters[index], joint[index]] {
                    if second == 2 { meter.beginMeasured() }
                    if second == 5 { meter.endMeasured() }
                }
                let messages = phase == "connect" ? 0 : 200 * (index + 1)
                for meter in [meters[index], joint[index]] {
                    if phase != "drain" { meter.add(sent, UInt64(messages)) }
                    meter.add(acked, UInt64(messages / 2))
                    meter.set(clients, Double(second < 4 ? 3 : 2 + index))
                    meter.set(busy, 0.25 * Double(index + 1))
                }
                for _ in 0..<(phase == "connect" ? 3 : 0) {
                    let value = Int64.random(in: 1_000_000...40_000_000, using: &random)
                    for meter in [meters[index], joint[index]] { meter.record(connect, value) }
                }
                for number in 0..<messages / 2 {
                    // Each segment has a median of its own.
                    let value = Int64.random(in: 1_000...9_000_000, using: &random) * Int64(index + 1)
                    let isMeasured = second > 2 || second == 2 && number > 50
                    for meter in [meters[index], joint[index]] { meter.record(ack, value, measured: isMeasured) }
                }
                for meter in isAnswered ? [] : [meters[index], joint[index]] {
                    let (age, count) = (Int64(index + 1) * 1_000_000_000, UInt64(index + 1))
                    let (lane, end) = (MetricLane.measured, second == 5 ? UnansweredEnd.outstanding : .failed)
                    if second >= 4 { meter.recordUnanswered(ack, age * 2, count: 5 * count, lane: lane, as: end) }
                }
                if second == 3, index > 0 {
                    let at = 3_900_000_000 - Int64(index) * 100_000_000
                    for meter in [meters[index], joint[index]] {
                        meter.error("reset", at: at, count: UInt64(index)) { "of loop \(index)" }
                    }
                }
                intervals[index].append(
                    accumulators[index].add(second: second, phase: phase, samples: [meters[index].swap()])
                )
            }
            _ = all.add(second: second, phase: phase, samples: joint.map { $0.swap() })
        }
        self.whole = Samples.begun(["clamor", "pub"])
        self.whole.metrics = all.metrics(measuredSeconds: 3)
        self.whole.errors = all.errors
        self.whole.clients = ["publishers": Self.group(Self.rows(0..<3 * count, of: 1))]
        for index in meters.indices {
            let rows = Self.rows(index..<3 * count, of: count)
            var record = Samples.begun(["clamor", "pub", "--segment", "\(index + 1)/\(count)"])
            record.segment = SegmentRecord(index: index + 1, count: count)
            record.segment.plan = SegmentIdentity.plan(record.plan, schedule: "")
            record.segment.run = SegmentIdentity.run(name: "test", seed: 5, startAt: nil)
            record.segment.thresholds = ["publish_ack_duration p50 < 9ms", "publish_sent count == 4800"]
            record.durationSeconds = 6
            record.verdict = .valid
            record.stages = Self.stages
            record.metrics = accumulators[index].metrics(measuredSeconds: 3)
            record.errors = accumulators[index].errors
            record.clients = ["publishers": Self.group(rows)]
            var books = Books(qos: 1)
            (books.offered, books.sent, books.notSent) = (
                UInt64(810 * (index + 1)), UInt64(800 * (index + 1)), UInt64(10 * (index + 1))
            )
            (books.acked, books.inFlight, books.timedOut, books.failed) = (
                UInt64(500 * (index + 1)), UInt64(300 * (index + 1)), 0, 0
            )
            record.books = [books]
            record.generator.eventLoops = 1
            record.generator.cpuSeconds = Double(index + 1)
            record.ledger = LedgerRecord(on: true)
            record.ledger.publishers = 3
            self.segments.append(
                Segment(record: record, intervals: intervals[index], clients: rows, startedAt: Samples.startedAt)
            )
        }
    }

    static var stages: [StageRecord] {
        [
            StageRecord(name: "connect", start: 0, durationSeconds: 1, measured: false),
            StageRecord(name: "warmup", start: 1, durationSeconds: 1, measured: false),
            StageRecord(name: "measure", start: 2, durationSeconds: 3, measured: true),
            StageRecord(name: "drain", start: 5, durationSeconds: 1, measured: false),
        ]
    }

    /// Every so many-th client.
    private static func rows(_ numbers: Range<Int>, of count: Int) -> [ClientRow] {
        stride(from: numbers.lowerBound, to: numbers.upperBound, by: count).map { number in
            var tally = ClientTally()
            tally.connectNanoseconds = Int64(1_000_000 * (number * 7 % 11 + 1))
            tally.sent = UInt64(100 + number * 5 % 9)
            tally.acked = UInt64(90 + number * 5 % 7)
            (tally.bytes, tally.packets, tally.reads) = (
                UInt64(1_000 + number), UInt64(90 + number), UInt64(80 + number)
            )
            tally.longestAckNanoseconds = Int64(5_000_000 + number)
            return ClientRow(
                id: "c-\(number + 1)",
                qos: 1,
                tally: tally,
                publishes: true,
                acknowledged: true,
                subscribes: false,
                seconds: 4
            )
        }
    }

    private static func group(_ rows: [ClientRow]) -> ClientGroup {
        ClientGroup(rows.map(\.tally), publishes: true, acknowledged: true, subscribes: false, id: { rows[$0].id })
    }

    /// Writes each to a directory of its own, by the writer that runs have.
    func write(in folder: TemporaryFolder) throws -> [String] {
        try self.segments.enumerated().map { index, segment in
            var record = segment.record
            record.startedAt = WallClock.rfc3339(segment.startedAt)
            let path = "\(folder.path)/\(index + 1)"
            let writer = try RunWriter(ResultDirectory.create(path), record: record, startedAt: segment.startedAt)
            for interval in segment.intervals { try writer.append(interval) { record } }
            return try writer.finish(record, clients: segment.clients, ledger: segment.ledger)
        }
    }

    /// Two segments, of which the first has a publisher of 10 messages at QoS 1, the second a subscriber of them that has
    /// received these.
    static func joint(received sequences: [UInt64]) -> SegmentRuns {
        var runs = SegmentRuns(2)
        var subscriptions = SubscriberLedger()
        let place = subscriptions.addSubscription(0)
        for sequence in sequences {
            _ = subscriptions.arrived(subscription: place, publisher: 0, audience: 1, qos: 1, sequence: sequence)
        }
        var ledgers = [SegmentLedger(received: LedgerExport()), SegmentLedger(received: subscriptions.export())]
        ledgers[0].published[0] = PublishedExport(
            audiences: [[], [AudienceMember(receiver: 0, qos: 1)]],
            fates: [PublisherFate(publisher: 0, audience: 1, qos: 1, assigned: 10)]
        )
        (ledgers[1].receivers, ledgers[1].began) = ([0], [0])
        runs.join(ledgers)
        for index in ledgers.indices {
            runs.segments[index].record.metrics.append(Samples.counter("delivery_duplicated", ["qos": "1"], 0))
            runs.segments[index].record.ledger.pending = true
        }
        return runs
    }

    /// Two segments of four groups: `ops` commands two `devices` and reports to a share group of `devices` and `audit`,
    /// across the segments; `chat` is on its own.
    ///
    /// Devices lost 2 of 15 commands and received one twice; the share group lost 1 of 4 reports at QoS 0.
    static var groups: SegmentRuns {
        var runs = SegmentRuns(2)
        var subscriptions = SubscriberLedger()
        let places = (0...2).map { subscriptions.addSubscription($0) }
        let arrivals: [(place: Int, publisher: UInt32, audience: UInt32, qos: UInt8, sequences: [UInt64])] = [
            (places[0], 0, 1, 1, [0, 1, 2, 5, 6, 7, 8, 9]), (places[1], 1, 2, 1, [0, 1, 1, 2, 3, 4]),
            (places[2], 2, 3, 0, [0, 1, 3]),
        ]
        for arrival in arrivals {
            for sequence in arrival.sequences {
                _ = subscriptions.arrived(
                    subscription: arrival.place,
                    publisher: arrival.publisher,
                    audience: arrival.audience,
                    qos: arrival.qos,
                    sequence: sequence
                )
            }
        }
        var ledgers = [SegmentLedger(received: LedgerExport()), SegmentLedger(received: subscriptions.export())]
        ledgers[0].published[0] = PublishedExport(
            audiences: [[]] + (0...2).map { [AudienceMember(receiver: $0, qos: 1)] },
            fates: [
                PublisherFate(publisher: 0, audience: 1, qos: 1, assigned: 10),
                PublisherFate(publisher: 1, audience: 2, qos: 1, assigned: 5),
                PublisherFate(publisher: 2, audience: 3, qos: 0, assigned: 4),
            ]
        )
        (ledgers[1].receivers, ledgers[1].began) = ([0, 1, 2], [0, 1, 2])
        for index in ledgers.indices {
            ledgers[index].places = LedgerPlaces(
                streams: [
                    LedgerPlaces.Stream(publishers: 0..<2, own: nil, group: "ops", name: "command"),
                    LedgerPlaces.Stream(publishers: 2..<3, own: nil, group: "ops", name: "report"),
                ],
                receivers: [
                    LedgerPlaces.Receivers(numbers: 0..<2, group: "devices"),
                    LedgerPlaces.Receivers(numbers: 2..<3, group: "devices+audit"),
                ]
            )
        }
        runs.join(ledgers)
        for index in ledgers.indices {
            runs.segments[index].record.metrics += [
                Samples.counter("delivery_duplicated", ["group": "devices", "qos": "1"], 0),
                Samples.counter("delivery_reordered", ["group": "devices+audit", "qos": "0"], 0),
                Samples.counter("delivery_lost", ["group": "chat", "stanza": "message"], 1),
            ]
            runs.segments[index].record.books[0].group = "ops"
            runs.segments[index].record.groups = ["ops", "devices", "audit", "chat"].map { name in
                var ledger = LedgerRecord(on: true)
                if name == "chat" { ledger.lost = ["dropped": 1] } else { ledger.pending = true }
                return GroupRecord(
                    name: name,
                    protocolName: name == "chat" ? "xmpp" : "mqtt",
                    clients: 1,
                    ledger: ledger
                )
            }
            runs.segments[index].record.ledger = .joined(runs.segments[index].record.groups ?? [])
        }
        return runs
    }

    /// Segments that began and ended in time for these ledgers, on one host.
    private mutating func join(_ ledgers: [SegmentLedger]) {
        for index in ledgers.indices {
            var ledger = ledgers[index]
            if ledger.published[0].fates.isEmpty {
                ledger.subscribersLeft = 30
            } else {
                (ledger.loadBegan, ledger.publishersEnded) = (10, 20)
            }
            self.segments[index].ledger = ledger
            self.segments[index].record.segment.clock = ClockRecord(host: "0123456789abcdef", realtimeOffset: 0)
        }
    }
}
