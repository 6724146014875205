import Ledger
import LoadEngine
import MQTT
import MQTTCodec
import Measurement
import NIOCore
import Testing
import Workloads

@Suite("Targets that are servers of their own")
struct SeparateServersTests {
    private static func load(
        _ topology: MQTTLoad.Topology,
        _ publishers: Int,
        _ subscribers: Int,
        servers: Int
    )
        -> MQTTLoad
    {
        var load = MQTTLoad.small(topology, publishers: publishers, subscribers: subscribers)
        load.servers = servers
        return load
    }

    static let shapes: [(publishers: Int, subscribers: Int, servers: Int)] = [
        (2, 2, 2), (5, 3, 2), (3, 5, 2), (7, 7, 3), (100, 9, 4), (9, 100, 9), (6, 6, 1),
    ]

    @Test(
        "a message reaches the subscriptions of its publisher's server, each once",
        arguments: [MQTTLoad.Topology.pair, .fanIn, .shared],
        shapes
    )
    func members(_ topology: MQTTLoad.Topology, _ shape: (publishers: Int, subscribers: Int, servers: Int)) {
        let load = Self.load(topology, shape.publishers, shape.subscribers, servers: shape.servers)
        let plan = DeliveryPlan([DeliveryPlan.Group(load: load)])
        for publisher in 0..<shape.publishers {
            var random = SplitMix64(seed: 0)
            let topic = load.topic.rendered(load.values(of: publisher), random: &random)
            let members = plan.members(group: 0, client: publisher, topic: topic[...])
            let server = load.server(of: publisher)
            let listeners = (shape.publishers..<shape.publishers + shape.subscribers).filter { listener in
                guard load.server(of: listener) == server else { return false }
                return topology != .pair || (listener - shape.publishers) % shape.publishers == publisher
            }
            let receivers =
                topology == .shared
                ? Set(listeners.flatMap { plan.shareGroups(group: 0, client: $0) })
                : Set(listeners.compactMap { plan.receiver(group: 0, client: $0) })
            #expect(Set(members.map(\.receiver)) == receivers)
            #expect(members.allSatisfy { $0.copies == 1 && $0.isShared == (topology == .shared) })
        }
    }

    @Test("every server has publishers and subscribers, as many as another or one more", arguments: shapes)
    func shares(_ shape: (publishers: Int, subscribers: Int, servers: Int)) {
        let load = Self.load(.fanIn, shape.publishers, shape.subscribers, servers: shape.servers)
        for clients in [0..<shape.publishers, shape.publishers..<shape.publishers + shape.subscribers] {
            let counts = Dictionary(grouping: clients, by: load.server(of:)).mapValues(\.count)
            #expect(counts.keys.sorted() == Array(0..<shape.servers))
            #expect((counts.values.max() ?? 0) - (counts.values.min() ?? 0) <= 1)
        }
    }

    @Test("a client's route leads to its own server, and no two clients have the same", arguments: shapes)
    func routes(_ shape: (publishers: Int, subscribers: Int, servers: Int)) {
        let load = Self.load(.pair, shape.publishers, shape.subscribers, servers: shape.servers)
        let clients = 0..<shape.publishers + shape.subscribers
        for client in clients { #expect(load.route(of: client) % shape.servers == load.server(of: client)) }
        #expect(Set(clients.map(load.route(of:))).count == clients.count)
    }
}
