import CPosix
import LoadEngine
import MQTT
import MQTTCodec
import NIOCore
import Transport
import Workloads

/// From what the command line says to what the engine and the workload do.
extension RunOptions {
    /// The load over all shards; the more different servers, the more connects may be pending at once.
    func plan(targets: Int) -> LoadPlan {
        let pace: LoadPlan.Pace
        switch (self.kind, self.pacing) {
        case (.conn, _), (.sub, _): pace = .idle
        case (_, .rate(let perSecond)): pace = .open(.rate(perSecond: perSecond))
        case (_, .interval(let nanoseconds)): pace = .open(.interval(.nanoseconds(nanoseconds)))
        case (_, .closedLoop): pace = .closed
        }
        return LoadPlan(
            operators: self.publishers,
            listeners: self.subscribers,
            connect: self.connectRate.map { .rate(perSecond: $0) } ?? .pending(64 * targets),
            pace: pace,
            limit: self.limit,
            waitsForConnects: self.waitsForAll,
            warmup: .nanoseconds(self.warmup),
            measure: self.duration.map { .nanoseconds($0) },
            drain: .nanoseconds(self.drain)
        )
    }

    /// What the clients do; `run` stands in the header of every message, and `seed` was given or drawn.
    func load(run: UInt32, seed: UInt64) -> MQTTLoad {
        let version = ProtocolVersion(rawValue: self.protocolLevel) ?? .v5
        let qualities = self.kind == .conn || self.kind == .sub ? [] : self.qualities.compactMap(QoS.init(rawValue:))
        let payload: MQTTLoad.Payload =
            switch self.payload {
            case .generated(let size): .generated(size: size)
            case .message(let bytes): .message(Template(parsing: bytes))
            }
        var load = MQTTLoad(
            version: version,
            publisherSession: self.session(version),
            subscriberSession: self.session(version),
            publisherID: Template(parsing: self.publisherID),
            subscriberID: Template(parsing: self.subscriberID),
            publishers: self.publishers,
            subscribers: self.subscribers,
            topic: Template(parsing: self.topic),
            payload: payload,
            qualities: qualities,
            subscriberQualities: self.subscriberQualities,
            run: run,
            realtimeOffset: clamor_realtime_nanoseconds() - clamor_monotonic_nanoseconds()
        )
        load.username = self.username.map { Template(parsing: $0) }
        load.password = self.password.map { Template(parsing: $0) }
        load.firstNumber = self.startNumber + 1
        load.retain = self.retain
        load.batch = self.batch
        load.isOpenLoop = self.pacing != .closedLoop
        load.topology = self.workloadTopology
        load.filters = self.filters.map { Template(parsing: $0) }
        load.hasLedger = self.hasLedger || self.kind == .sub
        load.connectTimeout = .nanoseconds(self.connectTimeout)
        load.connectRetries = self.connectRetries
        load.reconnects = self.reconnects
        load.reconnectPeriod = .nanoseconds(self.reconnectPeriod)
        load.seed = seed
        load.publishersAreApart = load.separatesPublishers
        return load
    }

    private var subscriberQualities: [QoS] {
        let all = self.qualities.compactMap(QoS.init(rawValue:))
        return self.kind == .sub ? all : [all.max() ?? .atMostOnce]
    }

    private var workloadTopology: MQTTLoad.Topology {
        switch self.topology {
        case .pair, .fanOut: self.kind == .sub ? .all : .pair
        case .fanIn: .all
        case .shared: .shared
        }
    }

    private func session(_ version: ProtocolVersion) -> SessionOptions {
        SessionOptions(
            version: version,
            cleanStart: self.clean,
            keepAlive: self.keepAlive,
            sessionExpiry: self.sessionExpiry,
            // 0: whatever the peer's receive maximum is.
            window: self.window == 0 ? 65_535 : min(self.window, 65_535),
            ackTimeout: .nanoseconds(self.ackTimeout)
        )
    }
}
