/// The connections by id, in one block of memory that grows by doubling.
///
/// It is not an array because array elements can be copied. For the read of a field the compiler sometimes copies the
/// whole element, which retains and releases each of its buffers several times per message.
struct ConnectionTable: ~Copyable {
    private var base: UnsafeMutablePointer<BrokerConnection>
    private var capacity = 16
    private(set) var count = 0

    init() { self.base = .allocate(capacity: self.capacity) }

    deinit {
        self.base.deinitialize(count: self.count)
        self.base.deallocate()
    }

    var indices: Range<Int> { 0..<self.count }

    subscript(id: ConnectionID) -> BrokerConnection {
        unsafeAddress {
            assert(id >= 0 && id < self.count, "no such connection")
            return UnsafePointer(self.base + id)
        }
        unsafeMutableAddress {
            assert(id >= 0 && id < self.count, "no such connection")
            return self.base + id
        }
    }

    mutating func append(_ connection: consuming BrokerConnection) {
        if self.count == self.capacity {
            let larger = UnsafeMutablePointer<BrokerConnection>.allocate(capacity: self.capacity * 2)
            larger.moveInitialize(from: self.base, count: self.count)
            self.base.deallocate()
            self.base = larger
            self.capacity *= 2
        }
        (self.base + self.count).initialize(to: connection)
        self.count += 1
    }
}
