import Ledger
package import LoadEngine
package import Measurement
package import RunResult
package import Transport

package struct MQTTWorkload: Workload {
    package private(set) var load: MQTTLoad
    package let metrics: MQTTMetrics
    /// The publishers and receivers of all groups of the run, and this group's place among them.
    package let plan: DeliveryPlan
    package let group: Int
    let hub: DeliveryHub?

    /// - Parameters:
    ///   - load: the clients' settings.
    ///   - metrics: the metrics made for the load.
    ///   - plan: the publishers and receivers of all groups of the run; `nil`: the load is alone.
    ///   - group: the load's place in the plan.
    ///   - hub: tells the loops of all groups when receivers come and go; `nil` if the load is a segment's.
    package init(
        _ load: MQTTLoad,
        metrics: MQTTMetrics,
        plan: DeliveryPlan? = nil,
        group: Int = 0,
        hub: DeliveryHub? = nil
    ) {
        self.load = load
        self.metrics = metrics
        self.plan = plan ?? DeliveryPlan([DeliveryPlan.Group(load: load)])
        self.group = group
        self.hub = hub
    }

    /// The same with other settings of the clients.
    package func with(_ load: MQTTLoad) -> MQTTWorkload {
        var other = self
        other.load = load
        return other
    }

    package var protocolName: String { "mqtt" }
    package var catalog: MetricCatalog { self.metrics.catalog }
    package var known: MetricCatalog { self.metrics.known(for: self.load, in: self.plan, group: self.group) }
    package var answerMetric: MetricDefinition { .publishAck }
    package var realtimeOffset: Int64 { self.load.realtimeOffset }
    package var comesBack: Bool { self.load.comesBack }

    package var completion: DeliveryCompletion {
        guard self.receives || self.isHeard else { return .nothing }
        guard self.plan.isFollowed else { return .silence }
        // `sub` alone ends by the clock; it does not wait for messages of other publishers.
        guard self.plan.hasPublishers else { return .balance }
        return self.load.bond == .none ? .balance : .joint
    }

    /// Whether clients of the group receive messages, or others of the run may receive theirs.
    private var receives: Bool { self.load.subscribes || self.plan.hasP2P }
    private var isHeard: Bool { self.load.publishes && self.plan.hasLedger }

    package var ledger: LedgerRecord {
        if !self.receives, !self.isHeard { return LedgerRecord(on: false, reason: "no subscriber in this run") }
        if self.plan.hears(self.group), self.plan.rows(heardBy: self.group).isEmpty, !self.load.publishes {
            return LedgerRecord(on: false, reason: "what its clients hear has no header that they get")
        }
        let isOn = self.plan.isFollowed && (self.load.hasLedger || !self.load.publishes)
        if isOn, self.load.bond == .ledger {
            var ledger = LedgerRecord(on: true, reason: "its segments have yet to be merged")
            ledger.pending = true
            return ledger
        }
        var ledger = LedgerRecord(on: isOn)
        if self.plan.isFollowed, self.load.publishes {
            let unfollowed = self.load.streams.filter { !self.load.hasLedger || !$0.hasHeader }.map(\.name)
            ledger.unfollowed = unfollowed.isEmpty ? nil : unfollowed
        }
        if isOn { return ledger }
        ledger.reason =
            self.plan.hasPublishers
            ? "messages carry no header: their text has no %{ledger}, they have fewer than "
                + "\(LedgerCarrier.leastSize(isAddressed: self.load.isAddressed)) bytes, or no receiver gets properties"
            : "with Retain As Published a stored copy looks like a new message, unless Retain Handling is 2"
        return ledger
    }

    package func makeWork(on shard: Shard<MQTTShardWork>, connector: any ClientConnector) -> MQTTShardWork {
        MQTTShardWork(self, shard: shard, connector: connector)
    }

    /// Has every shard told of the receivers that come and go.
    package func prepare(_ shards: [ShardHandle<MQTTShardWork>], plan: LoadPlan) {
        guard let hub = self.hub, self.load.publishes else { return }
        for handle in shards { hub.add { news in handle.tell { $0.work?.note(news) } } }
    }

    package func result(of work: MQTTShardWork) -> MQTTResult { work.takeResult() }
}
