import Testing

import Measurement

@Suite("Books")
struct BooksTests {
    typealias Column = any WritableKeyPath<Books, UInt64?> & Sendable

    @Test(
        "balance or say which equation does not",
        arguments: [
            (0, \Books.confirmed, nil),
            (0, \Books.unconfirmed, "QoS 0: sent 90 is not confirmed 80 + unconfirmed 11"),
            (0, \Books.offered, "QoS 0: offered 101 is not sent 90 + not sent 10"),
            (1, \Books.acked, "QoS 1: sent 90 is not acked 71 + in flight 5 + timed out 4 + failed 11"),
            (2, \Books.lost, "QoS 2: expected 80 is not received 75 + lost 6"),
        ] as [(Int, Column, String?)]
    )
    func balance(_ qos: Int, _ changed: Column, _ words: String?) {
        var books = Books(qos: qos)
        books.offered = 100
        books.sent = 90
        books.notSent = 10
        if qos == 0 {
            books.confirmed = 80
            books.unconfirmed = 10
        } else {
            books.acked = 70
            books.inFlight = 5
            books.timedOut = 4
            books.failed = 11
        }
        books.expected = 80
        books.received = 75
        books.lost = 5
        books.duplicated = 9
        #expect(books.balances)
        guard let words else { return }
        books[keyPath: changed]? += 1
        #expect(books.imbalances == [words])
        #expect(!books.balances)
    }

    @Test(
        "every operation has one end, and so has every delivery",
        arguments: [
            (0, \Books.outstanding, "QoS 0: offered 100 is not confirmed 80 + failed 3 + outstanding 18"),
            (1, \Books.outstanding, "QoS 1: offered 100 is not acked 70 + failed 15 + outstanding 16"),
            (1, \Books.deliveryOutstanding, "QoS 1: expected 90 is not received 75 + lost 5 + outstanding 11"),
            (2, \Books.expected, "QoS 2: expected 91 is not received 75 + lost 5 + outstanding 10"),
        ] as [(Int, Column, String)]
    )
    func ends(_ qos: Int, _ changed: Column, _ words: String) {
        var books = Books(qos: qos)
        (books.offered, books.sent, books.notSent) = (100, 90, 10)
        if qos == 0 {
            (books.confirmed, books.unconfirmed, books.failed, books.outstanding) = (80, 10, 3, 17)
        } else {
            (books.acked, books.inFlight, books.timedOut, books.failed) = (70, 5, 4, 11)
            books.outstanding = 15
        }
        (books.expected, books.received, books.lost, books.deliveryOutstanding) = (90, 75, 5, 10)
        #expect(books.balances)
        #expect([books].deliveries?.outstanding == 10)
        books[keyPath: changed]? += 1
        #expect(books.imbalances == [words])
    }

    @Test("what is not known breaks no equation")
    func unknown() {
        var books = Books(qos: 1)
        #expect(books.balances)
        books.received = 5
        books.sent = 7
        #expect(books.balances)
    }
}

@Suite("Spread over clients")
struct ClientSpreadTests {
    private func spread(_ values: [Double], worstIsHighest: Bool = false) -> ClientSpread? {
        ClientSpread(
            values.enumerated().map { (client: $0, value: $1) },
            worstIsHighest: worstIsHighest,
            id: { "c\($0)" }
        )
    }

    @Test("a tally is 64 bytes")
    func size() {
        #expect(MemoryLayout<ClientTally>.stride == 64)
    }

    @Test("gives percentiles by nearest rank, the mean, and the five worst")
    func figures() throws {
        let spread = try #require(self.spread((1...100).reversed().map(Double.init)))
        #expect([spread.min, spread.p5, spread.p50, spread.p95, spread.max] == [1, 5, 50, 95, 100])
        #expect(spread.mean == 50.5)
        #expect(spread.worst.map(\.id) == ["c99", "c98", "c97", "c96", "c95"])
        let highest = try #require(self.spread([3, 9, 9, 1, 2, 5, 4], worstIsHighest: true))
        #expect(highest.worst.map(\.id) == ["c1", "c2", "c5", "c6", "c0"])
    }

    @Test(
        "Jain's index is 1 when even and 1/n when one has all",
        arguments: [
            ([5, 5, 5, 5], 1), ([0, 0, 0, 8], 0.25), ([1, 2, 3], 36.0 / 42), ([0, 0], nil), ([7], 1),
        ] as [([Double], Double?)]
    )
    func jain(_ values: [Double], _ index: Double?) throws {
        #expect(try #require(self.spread(values)).jain == index)
    }

    @Test("a client that never connected or never saw an acknowledgement is not in those spreads")
    func absent() throws {
        var up = ClientTally()
        up.connectNanoseconds = 2_000_000
        up.sent = 10
        let group = ClientGroup(
            [up, ClientTally()],
            publishes: true,
            acknowledged: true,
            subscribes: false,
            id: { "p\($0)" }
        )
        #expect(group.count == 2)
        #expect(group.connectSeconds?.clients == 1)
        #expect(group.connectSeconds?.max == 0.002)
        #expect(group.sent?.clients == 2)
        #expect(group.received == nil)
        #expect(group.longestAckSeconds == nil)
        #expect(self.spread([]) == nil)
    }
}
