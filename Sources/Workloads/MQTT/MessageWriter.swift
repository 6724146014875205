import Ledger
import MQTT
import MQTTCodec
import Measurement
import NIOCore

/// Encodes a client's publishes directly into the memory of the write.
///
/// The first message of a write is built. The others are copies with a new packet identifier, sequence number and due
/// time, at about 5 ns per message. One per event loop.
struct MessageWriter: ~Copyable {
    private let load: MQTTLoad
    /// The loop's offset of time stamps, which may be corrected during the run.
    private let clock: UnsafeMutablePointer<Int64>
    private let stream: MQTTLoad.Stream
    /// Draws the receivers of messages to one client.
    private let deliveries: DeliveryPlan
    private let targets: Int
    /// Where the messages carry the header, if they do.
    let carrier: LedgerCarrier?
    /// Whether short headers name the audience.
    private let isAddressed: Bool
    /// The offset of the header in the payload, and in the whole message.
    private var offsetInPayload = 0
    private var headerOffset = 0
    /// The bytes of generated payloads, as many as the longest has.
    private let filler: [UInt8]
    /// Sizes of payloads without a template.
    private let sizes: ClosedRange<Int>
    private let variesPerMessage: Bool
    /// Whether topic or message contain `%c` or `%u`.
    private let needsIdentity: Bool
    /// Whether properties are encoded per client or per message.
    private let rendersProperties: Bool
    private var random = SplitMix64(seed: 0)
    /// The topic of the current message; empty if its alias replaces it.
    private(set) var topic: [UInt8] = []
    /// Encoded properties with their length first; empty without properties.
    private var properties: [UInt8] = []
    /// Encoded properties that all messages share.
    private let constantProperties: [UInt8]
    /// Whether each message carries its sequence number as correlation data, and at which offset.
    private let correlates: Bool
    private var correlationOffset: Int?
    private var answerTopic: [UInt8] = []
    private var alias = TopicAliasUse.none
    private var payload: [UInt8] = []
    private var frame = PublishFrame(topic: 0, payload: 0, qos: .atMostOnce, version: .v311)
    // Frame values that are determined once per write.
    private var size = 0
    private var idOffset: Int?
    private var payloadOffset = 0
    private var values: PlaceholderValues
    /// The client's number in its group, and its publisher's in the ledger.
    private var publisher: UInt32 = 0
    private var ledgerNumber: UInt32 = 0
    private let firstNumber: UInt32
    /// The audience of the current message.
    var audience: UInt32 = 0
    private var qos = QoS.atMostOnce

    init(
        _ load: MQTTLoad,
        stream place: Int = 0,
        group: Int = 0,
        deliveries: DeliveryPlan,
        clock: UnsafeMutablePointer<Int64>
    ) {
        let stream = load.streams[place]
        let topic = stream.p2p == nil ? stream.topic : nil
        let templates = [topic, stream.responseTopic, stream.payload.template].compactMap { $0 }
        let sizes = stream.payload.sizes
        self.load = load
        self.clock = clock
        self.stream = stream
        // A text has it where its template has a place for it, whatever else was planned.
        let hasPlace = stream.carrier != .text || stream.payload.template?.hasLedger ?? false
        self.carrier = load.hasLedger && hasPlace ? stream.carrier : nil
        self.isAddressed = load.isAddressed
        self.deliveries = deliveries
        self.firstNumber = deliveries.publisher(group: group, stream: place, client: 0)
        self.targets = stream.p2p.map { deliveries.targets(of: $0) } ?? 0
        self.values = PlaceholderValues(clientNumber: 0, rows: load.rows)
        self.sizes = sizes
        self.filler = (0..<sizes.upperBound).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }
        self.variesPerMessage =
            stream.p2p != nil || sizes.lowerBound < sizes.upperBound || templates.contains { $0.variesPerMessage }
        self.needsIdentity = templates.contains { $0.needsIdentity }
        self.correlates = load.topology == .request
        self.constantProperties = load.version == .v5 ? Self.constant(stream.properties) : []
        self.rendersProperties = stream.responseTopic.map { !$0.isConstant } ?? false || stream.topicAlias != nil
        self.encodeProperties()
    }

    var hasHeader: Bool { self.carrier != nil }

    /// Whether all messages of the write are equal except for the patched fields.
    var isUniform: Bool { !self.variesPerMessage && !self.alias.introducesTopic }

    /// Whether the server knows the client's topic by an alias after this write.
    var usesAlias: Bool { self.alias.number != nil }

    /// Selects a client and returns the size of its next message.
    mutating func begin(_ number: Int, qos: QoS, message: UInt64, now: Int64, alias: TopicAliasUse = .none) -> Int {
        self.alias = alias
        self.publisher = UInt32(truncatingIfNeeded: number)
        self.ledgerNumber = self.firstNumber &+ self.publisher
        self.qos = qos
        if self.needsIdentity {
            self.values = self.load.values(of: number)
        } else {
            self.values.clientNumber = self.load.firstNumber + number
        }
        return self.render(message: message, now: now)
    }

    /// Renders the parts that vary per message and returns its size; only if messages are not uniform.
    mutating func render(message: UInt64, now: Int64) -> Int {
        self.values.messageNumber = message
        self.values.nanoseconds = now
        self.random = SplitMix64(seed: self.load.seed, client: Int(self.publisher), message: message)
        self.topic.removeAll(keepingCapacity: true)
        if !self.alias.replacesTopic { self.renderTopic() }
        if self.rendersProperties { self.encodeProperties() }
        var size = self.sizes.lowerBound
        if self.sizes.count > 1 { size = .random(in: self.sizes, using: &self.random) }
        if case .message(let template) = self.stream.payload {
            self.payload.removeAll(keepingCapacity: true)
            let place = template.render(self.values, random: &self.random, into: &self.payload)
            self.offsetInPayload = place ?? 0
            size = self.payload.count
        }
        self.frame = PublishFrame(
            topic: self.topic.count,
            payload: size,
            qos: self.qos,
            version: self.load.version,
            properties: self.properties.count
        )
        self.size = self.frame.count
        self.idOffset = self.frame.idOffset
        self.payloadOffset = self.frame.payloadOffset
        self.correlationOffset = self.correlates ? self.payloadOffset - MQTTShardWork.correlationBytes : nil
        self.headerOffset = self.payloadOffset + self.offsetInPayload
        if self.carrier == .property {
            // The property of the correlation data follows it.
            let behind = self.correlates ? 3 + MQTTShardWork.correlationBytes : 0
            self.headerOffset = self.payloadOffset - behind - ShortHeader.textSize(isAddressed: self.isAddressed)
        }
        return self.size
    }

    private mutating func renderTopic() {
        guard let p2p = self.stream.p2p, self.targets > 0 else {
            self.stream.topic.render(self.values, random: &self.random, into: &self.topic)
            return
        }
        let place = Int.random(in: 0..<self.targets, using: &self.random)
        var id = self.deliveries.target(place, of: p2p)
        // Another client, where there is one.
        if self.targets > 1, id == self.load.values(of: Int(self.publisher)).clientID {
            id = self.deliveries.target((place + 1) % self.targets, of: p2p)
        }
        self.topic += P2PTopic.topic(root: p2p.root, clientID: id)
    }

    var payloadSize: Int { self.frame.payload }

    /// The alias has been introduced; later messages use it instead of the topic.
    mutating func introduced() {
        if case .introduces(let alias) = self.alias { self.alias = .replaces(alias) }
    }

    /// Encodes the properties of the next messages, in reused memory.
    private mutating func encodeProperties() {
        guard self.load.version == .v5 else { return }
        self.properties.removeAll(keepingCapacity: true)
        if let template = self.stream.responseTopic {
            self.answerTopic.removeAll(keepingCapacity: true)
            template.render(self.values, random: &self.random, into: &self.answerTopic)
        }
        let hasAnswer = self.stream.responseTopic != nil
        var size = self.constantProperties.count
        if hasAnswer { size += 3 + self.answerTopic.count }
        if self.alias.number != nil { size += 3 }
        if self.correlates { size += 3 + MQTTShardWork.correlationBytes }
        let name = LedgerCarrier.propertyName
        let textSize = ShortHeader.textSize(isAddressed: self.isAddressed)
        if self.carrier == .property { size += 5 + name.utf8.count + textSize }
        guard size > 0 else { return }
        var rest = size
        repeat {
            self.properties.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        self.properties += self.constantProperties
        if hasAnswer {
            self.append(.responseTopic, UInt16(truncatingIfNeeded: self.answerTopic.count))
            self.properties += self.answerTopic
        }
        if let alias = self.alias.number { self.append(.topicAlias, alias) }
        // These come last, so that their offsets are known.
        if self.carrier == .property {
            self.append(.userProperty, UInt16(name.utf8.count))
            self.properties += Array(name.utf8)
            self.properties += [0, UInt8(textSize)]
            for _ in 0..<textSize { self.properties.append(0) }
        }
        if self.correlates {
            self.append(.correlationData, UInt16(MQTTShardWork.correlationBytes))
            for _ in 0..<MQTTShardWork.correlationBytes { self.properties.append(0) }
        }
    }

    private mutating func append(_ id: PropertyID, _ number: UInt16) {
        self.properties.append(id.rawValue)
        self.properties.append(UInt8(number >> 8))
        self.properties.append(UInt8(number & 0xFF))
    }

    /// The properties that all messages share, without the length in front.
    private static func constant(_ properties: Properties) -> [UInt8] {
        guard !properties.isEmpty else { return [] }
        var buffer = ByteBuffer()
        properties.encode(into: &buffer)
        let bytes = Array(buffer.readableBytesView)
        // The last byte of the length is the first one below 0x80.
        let length = (bytes.firstIndex { $0 < 0x80 } ?? 0) + 1
        return Array(bytes[length...])
    }

    /// Writes one whole message; `lane` is the lane of the load in which it was due.
    func write(
        id: UInt16,
        sequence: UInt64,
        due: NIODeadline,
        lane: Int,
        isDuplicate: Bool = false,
        to memory: UnsafeMutableRawPointer
    ) {
        self.topic.withUnsafeBytes {
            self.frame.write(dup: isDuplicate, retain: self.stream.retain, topic: $0, id: id, to: memory)
        }
        self.properties.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, self.frame.properties > 0 else { return }
            (memory + self.frame.propertiesOffset).copyMemory(from: base, byteCount: self.frame.properties)
        }
        self.correlate(sequence, at: memory)
        self.writePayload(to: memory + self.payloadOffset)
        self.writeHeader(sequence: sequence, due: due, lane: lane, to: memory + self.headerOffset)
    }

    private func correlate(_ sequence: UInt64, at memory: UnsafeMutableRawPointer) {
        guard let offset = self.correlationOffset else { return }
        memory.storeBytes(of: sequence.bigEndian, toByteOffset: offset, as: UInt64.self)
    }

    private func writePayload(to payload: UnsafeMutableRawPointer) {
        let source = self.filler.isEmpty ? self.payload : self.filler
        source.withUnsafeBytes { bytes in
            if let base = bytes.baseAddress { payload.copyMemory(from: base, byteCount: self.payloadSize) }
        }
    }

    private func writeHeader(sequence: UInt64, due: NIODeadline, lane: Int, to place: UnsafeMutableRawPointer) {
        let flags = PayloadHeader.flags(qos: self.qos.rawValue, lane: lane, audience: self.audience)
        let (run, publisher) = (self.load.run, self.ledgerNumber)
        let due = self.realtime(due)
        switch self.carrier {
        case .front:
            PayloadHeader.write(to: place, run: run, publisher: publisher, flags: flags, sequence: sequence, due: due)
        case .short, .text, .property:
            ShortHeader.write(
                to: place,
                run: run,
                publisher: publisher,
                flags: flags,
                sequence: sequence,
                due: due,
                isAddressed: self.isAddressed,
                asText: self.carrier != .short
            )
        case nil: break
        }
    }

    /// Writes a message that copies the one at `model`.
    func copy(
        _ model: UnsafeRawPointer,
        id: UInt16,
        sequence: UInt64,
        due: NIODeadline,
        lane: Int,
        to memory: UnsafeMutableRawPointer
    ) {
        memory.copyMemory(from: model, byteCount: self.size)
        if let offset = self.idOffset { memory.storeBytes(of: id.bigEndian, toByteOffset: offset, as: UInt16.self) }
        self.correlate(sequence, at: memory)
        guard self.carrier == .front else {
            return self.writeHeader(sequence: sequence, due: due, lane: lane, to: memory + self.headerOffset)
        }
        PayloadHeader.patch(
            flags: PayloadHeader.flags(qos: self.qos.rawValue, lane: lane, audience: self.audience),
            sequence: sequence,
            due: self.realtime(due),
            at: memory + self.payloadOffset
        )
    }

    private func realtime(_ due: NIODeadline) -> Int64 { Int64(due.uptimeNanoseconds) &+ self.clock.pointee }
}

/// How a message names its topic (MQTT 5.0 §3.3.2.3.4).
enum TopicAliasUse: Hashable, Sendable {
    case none
    /// The message has the name; the server shall keep this alias for it.
    case introduces(UInt16)
    /// The message has the alias alone.
    case replaces(UInt16)

    var number: UInt16? {
        switch self {
        case .none: nil
        case .introduces(let alias), .replaces(let alias): alias
        }
    }

    var introducesTopic: Bool {
        if case .introduces = self { true } else { false }
    }

    var replacesTopic: Bool {
        if case .replaces = self { true } else { false }
    }
}
