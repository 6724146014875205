import NIOCore

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
