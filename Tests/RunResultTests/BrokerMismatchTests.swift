import Measurement
import Testing
import RunResult

@Suite("The embedded broker's counts against the generator's")
struct BrokerMismatchTests {
    private func reasons(sent: UInt64, received: UInt64, again: UInt64 = 0, failed: UInt64 = 0) -> [String] {
        var books = Books(qos: 1)
        books.sent = sent
        books.failed = failed
        let reason = books.mismatch(received: { $0 == 1 ? received : 0 }, receivedDUP: { $0 == 1 ? again : 0 })
        return reason.map { ["\($0.code): \($0.text)"] } ?? []
    }

    @Test(
        "what a resumed session sends again may be the first that the broker sees of it",
        arguments: [(10, 10, 0), (10, 9, 1), (10, 8, 5), (10, 10, 3), (10, 0, 10), (0, 0, 0)]
            as [(UInt64, UInt64, UInt64)]
    )
    func agrees(_ sent: UInt64, _ received: UInt64, _ again: UInt64) {
        #expect(self.reasons(sent: sent, received: received, again: again) == [])
    }

    @Test("an unexplained difference is reported with its figures")
    func differs() {
        #expect(
            self.reasons(sent: 10, received: 9) == ["broker-books: QoS 1: 10 sent, but the broker received 9"]
        )
        #expect(
            self.reasons(sent: 10, received: 11) == ["broker-books: QoS 1: 10 sent, but the broker received 11"]
        )
        #expect(
            self.reasons(sent: 10, received: 11, again: 5)
                == ["broker-books: QoS 1: 10 sent, but the broker received 11, and 5 with DUP"]
        )
        #expect(
            self.reasons(sent: 10, received: 7, again: 2)
                == ["broker-books: QoS 1: 10 sent, but the broker received 7, and 2 with DUP"]
        )
        #expect(self.reasons(sent: 10, received: 7, failed: 1) == [])
    }
}
