package import LoadEngine
import MQTT
package import Measurement
package import RunResult
import NIOCore
package import Transport

/// The MQTT clients of a run.
package struct MQTTWorkload: Workload {
    package let load: MQTTLoad
    package let metrics: MQTTMetrics
    private let store: KeptFlows?

    /// - Parameters:
    ///   - load: the clients' settings.
    ///   - metrics: the metrics made for the load.
    ///   - store: the store of the clients' flows, if they are not in memory.
    package init(_ load: MQTTLoad, metrics: MQTTMetrics, store: KeptFlows? = nil) {
        self.load = load
        self.metrics = metrics
        self.store = store
    }

    package var protocolName: String { "mqtt" }
    package var catalog: MetricCatalog { self.metrics.catalog }
    package var known: MetricCatalog { self.metrics.known(for: self.load) }
    package var answerMetric: String { "publish_ack_duration" }
    package var realtimeOffset: Int64 { self.load.realtimeOffset }
    package var comesBack: Bool { self.load.comesBack }
    package var shareDurations: [DurationID] { self.load.topology == .shared ? self.metrics.deliveryDurations : [] }

    package var completion: DeliveryCompletion {
        // `sub` alone ends by the clock; it does not wait for messages of other publishers.
        guard self.load.hasLedger || self.load.publishers == 0 else {
            return self.load.subscribers > 0 ? .silence : .nothing
        }
        if self.load.joint != nil { return .joint(shares: self.load.topology == .shared) }
        return self.load.topology == .shared ? .shares : .balance
    }

    package var ledger: LedgerRecord {
        if self.load.subscribers == 0 { return LedgerRecord(on: false, reason: "no subscriber in this run") }
        if self.load.hasLedger, self.load.joint != nil {
            var ledger = LedgerRecord(on: true, reason: "its segments have yet to be merged")
            ledger.pending = true
            return ledger
        }
        if self.load.hasLedger { return LedgerRecord(on: true) }
        return LedgerRecord(
            on: false,
            reason: self.load.publishers == 0
                ? "with Retain As Published a stored copy looks like a new message, unless Retain Handling is 2"
                : "messages carry no header: their text was given, or they have fewer than 32 bytes"
        )
    }

    package func makeWork(on shard: Shard<MQTTShardWork>, connector: any ClientConnector) -> MQTTShardWork {
        MQTTShardWork(self.load, metrics: self.metrics, shard: shard, connector: connector, store: self.store)
    }

    /// Makes every shard record its publishers' progress when any subscription comes into effect, unless publishers
    /// wait for subscriptions.
    package func prepare(_ shards: [ShardHandle<MQTTShardWork>], plan: LoadPlan) {
        guard !plan.waitsForConnects, plan.listeners > 0 else { return }
        for handle in shards {
            handle.tell { shard in
                shard.work?.subscriptionBegan = { subscription in
                    for other in shards { other.tell { $0.work?.noteEarly(subscription) } }
                }
            }
        }
    }

    package func result(of work: MQTTShardWork) -> MQTTResult { work.takeResult() }
}
