import Ledger
import Testing

@Suite("Which publishers and receivers belong together")
struct SegmentLedgerTests {
    /// Sensors with two streams and receivers of their own, a group that only publishes, and two groups that receive.
    private let places = LedgerPlaces(
        streams: [
            .init(publishers: 0..<10, own: 20, group: "sensors", name: "telemetry"),
            .init(publishers: 10..<20, own: 20, group: "sensors", name: "status"),
            .init(publishers: 20..<22, own: nil, group: "operators", name: ""),
        ],
        receivers: [
            .init(numbers: 20..<30, group: "sensors"), .init(numbers: 30..<31, group: "backend"),
            .init(numbers: 40..<41, group: "backend+archive"),
        ]
    )

    @Test(
        "a pair's row is its receivers' place, then its stream's",
        arguments: [
            (0, 20, 0), (9, 29, 0), (10, 20, 1), (19, 25, 1), (21, 20, 2), (0, 30, 3), (20, 30, 5), (15, 40, 7),
            (22, 20, nil), (0, 31, nil), (0, 19, nil), (0, 41, nil),
        ] as [(UInt32, UInt32, Int?)]
    )
    func labels(_ publisher: UInt32, _ receiver: UInt32, _ label: Int?) {
        #expect(self.places.label(publisher, receiver) == label)
    }

    @Test(
        "a publisher's own receiver is that of its client",
        arguments: [(0, 20), (9, 29), (10, 20), (13, 23), (20, nil), (22, nil)] as [(UInt32, UInt32?)]
    )
    func own(_ publisher: UInt32, _ receiver: UInt32?) {
        #expect(self.places.own(publisher) == receiver)
    }

    @Test("rows are kept apart by places, and a pair of no stream has none")
    func rows() {
        var ledger = SubscriberLedger()
        for receiver: UInt32 in [20, 30] {
            let place = ledger.addSubscription(receiver)
            for publisher: UInt32 in [0, 10, 22] {
                _ = ledger.arrived(subscription: place, publisher: publisher, qos: 1, sequence: 0)
            }
        }
        var terms = ReconciliationTerms()
        terms.use(self.places)
        let books = Reconciliation(arrivals: [ledger.export()], published: nil, terms: terms)
        #expect(books.rows.map(\.label) == [0, 1, 3, 4])
        #expect(books.rows.map(\.received) == [1, 1, 1, 1])
    }
}
