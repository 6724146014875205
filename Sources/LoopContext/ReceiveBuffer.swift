import CPosix
// NIO offers no public way to make a ByteBuffer over foreign memory. The SPI is used in this file only. Without it, a
// channel's first read could use a small buffer of its own, and later reads offsets.
@_spi(CustomByteBufferAllocator) package import NIOCore

/// The receive buffer that all clients of an event loop share in turn.
///
/// A buffer per channel would cost 2 to 64 KiB for each client. This one is lent for a `channelRead` and returned at
/// its end, see ``give(back:)``. A handler that keeps the buffer, or a slice of it, does not return it. That handler
/// then owns the memory, and the loop makes a new buffer.
///
/// NIO keeps the very first buffer of a channel. So each channel gets one of its own for its first read, but over the
/// same memory: an object of 80 bytes, and a first read as large as the others. While NIO stores that buffer it holds
/// two references, and so copies the buffer before it reads into it. The copy is offered the same memory again.
package final class ReceiveBuffer {
    /// The size of the buffer, and the largest read.
    package static let capacity = 65_536

    private static let allocator = ByteBufferAllocator(
        allocate: { clamor_lease_allocate($0) },
        reallocate: { clamor_lease_reallocate($0, $1, $2) },
        deallocate: { clamor_lease_release($0) },
        copy: { $0.copyMemory(from: $1, byteCount: $2) }
    )
    private static let firstAllocator = ByteBufferAllocator(
        allocate: { clamor_lease_allocate_offered($0) },
        reallocate: { clamor_lease_reallocate($0, $1, $2) },
        deallocate: { clamor_lease_release($0) },
        // A copy over the same memory has its bytes already.
        copy: { if UnsafeRawPointer($0) != $1 { $0.copyMemory(from: $1, byteCount: $2) } }
    )

    /// Bytes a read asks for at most.
    package let readSize: Int
    /// The number of buffers that handlers kept and the loop replaced.
    package private(set) var replaced = 0
    /// The next power of two: the capacity that a copy would have too.
    private let size: Int
    private var memory: UnsafeMutableRawPointer
    /// The buffer of all reads but the first of each channel; out while it is lent.
    private var shared: ByteBuffer?
    private var loan = Loan.none
    private var isFirstLoan = false

    private enum Loan {
        case none
        /// Lent for a read that brought nothing yet: end of file or an error, if it stays so.
        case asked
        /// Handed to a `channelRead`.
        case delivered
    }

    package init(readSize: Int = ReceiveBuffer.capacity) {
        precondition((1...Self.capacity).contains(readSize), "a read size is 1...65536")
        self.readSize = readSize
        self.size = 1 << (Int.bitWidth - (readSize - 1).leadingZeroBitCount)
        self.memory = clamor_lease_allocate(self.size)
    }

    deinit { clamor_lease_release(self.memory) }

    /// Takes back what a `channelRead` was handed.
    ///
    /// The caller keeps no slice of it: the next read, of whatever channel, overwrites the bytes.
    package func give(back buffer: ByteBuffer) {
        guard self.loan == .delivered, buffer.withVeryUnsafeBytes({ $0.baseAddress }) == UnsafeRawPointer(self.memory)
        else {
            return
        }
        if !self.isFirstLoan { self.shared = buffer }
        self.loan = .none
    }

    /// The memory for a read of a socket without a channel, ``readSize`` bytes; only where no channel reads.
    package var raw: UnsafeMutableRawBufferPointer { .init(start: self.memory, count: self.readSize) }

    /// For the channel option `.recvAllocator`, one for each channel, together with `.maxMessagesPerRead` 1.
    package func makeAllocator() -> LoopReceiveAllocator { LoopReceiveAllocator(lender: self) }

    /// A buffer with exactly ``readSize`` writable bytes; the channel keeps it if it is its first.
    func lend(isFirst: Bool) -> ByteBuffer {
        var later = self.shared.take()
        let isFree = later == nil || later?.modifyIfUniquelyOwned(self.prepare) != nil
        if self.loan == .delivered || !isFree {
            // Not given back, or given back and kept all the same: theirs from now on.
            clamor_lease_release(self.memory)
            self.memory = clamor_lease_allocate(self.size)
            self.replaced += 1
            later = nil
        }
        self.loan = .asked
        self.isFirstLoan = isFirst
        if isFirst {
            self.shared = later.take()
            clamor_lease_offer(self.memory, self.size)
            return self.wrapMemory(Self.firstAllocator)
        }
        return later ?? self.wrapMemory(Self.allocator)
    }

    /// The read brought something.
    func delivers() {
        self.loan = .delivered
        if self.isFirstLoan { clamor_lease_offer(nil, 0) }
    }

    private func wrapMemory(_ allocator: ByteBufferAllocator) -> ByteBuffer {
        clamor_lease_retain(self.memory)
        var buffer = ByteBuffer(
            takingOwnershipOf: UnsafeMutableRawBufferPointer(start: self.memory, count: self.size),
            allocator: allocator
        )
        self.prepare(&buffer)
        return buffer
    }

    /// Leaves exactly ``readSize`` bytes to write to.
    private func prepare(_ buffer: inout ByteBuffer) {
        buffer.clear()
        buffer.moveWriterIndex(to: self.size - self.readSize)
        buffer.moveReaderIndex(to: self.size - self.readSize)
    }
}

/// Lends the loop's receive buffer to one channel.
package struct LoopReceiveAllocator: RecvByteBufferAllocator, @unchecked Sendable {
    // Unchecked: NIO asks for a Sendable allocator and calls it on the channel's event loop alone, which is where the
    // lender lives.
    private let lender: ReceiveBuffer
    private var isFirst = true

    init(lender: ReceiveBuffer) { self.lender = lender }

    /// `nil` switches off the channel's own reuse of buffers.
    package func nextBufferSize() -> Int? { nil }

    package mutating func record(actualReadBytes: Int) -> Bool {
        self.lender.delivers()
        self.isFirst = false
        // "May grow": the channel asks again for each read, and leaves the one that it keeps alone.
        return true
    }

    package func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { self.lender.lend(isFirst: self.isFirst) }
}
