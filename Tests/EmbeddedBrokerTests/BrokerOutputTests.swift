import EmbeddedBroker
import MQTTCodec
import NIOCore
import TestSupport
import Testing

@Suite("A broker's output, shared and not")
struct BrokerOutputTests {
    private struct Message: Hashable {
        var payload: String
        var qos: QoS
        var retain: Bool
    }

    private struct Reader {
        let client: VirtualBroker.Client
        let takes: (String) -> Bool
        let keepsRetain: Bool
        let qos: QoS
        var expected: [Message] = []

        mutating func expect(_ publish: Publish) {
            guard self.takes(publish.topic) else { return }
            let payload = String(buffer: publish.payload)
            let retain = publish.retain && self.keepsRetain
            self.expected.append(Message(payload: payload, qos: min(publish.qos, self.qos), retain: retain))
        }
    }

    private static func readers(in world: VirtualBroker) -> [Reader] {
        let wanted: [(filter: String, takes: (String) -> Bool, qos: QoS, version: ProtocolVersion)] = [
            ("#", { _ in true }, .atMostOnce, .v5), ("#", { _ in true }, .atMostOnce, .v311),
            ("a/+", { $0 != "b" }, .atMostOnce, .v5), ("b", { $0 == "b" }, .atLeastOnce, .v5),
            ("a/+", { $0 != "b" }, .atLeastOnce, .v31),
        ]
        var readers = wanted.enumerated().map { index, reader in
            let client = world.subscriber("s\(index)", reader.filter, reader.qos, reader.version)
            return Reader(client: client, takes: reader.takes, keepsRetain: false, qos: reader.qos)
        }
        let keeper = world.connect("k")
        let all = Subscription(filter: "#", qos: .atMostOnce, retainAsPublished: true)
        world.send(.subscribe(Subscribe(1, [all])), from: keeper)
        _ = world.take(keeper)
        readers.append(Reader(client: keeper, takes: { _ in true }, keepsRetain: true, qos: .atMostOnce))
        return readers
    }

    /// One in forty is larger than what shared frames have room for at first.
    private static func message(named name: String, _ random: inout SeededGenerator) -> Publish {
        let isLarge = Int.random(in: 0..<40, using: &random) == 0
        let length = isLarge ? 300_000 : Int.random(in: 0..<200, using: &random)
        let qos: QoS = Int.random(in: 0..<3, using: &random) == 0 ? .atLeastOnce : .atMostOnce
        return Publish(
            topic: ["a/1", "b", "a/2"][Int.random(in: 0..<3, using: &random)],
            payload: ByteBuffer(string: name + String(repeating: "x", count: length)),
            qos: qos,
            retain: Int.random(in: 0..<4, using: &random) == 0,
            packetID: qos == .atMostOnce ? nil : 9
        )
    }

    @Test(
        "comes whole and in order through mixed versions, topics, levels and pauses",
        arguments: 1...8 as ClosedRange<UInt64>
    )
    func program(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let world = VirtualBroker()
        var readers = Self.readers(in: world)
        let publishers = [world.connect("p", .v5), world.connect("q", .v311)]
        for round in 0..<150 {
            let publisher = publishers[Int.random(in: 0..<2, using: &random)]
            var bytes = ByteBuffer()
            for number in 0...Int.random(in: 0..<8, using: &random) {
                let publish = Self.message(named: "\(round).\(number) ", &random)
                Packet.publish(publish).encode(as: publisher.version, into: &bytes)
                for index in readers.indices { readers[index].expect(publish) }
            }
            world.send(bytes: Array(bytes.readableBytesView), from: publisher)
            let reader = readers[Int.random(in: 0..<readers.count, using: &random)]
            world.broker.setWritable(reader.client.id, Int.random(in: 0..<2, using: &random) == 0)
        }
        for reader in readers { world.broker.setWritable(reader.client.id, true) }
        world.advance(by: .seconds(1))
        for reader in readers {
            let received = world.take(reader.client).compactMap { packet -> Message? in
                guard case .publish(let publish) = packet else { return nil }
                return Message(payload: String(buffer: publish.payload), qos: publish.qos, retain: publish.retain)
            }
            #expect(received == reader.expected)
        }
        let total = readers.reduce(0) { $0 + $1.expected.count }
        #expect(world.broker.counters.delivered.total == UInt64(total))
        #expect(world.broker.counters.expected.total == UInt64(total))
    }

    @Test("a write that takes a part leaves the rest, and counts the bytes once")
    func partialWrite() {
        let world = VirtualBroker()
        let subscriber = world.subscriber("s", "t", .atMostOnce)
        let publisher = world.connect("p")
        let before = world.broker.counters.sentBytes
        var frame = ByteBuffer()
        Packet.publish(Publish(topic: "t", payload: ByteBuffer(string: "payload"))).encode(as: .v5, into: &frame)
        let bytes = Array(frame.readableBytesView)
        bytes.withUnsafeBytes {
            world.broker.received($0, from: publisher.id, decoder: &publisher.serverSide, now: world.now)
        }
        var first: [UInt8] = []
        let isAll = world.broker.writeOutput(subscriber.id) { output in
            first = Array(output.prefix(5))
            return 5
        }
        #expect(!isAll)
        let rest = world.broker.takeOutput(subscriber.id)
        #expect(first + Array(rest.readableBytesView) == bytes)
        let hasMore = world.broker.hasOutput(subscriber.id)
        #expect(!hasMore)
        #expect(world.broker.counters.sentBytes - before == UInt64(bytes.count))
        world.lose(subscriber)
        #expect(world.broker.counters.delivered == CountPerQoS(1))
        #expect(world.broker.counters.undelivered == CountPerQoS())
    }

    @Test("what was not handed out when the connection ends is undelivered, also of a frame that others got")
    func lostOutput() {
        let world = VirtualBroker()
        let lost = world.subscriber("a", "t", .atMostOnce)
        let kept = world.subscriber("b", "t", .atMostOnce)
        let publisher = world.connect("p")
        var frames = ByteBuffer()
        for number in 0..<3 {
            Packet.publish(Publish(topic: "t", payload: ByteBuffer(string: "\(number)"))).encode(as: .v5, into: &frames)
        }
        frames.withUnsafeReadableBytes {
            world.broker.received($0, from: publisher.id, decoder: &publisher.serverSide, now: world.now)
        }
        world.lose(lost)
        #expect(world.payloads(kept) == ["0", "1", "2"])
        #expect(world.broker.counters.delivered == CountPerQoS(3))
        #expect(world.broker.counters.undelivered == CountPerQoS(3))
        #expect(world.broker.counters.expected == CountPerQoS(6))
    }
}
