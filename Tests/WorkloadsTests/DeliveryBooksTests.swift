import EmbeddedBroker
import Ledger
import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import Testing
import VirtualServers
import Workloads

/// Loss, duplicates and order against two second opinions: the broker's own counts, and sets made of the bytes on the
/// wire.
@Suite("Delivery books")
struct DeliveryBooksTests {
    private func run(
        _ shape: LoadShape,
        _ faults: String,
        rate: Double = 601,
        seed: UInt64 = 1,
        reconnects: Int = 0
    ) throws -> MQTTVirtualRun {
        let qualities: [QoS] = shape.publishers == 1 ? [.exactlyOnce] : [.atMostOnce, .atLeastOnce, .exactlyOnce]
        return try MQTTVirtualRun(
            .init(
                faults: faults,
                publishers: shape.publishers,
                subscribers: shape.subscribers,
                topology: shape.topology,
                qualities: qualities,
                rate: rate,
                duration: .seconds(2),
                reconnects: reconnects,
                latency: .microseconds(400),
                seed: seed
            )
        )
    }

    @Test("loss, duplicates and reordering are what the broker made", arguments: LoadShape.all)
    func faults(shape: LoadShape) throws {
        let run = try self.run(shape, "drop 1.5% duplicate 40 reorder 30")
        run.perform()
        let broker = run.network.server.broker.counters
        for qos in run.setup.qualities {
            let row = run.row(qos)
            #expect(row == run.oracleRow(qos))
            let level = qos.rawValue
            #expect(row.lost == Int(broker.dropped[level]))
            #expect(row.duplicated == Int(broker.duplicated[level]))
            let isOrdered = shape.topology != .shared
            #expect(row.reordered == (isOrdered ? Int(broker.reordered[level]) : 0))
            #expect(row.received == Int(broker.delivered[level] - broker.duplicated[level]))
            #expect(row.expected == Int(broker.expected[level]))
            #expect(row.lost > 0 && row.duplicated > 0 && (row.reordered > 0) == isOrdered)
        }
        #expect(run.reconciliation.problems.isEmpty)
        #expect(run.imbalances.isEmpty)
    }

    /// Messages lost in a reset are known individually to the oracle only.
    ///
    /// The sums that must still match the broker's are those of the bytes read from its sockets.
    @Test("the same across resets by the broker", arguments: LoadShape.all)
    func disconnects(shape: LoadShape) throws {
        let run = try self.run(
            shape,
            "drop 1.5% duplicate 40 reorder 30 disconnect-every 50ms",
            reconnects: 1_000
        )
        run.perform()
        let broker = run.network.server.broker.counters
        #expect(broker.disconnected > 30)
        for qos in run.setup.qualities {
            let row = run.row(qos)
            #expect(row.agrees(with: run.oracleSums(qos)), "\(row), \(run.oracleSums(qos))")
            let level = qos.rawValue
            #expect(row.received == Int(broker.delivered[level] - broker.duplicated[level]))
            #expect(row.duplicated == Int(broker.duplicated[level]))
            if shape.topology != .shared { #expect(row.reordered == Int(broker.reordered[level])) }
            // The broker's own equation: every PUBLISH taken, once per subscription (or share group).
            let copies = UInt64(run.copies)
            let taken = broker.received[level] - (level == 2 ? broker.receivedRepeated[level] : 0)
            #expect(broker.expected[level] == taken * copies)
            // It misses what we miss, and beyond that only messages whose fate no publisher learned.
            let missing = broker.dropped[level] + broker.notDeliveredOffline[level] + broker.undelivered[level]
            let unknown =
                run.result.published.fates.filter { $0.qos == level }.reduce(0) { $0 + $1.unknown.count } * copies
            #expect(row.lost <= Int(missing))
            #expect(missing <= UInt64(run.missing(qos)) + unknown)
        }
        #expect(run.reconciliation.problems.isEmpty)
        #expect(run.imbalances.isEmpty)
    }

    @Test("who never subscribed misses nothing", arguments: LoadShape.all)
    func neverSubscribed(shape: LoadShape) throws {
        let run = try self.run(shape, "")
        // The first subscriber; alone it takes the only subscription of the run with it.
        run.network.answers = { client, _ in client == shape.publishers ? .refuses : .opens(after: .zero) }
        run.perform()
        let others = shape.topology == .shared ? 1 : shape.subscribers - 1
        let published = run.setup.qualities.reduce(0) { $0 + Int(run.counter("publish_sent", $1)) }
        let expected = run.setup.qualities.reduce(0) { $0 + run.row($1).expected }
        #expect(published > 700)
        switch shape.topology {
        // Publisher 0 published a sixth without a subscriber.
        case .pair: #expect(expected < published && expected > published / 2)
        case .fanIn, .fanOut, .shared, .request: #expect(expected == published * others)
        }
        for qos in run.setup.qualities { #expect(run.row(qos).lost == 0) }
        #expect(run.reconciliation.problems.isEmpty)
        #expect(run.imbalances.isEmpty)
    }

    @Test("whatever happens, the books balance and the wire agrees", arguments: 1...24 as ClosedRange<UInt64>)
    func anything(seed: UInt64) throws {
        var dice = Dice(seed: seed)
        var faults = ""
        if Bool.random(using: &dice) { faults += " drop \(Int.random(in: 1...30, using: &dice))%" }
        if Bool.random(using: &dice) { faults += " duplicate \(Int.random(in: 1...20, using: &dice))" }
        if Bool.random(using: &dice) { faults += " reorder \(Int.random(in: 1...20, using: &dice))" }
        if Bool.random(using: &dice) {
            faults += " delay \(Int.random(in: 1...80, using: &dice))ms"
            faults += " delay-every \(Int.random(in: 1...7, using: &dice))"
        }
        if Bool.random(using: &dice) { faults += " disconnect-every \(Int.random(in: 7...200, using: &dice))ms" }
        if Bool.random(using: &dice) { faults += " stall 300ms@1s" }
        let shape = LoadShape.all[Int.random(in: 0..<LoadShape.all.count, using: &dice)]
        let reconnects = [0, 3, 1_000][Int.random(in: 0..<3, using: &dice)]
        let run = try self.run(shape, faults, rate: 397, seed: seed, reconnects: reconnects)
        let cutsAreLikely = Bool.random(using: &dice)
        run.perform(step: .milliseconds(7)) { run in
            guard cutsAreLikely, Int.random(in: 0..<20, using: &dice) == 0 else { return }
            run.network.links.filter(\.isOpen).randomElement(using: &dice)?.cut()
        }
        for qos in run.setup.qualities {
            let (row, seen) = (run.row(qos), run.oracleSums(qos))
            #expect(row.agrees(with: seen), "\(row), \(seen), \(faults), \(shape.testDescription)")
            #expect(run.counter("publish_sent", qos) == run.network.oracle.written.count { $0.qos == qos.rawValue })
            let known = run.network.oracle.known.count { $0.qos == qos.rawValue }
            let counter = qos == .atMostOnce ? "publish_confirmed" : "publish_acked"
            #expect(run.counter(counter, qos) == known)
        }
        #expect(run.reconciliation.problems.isEmpty)
        #expect(run.imbalances.isEmpty)
    }
}

/// Random numbers that a seed repeats (SplitMix64).
struct Dice: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { self.state = seed }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
