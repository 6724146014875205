/// The front part of a packet whose end has not arrived.
///
/// Memory follows what has arrived, never what a length field announces; up to 256 bytes stay with a client whose
/// packets get cut, the rest is given back with the packet.
@usableFromInline
struct Carry: ~Copyable {
    private static let kept = 256

    @usableFromInline
    var memory: UnsafeMutableRawPointer?
    private var capacity = 0
    @usableFromInline
    private(set) var count = 0
    /// The whole packet's size; 0 while its length is incomplete.
    @usableFromInline
    var needed = 0

    init() { self.memory = nil }

    // Not inlinable, it makes the 6.3 optimizer trip over the accessors of a public type that holds a carry.
    @inlinable
    deinit { self.memory?.deallocate() }

    /// What has arrived; invalid after the next change.
    @usableFromInline
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: self.memory, count: self.count) }

    @usableFromInline
    mutating func append(_ source: UnsafeRawPointer, count added: Int) {
        if added == 0 { return }
        if self.count + added > self.capacity { self.grow(toHold: self.count + added) }
        self.memory?.advanced(by: self.count).copyMemory(from: source, byteCount: added)
        self.count += added
    }

    /// Doubles, so that a packet in small pieces is not copied once per piece.
    private mutating func grow(toHold size: Int) {
        let capacity = max(64, size, min(self.capacity * 2, self.needed))
        let memory = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 8)
        if let old = self.memory {
            memory.copyMemory(from: old, byteCount: self.count)
            old.deallocate()
        }
        self.memory = memory
        self.capacity = capacity
    }

    /// Forgets the packet.
    @usableFromInline
    mutating func clear() {
        self.count = 0
        self.needed = 0
        if self.capacity > Self.kept {
            self.memory?.deallocate()
            self.memory = nil
            self.capacity = 0
        }
    }
}
