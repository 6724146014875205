/// The front part of an element that a read has cut.
///
/// Memory follows what has arrived, twice it at most, and never passes the limit (512 bytes where that is less).
struct Carry: ~Copyable {
    private var memory: UnsafeMutableRawPointer?
    private var room: UInt32 = 0
    private var used: UInt32 = 0

    @inline(__always)
    var count: Int { Int(self.used) }
    /// Bytes that are allocated.
    var capacity: Int { Int(self.room) }

    deinit { self.memory?.deallocate() }

    /// Whether there is room for this many more bytes.
    @inline(__always)
    func holds(_ added: Int) -> Bool { self.count + added <= self.capacity }

    /// Adds bytes, for which there has to be room.
    ///
    /// - Returns: where all of them lie, until the next change.
    @inline(__always)
    mutating func append(_ source: UnsafeRawPointer, _ added: Int) -> UnsafeRawPointer {
        guard let memory = self.memory else { return source }
        Self.copy(source, to: memory + self.count, added)
        self.used = UInt32(truncatingIfNeeded: self.count + added)
        return UnsafeRawPointer(memory)
    }

    /// A few bytes in words that overlap, which is half the time of a call.
    @inline(__always)
    private static func copy(_ source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, _ count: Int) {
        if count >= 8 || count == 0 { return target.copyMemory(from: source, byteCount: count) }
        if count >= 4 {
            let last = (source + (count &- 4)).loadUnaligned(as: UInt32.self)
            target.storeBytes(of: source.loadUnaligned(as: UInt32.self), as: UInt32.self)
            (target + (count &- 4)).storeBytes(of: last, as: UInt32.self)
        } else {
            // First, middle and last are all there can be.
            let middle = (source + count &>> 1).load(as: UInt8.self)
            let last = (source + (count &- 1)).load(as: UInt8.self)
            target.storeBytes(of: source.load(as: UInt8.self), as: UInt8.self)
            (target + count &>> 1).storeBytes(of: middle, as: UInt8.self)
            (target + (count &- 1)).storeBytes(of: last, as: UInt8.self)
        }
    }

    /// Makes room for this many bytes in all.
    mutating func grow(toHold size: Int, limit: Int, from shared: XMPPReaderMemory?) {
        let wanted = max(size, min(max(512, self.capacity * 2), limit))
        let (memory, room) =
            shared?.take(wanted, most: max(512, limit))
            ?? (UnsafeMutableRawPointer.allocate(byteCount: wanted, alignment: 16), wanted)
        if let old = self.memory {
            memory.copyMemory(from: old, byteCount: self.count)
            release(old, self.capacity, to: shared)
        }
        self.memory = memory
        self.room = UInt32(truncatingIfNeeded: room)
    }

    @inline(__always)
    mutating func clear() { self.used = 0 }

    mutating func giveBack(to shared: XMPPReaderMemory?) {
        guard let memory = self.memory else { return }
        release(memory, self.capacity, to: shared)
        self.memory = nil
        self.room = 0
        self.used = 0
    }
}

private func release(_ memory: UnsafeMutableRawPointer, _ room: Int, to shared: XMPPReaderMemory?) {
    if let shared { shared.give(back: memory, room: room) } else { memory.deallocate() }
}

/// Memory for the tokens of an element that is cut, or that has more of them than what is lent holds.
struct TokenStore: ~Copyable {
    private var memory: UnsafeMutablePointer<Token>?
    private(set) var room = 0

    deinit { self.memory?.deallocate() }

    func tokens(_ other: UnsafeMutablePointer<Token>) -> UnsafeMutablePointer<Token> { self.memory ?? other }

    /// Takes the tokens over from where they lie, be that here.
    mutating func grow(
        from source: UnsafeMutablePointer<Token>,
        count: Int,
        room: Int,
        shared: XMPPReaderMemory?
    ) -> UnsafeMutablePointer<Token> {
        let stride = MemoryLayout<Token>.stride
        let (bytes, size) =
            shared?.take(room * stride, most: .max)
            ?? (UnsafeMutableRawPointer.allocate(byteCount: room * stride, alignment: 16), room * stride)
        let memory = bytes.bindMemory(to: Token.self, capacity: size / stride)
        memory.initialize(from: source, count: count)
        self.giveBack(to: shared)
        self.memory = memory
        self.room = size / stride
        return memory
    }

    mutating func giveBack(to shared: XMPPReaderMemory?) {
        guard let memory = self.memory else { return }
        release(UnsafeMutableRawPointer(memory), self.room * MemoryLayout<Token>.stride, to: shared)
        self.memory = nil
        self.room = 0
    }
}
