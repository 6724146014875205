import MQTTCodec
import NIOCore

extension Work {
    static let codec = publishDecoding + controlDecoding + encoding

    private static let publishDecoding: [Work] =
        [("in 64 KiB", 65_536), ("in 1,460 bytes", 1_460), ("in 7-byte cuts", 7)].map { form, size in
            decode("PUBLISH, 88 bytes, decode \(form)", publish(payload: 64), pieces: size)
        } + [
            decode("PUBLISH, payload 0, decode", publish(payload: 0)),
            decode("PUBLISH, payload 128, decode", publish(payload: 128)),
            decode("PUBLISH, payload 16,384, decode", publish(payload: 16_384), packets: 100),
            decode("PUBLISH, QoS 1, payload 64, decode", publish(payload: 64, qos: .atLeastOnce)),
            decode("PUBLISH, v5, payload 64, decode", publish(payload: 64, version: .v5), .v5),
            decode(
                "PUBLISH, v5, 4 properties, decode",
                publish(payload: 64, version: .v5, properties: publishProperties),
                .v5
            ),
            decode(
                "PUBLISH, v5, variable byte integers of 1 to 4 bytes, decode",
                publish(payload: 64, version: .v5, properties: variableIntegers),
                .v5
            ),
        ]

    private static let controlDecoding = [
        decode("PUBACK, decode", wire(.pubAck(PubAck(1)))),
        decode("PUBACK, v5, with reason, decode", wire(.pubAck(PubAck(1, reason: .noMatchingSubscribers)), .v5), .v5),
        Work(.mqttCodec, "CONNECT, v5, decode", operations: 100) {
            let packet = wire(.connect(connect), .v5)
            return {
                var sink = CountingSink()
                for _ in 0..<100 {
                    // A connection has one CONNECT, so each gets a decoder of its own, as in a server.
                    var decoder = PacketDecoder(role: .server)
                    packet.withUnsafeBytes { bytes in
                        do { try decoder.decode(bytes, into: &sink) } catch { fatalError("\(error)") }
                    }
                }
                precondition(sink.packets == 100)
                keep(sink)
            }
        },
    ]

    private static let encoding =
        [0, 128, 16_384].map { size in
            encode(
                "PUBLISH, payload \(size == 16_384 ? "16,384" : String(size)), encode",
                .publish(Publish(topic: topic, payload: ByteBuffer(repeating: 7, count: size))),
                .v311
            )
        } + [
            encode(
                "PUBLISH, v5, 4 properties, encode",
                .publish(
                    Publish(
                        topic: topic,
                        payload: ByteBuffer(repeating: 7, count: 64),
                        properties: Properties(publishProperties)
                    )
                ),
                .v5
            ),
            encode(
                "PUBLISH, v5, variable byte integers of 1 to 4 bytes, encode",
                .publish(Publish(topic: topic, properties: Properties(variableIntegers))),
                .v5
            ),
            encode("CONNECT, v5, encode", .connect(connect), .v5),
            Work(.mqttCodec, "PUBLISH, 88 bytes, from its frame", operations: 1_000) {
                let name = Array(topic.utf8)
                let frame = PublishFrame(topic: name.count, payload: 64, qos: .atMostOnce, version: .v311)
                let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: frame.count, alignment: 8)
                return {
                    name.withUnsafeBytes { topic in
                        for _ in 0..<1_000 {
                            guard let base = memory.baseAddress else { return }
                            frame.write(dup: false, retain: false, topic: topic, id: 0, to: base)
                        }
                    }
                    keep(memory)
                }
            },
        ]

    // MARK: What is in the packets

    private static let topic = "bench/topic/abcdefgh"

    private static let publishProperties: [Property] = [
        .payloadFormatIndicator(1), .messageExpiryInterval(60), .contentType("text/plain"),
        .userProperty("name", "value"),
    ]

    private static let variableIntegers: [Property] = [1, 200, 20_000, 200_000_000].map {
        .subscriptionIdentifier($0)
    }

    private static let connect = Connect(
        version: .v5,
        clientID: "clamor-pub-000001",
        keepAlive: 300,
        username: "user",
        password: Array("secret".utf8),
        properties: [.sessionExpiryInterval(60), .receiveMaximum(100)]
    )

    private static func publish(
        payload: Int,
        qos: QoS = .atMostOnce,
        version: ProtocolVersion = .v311,
        properties: [Property] = []
    ) -> [UInt8] {
        let packet = Publish(
            topic: topic,
            payload: ByteBuffer(repeating: 7, count: payload),
            qos: qos,
            packetID: qos == .atMostOnce ? nil : 1,
            properties: Properties(properties)
        )
        return wire(.publish(packet), version)
    }

    private static func wire(_ packet: Packet, _ version: ProtocolVersion = .v311) -> [UInt8] {
        var buffer = ByteBuffer()
        packet.encode(as: version, into: &buffer)
        return Array(buffer.readableBytesView)
    }

    // MARK: How they are measured

    /// So many of one packet, given to a client's decoder in pieces.
    private static func decode(
        _ name: String,
        _ packet: [UInt8],
        _ version: ProtocolVersion = .v311,
        packets: Int = 1_000,
        pieces size: Int = 65_536
    ) -> Work {
        Work(.mqttCodec, name, operations: packets) {
            let stream = Array(repeatElement(packet, count: packets).joined())
            let decoder = Place(PacketDecoder(role: .client(version)))
            return {
                var sink = CountingSink()
                stream.withUnsafeBytes { bytes in
                    for start in stride(from: 0, to: bytes.count, by: size) {
                        let piece = bytes[start..<min(start + size, bytes.count)]
                        do {
                            try decoder.pointer.pointee.decode(UnsafeRawBufferPointer(rebasing: piece), into: &sink)
                        } catch {
                            fatalError("\(name): \(error)")
                        }
                    }
                }
                precondition(sink.packets == packets, "the decoder lost packets")
                keep(sink)
            }
        }
    }

    private static func encode(_ name: String, _ packet: Packet, _ version: ProtocolVersion) -> Work {
        Work(.mqttCodec, name, operations: 100) {
            // Grown by the first round, and used again from then on.
            let buffer = Place(ByteBuffer())
            return {
                for _ in 0..<100 {
                    buffer.pointer.pointee.clear()
                    packet.encode(as: version, into: &buffer.pointer.pointee)
                }
                keep(buffer.pointer.pointee)
            }
        }
    }
}

/// Adds up what it is given, so that no delivery can be left out.
private struct CountingSink: PacketSink {
    var packets = 0
    var bytes = 0

    mutating func publish(_ view: PublishView) -> Bool {
        self.packets &+= 1
        self.bytes &+= view.topic.count &+ view.payload.count
        return true
    }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        self.packets &+= 1
        self.bytes &+= Int(id)
        return true
    }

    mutating func control(_ packet: Packet) -> Bool {
        self.packets &+= 1
        return true
    }
}
