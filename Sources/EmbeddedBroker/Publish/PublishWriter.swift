import NIOCore

/// An application message in place: in the receive buffer, or in a stored copy.
package struct MessageView {
    let topic: UnsafeRawBufferPointer
    let payload: UnsafeRawBufferPointer
    /// MQTT 5 properties, after their length.
    let properties: UnsafeRawBufferPointer
    /// The publisher's QoS.
    let qos: UInt8
    let retain: Bool
    /// The packet after its fixed header, if it came at QoS 0 and without properties; else empty.
    private var body = UnsafeRawBufferPointer(start: nil, count: 0)
    private var bodyIsVersion5 = false

    package init(
        topic: UnsafeRawBufferPointer,
        payload: UnsafeRawBufferPointer,
        properties: UnsafeRawBufferPointer,
        qos: UInt8,
        retain: Bool
    ) {
        self.topic = topic
        self.payload = payload
        self.properties = properties
        self.qos = qos
        self.retain = retain
    }

    /// Records that topic and payload are part of a whole PUBLISH of QoS 0 without properties.
    @inline(__always)
    mutating func setBody(isVersion5: Bool) {
        guard let topic = self.topic.baseAddress, let payload = self.payload.baseAddress else { return }
        // The property length is one zero byte, or absent.
        guard payload == topic + self.topic.count + (isVersion5 ? 1 : 0) else { return }
        self.body = UnsafeRawBufferPointer(start: topic - 2, count: payload + self.payload.count - (topic - 2))
        self.bodyIsVersion5 = isVersion5
    }

    /// The bytes after the fixed header for a client of this version, at QoS 0; nil if they must be encoded.
    @inline(__always)
    func body(version5: Bool) -> UnsafeRawBufferPointer? {
        version5 == self.bodyIsVersion5 && !self.body.isEmpty ? self.body : nil
    }
}

/// A stored copy of a message.
struct KeptMessage {
    let topic: [UInt8]
    let payload: [UInt8]
    let properties: [UInt8]
    let qos: UInt8
    let retain: Bool

    /// Expiry time; nil means never.
    var expiry: NIODeadline?

    var bytes: Int { self.topic.count + self.payload.count + self.properties.count }
}

extension KeptMessage {
    init(_ view: MessageView, now: NIODeadline) {
        self.topic = Array(view.topic)
        self.payload = Array(view.payload)
        self.properties = Array(view.properties)
        self.qos = view.qos
        self.retain = view.retain
        let seconds = RawProperties.messageExpirySeconds(in: view.properties)
        self.expiry = seconds.map { now + .seconds(Int64($0)) }
    }

    /// The message with its remaining Message Expiry Interval [MQTT-3.3.2-6]; nil if it has expired.
    func aged(to now: NIODeadline) -> KeptMessage? {
        guard let expiry = self.expiry else { return self }
        guard expiry > now else { return nil }
        // A started second counts in full, so that the remainder is never 0 before the end.
        let seconds = UInt32(clamping: ((expiry - now).nanoseconds + 999_999_999) / 1_000_000_000)
        return KeptMessage(
            topic: self.topic,
            payload: self.payload,
            properties: RawProperties.setting(expiry: seconds, in: self.properties),
            qos: self.qos,
            retain: self.retain,
            expiry: expiry
        )
    }

    func withView<Result>(_ body: (MessageView) -> Result) -> Result {
        self.topic.withUnsafeBytes { topic in
            self.payload.withUnsafeBytes { payload in
                self.properties.withUnsafeBytes { properties in
                    body(
                        MessageView(
                            topic: topic,
                            payload: payload,
                            properties: properties,
                            qos: self.qos,
                            retain: self.retain
                        )
                    )
                }
            }
        }
    }
}

/// A PUBLISH for one receiver: its size is computed first, then it is written into raw memory in one go.
///
/// Spec: MQTT 5.0 §3.3, MQTT 3.1.1 §3.3.
struct PublishWriter {
    /// A Remaining Length of 268,435,455 and its fixed header (§2.1.4).
    ///
    /// A message from another version may be larger in this form: its size is computed, but it is not sent.
    static let maximumCount = 268_435_460

    let message: MessageView
    let version5: Bool
    let qos: UInt8
    let retain: Bool
    /// Encoded Subscription Identifier properties, for MQTT 5 only.
    let identifiers: UnsafeRawBufferPointer
    private let remaining: Int

    init(
        _ message: MessageView,
        version5: Bool,
        qos: UInt8,
        retain: Bool,
        identifiers: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) {
        self.message = message
        self.version5 = version5
        self.qos = qos
        self.retain = retain
        self.identifiers = identifiers
        var remaining = 2 + message.topic.count + message.payload.count + (qos > 0 ? 2 : 0)
        if version5 {
            let properties = message.properties.count + identifiers.count
            remaining += Self.lengthOfLength(properties) + properties
        }
        self.remaining = remaining
    }

    /// Bytes of the whole packet.
    var count: Int { 1 + Self.lengthOfLength(self.remaining) + self.remaining }

    /// Offset of the packet identifier at QoS 1 and 2.
    var packetIDOffset: Int { 1 + Self.lengthOfLength(self.remaining) + 2 + self.message.topic.count }

    /// Offset of the value of the Message Expiry Interval, if the packet has one.
    var expiryOffset: Int? {
        guard self.version5,
            let offset = RawProperties.offset(of: RawProperties.messageExpiry, in: self.message.properties)
        else { return nil }
        let properties = self.message.properties.count + self.identifiers.count
        let before = 1 + Self.lengthOfLength(self.remaining) + 2 + self.message.topic.count + (self.qos > 0 ? 2 : 0)
        return before + Self.lengthOfLength(properties) + offset
    }

    /// Writes exactly `count` bytes.
    func write(to memory: UnsafeMutableRawPointer, packetID: UInt16) {
        memory.storeBytes(of: 0x30 | self.qos << 1 | (self.retain ? 1 : 0), as: UInt8.self)
        var end = memory + 1
        Self.writeLength(self.remaining, to: &end)
        end.storeBytes(of: UInt16(truncatingIfNeeded: self.message.topic.count).bigEndian, as: UInt16.self)
        end += 2
        Self.copy(self.message.topic, to: &end)
        if self.qos > 0 {
            end.storeBytes(of: packetID.bigEndian, as: UInt16.self)
            end += 2
        }
        if self.version5 {
            Self.writeLength(self.message.properties.count + self.identifiers.count, to: &end)
            Self.copy(self.message.properties, to: &end)
            Self.copy(self.identifiers, to: &end)
        }
        Self.copy(self.message.payload, to: &end)
    }

    static func lengthOfLength(_ value: Int) -> Int {
        value < 128 ? 1 : value < 16_384 ? 2 : value < 2_097_152 ? 3 : value < 268_435_456 ? 4 : 5
    }

    static func writeLength(_ value: Int, to end: inout UnsafeMutableRawPointer) {
        var rest = value
        repeat {
            let byte = UInt8(rest & 0x7F)
            rest >>= 7
            end.storeBytes(of: rest > 0 ? byte | 0x80 : byte, as: UInt8.self)
            end += 1
        } while rest > 0
    }

    private static func copy(_ bytes: UnsafeRawBufferPointer, to end: inout UnsafeMutableRawPointer) {
        guard let base = bytes.baseAddress else { return }
        end.copyMemory(from: base, byteCount: bytes.count)
        end += bytes.count
    }
}
