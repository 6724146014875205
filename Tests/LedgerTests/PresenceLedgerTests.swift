import Ledger
import Testing

@Suite("What absences excuse")
struct PresenceLedgerTests {
    struct Case: Sendable, CustomTestStringConvertible {
        typealias Mark = (visit: UInt64, event: PresenceMark.Event, at: UInt64)

        var testDescription: String
        /// Each side's in its order.
        var receiver: [Mark] = []
        var publisher: [Mark] = []
        var ended: [Range<UInt64>] = []
        var sessionLost: [Range<UInt64>] = []
        var broken: [Range<UInt64>] = []
        var fresh: [Range<UInt64>] = []
    }

    private static let end = StreamLedger.sequenceLimit
    private static let member = PresenceMark.memberVisits

    static let cases = [
        Case(
            testDescription: "what was sent before the first SUBACK is not expected",
            publisher: [(0, .began, 4)],
            ended: [0..<4],
            broken: [0..<4]
        ),
        Case(testDescription: "a subscription before the first message excuses nothing", publisher: [(0, .began, 0)]),
        Case(
            testDescription: "a session that lives is owed all but QoS 0",
            receiver: [(0, .left, 5)],
            publisher: [(1, .resumed, 9)],
            broken: [0..<9]
        ),
        Case(
            testDescription: "a session that ended takes with it what had not been overtaken",
            receiver: [(0, .left, 5)],
            publisher: [(1, .began, 9)],
            ended: [5..<9],
            broken: [0..<9]
        ),
        Case(
            testDescription: "a session that the server lost makes its messages lost",
            receiver: [(0, .left, 5)],
            publisher: [(1, .beganWithoutSession, 9)],
            sessionLost: [5..<9],
            broken: [0..<9]
        ),
        Case(
            testDescription: "an absence without messages leaves no trace",
            receiver: [(0, .left, 0)],
            publisher: [(1, .began, 0)]
        ),
        Case(
            testDescription: "an absence that does not end reaches to the end of the run",
            receiver: [(0, .left, 5)],
            ended: [5..<end],
            broken: [0..<end]
        ),
        Case(
            testDescription: "of a stream that had not come yet the receiver has no mark",
            publisher: [(1, .began, 6)],
            ended: [0..<6],
            broken: [0..<6]
        ),
        Case(
            testDescription: "nor if its session lives",
            publisher: [(1, .resumed, 6)],
            broken: [0..<6]
        ),
        Case(
            testDescription: "nor if the server lost it",
            publisher: [(1, .beganWithoutSession, 6)],
            sessionLost: [0..<6],
            broken: [0..<6]
        ),
        Case(
            testDescription: "several visits: came, resumed, lost, ended, away",
            receiver: [(0, .left, 6), (1, .left, 9), (2, .left, 21), (3, .left, 30)],
            publisher: [(0, .began, 2), (1, .resumed, 8), (2, .beganWithoutSession, 15), (3, .began, 25)],
            ended: [0..<2, 21..<25, 30..<end],
            sessionLost: [9..<15],
            broken: [0..<end]
        ),
        Case(
            testDescription: "the latest connection is not broken",
            receiver: [(0, .left, 3), (1, .left, 8)],
            publisher: [(0, .began, 1), (1, .resumed, 4), (2, .resumed, 10)],
            ended: [0..<1],
            broken: [0..<10]
        ),
        Case(
            testDescription: "a receiver that saw more than the publisher had sent by then",
            receiver: [(0, .left, 9)],
            publisher: [(1, .began, 7)],
            broken: [0..<7]
        ),
        Case(
            testDescription: "the grace in a cluster, from the first message, from SUBACK, and in a new session",
            receiver: [(0, .left, 9)],
            publisher: [(0, .settled, 3), (1, .began, 12), (1, .settled, 14)],
            ended: [9..<12],
            broken: [0..<12],
            fresh: [0..<3, 12..<14]
        ),
        Case(
            testDescription: "the grace of a first subscription behind messages",
            publisher: [(0, .began, 5), (0, .settled, 8)],
            ended: [0..<5],
            broken: [0..<5],
            fresh: [5..<8]
        ),
        Case(
            testDescription: "the grace of a subscription that a resumed connection cuts in two",
            receiver: [(0, .left, 6)],
            publisher: [(0, .began, 5), (1, .resumed, 7), (0, .settled, 8)],
            ended: [0..<5],
            broken: [0..<7],
            fresh: [5..<8]
        ),
        Case(
            testDescription: "a member of a share group that is let go",
            receiver: [(member, .left, 6)],
            publisher: [(member, .closed, 9)],
            ended: [6..<9],
            broken: [0..<9]
        ),
        Case(
            testDescription: "one that had seen nothing of the stream",
            publisher: [(member, .closed, 9)],
            ended: [0..<9],
            broken: [0..<9]
        ),
        Case(
            testDescription: "two members, of which one comes back to its session",
            receiver: [(member, .left, 6), (2 * member, .left, 4), (member + 1, .left, 12)],
            publisher: [(2 * member, .closed, 8), (member + 1, .resumed, 10), (member + 1, .closed, 14)],
            ended: [4..<8, 12..<14],
            broken: [0..<14]
        ),
        Case(
            testDescription: "a share group without members",
            receiver: [(member, .left, 6)],
            publisher: [(0, .began, 1), (member, .closed, 9), (0, .left, 9), (1, .began, 15)],
            ended: [0..<1, 6..<15],
            broken: [0..<15]
        ),
        Case(
            testDescription: "a member comes back within the grace of its group's subscription",
            receiver: [(member, .left, 1)],
            publisher: [(0, .began, 1), (member + 1, .resumed, 4), (0, .settled, 6)],
            ended: [0..<1],
            broken: [0..<4],
            fresh: [1..<6]
        ),
    ]

    /// All ways to mix two lists that keep the order of each.
    private static func mixes<Element>(_ one: [Element], _ other: [Element]) -> [[Element]] {
        guard let first = one.first else { return [other] }
        guard let second = other.first else { return [one] }
        return self.mixes(Array(one.dropFirst()), other).map { [first] + $0 }
            + self.mixes(one, Array(other.dropFirst())).map { [second] + $0 }
    }

    private let key = StreamKey(subscription: 1, publisher: 2, audience: 3)

    @Test("the marks of both sides, in every order in which they can come", arguments: cases)
    func absences(_ one: Case) {
        let marks = [one.receiver, one.publisher].map { side in
            side.map { PresenceMark(self.key, visit: $0.visit, $0.event, at: $0.at) }
        }
        for mix in Self.mixes(marks[0], marks[1]) {
            var ledger = PresenceLedger()
            // A stream with other numbers keeps out of it.
            ledger.add(PresenceMark(StreamKey(subscription: 1, publisher: 2), visit: 0, .began, at: 0))
            for mark in mix { ledger.add(mark) }
            let all = ledger.export()
            let found = all[self.key] ?? PresenceLedger.Absences()
            #expect(found.ended.runs == one.ended)
            #expect(found.sessionLost.runs == one.sessionLost)
            #expect(found.broken.runs == one.broken)
            #expect(found.fresh.runs == one.fresh)
            #expect(all.keys.allSatisfy { $0 == self.key })
        }
    }

    @Test(
        "a receiver that is away when the publishers have ended is owed nothing that it had not overtaken",
        arguments: [4, nil] as [UInt64?]
    )
    func close(_ seen: UInt64?) {
        var ledger = PresenceLedger()
        if let seen { ledger.add(PresenceMark(self.key, visit: 2, .left, at: seen)) }
        let published = PublishedExport(
            audiences: [[], [], [], [AudienceMember(receiver: 0, qos: 1), AudienceMember(receiver: 1, qos: 1)]],
            fates: [PublisherFate(publisher: 2, audience: 3, qos: 1, assigned: 10)]
        )
        ledger.close([1: [2]], [published])
        let all = ledger.export()
        #expect(Array(all.keys) == [self.key])
        #expect(all[self.key]?.ended.runs == [(seen ?? 0)..<10])
        #expect(all[self.key]?.broken.runs == [0..<10])
    }
}
