import EmbeddedBroker
import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import NIOCore
import NIOPosix
import Transport
import Workloads

/// The product's own clients on one event loop, against the embedded broker on another, over 127.0.0.1.
struct LoopbackLoad {
    private let broker: BrokerServer
    private let group: MultiThreadedEventLoopGroup
    private let plan: LoadPlan
    private let load: MQTTLoad
    private let messages: UInt64

    init(qos: QoS, publishers: Int, subscribers: Int, messages: UInt64) async throws {
        self.broker = try await BrokerServer.start(BrokerConfiguration(port: 0))
        self.group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        self.messages = messages
        self.plan = LoadPlan(
            operators: publishers,
            listeners: subscribers,
            pace: .closed,
            limit: messages,
            measure: nil
        )
        self.load = MQTTLoad(
            version: .v5,
            publisherSession: SessionOptions(version: .v5),
            subscriberSession: SessionOptions(version: .v5),
            publisherID: Template(parsing: "bench-pub-%i"),
            subscriberID: Template(parsing: "bench-sub-%i"),
            publishers: publishers,
            subscribers: subscribers,
            topic: Template(parsing: "bench/%i"),
            payload: .generated(size: 64),
            qualities: [qos],
            subscriberQualities: [qos],
            run: 1,
            realtimeOffset: 0
        )
    }

    /// From the first connect to the last FIN.
    func perform() async {
        let events = AsyncStream<RunEvent>.makeStream()
        let (plan, load, port, send) = (self.plan, self.load, self.broker.port, events.continuation)
        let metrics = MQTTMetrics(for: load, loops: 1)
        let loop = self.group.next()
        let handle = try? await loop.flatSubmit {
            let context = LoopContext(eventLoop: loop)
            let shard = Shard<MQTTShardWork>(context: context, plan: plan, index: 0, of: 1) { send.yield(.shard($0)) }
            let connector = TCPConnector(context: context, targets: [Target(host: "127.0.0.1", port: port)])
            let workload = MQTTWorkload(load, metrics: metrics)
            shard.work = workload.makeWork(on: shard, connector: connector)
            let handle = ShardHandle(shard)
            return Doorbell.install(on: context).map { handle }
        }.get()
        guard let handle else { fatalError("the event loop is not to be had") }
        let group = LoadGroup<LoadSample>(plan: plan, shards: [handle], reconnects: false)
        let run = LoadRun(groups: [group], events: events, observer: NoObserver())
        let outcome = await run.perform()
        precondition(outcome.stop == .planned && !outcome.wasAborted, "the load did not end as planned: \(outcome)")
    }

    /// Stops the broker, and makes sure that it had everything.
    func end() async {
        let counters = await self.broker.stop()
        precondition(
            counters.received[self.load.qos(ofPublisher: 0).rawValue] == self.messages,
            "the broker did not get every message"
        )
        try? await self.group.shutdownGracefully()
    }
}

/// No observer: the clients' records are not collected.
private struct NoObserver: RunObserver {
    func interval(
        second: Int,
        phase: RunPhase,
        span: TimeAmount,
        groups: [GroupSample<LoadSample>]
    ) async -> StopReason? { nil }

    func isComplete(_ balance: DeliveryBalance, of group: Int) async -> Bool { balance.isComplete }
}
