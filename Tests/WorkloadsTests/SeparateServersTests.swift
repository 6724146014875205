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
        "a subscription hears the publishers of its own server, and every way to ask says so",
        arguments: [MQTTLoad.Topology.pair, .fanIn, .shared, .request],
        shapes
    )
    func feeds(_ topology: MQTTLoad.Topology, _ shape: (publishers: Int, subscribers: Int, servers: Int)) throws {
        let load = Self.load(topology, shape.publishers, shape.subscribers, servers: shape.servers)
        var heard: [UInt32: Set<Int>] = [:]
        for feed in load.feeds { heard[feed.subscription, default: []].formUnion(feed.publishers.map(Int.init)) }
        for publisher in 0..<shape.publishers {
            let subscriptions = heard.filter { $0.value.contains(publisher) }.map(\.key)
            for subscription in heard.keys {
                #expect(load.feeds(subscription, from: publisher) == subscriptions.contains(subscription))
            }
            #expect(load.deliveries(ofPublisher: publisher) == subscriptions.count)
        }
        // A subscription's clients are on the server of all that it hears.
        for number in 0..<shape.publishers + shape.subscribers {
            guard let subscription = load.subscription(of: number) else { continue }
            let publishers = try #require(heard[UInt32(subscription)])
            #expect(publishers.allSatisfy { load.server(of: $0) == load.server(of: number) })
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
