import Ledger
import Testing

@Suite("Losses that are proven, and messages that may still come")
struct LossProofTests {
    private typealias Case = DeliveryCase

    /// Another publisher whose message 2 has no known fate, and with `isOutstanding` no answer yet.
    private static func other(isOutstanding: Bool) -> PublisherFate {
        var fate = PublisherFate(publisher: 5, qos: 1, assigned: 3, unknown: SequenceRanges([2..<3]))
        if isOutstanding { fate.outstanding = fate.unknown }
        return fate
    }

    // MARK: - Passed over

    /// The server keeps the order of a topic (MQTT 5.0 §4.6), but not in a share group (§4.8.2).
    static let passedOver: [DeliveryCase] = [
        .row("below the next sequence", lost: [.violated: 2], outstanding: 1, example: [3]),
        .row("at QoS 2", qos: 2, lost: [.violated: 2], outstanding: 1, example: [3]),
        .row("at QoS 0 it was dropped", qos: 0, lost: [.dropped: 2], outstanding: 1, example: [3]),
        .row("delivered at QoS 0", member: { $0.qos = 0 }, lost: [.dropped: 2], outstanding: 1, example: [3]),
        DeliveryCase(
            testDescription: "nothing arrived, so nothing was",
            arrivals: [],
            outstanding: 10,
            missing: 10
        ),
        DeliveryCase(
            testDescription: "by the first that arrived",
            arrivals: [9],
            lost: [.violated: 9],
            missing: 9,
            example: [0]
        ),
        .row("not in a share group", member: { $0.isShared = true }, outstanding: 3),
        .row("not among copies for overlapping filters", member: { $0.copies = 2 }, outstanding: 3),
        .row("not across topics", fate: { $0.isOrdered = false }, outstanding: 3),
        .row(
            "not if it was sent again",
            fate: { $0.resent = SequenceRanges([3..<4]) },
            lost: [.violated: 1],
            outstanding: 2,
            example: [7]
        ),
        .row(
            "by a message that was sent again",
            fate: { $0.resent = SequenceRanges([8..<9]) },
            lost: [.violated: 2],
            outstanding: 1,
            example: [3]
        ),
    ]

    private static let cluster: Case.Terms = { $0.isCluster = true }
    private static let resumed = Case.away { $0.broken = SequenceRanges([0..<5]) }

    /// A receiver that comes back to a cluster may be at another node, which keeps no order with the first one.
    static let clusters: [DeliveryCase] = [
        .row("a receiver that stays", terms: cluster, lost: [.violated: 2], outstanding: 1, example: [3]),
        .row("a receiver that comes back to its session", terms: Case.all(cluster, resumed), outstanding: 3),
        .row(
            "the same at one server",
            terms: resumed,
            lost: [.violated: 2],
            outstanding: 1,
            example: [3]
        ),
        .row(
            "a receiver that comes back and has lost its session",
            terms: Case.all(
                cluster,
                Case.away {
                    $0.broken = SequenceRanges([0..<5])
                    $0.sessionLost = SequenceRanges([3..<5])
                }
            ),
            lost: [.sessionLost: 1],
            outstanding: 2,
            example: [3]
        ),
        .row(
            "a receiver that comes back to a new session",
            terms: Case.all(
                cluster,
                Case.away {
                    $0.broken = SequenceRanges([0..<5])
                    $0.ended = SequenceRanges([3..<5])
                }
            ),
            expected: 9,
            outstanding: 2
        ),
        .row(
            "a first subscription is no return",
            terms: Case.all(
                cluster,
                Case.away {
                    $0.broken = SequenceRanges([0..<4])
                    $0.ended = SequenceRanges([0..<4])
                }
            ),
            expected: 9,
            lost: [.violated: 1],
            outstanding: 1,
            example: [7]
        ),
        .row(
            "within the grace of a subscription",
            terms: Case.all(cluster, Case.away { $0.fresh = SequenceRanges([0..<4]) }),
            lost: [.freshSubscription: 1, .violated: 1],
            outstanding: 1,
            example: [3, 7]
        ),
        .row(
            "the grace is no proof",
            member: { $0.isShared = true },
            terms: Case.all(cluster, Case.away { $0.fresh = SequenceRanges([0..<10]) }),
            outstanding: 3
        ),
        .row(
            "what was withheld within the grace",
            terms: Case.all(cluster, Case.quiet, Case.away { $0.fresh = SequenceRanges([4..<10]) }),
            lost: [.freshSubscription: 2, .violated: 1],
            example: [7, 3]
        ),
    ]

    // MARK: - Withheld

    static let withheld: [DeliveryCase] = [
        .row("a quiet server", terms: Case.quiet, lost: [.violated: 2, .withheld: 1], example: [3, 9]),
        .row("at QoS 0 it was dropped", qos: 0, terms: Case.quiet, lost: [.dropped: 3], example: [3]),
        .row("delivered at QoS 0", member: { $0.qos = 0 }, terms: Case.quiet, lost: [.dropped: 3], example: [3]),
        DeliveryCase(
            testDescription: "nothing arrived",
            arrivals: [],
            terms: Case.quiet,
            lost: [.withheld: 10],
            missing: 10,
            example: [0]
        ),
        .row(
            "from a share group",
            member: { $0.isShared = true },
            terms: Case.quiet,
            lost: [.withheld: 3],
            example: [3]
        ),
        .row(
            "of several topics",
            fate: { $0.isOrdered = false },
            terms: Case.quiet,
            lost: [.withheld: 3],
            example: [3]
        ),
        .row(
            "sent again",
            fate: { $0.resent = SequenceRanges([3..<4, 9..<10]) },
            terms: Case.quiet,
            lost: [.violated: 1, .withheld: 2],
            example: [7, 3]
        ),
        .row(
            "from a receiver that came back to a cluster",
            terms: Case.all(cluster, resumed, Case.quiet),
            lost: [.withheld: 3],
            example: [3]
        ),
        .row(
            "not a second before the probe",
            terms: Case.all(Case.quiet, { $0.end.lastArrival = 1_000_000_001 }),
            lost: [.violated: 2],
            outstanding: 1,
            example: [3]
        ),
        .row(
            "not from a receiver that did not answer",
            terms: Case.all(Case.quiet, { $0.end.unproved = [1] }),
            lost: [.violated: 2],
            outstanding: 1,
            example: [3]
        ),
        .row(
            "not from a share group with a member that did not answer",
            member: { $0.isShared = true },
            terms: Case.all(Case.quiet, { $0.end.unproved = [1] }),
            outstanding: 3
        ),
        .row(
            "from a receiver that answered, though another did not",
            terms: Case.all(Case.quiet, { $0.end.unproved = [0, 2] }),
            lost: [.violated: 2, .withheld: 1],
            example: [3, 9]
        ),
        .row(
            "not while a publish of another event loop has no answer",
            terms: Case.quiet,
            others: [other(isOutstanding: true)],
            lost: [.violated: 2],
            outstanding: 1,
            example: [3]
        ),
        .row(
            "though another publisher's connection broke",
            terms: Case.quiet,
            others: [other(isOutstanding: false)],
            lost: [.violated: 2, .withheld: 1],
            example: [3, 9]
        ),
        .row(
            "not while a publish of its own has no answer",
            fate: {
                $0.unknown = SequenceRanges([8..<9])
                $0.outstanding = $0.unknown
            },
            terms: Case.quiet,
            lost: [.violated: 2],
            outstanding: 1,
            example: [3]
        ),
    ]

    // MARK: - Other proofs

    static let others: [DeliveryCase] = [
        .row(
            "a lost session needs no later message",
            terms: Case.away { $0.sessionLost = SequenceRanges([8..<10]) },
            lost: [.sessionLost: 1, .violated: 2],
            example: [9, 3]
        ),
        .row(
            "nor does an admission",
            fate: { $0.admitted = SequenceRanges([8..<10]) },
            lost: [.serverAdmitted: 1, .violated: 2],
            example: [9, 3]
        ),
        .row(
            "both in a share group",
            fate: { $0.admitted = SequenceRanges([3..<4]) },
            member: { $0.isShared = true },
            terms: Case.away { $0.sessionLost = SequenceRanges([9..<10]) },
            lost: [.serverAdmitted: 1, .sessionLost: 1],
            outstanding: 1,
            example: [9, 3]
        ),
        .row(
            "each loss has its first proof: session, admission, grace, order, silence",
            fate: { $0.admitted = SequenceRanges([2..<4]) },
            terms: Case.all(
                Case.quiet,
                Case.away {
                    $0.fresh = SequenceRanges([0..<10])
                    $0.sessionLost = SequenceRanges([7..<8])
                }
            ),
            lost: [.sessionLost: 1, .serverAdmitted: 1, .freshSubscription: 1],
            example: [7, 3, 9]
        ),
    ]

    @Test("passed over by a later message", arguments: passedOver)
    func passes(_ one: DeliveryCase) { one.check() }

    @Test("passed over in a cluster", arguments: clusters)
    func passesInCluster(_ one: DeliveryCase) { one.check() }

    @Test("withheld by a server that had nothing more to deliver", arguments: withheld)
    func withholds(_ one: DeliveryCase) { one.check() }

    @Test("lost with the session, or admitted", arguments: others)
    func admits(_ one: DeliveryCase) { one.check() }
}
