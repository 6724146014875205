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
    /// At QoS 1 and 2, and for requests.
    package var acked: UInt64?
    package var inFlight: UInt64?
    package var timedOut: UInt64?
    /// Refused with a reason code, or the connection was lost.
    package var failed: UInt64?
    /// Neither answered nor failed at the end of the drain; with ``notSent``.
    package var outstanding: UInt64?
    /// Without an answer when the plan cut their connection.
    package var excused: UInt64?
    /// At QoS 0, and for messages and presences of XMPP: confirmed by the graceful end of their connection.
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
        var order: [String] = []
        var parts: [String: [Books]] = [:]
        for books in books {
            if parts[books.name] == nil { order.append(books.name) }
            parts[books.name, default: []].append(books)
        }
        let columns: [WritableKeyPath<Books, UInt64?>] = [
            \.offered, \.sent, \.notSent, \.acked, \.inFlight, \.timedOut, \.failed, \.confirmed, \.unconfirmed,
            \.outstanding, \.excused, \.expected, \.received, \.lost, \.deliveryOutstanding, \.duplicated,
        ]
        return order.compactMap { name in
            guard let all = parts[name], var sum = all.first else { return nil }
            for column in columns {
                // If one part lacks a value, the total lacks it too.
                let known = all.compactMap { $0[keyPath: column] }
                sum[keyPath: column] = known.count == all.count ? known.reduce(0, +) : nil
            }
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

    /// The equations that are violated, in words and with their figures.
    package var imbalances: [String] {
        let excused = self.excused.map { [("excused", UInt64?.some($0))] } ?? []
        let published: [(String, UInt64?)] =
            self.isAnswered
            ? [
                ("acked", self.acked), ("in flight", self.inFlight), ("timed out", self.timedOut),
                ("failed", self.failed),
            ] + excused : [("confirmed", self.confirmed), ("unconfirmed", self.unconfirmed)]
        // Records of `clamor.run/1` know nothing outstanding.
        let owed = self.deliveryOutstanding.map { [("outstanding", UInt64?.some($0))] } ?? []
        let answered = self.isAnswered ? ("acked", self.acked) : ("confirmed", self.confirmed)
        return [
            self.imbalance("offered", self.offered, [("sent", self.sent), ("not sent", self.notSent)]),
            self.imbalance("sent", self.sent, published),
            self.imbalance(
                "offered",
                self.offered,
                [answered, ("failed", self.failures), ("outstanding", self.outstanding)] + excused
            ),
            self.imbalance("expected", self.expected, [("received", self.received), ("lost", self.lost)] + owed),
        ].compactMap { $0 }
    }

    /// The operations that failed, in whatever way.
    package var failures: UInt64? {
        guard self.isAnswered else { return self.failed }
        return self.failed.flatMap { failed in self.timedOut.map { failed &+ $0 } }
    }

    private func imbalance(_ name: String, _ whole: UInt64?, _ parts: [(name: String, count: UInt64?)]) -> String? {
        let counts = parts.compactMap(\.count)
        guard let whole, counts.count == parts.count, whole != counts.reduce(0, &+) else { return nil }
        let sum = zip(parts, counts).map { "\($0.name) \($1)" }.joined(separator: " + ")
        return "\(self.name): \(name) \(whole) is not \(sum)"
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
