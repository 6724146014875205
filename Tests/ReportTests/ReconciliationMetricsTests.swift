import Ledger
import Measurement
import Report
import Testing

@Suite("Deliveries as metrics")
struct ReconciliationMetricsTests {
    typealias Stream = LedgerPlaces.Stream
    typealias Receivers = LedgerPlaces.Receivers

    /// One message of a publisher to a receiver.
    struct Sent: Sendable {
        var publisher: UInt32
        var receiver: UInt32
        var qos: UInt8
        var assigned: UInt64
        var arrived: [UInt64]

        init(_ publisher: UInt32, to receiver: UInt32, qos: UInt8 = 1, _ assigned: UInt64, arrived: [UInt64]) {
            self.publisher = publisher
            self.receiver = receiver
            self.qos = qos
            self.assigned = assigned
            self.arrived = arrived
        }
    }

    private static func reconciliation(_ places: LedgerPlaces, _ all: [Sent], isKnown: Bool = true) -> Reconciliation {
        var subscriptions = SubscriberLedger()
        var receivers: [UInt32: Int] = [:]
        var published = PublishedExport(audiences: [[]])
        for (number, sent) in all.enumerated() {
            let place = receivers[sent.receiver] ?? subscriptions.addSubscription(sent.receiver)
            receivers[sent.receiver] = place
            let audience = UInt32(number + 1)
            published.audiences.append([AudienceMember(receiver: sent.receiver, qos: 2)])
            published.fates.append(
                PublisherFate(publisher: sent.publisher, audience: audience, qos: sent.qos, assigned: sent.assigned)
            )
            for sequence in sent.arrived {
                _ = subscriptions.arrived(
                    subscription: place,
                    publisher: sent.publisher,
                    audience: audience,
                    qos: sent.qos,
                    sequence: sequence
                )
            }
        }
        var terms = ReconciliationTerms()
        terms.use(places)
        return Reconciliation(
            arrivals: [subscriptions.export()],
            published: isKnown ? [published] : nil,
            terms: terms
        )
    }

    private static func texts(_ metrics: [Metric]) -> [String] {
        metrics.map { "\($0.name.dropFirst(9)) \($0.labels) \(Words.plain($0.counter?.value ?? -1))" }
    }

    struct Sample: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var places = LedgerPlaces()
        var hasGroups = true
        var sent: [Sent]
        /// Without `delivery_`.
        var rows: [String]
    }

    static let alone = LedgerPlaces(
        streams: [Stream(publishers: 0..<2, own: nil, group: "a", name: "")],
        receivers: [Receivers(numbers: 0..<2, group: "a")]
    )
    static let between = LedgerPlaces(
        streams: [
            Stream(publishers: 0..<2, own: 0, group: "a", name: "x"),
            Stream(publishers: 2..<3, own: nil, group: "a", name: "y"),
            Stream(publishers: 3..<4, own: nil, group: "b", name: ""),
        ],
        receivers: [
            Receivers(numbers: 0..<2, group: "a"), Receivers(numbers: 2..<3, group: "a"),
            Receivers(numbers: 3..<4, group: "a+b"),
        ]
    )

    static let samples = [
        Sample(
            testDescription: "places that are not known: the QoS alone",
            sent: [Sent(0, to: 0, 3, arrived: [0, 1, 2])],
            rows: [
                "expected qos=1 3", "received qos=1 3", "lost qos=1 0", "outstanding qos=1 0", "missing qos=1 0",
                "duplicated qos=1 0",
                "reordered qos=1 0",
            ]
        ),
        Sample(
            testDescription: "a run without groups: no group, whatever its name",
            places: alone,
            hasGroups: false,
            sent: [Sent(0, to: 0, qos: 2, 3, arrived: [2, 0]), Sent(1, to: 1, qos: 2, 2, arrived: [0, 1, 1])],
            rows: [
                "expected qos=2 5", "received qos=2 4", "lost cause=violated;qos=2 1", "outstanding qos=2 0",
                "missing qos=2 1",
                "duplicated permitted=no;qos=2 1", "reordered qos=2 1",
            ]
        ),
        Sample(
            testDescription: "one group that hears itself: no `from`",
            places: alone,
            sent: [Sent(0, to: 0, qos: 0, 2, arrived: [1]), Sent(0, to: 1, qos: 1, 1, arrived: [0])],
            rows: [
                "expected group=a;qos=0 2", "received group=a;qos=0 1", "lost cause=dropped;group=a;qos=0 1",
                "outstanding group=a;qos=0 0", "missing group=a;qos=0 1", "duplicated group=a;qos=0 0",
                "reordered group=a;qos=0 0",
                "expected group=a;qos=1 1", "received group=a;qos=1 1", "lost group=a;qos=1 0",
                "outstanding group=a;qos=1 0", "missing group=a;qos=1 0", "duplicated group=a;qos=1 0",
                "reordered group=a;qos=1 0",
            ]
        ),
        Sample(
            testDescription:
                "streams of one group, and two ranges of receivers in one row: no `from` while none hears b",
            places: between,
            sent: [
                Sent(0, to: 0, 2, arrived: [0, 1]), Sent(1, to: 2, 3, arrived: [2]), Sent(2, to: 1, 1, arrived: [0]),
            ],
            rows: [
                "expected group=a;qos=1;stream=x 5", "received group=a;qos=1;stream=x 3",
                "lost cause=violated;group=a;qos=1;stream=x 2", "outstanding group=a;qos=1;stream=x 0",
                "missing group=a;qos=1;stream=x 2",
                "duplicated group=a;qos=1;stream=x 0", "reordered group=a;qos=1;stream=x 0",
                "expected group=a;qos=1;stream=y 1", "received group=a;qos=1;stream=y 1",
                "lost group=a;qos=1;stream=y 0", "outstanding group=a;qos=1;stream=y 0",
                "missing group=a;qos=1;stream=y 0",
                "duplicated group=a;qos=1;stream=y 0", "reordered group=a;qos=1;stream=y 0",
            ]
        ),
        Sample(
            testDescription: "a group that hears another: `from` everywhere",
            places: between,
            sent: [Sent(0, to: 0, 1, arrived: [0]), Sent(3, to: 3, 1, arrived: [0])],
            rows: [
                "expected from=a;group=a;qos=1;stream=x 1", "received from=a;group=a;qos=1;stream=x 1",
                "lost from=a;group=a;qos=1;stream=x 0", "outstanding from=a;group=a;qos=1;stream=x 0",
                "missing from=a;group=a;qos=1;stream=x 0",
                "duplicated from=a;group=a;qos=1;stream=x 0", "reordered from=a;group=a;qos=1;stream=x 0",
                "expected from=b;group=a+b;qos=1 1", "received from=b;group=a+b;qos=1 1",
                "lost from=b;group=a+b;qos=1 0", "outstanding from=b;group=a+b;qos=1 0",
                "missing from=b;group=a+b;qos=1 0",
                "duplicated from=b;group=a+b;qos=1 0", "reordered from=b;group=a+b;qos=1 0",
            ]
        ),
    ]

    @Test("a row has the labels that its plan needs, and no row is the sum of others", arguments: samples)
    func rows(_ sample: Sample) {
        let delivery = Self.reconciliation(sample.places, sample.sent)
        let metrics = delivery.metrics(sample.places, hasGroups: sample.hasGroups, hasGaps: true)
        #expect(Self.texts(metrics) == sample.rows)
    }

    @Test("each cause that occurred has a row, permitted duplicates are apart, and copies of overlaps are counted")
    func causes() {
        var subscriptions = SubscriberLedger()
        let place = subscriptions.addSubscription(0)
        for sequence: UInt64 in [0, 9, 9] {
            _ = subscriptions.arrived(subscription: place, publisher: 0, audience: 1, qos: 1, sequence: sequence)
        }
        _ = subscriptions.arrived(
            subscription: place,
            publisher: 0,
            audience: 1,
            qos: 1,
            sequence: 0,
            mayRepeat: true
        )
        _ = subscriptions.arrived(subscription: place, publisher: 0, audience: 1, qos: 1, sequence: 9, copies: 2)
        var absences = PresenceLedger.Absences()
        absences.sessionLost.insert(1..<3)
        absences.fresh.insert(4..<5)
        absences.ended.insert(7..<9)
        var terms = ReconciliationTerms()
        terms.absences = [StreamKey(subscription: 0, publisher: 0, audience: 1): absences]
        let fate = PublisherFate(
            publisher: 0,
            audience: 1,
            qos: 1,
            assigned: 10,
            admitted: SequenceRanges([3..<4])
        )
        let delivery = Reconciliation(
            arrivals: [subscriptions.export()],
            published: [PublishedExport(audiences: [[], [AudienceMember(receiver: 0, qos: 1)]], fates: [fate])],
            terms: terms
        )
        #expect(
            Self.texts(delivery.metrics(LedgerPlaces(), hasGroups: false, hasGaps: false)) == [
                "expected qos=1 8", "received qos=1 2", "lost cause=violated;qos=1 2",
                "lost cause=server-admitted;qos=1 1", "lost cause=session-lost;qos=1 2",
                "lost cause=fresh-subscription;qos=1 1", "outstanding qos=1 0", "missing qos=1 8",
                "duplicated permitted=no;qos=1 1",
                "duplicated permitted=yes;qos=1 1", "overlap qos=1 1", "reordered qos=1 0",
            ]
        )
        #expect(delivery.problems == [])
    }

    @Test("where publishers are elsewhere, what was expected is unknown, and gaps are counted on request")
    func gaps() {
        let delivery = Self.reconciliation(LedgerPlaces(), [Sent(0, to: 0, 9, arrived: [2, 5])], isKnown: false)
        let rows = ["received qos=1 2", "duplicated qos=1 0", "reordered qos=1 0"]
        #expect(Self.texts(delivery.metrics(LedgerPlaces(), hasGroups: false, hasGaps: false)) == rows)
        #expect(
            Self.texts(delivery.metrics(LedgerPlaces(), hasGroups: false, hasGaps: true)) == rows + ["gaps qos=1 2"]
        )
    }

    @Test("stanzas have one row of each count, whatever the cause")
    func stanzas() {
        let delivery = Self.reconciliation(LedgerPlaces(), [Sent(0, to: 0, qos: 0, 3, arrived: [0, 2, 2])])
        let metrics = delivery.rows.flatMap { $0.metrics(labels: ["stanza": "message"]) }
        #expect(
            Self.texts(metrics) == [
                "expected stanza=message 3", "lost stanza=message 1", "outstanding stanza=message 0",
                "duplicated stanza=message 1", "reordered stanza=message 0",
            ]
        )
    }

    @Test(
        "thresholds judge the sum of the causes, or one of them, and zero where nothing was lost",
        arguments: [
            ([0, 1, 2], "delivery_lost == 0", true), ([0, 1, 2], "delivery_lost{cause=violated} == 0", true),
            ([0, 1, 2], "delivery_duplicated{permitted=no} == 0", true), ([0, 2], "delivery_lost == 0", false),
            ([0, 2], "delivery_lost == 1", true), ([0, 2], "delivery_lost{cause=violated} == 1", true),
            ([0, 2], "delivery_lost{cause=dropped} == 0", true), ([0, 2, 2], "delivery_duplicated == 1", true),
            ([0, 2, 2], "delivery_duplicated{permitted=no} == 0", false),
            ([], "delivery_outstanding{qos=1} == 3", true),
            ([], "delivery_lost{qos=1} == 0", false),
        ] as [([UInt64], String, Bool)]
    )
    func thresholds(_ arrived: [UInt64], _ expression: String, _ holds: Bool) throws {
        let delivery = Self.reconciliation(LedgerPlaces(), [Sent(0, to: 0, 3, arrived: arrived)])
        var record = Samples.begun(["clamor", "pubsub"])
        record.metrics = delivery.metrics(LedgerPlaces(), hasGroups: false, hasGaps: false)
        #expect(try Threshold.parse(expression).evaluate(in: record).ok == holds)
    }

    @Test("thresholds may name each cause, and no other", arguments: LossCause.allCases)
    func catalog(_ cause: LossCause) throws {
        var catalog = MetricCatalog()
        catalog.addDeliveries(["qos": "1"], publishersKnown: true)
        func problem(_ text: String) throws -> String? { try Threshold.parse(text).problem(in: catalog)?.problem }
        #expect(try problem("delivery_lost{cause=\(cause.rawValue),qos=1} == 0") == nil)
        #expect(try problem("delivery_lost{cause=\(cause.rawValue)s} == 0") != nil)
        for name in ["expected", "received", "lost", "missing", "duplicated", "overlap", "reordered"] {
            #expect(try problem("delivery_\(name) == 0") == nil)
        }
        #expect(try problem("delivery_duplicated{permitted=yes} == 0") == nil)
        #expect(try problem("delivery_gaps == 0") != nil)
        var elsewhere = MetricCatalog()
        elsewhere.addDeliveries(["qos": "1"], publishersKnown: false)
        #expect(try Threshold.parse("delivery_gaps == 0").problem(in: elsewhere) == nil)
        #expect(try Threshold.parse("delivery_lost == 0").problem(in: elsewhere) != nil)
    }

    @Test("a group's row is the sum of its receivers' rows, a share group's in its first group")
    func groupRows() {
        let delivery = Self.reconciliation(
            Self.between,
            [
                Sent(0, to: 0, 2, arrived: [0, 1]), Sent(2, to: 2, 3, arrived: [0]), Sent(3, to: 3, 1, arrived: [0]),
                Sent(3, to: 3, qos: 0, 5, arrived: [0]),
            ]
        )
        func expected(_ group: String?, _ qos: UInt8) -> UInt64? {
            delivery.row(ofReceivers: group, qos: qos, in: Self.between)?.expected
        }
        #expect(expected("a", 1) == 6 && expected("a", 0) == 5)
        #expect(expected(nil, 1) == 6 && expected("b", 1) == nil && expected("a", 2) == nil)
    }
}
