import MQTTCodec
import Measurement
import NIOCore

/// Puts a client's publishes together, straight into the memory that is written.
///
/// The first message of a write is built, the others are copies of it with identifier, sequence and due time
/// patched: about 5 ns a message. One per event loop.
struct MessageWriter: ~Copyable {
    private let load: MQTTLoad
    private let filler: [UInt8]
    private let variesPerMessage: Bool
    /// Whether `%c` or `%u` stand in topic or message.
    private let needsIdentity: Bool
    private var random: SeededGenerator
    private var topic: [UInt8] = []
    private var payload: [UInt8] = []
    private var frame = PublishFrame(topic: 0, payload: 0, qos: .atMostOnce, version: .v311)
    // What the frame says, asked once for each write.
    private var size = 0
    private var idOffset: Int?
    private var payloadOffset = 0
    private var values = PlaceholderValues(clientNumber: 0)
    private var publisher: UInt32 = 0
    private var qos = QoS.atMostOnce

    init(_ load: MQTTLoad, seed: UInt64) {
        self.load = load
        self.random = SeededGenerator(seed: seed)
        switch load.payload {
        case .generated(let size):
            self.filler = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }
            self.variesPerMessage = load.topic.variesPerMessage
            self.needsIdentity = load.topic.needsIdentity
        case .message(let template):
            self.filler = []
            self.variesPerMessage = load.topic.variesPerMessage || template.variesPerMessage
            self.needsIdentity = load.topic.needsIdentity || template.needsIdentity
        }
    }

    /// Whether all messages of a client look alike, but for what is patched.
    var isUniform: Bool { !self.variesPerMessage }

    /// Turns to a client and returns the size of its next message.
    mutating func begin(_ number: Int, qos: QoS, message: UInt64, now: Int64) -> Int {
        self.publisher = UInt32(truncatingIfNeeded: number)
        self.qos = qos
        if self.needsIdentity {
            self.values = self.load.values(of: number)
        } else {
            self.values.clientNumber = self.load.firstNumber + number
        }
        return self.render(message: message, now: now)
    }

    /// Renders what varies per message and returns its size; only where messages are not uniform.
    mutating func render(message: UInt64, now: Int64) -> Int {
        self.values.messageNumber = message
        self.values.nanoseconds = now
        self.topic.removeAll(keepingCapacity: true)
        self.load.topic.render(self.values, random: &self.random, into: &self.topic)
        var size = self.filler.count
        if case .message(let template) = self.load.payload {
            self.payload.removeAll(keepingCapacity: true)
            template.render(self.values, random: &self.random, into: &self.payload)
            size = self.payload.count
        }
        self.frame = PublishFrame(topic: self.topic.count, payload: size, qos: self.qos, version: self.load.version)
        self.size = self.frame.count
        self.idOffset = self.frame.idOffset
        self.payloadOffset = self.frame.payloadOffset
        return self.size
    }

    var payloadSize: Int { self.frame.payload }

    /// Writes one whole message.
    func write(
        id: UInt16,
        sequence: UInt64,
        due: NIODeadline,
        isDuplicate: Bool = false,
        to memory: UnsafeMutableRawPointer
    ) {
        self.topic.withUnsafeBytes { topic in
            self.frame.write(
                dup: isDuplicate,
                retain: self.load.retain,
                topic: topic,
                id: id,
                to: memory
            )
        }
        let payload = memory + self.payloadOffset
        let source = self.filler.isEmpty ? self.payload : self.filler
        source.withUnsafeBytes { bytes in
            if let base = bytes.baseAddress, !bytes.isEmpty { payload.copyMemory(from: base, byteCount: bytes.count) }
        }
        if self.load.hasLedger {
            PayloadHeader.write(
                to: payload,
                run: self.load.run,
                publisher: self.publisher,
                flags: UInt32(self.qos.rawValue),
                sequence: sequence,
                due: self.realtime(due)
            )
        }
    }

    /// Writes a message like the one at `model`.
    func copy(
        _ model: UnsafeMutableRawPointer,
        id: UInt16,
        sequence: UInt64,
        due: NIODeadline,
        to memory: UnsafeMutableRawPointer
    ) {
        memory.copyMemory(from: model, byteCount: self.size)
        if let offset = self.idOffset {
            memory.storeBytes(of: id.bigEndian, toByteOffset: offset, as: UInt16.self)
        }
        if self.load.hasLedger {
            PayloadHeader.patch(sequence: sequence, due: self.realtime(due), at: memory + self.payloadOffset)
        }
    }

    private func realtime(_ due: NIODeadline) -> Int64 {
        Int64(due.uptimeNanoseconds) &+ self.load.realtimeOffset
    }
}

/// SplitMix64: the same run for the same `--seed`.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { self.state = seed }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var z = self.state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
