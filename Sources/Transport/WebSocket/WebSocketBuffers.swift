package import LoopContext
import NIOCore

/// State shared by the WebSockets of one event loop: buffers to assemble and parse frames, and random keys.
///
/// Confined to its event loop.
package final class WebSocketBuffers {
    /// Lends the buffers that plain connections read into; without it no buffer is given back.
    let receive: ReceiveBuffer?
    /// The data of several frames of one read, concatenated.
    var inbound = ByteBuffer()
    /// The ends of text messages in ``inbound``, counted from its reader index.
    var ends: [Int] = []
    /// The frame being written; the channel owns it until it is written.
    var outbound = ByteBuffer()
    private var random: [UInt32] = []

    /// A larger frame's memory is not kept.
    private static let largestKept = 1 << 18

    package init(receive: ReceiveBuffer?) { self.receive = receive }

    /// An unpredictable masking key (RFC 6455 §5.3), never 0; many are drawn from the system's generator at a time.
    func nextKey() -> UInt32 {
        if self.random.isEmpty {
            var generator = SystemRandomNumberGenerator()
            self.random.reserveCapacity(256)
            while self.random.count < 256 {
                let bits = generator.next()
                self.random.append(UInt32(truncatingIfNeeded: bits))
                self.random.append(UInt32(truncatingIfNeeded: bits >> 32))
            }
        }
        let key = self.random.removeLast()
        return key == 0 ? self.nextKey() : key
    }

    /// Assembles a frame of `payload`; with `key` 0 it is unmasked.
    func frame(_ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer, key: UInt32) -> ByteBuffer {
        if self.outbound.capacity > Self.largestKept { self.outbound = ByteBuffer() }
        self.outbound.clear(minimumCapacity: payload.count + WebSocketOpcode.largestHeader)
        self.outbound.writeWithUnsafeMutableBytes(minimumWritableBytes: payload.count + 14) { target in
            let size = opcode.writeHeader(length: payload.count, key: key, to: target)
            if let base = target.baseAddress { WebSocketMask.copy(payload, to: base + size, key: key) }
            return size + payload.count
        }
        return self.outbound
    }

    /// Only the header, for a payload that is written after it without a copy.
    func header(_ opcode: WebSocketOpcode, length: Int) -> ByteBuffer {
        self.outbound.clear(minimumCapacity: WebSocketOpcode.largestHeader)
        self.outbound.writeWithUnsafeMutableBytes(minimumWritableBytes: WebSocketOpcode.largestHeader) { target in
            opcode.writeHeader(length: length, key: 0, to: target)
        }
        return self.outbound
    }
}

/// The opcodes of sent frames.
enum WebSocketOpcode: UInt8 {
    case text = 1
    case binary = 2
    case close = 8
    case pong = 10

    /// Two bytes, eight of length, four of key.
    static let largestHeader = 14

    /// Writes the header of a whole message, with the key if it is not 0 (RFC 6455 §5.2).
    ///
    /// - Returns: its size.
    func writeHeader(length: Int, key: UInt32, to target: UnsafeMutableRawBufferPointer) -> Int {
        let mask: UInt8 = key == 0 ? 0 : 0x80
        target[0] = 0x80 | self.rawValue
        var size = 2
        switch length {
        case ..<126:
            target[1] = mask | UInt8(length)
        case ..<65_536:
            target[1] = mask | 126
            target.storeBytes(of: UInt16(length).bigEndian, toByteOffset: 2, as: UInt16.self)
            size = 4
        default:
            target[1] = mask | 127
            target.storeBytes(of: UInt64(length).bigEndian, toByteOffset: 2, as: UInt64.self)
            size = 10
        }
        guard key != 0 else { return size }
        target.storeBytes(of: key.littleEndian, toByteOffset: size, as: UInt32.self)
        return size + 4
    }
}

/// The parsed contents of one read.
struct WebSocketFindings {
    /// The range of unmasked binary data in one piece, which is passed on in place.
    private(set) var piece: Range<Int>?
    /// The data is in the shared buffer, with the ends of text messages.
    private(set) var isGathered = false
    private(set) var ping: [UInt8]?
    /// The Close frame's code; 1000 if it had none.
    private(set) var close: UInt16?
    private(set) var violation: WebSocketViolation?

    init(
        in bytes: UnsafeRawBufferPointer,
        _ reader: inout WebSocketReader,
        content: WebSocketContent,
        buffers: WebSocketBuffers
    ) {
        if content == .text { buffers.ends.removeAll(keepingCapacity: true) }
        var offset = 0
        do throws(WebSocketViolation) {
            while let event = try reader.next(bytes, from: &offset) {
                switch event {
                case .data(let range, let key)
                where key == 0 && content == .binary && !self.isGathered && self.piece == nil:
                    self.piece = range
                case .data(let range, let key): self.gather(bytes, range, key: key, buffers)
                case .endOfMessage: buffers.ends.append(self.isGathered ? buffers.inbound.readableBytes : 0)
                case .ping(let payload): self.ping = payload
                case .pong: break
                case .close(let code): self.close = code ?? 1000
                }
            }
        } catch {
            self.violation = error
        }
    }

    private mutating func gather(
        _ bytes: UnsafeRawBufferPointer,
        _ range: Range<Int>,
        key: UInt32,
        _ buffers: WebSocketBuffers
    ) {
        if !self.isGathered {
            buffers.inbound.clear(minimumCapacity: bytes.count)
            self.isGathered = true
            if let piece = self.piece.take() { buffers.inbound.writeBytes(bytes[piece]) }
        }
        let source = UnsafeRawBufferPointer(rebasing: bytes[range])
        buffers.inbound.writeWithUnsafeMutableBytes(minimumWritableBytes: range.count) { target in
            if let base = target.baseAddress { WebSocketMask.copy(source, to: base, key: key) }
            return range.count
        }
    }
}

/// Assembles text messages, and passes on each one whole (RFC 7395 §3.3.3).
///
/// About 56 bytes per connection, plus the received part of an incomplete message.
final class WebSocketMessages {
    private var cut: ByteBuffer?
    /// Complete messages that arrived during a delivery: a failed write makes NIO read the socket at once.
    private var later: [ByteBuffer] = []
    private var isDelivering = false

    func take(_ found: WebSocketFindings, _ buffers: WebSocketBuffers, _ deliver: (ByteBuffer) -> Void) {
        let ends = buffers.ends
        let gathered = found.isGathered ? buffers.inbound : ByteBuffer()
        // The usual read: one complete message.
        if !self.isDelivering, self.cut == nil, ends.count == 1, ends[0] == gathered.readableBytes {
            self.isDelivering = true
            deliver(gathered)
            return self.deliverLater(deliver)
        }
        var start = gathered.readerIndex
        for end in ends {
            let length = gathered.readerIndex + end - start
            var message = gathered.getSlice(at: start, length: length) ?? ByteBuffer()
            start += length
            if var whole = self.cut.take() {
                whole.writeBuffer(&message)
                message = whole
            }
            self.later.append(message)
        }
        if start < gathered.writerIndex {
            var whole = self.cut.take() ?? ByteBuffer()
            whole.writeBytes(gathered.readableBytesView[start...])
            self.cut = whole
        }
        guard !self.isDelivering, !self.later.isEmpty else { return }
        self.isDelivering = true
        self.deliverLater(deliver)
    }

    private func deliverLater(_ deliver: (ByteBuffer) -> Void) {
        var next = 0
        while next < self.later.count {
            let message = self.later[next]
            next += 1
            deliver(message)
        }
        // A quiet client keeps no memory.
        if next > 0 { self.later = [] }
        self.isDelivering = false
    }
}
