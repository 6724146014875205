package import MQTTCodec

/// Computes the packets that make the subscriptions in effect match the declared ones.
///
/// Pure: rounds come out, answers go in. One round at a time has at most one UNSUBSCRIBE and one SUBSCRIBE. A
/// declaration made during a round starts the next one.
package struct SubscriptionReconciler: Sendable {
    /// The contents of two packets; an empty one is not sent.
    package struct Round: Hashable, Sendable {
        package var unsubscribe: [String]
        package var subscribe: [Subscription]

        package init(unsubscribe: [String] = [], subscribe: [Subscription] = []) {
            self.unsubscribe = unsubscribe
            self.subscribe = subscribe
        }

        var isEmpty: Bool { self.unsubscribe.isEmpty && self.subscribe.isEmpty }
    }

    private enum Standing: Hashable {
        /// Part of the current round.
        case asking
        /// The server answered.
        case settled
        /// No answer on this connection: retried after the next declaration or connection.
        case unanswered
        /// The subscription is to be requested, or requested again; the server may have it already.
        case open
    }

    private struct Entry {
        var requested: Subscription
        /// The server's last answer; `nil` while it is unknown whether the server has the subscription.
        var reason: ReasonCode?
        var standing = Standing.asking
        /// The server refused to end the subscription.
        var isRemovalSettled = false

        /// Rejected, or the server's answer is unknown.
        var isOpenAgain: Bool { self.standing != .settled || self.reason?.isError ?? true }
    }

    /// Filters by their bytes: characters that look equal may have different bytes ([MQTT-4.7.3-4]).
    private typealias Key = [UInt8]

    package private(set) var declared: [Subscription] = []
    private var entries: [Key: Entry] = [:]
    private var round: Round?
    private var isConnected = false
    private var wasConnected = false

    package init() {}

    /// The server's answers, in the order of the filters' bytes.
    package var effective: [MQTTSubscribeResult] {
        let sorted = self.entries.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        return sorted.compactMap { _, entry in
            entry.reason.map { MQTTSubscribeResult(filter: entry.requested.filter, reason: $0) }
        }
    }

    /// Sets the subscriptions to have in effect; of two with the same filter the later one counts.
    ///
    /// Rejected filters are requested once more.
    package mutating func declare(_ subscriptions: [Subscription]) -> Round? {
        var places: [Key: Int] = [:]
        self.declared = []
        for subscription in subscriptions {
            let key = Key(subscription.filter.utf8)
            if let place = places[key] {
                self.declared[place] = subscription
            } else {
                places[key] = self.declared.count
                self.declared.append(subscription)
            }
        }
        for (key, entry) in self.entries {
            if entry.isOpenAgain, entry.standing != .asking { self.entries[key]?.standing = .open }
            self.entries[key]?.isRemovalSettled = false
        }
        return self.next()
    }

    /// A connection starts; with `sessionPresent` the server kept the subscriptions in effect.
    package mutating func connected(sessionPresent: Bool, cleanStart: Bool) -> Round? {
        self.isConnected = true
        self.round = nil
        // The first connection may resume a session of another process, whose subscriptions are unknown.
        let isKept = sessionPresent && !cleanStart && self.wasConnected
        self.wasConnected = true
        if !isKept { self.entries = [:] }
        for (key, entry) in self.entries where entry.isOpenAgain { self.entries[key]?.standing = .open }
        for key in self.entries.keys { self.entries[key]?.isRemovalSettled = false }
        return self.next()
    }

    /// The next connection is to another server, whose stored subscriptions are unknown.
    package mutating func serverChanged() { self.wasConnected = false }

    /// The connection is lost; the answers to the current round will not come.
    package mutating func disconnected() {
        self.isConnected = false
        self.round = nil
    }

    /// The current round is over.
    ///
    /// - Parameters:
    ///   - unsubscribed: one reason for each filter; `nil` if there was no answer.
    ///   - subscribed: likewise.
    /// - Returns: the next round, if one is needed.
    package mutating func ended(unsubscribed: [ReasonCode]?, subscribed: [ReasonCode]?) -> Round? {
        guard let round = self.round else { return nil }
        self.round = nil
        for (index, filter) in round.unsubscribe.enumerated() {
            let key = Key(filter.utf8)
            if let unsubscribed, unsubscribed.indices.contains(index), !unsubscribed[index].isError {
                self.entries[key] = nil
            } else {
                self.entries[key]?.isRemovalSettled = true
            }
        }
        for (index, subscription) in round.subscribe.enumerated() {
            let key = Key(subscription.filter.utf8)
            if let subscribed, subscribed.indices.contains(index) {
                self.entries[key]?.standing = .settled
                self.entries[key]?.reason = subscribed[index]
            } else {
                self.entries[key]?.standing = .unanswered
            }
        }
        return self.next()
    }

    private mutating func next() -> Round? {
        guard self.isConnected, self.round == nil else { return nil }
        var round = Round()
        let wanted = Set(self.declared.map { Key($0.filter.utf8) })
        for (key, entry) in self.entries where !wanted.contains(key) {
            if entry.standing == .settled || entry.standing == .open, let reason = entry.reason, reason.isError {
                // The server never had this subscription.
                self.entries[key] = nil
            } else if !entry.isRemovalSettled {
                round.unsubscribe.append(entry.requested.filter)
            }
        }
        round.unsubscribe.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        for subscription in self.declared {
            let key = Key(subscription.filter.utf8)
            if let entry = self.entries[key], entry.standing != .open, entry.requested == subscription { continue }
            self.entries[key] = Entry(requested: subscription, reason: self.entries[key]?.reason)
            round.subscribe.append(subscription)
        }
        guard !round.isEmpty else { return nil }
        self.round = round
        return round
    }
}
