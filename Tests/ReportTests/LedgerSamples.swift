import Ledger
import Measurement

/// Ledgers of segments, small enough to be checked by eye, or drawn from a seed.
enum LedgerSamples {
    /// Every kind of row.
    static var full: SegmentLedger {
        var subscriptions = SubscriberLedger()
        let (first, second) = (subscriptions.addSubscription(1), subscriptions.addSubscription(3))
        for sequence: UInt64 in [0, 1, 5, 4, 9, 9] {
            _ = subscriptions.arrived(subscription: first, publisher: 0, audience: 1, qos: 1, sequence: sequence)
        }
        for sequence: UInt64 in [2, 3] {
            _ = subscriptions.arrived(subscription: second, publisher: 2, audience: 2, qos: 0, sequence: sequence)
        }
        // The second filter's copy, then one that the standard permits.
        _ = subscriptions.arrived(subscription: second, publisher: 2, audience: 2, qos: 0, sequence: 3, copies: 2)
        _ = subscriptions.arrived(
            subscription: second,
            publisher: 2,
            audience: 2,
            qos: 0,
            sequence: 3,
            mayRepeat: true,
            copies: 2
        )
        _ = subscriptions.arrived(subscription: first, publisher: 0, qos: 3, sequence: 0)
        subscriptions.open(second)
        subscriptions.beganLate(second)
        var ledger = SegmentLedger(received: subscriptions.export())
        ledger.received.overflowed = true
        ledger.loadBegan = 1_700_000_000_123_456_789
        ledger.publishersEnded = 1_700_000_010_000_000_000
        ledger.subscribersLeft = 1_700_000_011_000_000_000
        // A second process, without publishers.
        ledger.times.append(SegmentLedger.Times())
        ledger.times[1].subscribersLeft = 1_700_000_012_000_000_000
        ledger.received.repeated = 4
        ledger.receivers = [1, 2, 3, 7, 5, 6]
        ledger.began = [1, 2, 3, 6]
        ledger.granted = [2: 0, 3: 1, 6: 0]
        ledger.places = LedgerPlaces(
            streams: [
                LedgerPlaces.Stream(publishers: 0..<2, own: 1, group: "ops", name: "a, \"b\"\r\n"),
                LedgerPlaces.Stream(publishers: 2..<2, own: nil, group: "ops", name: "\""),
                LedgerPlaces.Stream(publishers: 2..<9, own: nil, group: "", name: ""),
            ],
            receivers: [
                LedgerPlaces.Receivers(numbers: 0..<7, group: "devices"),
                LedgerPlaces.Receivers(numbers: 7..<8, group: "devices+audit"),
            ]
        )
        ledger.published[0] = PublishedExport(
            audiences: [
                [], [AudienceMember(receiver: 1, qos: 1)],
                [
                    AudienceMember(receiver: 1, qos: 1), AudienceMember(receiver: 2, qos: 1),
                    AudienceMember(receiver: 3, copies: 3, noLocal: 2, qos: 2),
                    AudienceMember(receiver: 4, copies: 3, noLocal: 2, qos: 2), AudienceMember(receiver: 6, qos: 1),
                    AudienceMember(receiver: 8, qos: 1),
                ], [],
            ],
            fates: [
                PublisherFate(
                    publisher: 0,
                    audience: 1,
                    qos: 1,
                    assigned: 10,
                    unknown: SequenceRanges([3..<4, 7..<10]),
                    unsent: SequenceRanges([8..<10]),
                    outstanding: SequenceRanges([3..<4]),
                    resent: SequenceRanges([0..<2]),
                    admitted: SequenceRanges([6..<7]),
                    expires: true
                ),
                PublisherFate(publisher: 2, audience: 2, qos: 0, assigned: 4, neverSent: 2, isOrdered: false),
                PublisherFate(publisher: 1, qos: 2, assigned: 0, expires: true, isOrdered: false),
            ]
        )
        // The second event loop has audiences of its own, with the same numbers.
        ledger.published.append(
            PublishedExport(
                audiences: [
                    [],
                    [
                        AudienceMember(receiver: 1, qos: 1), AudienceMember(receiver: 2, qos: 1, isShared: true),
                        AudienceMember(receiver: 3, qos: 1, isShared: true),
                        AudienceMember(receiver: 5, copies: 2, noLocal: 1, qos: 2, ownQoS: 0),
                        AudienceMember(receiver: 6, copies: 2, noLocal: 1, qos: 2, ownQoS: 1),
                    ],
                ],
                fates: [PublisherFate(publisher: 5, audience: 1, qos: 2, assigned: 7)]
            )
        )
        ledger.places.stages = [.init(name: "warm, up", isMeasured: false), .init(name: "peak", isMeasured: true)]
        ledger.end.ended = 1_795_224_000_000_000_000
        ledger.published[0].fates[1].dues = [
            DueMark(lane: 2, count: 1, last: 1_795_223_990_000_000_000), DueMark(lane: 3, count: 3, last: 42),
            DueMark(lane: 3, count: 2, last: 43),
        ]
        return ledger
    }

    /// What a run of this many messages leaves that lost two of them.
    static func run(messages: UInt64) -> SegmentLedger {
        var subscriptions = SubscriberLedger()
        let place = subscriptions.addSubscription(0)
        for sequence in 0..<messages where sequence != 3 && sequence != 7 {
            _ = subscriptions.arrived(subscription: place, publisher: 0, audience: 1, qos: 1, sequence: sequence)
        }
        var ledger = SegmentLedger(received: subscriptions.export())
        ledger.receivers = [0]
        ledger.began = [0]
        ledger.published[0] = PublishedExport(
            audiences: [[], [AudienceMember(receiver: 0, qos: 1)]],
            fates: [PublisherFate(publisher: 0, audience: 1, qos: 1, assigned: messages)]
        )
        return ledger
    }

    static func drawn(seed: UInt64) -> SegmentLedger {
        var random = SplitMix64(seed: seed)
        func number(_ below: UInt64) -> UInt64 { UInt64.random(in: 0..<below, using: &random) }
        func set(below: UInt64) -> SequenceRanges {
            var set = SequenceRanges()
            for _ in 0..<number(4) {
                let first = number(below)
                set.insert(first..<min(below, first + 1 + number(5)))
            }
            return set
        }
        var ledger = SegmentLedger(received: LedgerExport())
        if number(2) == 0 { ledger.loadBegan = Int64(number(1 << 60)) }
        if number(2) == 0 { ledger.subscribersLeft = Int64(number(1 << 60)) }
        for process in 1..<1 + Int(number(3)) {
            ledger.times.append(SegmentLedger.Times())
            if number(2) == 0 { ledger.times[process].publishersEnded = Int64(number(1 << 60)) }
        }
        ledger.receivers = (0..<number(20)).map { _ in UInt32(number(40)) }
        ledger.began = Set(ledger.receivers.filter { _ in number(3) > 0 })
        for receiver in ledger.began where number(3) == 0 { ledger.granted[receiver] = UInt8(number(3)) }
        var (publishers, receivers) = (UInt32(0), UInt32(0))
        for place in 0..<number(4) {
            let end = publishers + UInt32(number(9))
            let own = number(2) == 0 ? UInt32(number(30)) : nil
            ledger.places.streams.append(
                LedgerPlaces.Stream(publishers: publishers..<end, own: own, group: "g\(place)", name: "")
            )
            publishers = end + UInt32(number(2))
            let last = receivers + UInt32(number(9))
            ledger.places.receivers.append(LedgerPlaces.Receivers(numbers: receivers..<last, group: "g,\(place)"))
            receivers = last
        }
        ledger.published = (0...number(3)).map { _ in
            let audiences = (0..<number(6)).map { _ in
                (0..<number(6)).map { _ in
                    AudienceMember(
                        receiver: UInt32(number(9)),
                        copies: UInt16(1 + number(2)),
                        noLocal: UInt16(number(2)),
                        qos: UInt8(number(3)),
                        ownQoS: number(2) == 0 ? UInt8(number(3)) : nil,
                        isShared: number(3) == 0
                    )
                }
            }
            let fates = (0..<number(6)).map { publisher in
                PublisherFate(
                    publisher: UInt32(publisher),
                    audience: UInt32(number(max(1, UInt64(audiences.count)))),
                    qos: UInt8(number(3)),
                    assigned: number(50),
                    unknown: set(below: 50),
                    unsent: set(below: 50),
                    outstanding: set(below: 50),
                    resent: set(below: 50),
                    admitted: set(below: 50),
                    expires: number(2) == 0,
                    isOrdered: number(2) == 0
                )
            }
            return PublishedExport(audiences: audiences, fates: fates)
        }
        for place in 0..<Int(number(9)) {
            let next = number(60)
            ledger.received.keys.append(
                StreamKey(subscription: UInt32(number(40)), publisher: UInt32(number(40)), audience: UInt32(place))
            )
            ledger.received.streams.append(
                StreamLedger(
                    qos: UInt8(number(3)),
                    next: next,
                    missing: next > 1 ? set(below: next - 1) : SequenceRanges(),
                    overflowed: number(5) == 0
                )
            )
            if number(2) == 0 {
                var irregular = Irregularity()
                (irregular.duplicated, irregular.duplicates) = (1 + number(3), set(below: 60))
                (irregular.permitted, irregular.overlapped) = (number(2), number(2))
                (irregular.reordered, irregular.overtaken) = (number(3), set(below: 60))
                ledger.received.irregular[place] = irregular
            }
            let excused = set(below: StreamLedger.sequenceLimit)
            if !excused.isEmpty { ledger.received.excused[place] = excused }
        }
        ledger.received.late = Set(ledger.receivers.filter { _ in number(4) == 0 })
        ledger.received.absent = Set(ledger.receivers.filter { _ in number(4) == 0 })
        for qos: UInt8 in 0...2 {
            ledger.received.counts[qos] = DeliveryCounts(
                distinct: number(9),
                duplicated: number(2),
                reordered: number(2),
                overlapped: number(2)
            )
        }
        ledger.received.foreign = number(2)
        ledger.received.repeated = number(3)
        ledger.received.overflowed = number(2) == 0
        return ledger
    }
}

/// All that a ledger has, in a form that can be compared.
struct LedgerContents: Equatable {
    private struct Stream: Equatable {
        var key: StreamKey
        var qos: UInt8
        var next: UInt64
        var missing: [Range<UInt64>]
        var distinct: UInt64
        var gaps: UInt64
        var overflowed: Bool
        var irregular: Irregularity?
        var excused: SequenceRanges?
    }

    private let times: [SegmentLedger.Times]
    private let receivers: [UInt32]
    private let began: Set<UInt32>
    private let granted: [UInt32: UInt8]
    private let places: LedgerPlaces
    private let published: [PublishedExport]
    private let streams: [Stream]
    private let late: Set<UInt32>
    private let absent: Set<UInt32>
    private let counts: PerQoS<DeliveryCounts>
    private let foreign: UInt64
    private let repeated: UInt64
    private let overflowed: Bool

    init(_ ledger: SegmentLedger) {
        self.times = ledger.times
        (self.receivers, self.began, self.granted) = (ledger.receivers, ledger.began, ledger.granted)
        (self.places, self.published) = (ledger.places, ledger.published)
        let received = ledger.received
        self.streams = zip(received.keys, received.streams).enumerated().map { index, part in
            let (key, stream) = part
            return Stream(
                key: key,
                qos: stream.qos,
                next: stream.next,
                missing: stream.missing,
                distinct: stream.distinct,
                gaps: stream.gaps,
                overflowed: stream.overflowed,
                irregular: received.irregular[index],
                excused: received.excused[index]
            )
        }
        (self.late, self.absent, self.counts) = (received.late, received.absent, received.counts)
        (self.foreign, self.overflowed) = (received.foreign, received.overflowed)
        self.repeated = received.repeated
    }
}
