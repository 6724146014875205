import MQTT
import MQTTCodec
import Measurement
import NIOCore
import NIOEmbedded
import Testing
import VirtualServers
import Workloads

@Suite("The gate in front of the store, at the beginning of a connection")
struct StoreGateConnectTests {
    private static let commit = TimeAmount.milliseconds(3)

    /// Twenty connections, and what each brings.
    private func broken(_ alias: MQTTLoad.TopicAlias?) throws -> MQTTVirtualRun {
        let run = try MQTTVirtualRun(
            .init(
                qualities: [.exactlyOnce],
                reconnects: 1_000,
                latency: .milliseconds(1),
                commits: { _ in .init(Self.commit) },
                isPersistent: true,
                topicAlias: alias
            )
        )
        var cuts = 0
        run.perform(step: .milliseconds(7)) { run in
            guard cuts < 20, run.loop.now >= run.origin + .milliseconds(Int64(cuts + 1) * 400) else { return }
            cuts += 1
            run.network.links.filter(\.isOpen).forEach { $0.cut() }
        }
        #expect(cuts == 20)
        return run
    }

    @Test(
        "[MQTT-3.3.2-7] a stored message names its topic once on each connection, and by its alias then",
        arguments: [MQTTLoad.TopicAlias.automatic, .fixed(10)]
    )
    func aliases(_ alias: MQTTLoad.TopicAlias) throws {
        let run = try self.broken(alias)
        let oracle = run.network.oracle
        // Not more than once on a connection; some were cut before their first message.
        #expect((2...21).contains(oracle.introduced))
        #expect(oracle.aliased + oracle.introduced >= 1_000)
        #expect(oracle.written.count == 1_000)
        #expect(run.row(.exactlyOnce).lost == 0)
        #expect(run.store?.overtaken == [])
        #expect(run.imbalances.isEmpty)
        // The results of the messages are the same as with full topics.
        let plain = try self.broken(nil)
        #expect(plain.network.oracle.introduced == 0)
        #expect(plain.network.oracle.aliased == 0)
        #expect(run.counter("publish_acked", .exactlyOnce) == plain.counter("publish_acked", .exactlyOnce))
        #expect(run.row(.exactlyOnce) == plain.row(.exactlyOnce))
    }

    @Test("what a resumed session sends in the step that refuses its CONNACK never left: it is stored, and not sent")
    func refusedConnack() throws {
        let run = try MQTTVirtualRun(
            .init(
                duration: .seconds(2),
                reconnects: 1_000,
                latency: .milliseconds(1),
                commits: { _ in .init(Self.commit) },
                isPersistent: true,
                topicAlias: .fixed(10)
            )
        )
        run.perform(step: .milliseconds(1)) { run in
            // Message 100 is due at 1 s, and its commit is under way.
            guard run.network.rewrite == nil, run.loop.now >= run.origin + .milliseconds(1_001) else { return }
            // The server that comes back takes no alias above 5.
            run.network.rewrite = { bytes in
                guard let place = bytes.firstRange(of: [0x22, 0, 10]) else { return bytes }
                return Array(bytes[..<place.lowerBound]) + [0x22, 0, 5] + Array(bytes[place.upperBound...])
            }
            run.network.links.filter { $0.client == 0 && $0.isOpen }.forEach { $0.cut() }
        }
        let error = try #require(run.errors.first { $0.kind == "not allowed" })
        #expect(error.example == "CONNACK does not allow what this load does: Topic Alias invalid")
        #expect(run.counter("publish_sent", .atLeastOnce) == 100)
        #expect(run.counter("publish_acked", .atLeastOnce) == 100)
        #expect(run.counter("publish_not_sent", .atLeastOnce) == 100)
        let values = run.values("publish_ack_duration", ["qos": "1", "leg": "puback"])
        #expect(values.answered.count == 100 && values.unanswered.outstanding == 100 && values.count == 200)
        #expect(run.histogram("publish_write_duration", ["qos": "1"]).count == 100)
        #expect(run.network.oracle.written.count == 100)
        #expect(run.store?.kept.map(\.sequence) == [100])
        #expect(run.store?.overtaken == [])
        #expect(run.imbalances.isEmpty)
    }
}
