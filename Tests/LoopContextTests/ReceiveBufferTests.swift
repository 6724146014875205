import LoopContext
import NIOCore
import Testing

/// With NIO's own pool, as a channel has one.
@Suite("Receive buffer")
struct ReceiveBufferTests {
    /// A channel's use of its pool for one read(2) that returns `bytes`.
    private func read(_ bytes: [UInt8], _ pool: inout NIOPooledRecvBufferAllocator) -> (ByteBuffer, asked: Int) {
        let (buffer, asked) = pool.buffer(allocator: ByteBufferAllocator()) { buffer in
            let asked = buffer.writableBytes
            buffer.writeBytes(bytes.prefix(asked))
            return asked
        }
        pool.record(actualReadBytes: bytes.count)
        return (buffer, asked)
    }

    @Test(
        "every read asks for the read size, no more and no less",
        arguments: [1, 2, 7, 64, 1_000, 1_460, 65_535, 65_536]
    )
    func size(_ readSize: Int) {
        let receive = ReceiveBuffer(readSize: readSize)
        var pools = (0..<3).map { _ in NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: receive.makeAllocator())
        }
        for round in 0..<3 {
            for index in pools.indices {
                let sent = UInt8(round * 3 + index)
                let (buffer, asked) = self.read([sent], &pools[index])
                #expect(asked == readSize)
                #expect(Array(buffer.readableBytesView) == [sent])
                receive.give(back: buffer)
            }
        }
    }

    @Test("reads that bring nothing, as the last of each channel does, leave the memory where it is")
    func endOfFile() {
        let receive = ReceiveBuffer(readSize: 100)
        var places: Set<Int> = []
        var open: [NIOPooledRecvBufferAllocator] = []
        for _ in 0..<50 {
            var pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: receive.makeAllocator())
            for _ in 0..<2 {
                let (buffer, _) = self.read([1], &pool)
                places.insert(buffer.withUnsafeReadableBytes { Int(bitPattern: $0.baseAddress) })
                receive.give(back: buffer)
            }
            var ended = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: receive.makeAllocator())
            // End of file: no bytes, nothing recorded, no channelRead; once at a first read, once later.
            _ = ended.buffer(allocator: ByteBufferAllocator()) { _ in }
            _ = pool.buffer(allocator: ByteBufferAllocator()) { _ in }
            open.append(pool)
        }
        #expect(places.count == 1)
        #expect(open.count == 50)
    }

    @Test("who keeps a buffer and does not give it back keeps its bytes")
    func kept() {
        let receive = ReceiveBuffer(readSize: 100)
        var pools = (0..<8).map { _ in NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: receive.makeAllocator())
        }
        var kept: [(ByteBuffer, [UInt8])] = []
        for round in 0..<5 {
            for index in pools.indices {
                let bytes = [UInt8](repeating: UInt8(round * 8 + index), count: 50)
                let (buffer, _) = self.read(bytes, &pools[index])
                if (round + index).isMultiple(of: 3) {
                    kept.append((buffer, bytes))
                } else {
                    receive.give(back: buffer)
                }
            }
        }
        for (buffer, bytes) in kept { #expect(Array(buffer.readableBytesView) == bytes) }
    }

    @Test("who gives a buffer back but keeps a slice all the same has it too, after the first read")
    func slice() {
        let receive = ReceiveBuffer(readSize: 100)
        var pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: receive.makeAllocator())
        receive.give(back: self.read([0], &pool).0)
        var slices: [ByteBuffer] = []
        for round in 1...5 {
            let (buffer, _) = self.read([UInt8(round), 9, 9], &pool)
            if let slice = buffer.getSlice(at: buffer.readerIndex, length: 1) { slices.append(slice) }
            receive.give(back: buffer)
        }
        #expect(slices.map { $0.getInteger(at: 0, as: UInt8.self) } == [1, 2, 3, 4, 5])
    }

    @Test("the memory outlives its lender for those who still hold it")
    func outlives() {
        var pool: NIOPooledRecvBufferAllocator
        var held: ByteBuffer
        do {
            let receive = ReceiveBuffer(readSize: 10)
            pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: receive.makeAllocator())
            held = self.read([1, 2, 3], &pool).0
        }
        pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: FixedSizeRecvByteBufferAllocator(capacity: 1))
        held.writeBytes([UInt8](repeating: 4, count: 100))
        #expect(Array(held.readableBytesView) == [1, 2, 3] + [UInt8](repeating: 4, count: 100))
    }
}
