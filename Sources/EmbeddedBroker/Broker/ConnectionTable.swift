/// The connections by their name, in one piece of memory that grows by doubling.
///
/// Not an array: its elements can be copied, and for a field read the compiler copies the whole element now and then,
/// which takes and drops a reference to each buffer it holds, several times a message.
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
