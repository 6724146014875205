/// The fate of the messages of one QoS, or of the stanzas of one kind.
///
/// A count that a run cannot know is absent.
package struct Books: Codable, Hashable, Sendable {
    /// The group's name in a run with several groups.
    package var group: String?
    /// Only for MQTT.
    package var qos: Int?
    /// Only for XMPP: `message`, `presence` or `iq`.
    package var stanza: String?
    package var offered: UInt64?
    package var sent: UInt64?
    package var notSent: UInt64?
    /// The acknowledged ones at QoS 1 and 2, and requests.
    package var acked: UInt64?
    package var inFlight: UInt64?
    package var timedOut: UInt64?
    /// Refused with a reason code, or the connection was lost.
    package var failed: UInt64?
    /// Neither answered nor failed at the end of the drain; with ``notSent``.
    package var outstanding: UInt64?
    /// The ones without an answer when the plan cut their connection.
    package var excused: UInt64?
    /// The ones at QoS 0, and messages and presences of XMPP, that the graceful end of their connection confirmed.
    package var confirmed: UInt64?
    package var unconfirmed: UInt64?
    package var expected: UInt64?
    /// Distinct messages, without duplicates.
    package var received: UInt64?
    package var lost: UInt64?
    /// Expected, and neither received nor lost at the end of the drain.
    package var deliveryOutstanding: UInt64?
    package var duplicated: UInt64?

    package init(qos: Int) { self.qos = qos }

    package init(stanza: String) { self.stanza = stanza }

    /// `QoS 1`, `message`, `sensors QoS 1`.
    package var name: String {
        let name = self.stanza ?? self.qos.map { "QoS \($0)" } ?? "all"
        return self.group.map { "\($0) \(name)" } ?? name
    }

    /// Whether each message has an answer of its own.
    package var isAnswered: Bool { self.stanza.map { $0 == "iq" } ?? (self.qos != 0) }

    /// Books of the same name added up, in the order of their first occurrence.
    package static func sums(_ books: [Books]) -> [Books] {
        var parts = OrderedMap<String, [Books]>()
        for books in books { parts[books.name, default: []].append(books) }
        let columns: [WritableKeyPath<Books, UInt64?>] = [
            \.offered, \.sent, \.notSent, \.acked, \.inFlight, \.timedOut, \.failed, \.confirmed, \.unconfirmed,
            \.outstanding, \.excused, \.expected, \.received, \.lost, \.deliveryOutstanding, \.duplicated,
        ]
        return parts.all.map { _, books in
            var sum = books[0]
            // If one part lacks a value, the total lacks it too.
            for column in columns { sum[keyPath: column] = books.all { $0[keyPath: column] }?.reduce(0, +) }
            return sum
        }
    }

    private enum CodingKeys: String, CodingKey {
        case group, qos, stanza, offered, sent
        case notSent = "not_sent"
        case acked
        case inFlight = "in_flight"
        case timedOut = "timed_out"
        case failed, outstanding, excused, confirmed, unconfirmed, expected, received, lost
        case deliveryOutstanding = "delivery_outstanding"
        case duplicated
    }

    /// Whether every equation that can be checked is satisfied.
    package var balances: Bool { self.imbalances.isEmpty }

    package typealias Count = (name: String, count: UInt64?)
    package typealias Equation = (whole: Count, parts: [Count])

    /// Offered, sent and expected messages as the sums of what became of them.
    package var equations: [Equation] {
        let answers: [Count] =
            self.isAnswered
            ? [
                ("acked", self.acked), ("in flight", self.inFlight), ("timed out", self.timedOut),
                ("failed", self.failed),
            ] + self.excusedCount : [("confirmed", self.confirmed), ("unconfirmed", self.unconfirmed)]
        // Records of `clamor.run/1` know nothing outstanding.
        let owed = self.deliveryOutstanding.map { [Count("outstanding", $0)] } ?? []
        return [
            (("offered", self.offered), [("sent", self.sent), ("not sent", self.notSent)]),
            (("sent", self.sent), answers),
            (("expected", self.expected), [("received", self.received), ("lost", self.lost)] + owed),
        ]
    }

    private var excusedCount: [Count] { self.excused.map { [("excused", $0)] } ?? [] }

    /// The equations that are violated, in words and with their figures.
    package var imbalances: [String] {
        let answered: Count = self.isAnswered ? ("acked", self.acked) : ("confirmed", self.confirmed)
        let ends = [answered, ("failed", self.failures), ("outstanding", self.outstanding)] + self.excusedCount
        var all = self.equations
        all.insert((("offered", self.offered), ends), at: 2)
        return all.compactMap(self.imbalance)
    }

    /// The operations that failed, in whatever way.
    package var failures: UInt64? {
        guard self.isAnswered else { return self.failed }
        return self.failed.flatMap { failed in self.timedOut.map { failed &+ $0 } }
    }

    private func imbalance(_ equation: Equation) -> String? {
        let counts = equation.parts.compactMap(\.count)
        guard let whole = equation.whole.count, counts.count == equation.parts.count, whole != counts.reduce(0, &+)
        else { return nil }
        let sum = zip(equation.parts, counts).map { "\($0.name) \($1)" }.joined(separator: " + ")
        return "\(self.name): \(equation.whole.name) \(whole) is not \(sum)"
    }
}

/// The messages that a run's ledger expects, by their fate.
package struct DeliverySums: Hashable, Sendable {
    package var expected: UInt64 = 0
    /// Distinct messages of those expected.
    package var received: UInt64 = 0
    /// Absent if a part of it is.
    package var lost: UInt64?
    package var outstanding: UInt64 = 0
}

extension [Books] {
    /// The sums of the books that have expected and received messages; `nil` if none has.
    package var deliveries: DeliverySums? {
        var sums: DeliverySums?
        for book in self {
            guard let expected = book.expected, let received = book.received else { continue }
            var sum = sums ?? DeliverySums(lost: 0)
            sum.expected += expected
            sum.received += received
            sum.outstanding += book.deliveryOutstanding ?? 0
            sum.lost = sum.lost.flatMap { lost in book.lost.map { lost + $0 } }
            sums = sum
        }
        return sums
    }
}
