package import MQTTCodec
import Measurement
import NIOCore

/// The composition of an MQTT stream for the decoder benchmark.
package struct DecodeStreamPlan: Hashable, Sendable {
    package var version: ProtocolVersion
    /// Messages are from clients 1 to ``publishers`` in turn, numbered by `%i`.
    package var topic: Template
    /// Payload sizes and QoS levels, used in turn; in a mix they are drawn.
    package var sizes: [Int]
    package var qualities: [QoS]
    /// Packets for a client that publishes and subscribes, instead of PUBLISH alone.
    package var isMix: Bool
    package var seed: UInt64

    package static let publishers = 100

    package init(
        version: ProtocolVersion,
        topic: Template,
        sizes: [Int],
        qualities: [QoS],
        isMix: Bool = false,
        seed: UInt64 = 1
    ) {
        self.version = version
        self.topic = topic
        self.sizes = sizes
        self.qualities = qualities
        self.isMix = isMix
        self.seed = seed
    }
}

extension DecodeStream {
    /// - Parameters:
    ///   - plan: the composition.
    ///   - size: minimum size in bytes. The stream continues until every size occurred equally often at every QoS.
    package init(_ plan: DecodeStreamPlan, atLeast size: Int) {
        self.init(
            .mqtt(plan.version),
            StreamWriter(plan),
            cycle: plan.isMix ? 1 : plan.sizes.count * plan.qualities.count,
            atLeast: size
        )
    }
}

/// Encodes one packet after another.
private struct StreamWriter: DecodeStreamWriter {
    private let plan: DecodeStreamPlan
    private let payloads: [ByteBuffer]
    private var random: SplitMix64
    private var messages = 0
    var buffer = ByteBuffer()
    var checksum = DecodeChecksum()

    init(_ plan: DecodeStreamPlan) {
        self.plan = plan
        self.random = SplitMix64(seed: plan.seed)
        self.payloads = plan.sizes.map { size in
            ByteBuffer(bytes: (0..<size).lazy.map { UInt8(truncatingIfNeeded: $0) })
        }
    }

    mutating func writeNext() {
        if self.plan.isMix { self.writeAny() } else { self.writePublish() }
    }

    /// Out of 100 packets: 60 PUBLISH, 20 PUBACK, 6 of each of the three QoS 2 packets, a SUBACK and a PINGRESP.
    private mutating func writeAny() {
        let draw = Int.random(in: 0..<100, using: &self.random)
        guard draw >= 60 else { return self.writePublish() }
        if draw == 99 { return Packet.pingResp.encode(as: self.plan.version, into: &self.buffer) }
        guard let id = PacketID(rawValue: self.drawIdentifier()) else { return }
        // A server that gives reasons: one acknowledgement in four has a reason code, one in eight also a reason
        // string.
        let speaks = self.plan.version == .v5 && UInt8.random(in: 0..<4, using: &self.random) == 0
        let reason = speaks ? ReasonCode.noMatchingSubscribers : .success
        var properties = Properties()
        if speaks, Bool.random(using: &self.random) { properties.append(.reasonString("nobody listens")) }
        let packet: Packet =
            switch draw {
            case ..<80: .pubAck(PubAck(id, reason: reason, properties: properties))
            case ..<86: .pubRec(PubRec(id, reason: reason, properties: properties))
            case ..<92: .pubRel(PubRel(id))
            case ..<98: .pubComp(PubComp(id))
            default: .subAck(SubAck(id, codes: [0, 1, 2]))
            }
        packet.encode(as: self.plan.version, into: &self.buffer)
    }

    private mutating func writePublish() {
        let number = self.messages
        self.messages += 1
        var size = number % self.plan.sizes.count
        var level = number / self.plan.sizes.count % self.plan.qualities.count
        var properties = Properties()
        if self.plan.isMix {
            size = Int.random(in: 0..<self.plan.sizes.count, using: &self.random)
            level = Int.random(in: 0..<self.plan.qualities.count, using: &self.random)
            if self.plan.version == .v5 { properties = self.drawProperties() }
        }
        let values = PlaceholderValues(
            clientNumber: number % DecodeStreamPlan.publishers + 1,
            messageNumber: UInt64(number)
        )
        let topic = self.plan.topic.rendered(values, random: &self.random)
        let qos = self.plan.qualities[level]
        let payload = self.payloads[size]
        Publish(
            topic: String(decoding: topic, as: UTF8.self),
            payload: payload,
            qos: qos,
            packetID: qos == .atMostOnce ? nil : PacketID(rawValue: self.drawIdentifier()),
            properties: properties
        ).encode(as: self.plan.version, into: &self.buffer)
        self.checksum.nameBytes += UInt64(topic.count)
        self.checksum.nameEnds += UInt64(topic.last ?? 0)
        self.checksum.payloadBytes += UInt64(payload.readableBytes)
    }

    /// No properties, those that most applications set, or a user property in addition.
    private mutating func drawProperties() -> Properties {
        let draw = UInt8.random(in: 0..<4, using: &self.random)
        guard draw >= 2 else { return Properties() }
        var properties: Properties = [
            .payloadFormatIndicator(1), .messageExpiryInterval(3_600), .contentType("application/json"),
        ]
        if draw == 3 { properties.append(.userProperty("trace", "4bf92f3577b34da6a3ce929d0e0e4736")) }
        return properties
    }

    private mutating func drawIdentifier() -> UInt16 {
        let id = UInt16.random(in: 1...UInt16.max, using: &self.random)
        self.checksum.identifiers += UInt64(id)
        return id
    }
}
