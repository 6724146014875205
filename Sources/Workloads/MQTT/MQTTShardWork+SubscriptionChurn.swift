import LoadEngine
import LoopContext
import MQTT
package import MQTTCodec
package import Measurement
package import NIOCore

/// Subscription churn: clients in turn subscribe to a filter of their own and unsubscribe again.
///
/// The run publishes nothing that matches these filters, so the churn does not change its other figures. The churn
/// measures how long a server takes to add and to remove a subscription.
package struct SubscriptionChurnMetrics: Sendable {
    /// The time from due to SUBACK, and from UNSUBSCRIBE to UNSUBACK.
    package let subscribed: DurationID
    package let unsubscribed: DurationID
    /// Each due churn is counted in exactly one of these.
    package let done: CounterID
    /// The client was not connected, was still busy with its previous churn, or the load ended first.
    ///
    /// Such a churn is outstanding, except where the client was away by plan.
    package let missed: CounterID
    /// Refused, not answered in time, or the connection was lost.
    package let failed: CounterID
    /// The load, or by plan the connection, ended before the answer.
    package let unfinished: CounterID

    init(_ catalog: inout MetricCatalog) {
        self.subscribed = catalog.duration(.subscriptionChurn, ["leg": "suback"])
        self.unsubscribed = catalog.duration(.subscriptionChurn, ["leg": "unsuback"])
        self.done = catalog.counter(.subscriptionChurnDone)
        self.missed = catalog.counter(.subscriptionChurnMissed)
        self.failed = catalog.counter(.subscriptionChurnFailed)
        self.unfinished = catalog.counter(.subscriptionChurnUnfinished)
    }
}

/// A client's churn, from SUBSCRIBE to UNSUBACK.
struct SubscriptionTurn {
    let filter: String
    let due: NIODeadline
    /// The id of the unanswered packet, `nil` where none was free, and the time when it was written.
    var id: PacketID?
    var sent: NIODeadline
    var isSubscribed = false
}

extension MQTTShardWork {
    package func turn(_ place: Int, due: NIODeadline) {
        guard let filter = self.load.churnFilter(of: self.number(place)) else { return }
        let now = self.context.now
        if let open = self.turns[place], now - open.sent > self.sessions[place].options.ackTimeout {
            self.turns[place] = nil
            self.turnFailed(
                open,
                "timeout",
                "no answer to the SUBSCRIBE or UNSUBSCRIBE of a client's turn within the acknowledgement timeout"
            )
        }
        let client = self.clients[place]
        guard client.stage == .up, self.turns[place] == nil, let connection = client.connection else {
            return self.turnMissed(place, due: due)
        }
        self.meter.record(self.metrics.scheduleLag, (now - due).nanoseconds, lane: self.shard.times.lane(due))
        var turn = SubscriptionTurn(filter: filter, due: due, id: nil, sent: now)
        guard let id = connection.subscribe([Subscription(filter: filter)]) else {
            let words = "no packet identifier is free, or the server takes no SUBSCRIBE so large"
            return self.turnFailed(turn, "suback", words)
        }
        turn.id = id
        self.turns[place] = turn
        // The write may have found a dead connection, and ended it.
        if self.clients[place].connection !== connection { self.endTurn(place, isLost: true) }
    }

    private func turnMissed(_ place: Int, due: NIODeadline) {
        guard let churn = self.metrics.subscriptionChurn else { return }
        self.meter.add(churn.missed)
        switch self.clients[place].stage {
        case .leaving, .away: break
        default: if !self.shard.isAwayByPlan(place) { self.keepMissed(1, due: due) }
        }
    }

    package func turnsMissed(_ count: UInt64, due: NIODeadline) {
        guard let churn = self.metrics.subscriptionChurn else { return }
        self.meter.add(churn.missed, count)
        self.keepMissed(count, due: due)
    }

    /// Churns of one lane that were due within 10 ms share an entry with the last due time, so that no age is too high.
    private func keepMissed(_ count: UInt64, due: NIODeadline) {
        let last = self.missedTurns.count - 1
        if last >= 0, due - self.missedTurns[last].begin < .milliseconds(10),
            self.shard.times.lane(due) == self.shard.times.lane(self.missedTurns[last].begin)
        {
            self.missedTurns[last].due = max(due, self.missedTurns[last].due)
            self.missedTurns[last].count += count
        } else {
            self.missedTurns.append((due, due, count))
        }
    }

    /// The age of a churn that was not begun ends with the drain, or with the last client.
    func settleMissedTurns() {
        guard let churn = self.metrics.subscriptionChurn, !self.missedTurns.isEmpty,
            self.shard.drainEnded != nil || self.slab.live == 0
        else { return }
        for (_, due, count) in self.missedTurns {
            let (age, lane) = (self.age(since: due, .outstanding), self.shard.times.lane(due))
            self.meter.recordUnanswered(churn.subscribed, age, count: count, lane: lane, as: .outstanding)
        }
        self.missedTurns = []
    }

    /// Whether this SUBACK answers the SUBSCRIBE of a churn.
    func takesTurn(_ place: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) -> Bool {
        guard let churn = self.metrics.subscriptionChurn, var turn = self.turns[place], turn.id == id else {
            return false
        }
        self.turns[place] = nil
        if let code = codes.first(where: { $0 >= 0x80 }) {
            self.turnFailed(turn, "suback 0x" + String(code, radix: 16), "SUBACK refused: \(Self.name(of: code))")
            return true
        }
        self.meter.record(churn.subscribed, (now - turn.due).nanoseconds, lane: self.shard.times.lane(turn.due))
        // No operation begins in the drain, and the client sends nothing after its own DISCONNECT.
        let client = self.clients[place]
        guard client.stage == .up, !self.shard.isDraining, let connection = client.connection else {
            self.meter.add(churn.unfinished)
            return true
        }
        (turn.sent, turn.isSubscribed) = (now, true)
        guard let id = connection.unsubscribe([turn.filter]) else {
            let words = "no packet identifier is free, or the server takes no UNSUBSCRIBE so large"
            self.turnFailed(turn, "unsuback", words)
            return true
        }
        turn.id = id
        self.turns[place] = turn
        return true
    }

    package func unsubscribed(_ place: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        if self.takesLeave(place, id, codes: codes, now: now) { return }
        guard let churn = self.metrics.subscriptionChurn, let turn = self.turns[place], turn.id == id else { return }
        self.turns[place] = nil
        guard let code = codes.first(where: { $0 >= 0x80 }) else {
            self.meter.record(churn.unsubscribed, (now - turn.sent).nanoseconds, lane: self.shard.times.lane(turn.due))
            return self.meter.add(churn.done)
        }
        self.turnFailed(turn, "unsuback 0x" + String(code, radix: 16), "UNSUBACK refused: \(Self.name(of: code))")
    }

    /// The client's connection is gone, and with it the churn in flight; a departure by plan excuses it.
    func endTurn(_ place: Int, isLost: Bool) {
        guard let churn = self.metrics.subscriptionChurn, let turn = self.turns.removeValue(forKey: place) else {
            return
        }
        if isLost || self.isEndedByRun(place) { self.recordUnanswered(turn, as: isLost ? .failed : .outstanding) }
        self.meter.add(isLost ? churn.failed : churn.unfinished)
    }

    private func recordUnanswered(_ turn: SubscriptionTurn, as end: UnansweredEnd) {
        guard let churn = self.metrics.subscriptionChurn else { return }
        let (id, since) = turn.isSubscribed ? (churn.unsubscribed, turn.sent) : (churn.subscribed, turn.due)
        self.meter.recordUnanswered(id, self.age(since: since, end), lane: self.shard.times.lane(turn.due), as: end)
    }

    private func turnFailed(_ turn: SubscriptionTurn, _ kind: String, _ words: String) {
        self.recordUnanswered(turn, as: .failed)
        if let churn = self.metrics.subscriptionChurn { self.meter.add(churn.failed) }
        self.error(kind, words)
    }

    static func name(of code: UInt8) -> String { ReasonCode(rawValue: code)?.name ?? "unknown code" }
}

extension MQTTLoad {
    /// The filter of a client's churn, by its number in the run.
    func churnFilter(of number: Int) -> String? {
        guard let template = self.subscriptionChurn else { return nil }
        var random = SplitMix64(seed: self.seed &+ UInt64(number))
        return String(decoding: template.rendered(self.values(of: number), random: &random), as: UTF8.self)
    }

    /// The reason why a client cannot subscribe to its churn filter.
    func churnProblem(of number: Int) -> String? {
        guard let filter = self.churnFilter(of: number) else { return nil }
        return Subscribe(1, [Subscription(filter: filter)]).problem(as: self.version)
            .map { "filter '\(filter)' of the subscription churn: \($0.words)" }
    }

    /// The reason why the churn's subscriptions would change the run's counts.
    var churnProblem: String? {
        guard let template = self.subscriptionChurn else { return nil }
        let own = template.filterOfAllClients
        // UNSUBSCRIBE removes the subscription with the same text. The check over every client runs only if that can
        // happen.
        let levels = own.count { $0 == "/" }
        let mayBeSame = self.filters.map(\.pattern).contains { filter in
            filter.count { $0 == "/" } == levels && Self.overlap(own, filter)
        }
        let subscribers = self.subscribingClients
        let same = subscribers.lazy.compactMap { number in
            self.churnFilter(of: number).flatMap { filter in
                self.subscriptions(of: number).contains { $0.filter == filter } ? filter : nil
            }
        }
        if mayBeSame, let filter = same.first {
            return "filter '\(filter)' of the subscription churn is what its client subscribes to for good; "
                + "give another"
        }
        guard self.publishers > 0, !self.qualities.isEmpty else { return nil }
        let published: [Template] =
            self.streams.map(\.topic) + (self.topology == .request ? self.stream.responseTopic.map { [$0] } ?? [] : [])
        let heard = published.map(\.filterOfAllClients).first { Self.overlap(own, $0) }
        guard let topics = heard else { return nil }
        return "filter '\(own)' of the subscription churn matches this run's topics '\(topics)', and messages "
            + "would come twice; give another"
    }

    /// Whether a topic may match both filters.
    package static func overlap(_ one: String, _ other: String) -> Bool {
        func levels(_ filter: String) -> ArraySlice<Substring> {
            let levels = filter.split(separator: "/", omittingEmptySubsequences: false)
            return levels.first == "$share" ? levels.dropFirst(2) : levels[...]
        }
        var (ones, others) = (levels(one), levels(other))
        while let level = ones.popFirst() {
            guard let counterpart = others.popFirst() else { return level == "#" }
            if level == "#" || counterpart == "#" { return true }
            guard level == counterpart || level == "+" || counterpart == "+" else { return false }
        }
        return others.isEmpty || others.first == "#"
    }
}
