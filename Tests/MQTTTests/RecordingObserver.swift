import LoopContext
import MQTT
import MQTTCodec
import NIOCore

/// Writes down what a connection tells its owner, and lets a test act in the middle of it.
final class RecordingObserver: MQTTConnectionObserver {
    enum Call: Hashable {
        case connected(resumed: Bool)
        case message(topic: String, payload: [UInt8], qos: QoS, dup: Bool)
        case acknowledged(PacketType, reason: UInt8, sequence: UInt64, finished: Bool, timedOut: Bool)
        case abandoned(UInt64, AbandonReason)
        case resend(id: UInt16, UInt64)
        case subscribed(PacketID, [UInt8])
        case unsubscribed(PacketID, [UInt8])
        case properties(PacketType, PacketID, Properties)
        case released(UInt16)
        case reauthenticated
        case pingAnswered(TimeAmount)
        case writable
        case ending(unsent: Int)
        case ended(ConnectionEnd)
    }

    var calls: [Call] = []
    /// Sizes of the reads, and whether a packet starts with each.
    var reads: [Int] = []
    var readBytes = 0
    var boundaries: [Bool] = []
    var packets: [Int] = []
    var wrote = 0
    var timer = NIODeadline.distantFuture
    var connack: ConnAck?
    var onMessage: (() -> Void)?
    var onPacket: ((Packet) -> Bool)?
    var onReadEnded: (() -> Void)?
    var onAbandoned: (() -> Void)?
    var onResend: ((UInt16, InFlightPublish) -> Void)?
    /// Of tests that wait for something.
    private var waiting: [(condition: (RecordingObserver) -> Bool, promise: EventLoopPromise<Void>)] = []

    var messages: [Call] { self.calls.filter { if case .message = $0 { true } else { false } } }

    /// The calls after CONNACK: before it, CONNECT may have waited for the channel to become active.
    var sinceConnected: [Call] {
        guard let index = self.calls.firstIndex(where: { if case .connected = $0 { true } else { false } }) else {
            return []
        }
        return Array(self.calls[(index + 1)...])
    }

    var end: ConnectionEnd? {
        if case .ended(let end) = self.calls.last { end } else { nil }
    }

    func wait(_ promise: EventLoopPromise<Void>, until condition: @escaping (RecordingObserver) -> Bool) {
        self.waiting.append((condition, promise))
        self.changed()
    }

    private func changed() {
        let ready = self.waiting.filter { $0.condition(self) }
        guard !ready.isEmpty else { return }
        self.waiting.removeAll { $0.condition(self) }
        for entry in ready { entry.promise.succeed(()) }
    }

    private func note(_ call: Call) {
        self.calls.append(call)
        self.changed()
    }

    func connected(_ client: Int, _ connack: ConnAck, resumed: Bool, now: NIODeadline) {
        self.connack = connack
        self.note(.connected(resumed: resumed))
    }

    func read(_ client: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool) {
        self.reads.append(bytes.count)
        self.readBytes += bytes.count
        self.boundaries.append(atBoundary)
    }

    func readEnded(_ client: Int, packets: Int, now: NIODeadline) {
        self.packets.append(packets)
        self.onReadEnded?()
        self.changed()
    }

    func message(_ client: Int, _ view: PublishView, now: NIODeadline) {
        let topic = String(decoding: view.topic, as: UTF8.self)
        self.note(.message(topic: topic, payload: Array(view.payload), qos: view.qos, dup: view.dup))
        self.onMessage?()
    }

    func acknowledged(
        _ client: Int,
        _ type: PacketType,
        reason: UInt8,
        _ publish: InFlightPublish,
        finished: Bool,
        timedOut: Bool,
        now: NIODeadline
    ) {
        self.note(
            .acknowledged(type, reason: reason, sequence: publish.sequence, finished: finished, timedOut: timedOut)
        )
    }

    func abandoned(_ client: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        self.note(.abandoned(publish.sequence, why))
        self.onAbandoned?()
    }

    func resend(_ client: Int, id: UInt16, _ publish: InFlightPublish, now: NIODeadline) {
        self.note(.resend(id: id, publish.sequence))
        self.onResend?(id, publish)
    }

    func subscribed(_ client: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        self.note(.subscribed(id, codes))
    }

    func unsubscribed(_ client: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        self.note(.unsubscribed(id, codes))
    }

    func pingAnswered(_ client: Int, after: TimeAmount, now: NIODeadline) { self.note(.pingAnswered(after)) }

    func wrote(_ client: Int, bytes: Int) {
        self.wrote += bytes
        self.changed()
    }

    func writable(_ client: Int, now: NIODeadline) { self.note(.writable) }

    func ending(_ client: Int, unsent: Int) { self.note(.ending(unsent: unsent)) }

    func ended(_ client: Int, _ end: ConnectionEnd, now: NIODeadline) { self.note(.ended(end)) }

    func properties(
        _ client: Int,
        of type: PacketType,
        _ id: PacketID,
        _ properties: Properties,
        now: NIODeadline
    ) {
        self.note(.properties(type, id, properties))
    }

    func released(_ client: Int, _ id: UInt16, now: NIODeadline) { self.note(.released(id)) }

    func reauthenticated(_ client: Int, now: NIODeadline) { self.note(.reauthenticated) }

    func admits(_ client: Int, _ packet: Packet, now: NIODeadline) -> Bool { self.onPacket?(packet) ?? true }

    func wantsTimer(_ client: Int, at: NIODeadline) { self.timer = min(self.timer, at) }
}

/// The packets as they go over the wire.
func wire(_ packets: Packet..., version: ProtocolVersion = .v5) -> [UInt8] {
    var buffer = ByteBuffer()
    for packet in packets { packet.encode(as: version, into: &buffer) }
    return Array(buffer.readableBytesView)
}

func publish(
    _ topic: String,
    _ payload: [UInt8] = [],
    qos: QoS = .atMostOnce,
    id: PacketID? = nil,
    dup: Bool = false,
    properties: Properties = Properties()
) -> Packet {
    .publish(
        Publish(
            topic: topic,
            payload: ByteBuffer(bytes: payload),
            qos: qos,
            retain: false,
            dup: dup,
            packetID: id,
            properties: properties
        )
    )
}
