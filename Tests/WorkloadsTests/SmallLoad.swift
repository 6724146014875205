import MQTT
import MQTTCodec
import Testing
import Workloads

extension MQTTLoad {
    /// The load of a test on a virtual clock: messages of 48 bytes, to a topic of each publisher's own.
    static func small(
        _ topology: Topology,
        publishers: Int,
        subscribers: Int,
        qualities: [QoS] = [.atLeastOnce],
        session: SessionOptions = SessionOptions(version: .v5)
    ) -> MQTTLoad {
        var load = MQTTLoad(
            version: .v5,
            publisherSession: session,
            subscriberSession: session,
            publisherID: Template(parsing: "p-%i"),
            subscriberID: Template(parsing: "s-%i"),
            publishers: publishers,
            subscribers: subscribers,
            topic: Template(parsing: topology == .fanOut ? "t" : "t/%i"),
            payload: .generated(size: 48),
            qualities: qualities,
            subscriberQualities: [qualities.max() ?? .atMostOnce],
            run: 7,
            realtimeOffset: 1_700_000_000_000_000_000
        )
        load.topology = topology
        return load
    }
}

/// Publishers and subscribers of a run.
struct LoadShape: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let topology: MQTTLoad.Topology
    let publishers: Int
    let subscribers: Int

    /// One of each topology whose messages are not answered.
    static let all = [
        LoadShape(testDescription: "pairs", topology: .pair, publishers: 6, subscribers: 6),
        LoadShape(testDescription: "fan-in", topology: .fanIn, publishers: 6, subscribers: 1),
        LoadShape(testDescription: "fan-out", topology: .fanOut, publishers: 1, subscribers: 5),
        LoadShape(testDescription: "several to several", topology: .fanIn, publishers: 6, subscribers: 3),
        LoadShape(testDescription: "shared", topology: .shared, publishers: 6, subscribers: 4),
    ]
    static let request = LoadShape(testDescription: "request", topology: .request, publishers: 6, subscribers: 4)
}
