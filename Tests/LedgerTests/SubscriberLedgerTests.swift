import Ledger
import TestSupport
import Testing

@Suite("The ledgers of one event loop")
struct SubscriberLedgerTests {
    struct Topology: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var subscriptions: Int
        var publishers: UInt32
        /// Which of the publishers a subscription hears.
        var hears: @Sendable (_ subscription: Int, _ publisher: UInt32) -> Bool = { _, _ in true }
    }

    static let topologies = [
        Topology(testDescription: "pairs", subscriptions: 300, publishers: 300) { $0 == Int($1) },
        Topology(testDescription: "fan-in", subscriptions: 1, publishers: 500),
        Topology(testDescription: "fan-out", subscriptions: 500, publishers: 1),
        Topology(testDescription: "all to all", subscriptions: 20, publishers: 30),
        Topology(testDescription: "three each", subscriptions: 200, publishers: 100) { ($0 + Int($1)) % 33 == 0 },
        Topology(testDescription: "distant ids", subscriptions: 3, publishers: 4_000_000) { _, id in
            [0, 1, 70_000, 3_999_999].contains(id)
        },
    ]

    @Test("classifies each arrival as sets do, and counts it under its QoS", arguments: topologies, [false, true])
    func oracle(_ topology: Topology, _ reserves: Bool) {
        var dice = SeededDice(seed: 7)
        var ledger = SubscriberLedger(publishers: topology.publishers)
        let ids = topology.publishers > 1000 ? [0, 1, 70_000, 3_999_999] : Array(0..<topology.publishers)
        if reserves {
            ledger.reserve(subscriptions: topology.subscriptions, streams: topology.subscriptions * ids.count)
        }
        var heard: [(subscription: Int, publisher: UInt32)] = []
        for subscription in 0..<topology.subscriptions {
            // Numbers in the run differ from the indices on this loop.
            #expect(ledger.addSubscription(UInt32(1000 + subscription * 2)) == subscription)
            for id in ids where topology.hears(subscription, id) { heard.append((subscription, id)) }
        }
        var oracles: [StreamKey: StreamOracle] = [:]
        var counts = PerQoS(repeating: DeliveryCounts())
        var wrong = 0
        for _ in 0..<15_000 {
            guard let (subscription, publisher) = heard.randomElement(using: &dice) else { continue }
            let key = StreamKey(subscription: UInt32(1000 + subscription * 2), publisher: publisher)
            let next = oracles[key]?.highest.map { $0 + 1 } ?? 0
            let sequence = dice.hits(0.7) ? next : UInt64.random(in: 0...next + 3, using: &dice)
            let truth = oracles[key, default: StreamOracle()].arrived(sequence)
            let qos = UInt8(publisher % 3)
            counts[qos].add(truth)
            let arrival = ledger.arrived(
                subscription: subscription,
                publisher: publisher,
                qos: qos,
                sequence: sequence
            )
            if arrival != truth { wrong += 1 }
        }
        #expect(wrong == 0)
        #expect(ledger.counts == counts)
        let export = ledger.export()
        #expect(Set(export.keys) == Set(oracles.keys))
        #expect(export.keys.count == oracles.count)
        #expect(!export.overflowed)
        #expect(export.foreign == 0)
        for (key, stream) in zip(export.keys, export.streams) {
            #expect(stream.distinct == UInt64(oracles[key]?.seen.count ?? -1))
            #expect(stream.missing == oracles[key]?.missing)
            #expect(stream.qos == UInt8(key.publisher % 3))
        }
    }

    @Test("a publisher or a QoS that cannot be is counted apart")
    func foreign() {
        var ledger = SubscriberLedger(publishers: 4)
        let subscription = ledger.addSubscription(0)
        #expect(ledger.arrived(subscription: subscription, publisher: 4, qos: 0, sequence: 0) == nil)
        #expect(ledger.arrived(subscription: subscription, publisher: 0, qos: 3, sequence: 0) == nil)
        #expect(ledger.arrived(subscription: subscription, publisher: 3, qos: 2, sequence: 0) == .new)
        #expect(ledger.export().foreign == 2)
        #expect(ledger.counts[2] == DeliveryCounts(distinct: 1))
        #expect(ledger.counts[0] == DeliveryCounts())
    }

    // MARK: - Repeats, copies and order

    struct Repeats: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var copies = 1
        /// Sequence numbers of one stream; a letter says how each came: n new, d redelivered, r may repeat.
        var arrivals: [(UInt64, Character)]
        var distinct: UInt64
        var overlapped: UInt64 = 0
        var duplicated: UInt64 = 0
        var permitted: UInt64 = 0
        var reordered: UInt64 = 0
    }

    static let repetitions = [
        Repeats(
            testDescription: "a repeat is a duplicate",
            arrivals: [(0, "n"), (1, "n"), (0, "n")],
            distinct: 2,
            duplicated: 1
        ),
        Repeats(
            testDescription: "after a reconnect one of QoS 1 is permitted",
            arrivals: [(0, "n"), (1, "n"), (0, "r")],
            distinct: 2,
            duplicated: 1,
            permitted: 1
        ),
        Repeats(
            testDescription: "further copies for further filters are overlaps",
            copies: 3,
            arrivals: [(0, "n"), (0, "n"), (0, "n"), (1, "n")],
            distinct: 2,
            overlapped: 2
        ),
        Repeats(
            testDescription: "one copy for all filters is enough",
            copies: 3,
            arrivals: [(0, "n"), (1, "n")],
            distinct: 2
        ),
        Repeats(
            testDescription: "one copy more than filters is a duplicate",
            copies: 2,
            arrivals: [(0, "n"), (0, "n"), (0, "n")],
            distinct: 1,
            overlapped: 1,
            duplicated: 1
        ),
        Repeats(
            testDescription: "copies may come behind other messages",
            copies: 2,
            arrivals: [(0, "n"), (1, "n"), (2, "n"), (1, "n"), (0, "n"), (2, "n"), (2, "n")],
            distinct: 3,
            overlapped: 3,
            duplicated: 1
        ),
        Repeats(
            testDescription: "a permitted repeat in the place of a copy makes the copy no duplicate",
            copies: 2,
            arrivals: [(0, "n"), (0, "r"), (0, "n")],
            distinct: 1,
            overlapped: 1,
            duplicated: 1,
            permitted: 1
        ),
        Repeats(
            testDescription: "but only one",
            copies: 2,
            arrivals: [(0, "n"), (0, "r"), (0, "n"), (0, "n")],
            distinct: 1,
            overlapped: 1,
            duplicated: 2,
            permitted: 1
        ),
        Repeats(
            testDescription: "two repeats in the places of two copies",
            copies: 3,
            arrivals: [(0, "n"), (0, "r"), (0, "r"), (0, "n"), (0, "n"), (0, "n")],
            distinct: 1,
            overlapped: 2,
            duplicated: 3,
            permitted: 2
        ),
        Repeats(
            testDescription: "a first arrival behind a later one is reordered",
            arrivals: [(0, "n"), (2, "n"), (1, "n")],
            distinct: 3,
            reordered: 1
        ),
        Repeats(
            testDescription: "not if the server had sent it before [MQTT-4.6.0-1]",
            arrivals: [(0, "n"), (2, "n"), (1, "d")],
            distinct: 3
        ),
    ]

    @Test("repeats, copies and order", arguments: repetitions)
    func repeats(_ one: Repeats) {
        var ledger = SubscriberLedger()
        let subscription = ledger.addSubscription(0)
        for (sequence, how) in one.arrivals {
            _ = ledger.arrived(
                subscription: subscription,
                publisher: 0,
                qos: 1,
                sequence: sequence,
                isRedelivery: how == "d",
                mayRepeat: how == "r",
                copies: one.copies
            )
        }
        #expect(
            ledger.counts[1]
                == DeliveryCounts(
                    distinct: one.distinct,
                    duplicated: one.duplicated,
                    reordered: one.reordered,
                    overlapped: one.overlapped
                )
        )
        let row = Reconciliation(arrivals: [ledger.export()], published: nil).rows.first
        #expect(row?.duplicated == one.duplicated)
        #expect(row?.permitted == one.permitted)
        #expect(row?.overlapped == one.overlapped)
        #expect(row?.reordered == one.reordered)
    }

    @Test("neither repeats next to each other nor late messages use up the memory for gaps")
    func memory() {
        var ledger = SubscriberLedger(gaps: 2, overtaken: 1)
        let subscription = ledger.addSubscription(0)
        let late: [UInt64] = [10, 11, 13, 12, 15, 14, 17, 16]
        for sequence in Array(0..<10) + Array(0..<10) + late {
            _ = ledger.arrived(subscription: subscription, publisher: 0, qos: 1, sequence: sequence)
        }
        let export = ledger.export()
        #expect(!export.overflowed)
        #expect(export.irregular[0]?.duplicates.runs == [0..<10])
        #expect(export.irregular[0]?.reordered == 3)
        #expect(export.irregular[0]?.overtaken.runs == [12..<13])
        // Of late messages without a number, as many as were sent again are taken for those.
        let fate = PublisherFate(publisher: 0, qos: 1, assigned: 18, resent: SequenceRanges([14..<16]))
        let published = PublishedExport(audiences: [[AudienceMember(receiver: 0, qos: 1)]], fates: [fate])
        #expect(Reconciliation(arrivals: [export], published: [published]).rows.map(\.reordered) == [1])
    }

    @Test("the filters that match are asked for only when a message repeats")
    func asksRarely() {
        var ledger = SubscriberLedger()
        let subscription = ledger.addSubscription(0)
        var asked = 0
        func copies() -> Int {
            asked += 1
            return 2
        }
        for sequence: UInt64 in [0, 1, 5, 3, 3] {
            _ = ledger.arrived(
                subscription: subscription,
                publisher: 0,
                qos: 0,
                sequence: sequence,
                copies: copies()
            )
        }
        #expect(asked == 1)
    }

    @Test("a stream in order takes 32 bytes")
    func size() {
        #expect(MemoryLayout<StreamLedger>.stride == 32)
    }

    @Test("a damaged sequence number is no message, repeated neither")
    func damaged() {
        var ledger = SubscriberLedger()
        let subscription = ledger.addSubscription(0)
        for sequence in [0, .max, .max, StreamLedger.sequenceLimit] as [UInt64] {
            _ = ledger.arrived(subscription: subscription, publisher: 0, qos: 0, sequence: sequence, mayRepeat: true)
        }
        let books = Reconciliation(arrivals: [ledger.export()], published: nil)
        #expect(books.problems == [.tooManyGaps(streams: 1)])
        #expect(books.rows == [.of(qos: 0, expected: nil, received: 1, lost: nil)])
    }

    // MARK: - Absence

    @Test("a receiver knows one past the highest number that it saw in each stream, the last stream first")
    func heads() {
        var ledger = SubscriberLedger()
        let subscriptions = [ledger.addSubscription(8), ledger.addSubscription(9)]
        let arrivals: [(Int, UInt32, UInt32, UInt64)] = [(0, 3, 1, 4), (0, 3, 2, 0), (1, 3, 1, 7), (0, 3, 1, 2)]
        for (place, publisher, audience, sequence) in arrivals {
            _ = ledger.arrived(
                subscription: subscriptions[place],
                publisher: publisher,
                audience: audience,
                qos: 1,
                sequence: sequence
            )
        }
        var heads: [[UInt64]] = []
        ledger.heads(of: subscriptions[0]) { heads.append([UInt64($0), UInt64($1), $2]) }
        #expect(heads == [[3, 2, 1], [3, 1, 5]])
    }

    struct Opening: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// `nil`: the receiver is away.
        var arrivals: [UInt64?]
        var excused: [Range<UInt64>]
    }

    static let openings = [
        Opening(
            testDescription: "the gap that begins with the absence",
            arrivals: [0, 1, nil, 4, 6],
            excused: [2..<4]
        ),
        Opening(testDescription: "no gap before it", arrivals: [0, 3, nil, 4, 6], excused: []),
        Opening(testDescription: "no gap after an arrival in order", arrivals: [0, nil, 1, 3], excused: []),
        Opening(testDescription: "two absences", arrivals: [0, nil, 2, 3, nil, nil, 7], excused: [1..<2, 4..<7]),
        Opening(
            testDescription: "an absence without an end",
            arrivals: [0, 1, nil],
            excused: [2..<StreamLedger.sequenceLimit]
        ),
        Opening(
            testDescription: "what comes late after all does not end it",
            arrivals: [0, 3, nil, 2, 6],
            excused: [4..<6]
        ),
    ]

    @Test("without marks of the publisher, an absence excuses", arguments: openings)
    func opening(_ one: Opening) {
        var ledger = SubscriberLedger()
        let subscription = ledger.addSubscription(5)
        for sequence in one.arrivals {
            guard let sequence else {
                ledger.open(subscription)
                continue
            }
            _ = ledger.arrived(subscription: subscription, publisher: 0, qos: 1, sequence: sequence)
        }
        let export = ledger.export()
        #expect(export.excused[0]?.runs ?? [] == one.excused)
        #expect(export.absent == [5])
        #expect(export.late.isEmpty)
    }

    @Test("a first subscription after the load began is exported")
    func late() {
        var ledger = SubscriberLedger()
        let subscriptions = [ledger.addSubscription(5), ledger.addSubscription(6)]
        ledger.beganLate(subscriptions[1])
        #expect(ledger.export().late == [6])
    }

    @Test("of a stream that is reordered all the time, all late messages count and the numbers of the first are kept")
    func reorderedAllTheTime() {
        var ledger = SubscriberLedger()
        let subscription = ledger.addSubscription(0)
        for pair: UInt64 in 0..<1_000 {
            for sequence in [3 * pair + 1, 3 * pair, 3 * pair + 2] {
                _ = ledger.arrived(subscription: subscription, publisher: 0, qos: 1, sequence: sequence)
            }
        }
        let export = ledger.export()
        #expect(export.irregular[0]?.reordered == 1_000)
        let first: [UInt64] = (0..<256).map { 3 * $0 }
        #expect(export.irregular[0]?.overtaken == SequenceRanges(first.map { $0..<$0 + 1 }))
        #expect(!export.overflowed && export.streams[0].missing.isEmpty)
    }

    @Test("more gaps over all streams than the loop may keep are reported")
    func sharedBound() {
        var ledger = SubscriberLedger(limits: .init(window: 128, gaps: 100), gaps: 10)
        for number: UInt32 in 0..<11 {
            let subscription = ledger.addSubscription(number)
            #expect(!ledger.export().overflowed)
            for sequence: UInt64 in [0, 100] {
                _ = ledger.arrived(subscription: subscription, publisher: 0, qos: 0, sequence: sequence)
            }
        }
        #expect(ledger.export().overflowed)
    }
}
