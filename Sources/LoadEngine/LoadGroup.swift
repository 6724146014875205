package import NIOCore

/// The shards that carry out one plan, one on each event loop.
///
/// The groups of a run have one timeline: warm-up, measured phase, drain and grace are the same in all their plans.
package struct LoadGroup<Sample: Sendable>: Sendable {
    /// The same that the shards have.
    package var plan: LoadPlan
    /// The shards are in the order of their numbers.
    package var shards: [any ShardControl<Sample>]
    /// Whether clients reconnect by themselves.
    package var reconnects: Bool
    /// The sum of the pauses before their attempts: so long the run waits for a server that is away.
    package var returnTime = TimeAmount.zero
    /// Groups with the same number receive each other's messages; `nil`: the group receives only its own.
    package var exchange: Int?

    package init(plan: LoadPlan, shards: [any ShardControl<Sample>], reconnects: Bool, exchange: Int? = nil) {
        self.plan = plan
        self.shards = shards
        self.reconnects = reconnects
        self.exchange = exchange
    }
}

/// Measurements of one group's shards in an interval.
package struct GroupSample<Sample: Sendable>: Sendable {
    /// One of each shard, in their order.
    package var samples: [Sample] = []
    /// One of each shard.
    package var facts: [ShardFacts] = []

    package init(samples: [Sample] = [], facts: [ShardFacts] = []) {
        self.samples = samples
        self.facts = facts
    }
}

/// How one group of a run fared.
package struct GroupOutcome: Hashable, Sendable {
    /// Clients that came up, at first or later.
    package var up: Int
    /// The group had no connection, none left, or none of a kind of clients that its load needs.
    package var loss: StopReason?

    package init(up: Int, loss: StopReason? = nil) {
        self.up = up
        self.loss = loss
    }
}

/// A group as its run leads it.
struct GroupState<Sample: Sendable> {
    let group: LoadGroup<Sample>
    /// Clients that came up at first, of the shards that have settled.
    var up = 0
    /// Clients that were up at some time, as of the last sample.
    var everUp = 0
    var settledShards = 0
    var spentShards = 0
    var operatorsGone = 0
    var finishedShards = 0
    var listenersTold = false
    var operatorsReleased = false
    /// The time since which no client is connected.
    var emptySince: NIODeadline?
    var loss: StopReason?
    /// Since then the group, and those that it exchanges messages with, have sent everything and are all there.
    var sentSince: NIODeadline?

    init(_ group: LoadGroup<Sample>) { self.group = group }

    var plan: LoadPlan { self.group.plan }
    var shards: [any ShardControl<Sample>] { self.group.shards }
    var isSettled: Bool { self.settledShards == self.shards.count }
    var isFinished: Bool { self.finishedShards == self.shards.count }
    var areOperatorsGone: Bool { self.operatorsGone == self.shards.count }
    /// Whether its operations can end and it has operators to carry them out.
    var operates: Bool {
        let isGone = self.loss != nil && self.loss != .everyListenerFailed
        return self.plan.pace != .idle && self.plan.operators > 0 && !isGone
    }
    /// A shard without operators has nothing to spend.
    var isSpent: Bool { self.spentShards == min(self.shards.count, self.plan.segment.share(of: self.plan.width)) }
    var outcome: GroupOutcome { GroupOutcome(up: max(self.up, self.everUp), loss: self.loss) }

    func tellAll(_ order: ShardOrder) {
        for shard in self.shards { shard.tell(order) }
    }

    func facts() async -> [ShardFacts] {
        var facts: [ShardFacts] = []
        for shard in self.shards {
            if let fact = await shard.facts() { facts.append(fact) }
        }
        return facts
    }

    /// Why the clients that have come up, or not, cannot carry out the load; `nil` if they can.
    func lossOfConnects() async -> StopReason? {
        let facts = await self.facts()
        if self.up == 0, self.plan.ownClients > 0 {
            // All clients of a segment may be away in the first stage.
            return facts.contains { $0.connectsBegun > 0 } ? .everyConnectFailed : nil
        }
        let (operators, all) = (self.plan.ownOperators, self.plan.ownClients)
        // A segment may have a few clients of many.
        guard self.plan.pace != .idle, self.plan.segment.count == 1 else { return nil }
        if operators > 0, facts.reduce(0, { $0 + $1.failedOperators }) == operators { return .everyOperatorFailed }
        let hasListeners = operators < all && facts.reduce(0, { $0 + $1.failedListeners }) < all - operators
        return operators == all || hasListeners ? nil : .everyListenerFailed
    }

    func sample() async -> GroupSample<Sample> {
        var all = GroupSample<Sample>()
        for shard in self.shards {
            guard let (sample, facts) = await shard.sample() else { continue }
            all.samples.append(sample)
            all.facts.append(facts)
        }
        return all
    }
}
