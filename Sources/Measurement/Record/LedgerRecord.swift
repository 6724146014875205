/// Whether messages were tracked one by one, and with what result.
package struct LedgerRecord: Codable, Hashable, Sendable {
    package var on: Bool
    /// The reason why it is off, or why it cannot be trusted.
    package var reason: String?
    /// Streams whose messages carry no header, of a run that follows others: nothing is known of their delivery.
    package var unfollowed: [String]?
    package var publishers: Int?
    package var subscriptions: Int?
    /// Pairs of publisher and subscription that were tracked.
    package var streams: Int?
    /// Streams that exceeded their limits, so that their figures are unknown.
    package var overflowed: Int?
    /// A segment's ledger whose counterparts are in other segments: expected and lost are known after the merge.
    package var pending: Bool?
    /// Expected messages that did not arrive, by cause; empty if none were lost, absent if it is unknown.
    package var lost: [String: UInt64]?
    /// Messages to a matching subscription that did not arrive, excused or not.
    package var missing: UInt64?
    /// The first message of each finding.
    package var examples: [LedgerExample]?

    /// Of a note: messages arrived without the user property that has their header.
    package static let strippedCode = "ledger-stripped"

    package init(on: Bool, reason: String? = nil) {
        self.on = on
        self.reason = reason
    }

    package var unfollowedWords: String? {
        guard self.on, let names = self.unfollowed else { return nil }
        return "not in the ledger: messages of \(names.joined(separator: ", ")), which carry no header"
    }
}

/// The first message of one finding of the ledger; what is unknown is absent.
package struct LedgerExample: Codable, Hashable, Sendable {
    package enum Finding: String, Codable, Sendable {
        case lost, duplicated, reordered
    }

    package var finding: Finding
    /// The cause of a lost message.
    package var cause: String?
    package var topic: String?
    /// The clients' names; a share group has the group's.
    package var publisher: String?
    package var subscriber: String?
    /// The message's number, from 0, among those of its publisher to the same receivers.
    package var sequence: UInt64?
    /// The publisher's.
    package var qos: Int
    /// How often the publisher sent it.
    package var sent: Int?
    package var acknowledged: Bool?
    package var expected: Bool?

    package init(finding: Finding, cause: String? = nil, qos: Int) {
        self.finding = finding
        self.cause = cause
        self.qos = qos
    }

    /// `topic fleet/7/command, message 42 of ops-3 to device-7`; `nil` if none of it is known.
    package var words: String? {
        let message = [
            self.sequence.map { "message \($0)" }
                ?? (self.publisher == nil && self.subscriber == nil ? nil : "message"),
            self.publisher.map { "of \($0)" }, self.subscriber.map { "to \($0)" },
        ].compactMap(\.self).joined(separator: " ")
        let parts = [self.topic.map { "topic \($0)" }, message.isEmpty ? nil : message].compactMap(\.self)
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }
}

extension [String: UInt64] {
    /// The sums of the counts of each cause.
    package static func joining(_ parts: [[String: UInt64]]) -> [String: UInt64] {
        parts.reduce(into: [:]) { $0.merge($1, uniquingKeysWith: +) }
    }
}
