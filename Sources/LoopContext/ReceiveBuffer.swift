package import NIOCore

/// The one receive buffer that all clients of an event loop take turns with.
///
/// A channel's own buffer would stay with it for ever, 2 to 64 KiB for each client. This one is lent for one
/// `channelRead` and given back: ``give(back:)`` at its end. A reader that keeps the buffer, or a slice of it, simply
/// does not give it back; the loop then makes itself a new one.
package final class ReceiveBuffer {
    /// The size of the buffer, and the largest read.
    package static let capacity = 65_536

    /// Bytes a read asks for at most.
    package let readSize: Int
    private var free: [ByteBuffer] = []

    package init(readSize: Int = ReceiveBuffer.capacity) {
        precondition((1...Self.capacity).contains(readSize), "a read size is 1...65536")
        self.readSize = readSize
    }

    /// Takes back what a `channelRead` was handed; the caller keeps no slice of it.
    package func give(back buffer: ByteBuffer) {
        guard self.free.isEmpty, buffer.storageCapacity == Self.capacity else { return }
        self.free.append(buffer)
    }

    /// For the channel option `.recvAllocator`, one for each channel, together with `.maxMessagesPerRead` 1.
    package func makeAllocator() -> LoopReceiveAllocator { LoopReceiveAllocator(lender: self) }

    /// A buffer with exactly ``readSize`` writable bytes that nobody else refers to.
    func lend() -> ByteBuffer {
        while var buffer = self.free.popLast() {
            // Still referred to by somebody: theirs from now on.
            if buffer.modifyIfUniquelyOwned({ self.prepare(&$0) }) != nil { return buffer }
        }
        var buffer = ByteBufferAllocator().buffer(capacity: Self.capacity)
        self.prepare(&buffer)
        return buffer
    }

    /// Leaves the last ``readSize`` bytes to write to: a buffer's own capacity is a power of two.
    private func prepare(_ buffer: inout ByteBuffer) {
        buffer.clear()
        buffer.moveWriterIndex(to: Self.capacity - self.readSize)
        buffer.moveReaderIndex(to: Self.capacity - self.readSize)
    }
}

/// Lends the loop's receive buffer to one channel.
package struct LoopReceiveAllocator: RecvByteBufferAllocator, @unchecked Sendable {
    // Unchecked: NIO asks for a Sendable allocator and calls it on the channel's event loop alone, which is where the
    // lender lives.
    private let lender: ReceiveBuffer
    private var isFirst = true

    init(lender: ReceiveBuffer) { self.lender = lender }

    package func nextBufferSize() -> Int? { nil }

    package mutating func record(actualReadBytes: Int) -> Bool {
        self.isFirst = false
        // "May grow": the channel asks again for each read, and does not reuse the one it keeps.
        return true
    }

    package func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        guard self.isFirst else { return self.lender.lend() }
        return allocator.buffer(capacity: min(self.lender.readSize, 64))
    }
}
