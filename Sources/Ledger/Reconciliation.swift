/// Why a message that was expected did not arrive.
package enum LossCause: String, CaseIterable, Hashable, Sendable {
    /// QoS 1 or 2: the server passed the message over, for a later one of its topic arrived (MQTT 5.0 §4.6).
    case violated
    /// QoS 1 or 2: the server had nothing more to deliver, by ``DeliveryEnd/isQuiet``.
    case withheld
    /// QoS 0, passed over or withheld: the standard permits the loss.
    case dropped
    /// The server acknowledged that no subscription matched, although one did.
    case serverAdmitted = "server-admitted"
    /// The server no longer had the session that it owed the receiver.
    case sessionLost = "session-lost"
    /// The message came within the grace after SUBACK, in which a cluster spreads its routes.
    case freshSubscription = "fresh-subscription"
    /// The ledger cannot tell.
    case unknown
}

/// The delivery books of a run: expected messages of the subscriptions compared with arrivals.
package struct Reconciliation: Hashable, Sendable {
    /// The deliveries from one set of publishers to one set of receivers, at one QoS of the publishers.
    package struct Row: Hashable, Sendable {
        /// The number that the caller gave to publisher and receiver.
        package var label: Int
        /// The publisher's QoS.
        package var qos: UInt8
        /// Acknowledged, confirmed or outstanding messages, once per subscription, plus arrived ones with unknown fate.
        ///
        /// Absent if the publishers are not in the run.
        package var expected: UInt64?
        /// Distinct arrivals.
        package var received: UInt64
        /// Expected and proven not to come; absent if the publishers are not in the run.
        package var lost: UInt64?
        /// Expected, and neither received nor lost when the drain ended.
        ///
        /// Absent if the publishers are not in the run.
        package var outstanding: UInt64?
        /// The parts of ``lost``; causes without a message are absent.
        package var lostBy: [LossCause: UInt64]
        /// Sent to a matching subscription and not received, excused or not; absent if the publishers are not in the
        /// run.
        package var missing: UInt64?
        /// Each arrival after the first, except overlaps.
        package var duplicated: UInt64
        /// The part of ``duplicated`` that the standard permits.
        package var permitted: UInt64
        /// Further copies for further matching filters of one client.
        package var overlapped: UInt64
        package var reordered: UInt64
        /// Missing between the lowest and the highest sequence number seen, whatever their fate.
        package var gaps: UInt64

        package init(
            label: Int = 0,
            qos: UInt8,
            expected: UInt64?,
            received: UInt64,
            lost: UInt64?,
            outstanding: UInt64? = nil,
            lostBy: [LossCause: UInt64] = [:],
            missing: UInt64? = nil,
            duplicated: UInt64 = 0,
            permitted: UInt64 = 0,
            overlapped: UInt64 = 0,
            reordered: UInt64 = 0,
            gaps: UInt64 = 0
        ) {
            self.label = label
            self.qos = qos
            self.expected = expected
            self.received = received
            self.lost = lost
            self.outstanding = outstanding
            self.lostBy = lostBy
            self.missing = missing
            self.duplicated = duplicated
            self.permitted = permitted
            self.overlapped = overlapped
            self.reordered = reordered
            self.gaps = gaps
        }
    }

    /// The kinds of findings.
    package enum Finding: Hashable, Sendable {
        case lost(LossCause)
        case duplicated
        case reordered
    }

    /// The first message of a finding.
    package struct Example: Hashable, Sendable {
        package var label: Int
        package var finding: Finding
        package var key: StreamKey
        package var qos: UInt8
        /// `nil` if only the stream is known, as in a record of another segment.
        package var sequence: UInt64?
        /// The message was sent again after a reconnect.
        package var isResent: Bool
    }

    /// One row per label and QoS that was published or received, in order.
    package private(set) var rows: [Row] = []
    /// The first message of each finding, by row.
    package private(set) var examples: [Example] = []
    /// The deliveries of the rows that did not come, where it is known when their messages were due.
    package private(set) var absences: [AbsentDelivery] = []
    /// The end of the drain, by the clock of the due times; `nil` if it is not known.
    package private(set) var ended: Int64?
    /// Reasons why the books are not exact.
    package internal(set) var problems: [LedgerProblem] = []

    /// Balances the ledgers of all loops and share groups with the fate of every message sent.
    ///
    /// - Parameters:
    ///   - arrivals: the ledgers of every loop and of the share groups.
    ///   - published: the publishers' side of every loop; `nil` if the publishers are elsewhere (`sub` alone).
    ///   - terms: what else decides about an expectation.
    package init(arrivals: [LedgerExport], published: [PublishedExport]?, terms: ReconciliationTerms = .init()) {
        var balance = Balance(arrivals: arrivals, terms: terms)
        if let published { balance.settle(published) }
        balance.finish()
        self.rows = balance.rows(publishersKnown: published != nil)
        self.examples = balance.examples
        self.absences = balance.absences
        self.ended = terms.end.ended
        self.problems = balance.problems(publishersKnown: published != nil)
    }

    /// The same for publishers that feed whole ranges of subscriptions.
    package init(
        ledgers: [LedgerExport],
        fates: [PublisherFate]?,
        feeds: [SubscriptionFeed],
        end: DeliveryEnd = DeliveryEnd()
    ) {
        guard let fates else {
            self.init(arrivals: ledgers, published: nil)
            return
        }
        let (published, absences) = feeds.published(fates)
        var terms = ReconciliationTerms()
        terms.hasAudiences = false
        terms.absences = absences
        terms.end = end
        self.init(arrivals: ledgers, published: [published], terms: terms)
    }
}

/// The facts that decide about an expectation besides the messages' fates.
package struct ReconciliationTerms: Sendable {
    /// Whether streams are kept apart by audience.
    package var hasAudiences = true
    /// The messages that receivers' absences excuse.
    package var absences: [StreamKey: PresenceLedger.Absences] = [:]
    /// Receivers that never had a subscription in effect.
    package var neverBegan: Set<UInt32> = []
    /// The targets are nodes of one cluster: a receiver that came back may be at another node.
    package var isCluster = false
    /// The facts that tell messages that the server withheld from those that are still to come.
    package var end = DeliveryEnd()
    /// Receivers whose SUBACK granted a lower QoS than they asked for: the QoS granted.
    package var granted: [UInt32: UInt8] = [:]
    /// Whether a publisher's messages may be too large for a receiver: expected only if they arrive.
    package var isTooLarge: @Sendable (_ publisher: UInt32, _ receiver: UInt32) -> Bool = { _, _ in false }
    /// The receiver of a publisher's own client.
    package var own: @Sendable (_ publisher: UInt32) -> UInt32? = { _ in nil }
    /// A number for the publisher and the receiver of a stream, by which rows are kept apart; negative for no row.
    package var label: @Sendable (_ publisher: UInt32, _ receiver: UInt32) -> Int = { _, _ in 0 }

    package init() {}
}

extension [SubscriptionFeed] {
    /// The same as audiences and absences.
    func published(_ fates: [PublisherFate]) -> (PublishedExport, [StreamKey: PresenceLedger.Absences]) {
        var table = AudienceTable()
        var fates = fates
        var receivers: [UInt32: [AudienceMember]] = [:]
        var absences: [StreamKey: PresenceLedger.Absences] = [:]
        let known = Set(fates.map(\.publisher))
        for feed in self {
            for publisher in feed.publishers where known.contains(publisher) {
                receivers[publisher, default: []].append(AudienceMember(receiver: feed.subscription, qos: 2))
                guard let excused = feed.missed[publisher], !excused.isEmpty else { continue }
                var absence = PresenceLedger.Absences()
                absence.ended = excused
                absence.broken = excused
                absences[StreamKey(subscription: feed.subscription, publisher: publisher)] = absence
            }
        }
        for index in fates.indices {
            fates[index].audience = table.number(of: receivers[fates[index].publisher] ?? [])
        }
        return (PublishedExport(audiences: table.audiences, fates: fates), absences)
    }
}
