import Ledger
import Testing

/// Which of the messages 0..<10 of publisher 0 reached receiver 1, what decides about the others, and what follows.
struct DeliveryCase: Sendable, CustomTestStringConvertible {
    typealias Terms = @Sendable (inout ReconciliationTerms) -> Void

    var testDescription: String
    var arrivals: [UInt64]
    var qos: UInt8 = 1
    var fate: @Sendable (inout PublisherFate) -> Void = { _ in }
    var member: @Sendable (inout AudienceMember) -> Void = { _ in }
    var terms: Terms = { _ in }
    /// The publishers of another event loop.
    var others: [PublisherFate] = []
    var expected: UInt64 = 10
    var lost: [LossCause: UInt64] = [:]
    var outstanding: UInt64 = 0
    var missing: UInt64 = 2
    /// The lost messages that are the first examples.
    var example: [UInt64] = []

    static let key = StreamKey(subscription: 1, publisher: 0, audience: 1)

    /// Terms with this absence of the receiver.
    static func away(_ change: @Sendable @escaping (inout PresenceLedger.Absences) -> Void) -> Terms {
        { terms in
            var absences = PresenceLedger.Absences()
            change(&absences)
            terms.absences[Self.key] = absences
        }
    }

    static let quiet: Terms = { $0.end = .quiet }

    /// Several terms as one.
    static func all(_ terms: Terms...) -> Terms {
        { all in for one in terms { one(&all) } }
    }

    /// All arrived but 3 and 7, which are below the highest that did, and 9, which is not.
    static func row(
        _ testDescription: String,
        qos: UInt8 = 1,
        fate: @Sendable @escaping (inout PublisherFate) -> Void = { _ in },
        member: @Sendable @escaping (inout AudienceMember) -> Void = { _ in },
        terms: @escaping Terms = { _ in },
        others: [PublisherFate] = [],
        expected: UInt64 = 10,
        lost: [LossCause: UInt64] = [:],
        outstanding: UInt64 = 0,
        missing: UInt64 = 3,
        example: [UInt64] = []
    ) -> DeliveryCase {
        DeliveryCase(
            testDescription: testDescription,
            arrivals: [0, 1, 2, 4, 5, 6, 8],
            qos: qos,
            fate: fate,
            member: member,
            terms: terms,
            others: others,
            expected: expected,
            lost: lost,
            outstanding: outstanding,
            missing: missing,
            example: example
        )
    }

    func check() {
        var ledger = SubscriberLedger()
        let place = ledger.addSubscription(1)
        for sequence in self.arrivals {
            _ = ledger.arrived(subscription: place, publisher: 0, audience: 1, qos: self.qos, sequence: sequence)
        }
        var member = AudienceMember(receiver: 1, qos: 2)
        self.member(&member)
        var fate = PublisherFate(publisher: 0, audience: 1, qos: self.qos, assigned: 10)
        self.fate(&fate)
        var terms = ReconciliationTerms()
        self.terms(&terms)
        let published = [
            PublishedExport(audiences: [[], [member]], fates: [fate]),
            PublishedExport(audiences: [[]], fates: self.others),
        ]
        let books = Reconciliation(arrivals: [ledger.export()], published: published, terms: terms)
        #expect(books.problems.isEmpty)
        #expect(books.rows.map(\.expected) == [self.expected])
        #expect(books.rows.map(\.received) == [UInt64(Set(self.arrivals).count)])
        #expect(books.rows.map(\.lostBy) == [self.lost])
        #expect(books.rows.map(\.lost) == [self.lost.values.reduce(0, +)])
        #expect(books.rows.map(\.outstanding) == [self.outstanding])
        #expect(books.rows.map(\.missing) == [self.missing])
        #expect(books.examples.map(\.sequence) == self.example)
        #expect(books.examples.allSatisfy { $0.key == Self.key && $0.qos == self.qos })
    }
}
