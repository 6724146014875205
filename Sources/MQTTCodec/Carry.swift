/// The front part of a packet whose end has not arrived.
///
/// Memory follows the bytes received, never a declared length. Up to 256 bytes stay with a client whose packets get
/// cut; the rest is released with the packet.
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

    /// The bytes that have arrived; invalid after the next change.
    @usableFromInline
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: self.memory, count: self.count) }

    @usableFromInline
    mutating func append(_ source: UnsafeRawPointer, count added: Int) {
        if added == 0 { return }
        if self.count + added > self.capacity { self.grow(toHold: self.count + added) }
        guard let target = self.memory?.advanced(by: self.count) else { return }
        Self.copy(source, to: target, added)
        self.count += added
    }

    /// Copies at least one byte; a few in words that overlap, which is half the time of a call.
    private static func copy(_ source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, _ count: Int) {
        if count > 16 { return target.copyMemory(from: source, byteCount: count) }
        if count >= 8 {
            let last = (source + (count - 8)).loadUnaligned(as: UInt64.self)
            target.storeBytes(of: source.loadUnaligned(as: UInt64.self), as: UInt64.self)
            (target + (count - 8)).storeBytes(of: last, as: UInt64.self)
        } else if count >= 4 {
            let last = (source + (count - 4)).loadUnaligned(as: UInt32.self)
            target.storeBytes(of: source.loadUnaligned(as: UInt32.self), as: UInt32.self)
            (target + (count - 4)).storeBytes(of: last, as: UInt32.self)
        } else {
            // First, middle and last are all there can be.
            let middle = (source + count / 2).load(as: UInt8.self)
            let last = (source + (count - 1)).load(as: UInt8.self)
            target.storeBytes(of: source.load(as: UInt8.self), as: UInt8.self)
            (target + count / 2).storeBytes(of: middle, as: UInt8.self)
            (target + (count - 1)).storeBytes(of: last, as: UInt8.self)
        }
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
