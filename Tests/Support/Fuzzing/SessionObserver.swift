import MQTT
import MQTTCodec
import NIOCore
import SASL

enum SessionEvent: String, CaseIterable {
    case connected, resumed
    case completedQoS1 = "completed at QoS 1"
    case completedQoS2 = "completed at QoS 2"
    case failed = "refused by PUBACK or PUBREC"
    case released, late
    case timedOut = "timed out"
    case lost, resent, subscribed, unsubscribed, pinged
    case receivedQoS0 = "received at QoS 0"
    case receivedQoS1 = "received at QoS 1"
    case receivedQoS2 = "received at QoS 2"
    case windowFull = "window full"
    case reauthenticated

    static let indices = Dictionary(uniqueKeysWithValues: Self.allCases.enumerated().map { ($1, $0) })
    var index: Int { Self.indices[self] ?? 0 }
}

/// Agrees to everything but a challenge of 4.
struct FuzzMechanism: SASLMechanism {
    let name = "FUZZ"

    mutating func begin() throws(SASLError) -> [UInt8]? { [1] }

    mutating func respond(to challenge: [UInt8]) throws(SASLError) -> [UInt8] {
        if challenge == [4] { throw .malformed("a challenge of 4") }
        return challenge
    }

    mutating func finish(_ data: [UInt8]?) throws(SASLError) {
        if data == [12] { throw .serverNotVerified }
    }
}

/// The packets that a client has written and that await answers.
struct WrittenLog: PacketSink {
    var requests: [Packet] = []
    var hasSaidGoodbye = false
    var pubAcks = 0
    /// PUBREL of flows that are known.
    var releases: [UInt16] = []

    mutating func publish(_ view: PublishView) -> Bool {
        guard let publish = try? Publish(view) else { return false }
        if publish.qos != .atMostOnce { self.requests.append(.publish(publish)) }
        return true
    }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        if type == .pubAck { self.pubAcks += 1 }
        if type == .pubRel, reason == 0 { self.releases.append(id) }
        guard type == .pubRel || type == .pubRec,
            let packet = Packet(acknowledgement: type, id: id, reason: reason, rawProperties: rawProperties)
        else { return true }
        self.requests.append(packet)
        return true
    }

    mutating func control(_ packet: Packet) -> Bool {
        if packet.type == .disconnect { self.hasSaidGoodbye = true }
        if packet.type != .connect { self.requests.append(packet) }
        return true
    }
}

/// The owner: records reported events, and knows which packet identifiers are in use.
final class SessionObserver: MQTTConnectionObserver {
    enum Taken {
        case publish(UInt64, timedOut: Bool)
        case subscribe
        case unsubscribe

        var isRequest: Bool { if case .publish = self { false } else { true } }
    }

    var taken: [UInt16: Taken] = [:]
    var publishes = 0
    var timer = NIODeadline.distantFuture
    var problem: String?
    var hasEnded = false
    var ends: [ConnectionEnd] = []
    var packets = [Int](repeating: 0, count: 16)
    var events = [Int](repeating: 0, count: SessionEvent.allCases.count)
    var resend: ((UInt16, InFlightPublish) -> Void)?
    private var hasConnected = false
    private var isEnding = false
    /// Messages that the owner still has to release, if releasing is left to it.
    var toRelease: [UInt16] = []
    var toAcknowledge: [(qos: QoS, id: UInt16)] = []
    var toComplete: [UInt16] = []
    /// Flows whose PUBREL may be seen.
    var released: Set<UInt16> = []
    /// At QoS 1, on this connection.
    var acknowledgedByOwner = 0
    var messages = 0
    var lastTopic = ""

    func begin() {
        self.acknowledgedByOwner = 0
        self.hasEnded = false
        self.isEnding = false
        self.hasConnected = false
        self.timer = .distantFuture
    }

    func note(_ event: SessionEvent) { self.events[event.index] += 1 }

    private func complain(_ words: String) { if self.problem == nil { self.problem = words } }

    private func heard(_ type: PacketType) {
        self.packets[Int(type.rawValue)] += 1
        if self.hasEnded { self.complain("\(type) behind the end") }
    }

    /// Requests end with their connection, and with a CONNACK.
    func settle(_ session: UnsafeMutablePointer<MQTTSession>) {
        if session.pointee.state == .idle, session.pointee.options.cleanStart { self.forgetRequests() }
    }

    private func forgetRequests() { self.taken = self.taken.filter { !$0.value.isRequest } }

    private func id(of sequence: UInt64) -> UInt16? {
        self.taken.first { if case .publish(sequence, _) = $0.value { true } else { false } }?.key
    }

    func connected(_ client: Int, _ connack: ConnAck, resumed: Bool, now: NIODeadline) {
        self.heard(.connAck)
        if self.hasConnected { self.complain("connected twice") }
        self.hasConnected = true
        self.note(resumed ? .resumed : .connected)
        self.forgetRequests()
        if !resumed, self.publishes > 0 { self.complain("\(self.publishes) in flight in a new session") }
    }

    func read(_ client: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool) {
        if self.hasEnded { self.complain("a read behind the end") }
    }

    func readEnded(_ client: Int, packets: Int, now: NIODeadline) {
        if self.hasEnded { self.complain("a read behind the end") }
    }

    func released(_ client: Int, _ id: UInt16, now: NIODeadline) {
        if self.hasEnded { self.complain("released behind the end") }
        self.toComplete.append(id)
    }

    func reauthenticated(_ client: Int, now: NIODeadline) { self.note(.reauthenticated) }

    func message(_ client: Int, _ view: PublishView, now: NIODeadline) {
        self.heard(.publish)
        self.messages += 1
        self.lastTopic = String(decoding: view.topic, as: UTF8.self)
        if view.topic.isEmpty { self.complain("a message without a topic") }
        if view.qos != .atMostOnce { self.toAcknowledge.append((view.qos, view.packetID)) }
        self.note(view.qos == .atMostOnce ? .receivedQoS0 : view.qos == .atLeastOnce ? .receivedQoS1 : .receivedQoS2)
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
        self.heard(type)
        guard let id = self.id(of: publish.sequence), case .publish(_, let wasTimedOut)? = self.taken[id] else {
            return self.complain("\(type) for a publish that is not in flight")
        }
        if timedOut != wasTimedOut { self.complain("timed out \(timedOut), booked as \(wasTimedOut)") }
        if timedOut { self.note(.late) }
        guard finished else {
            self.toRelease.append(id)
            return self.note(.released)
        }
        self.taken[id] = nil
        self.publishes -= 1
        self.note(reason >= 0x80 ? .failed : publish.qos == .atLeastOnce ? .completedQoS1 : .completedQoS2)
    }

    func abandoned(_ client: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        guard let id = self.id(of: publish.sequence), case .publish(_, let wasTimedOut)? = self.taken[id] else {
            return self.complain("a publish is abandoned that is not in flight")
        }
        switch why {
        case .timedOut:
            if wasTimedOut { self.complain("timed out twice") }
            self.taken[id] = .publish(publish.sequence, timedOut: true)
            self.note(.timedOut)
        case .connectionLost(let timedOutBefore):
            if timedOutBefore != wasTimedOut { self.complain("lost, timed out \(timedOutBefore)") }
            self.taken[id] = nil
            self.publishes -= 1
            self.note(.lost)
        }
    }

    func resend(_ client: Int, id: UInt16, _ publish: InFlightPublish, now: NIODeadline) {
        if case .publish(publish.sequence, _)? = self.taken[id] {
            self.note(.resent)
            self.resend?(id, publish)
        } else {
            self.complain("\(id) is sent again, and is not in flight")
        }
    }

    func subscribed(_ client: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        self.heard(.subAck)
        guard case .subscribe? = self.taken[id.rawValue] else { return self.complain("SUBACK for nothing") }
        self.taken[id.rawValue] = nil
        self.note(.subscribed)
    }

    func unsubscribed(_ client: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        self.heard(.unsubAck)
        guard case .unsubscribe? = self.taken[id.rawValue] else { return self.complain("UNSUBACK for nothing") }
        self.taken[id.rawValue] = nil
        self.note(.unsubscribed)
    }

    func pingAnswered(_ client: Int, after: TimeAmount, now: NIODeadline) {
        self.heard(.pingResp)
        if after < .zero { self.complain("a ping took \(after)") }
        self.note(.pinged)
    }

    func wrote(_ client: Int, bytes: Int) { if bytes <= 0 { self.complain("wrote \(bytes) bytes") } }

    func writable(_ client: Int, now: NIODeadline) { if self.hasEnded { self.complain("writable behind the end") } }

    func ending(_ client: Int, unsent: Int) {
        if self.isEnding || self.hasEnded { self.complain("ends twice") }
        if unsent < 0 { self.complain("\(unsent) bytes unsent") }
        self.isEnding = true
    }

    func ended(_ client: Int, _ end: ConnectionEnd, now: NIODeadline) {
        if self.hasEnded { self.complain("ends twice") }
        self.hasEnded = true
        self.ends.append(end)
        if case .disconnected = end { self.packets[Int(PacketType.disconnect.rawValue)] += 1 }
    }

    func wantsTimer(_ client: Int, at: NIODeadline) { self.timer = min(self.timer, at) }
}
