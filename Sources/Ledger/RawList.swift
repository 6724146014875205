/// A list in raw memory, for tables that are read and written once per message.
///
/// It has one owner, so there is no check for shared storage. Indices are not checked either; callers must pass valid
/// ones.
struct RawList<Element>: ~Copyable {
    private(set) var base: UnsafeMutablePointer<Element>
    private(set) var count = 0
    private var capacity: Int

    init(capacity: Int = 1) {
        self.base = .allocate(capacity: max(1, capacity))
        self.capacity = max(1, capacity)
    }

    init(repeating element: Element, count: Int) {
        self.init(capacity: count)
        self.base.initialize(repeating: element, count: count)
        self.count = count
    }

    deinit {
        self.base.deinitialize(count: self.count)
        self.base.deallocate()
    }

    @inline(always)
    mutating func append(_ element: consuming Element) {
        if self.count == self.capacity { self.reserve(self.capacity * 2) }
        (self.base + self.count).initialize(to: element)
        self.count += 1
    }

    /// Reserves space for this many elements in total.
    @inline(never)
    mutating func reserve(_ capacity: Int) {
        guard capacity > self.capacity else { return }
        let base = UnsafeMutablePointer<Element>.allocate(capacity: capacity)
        base.moveInitialize(from: self.base, count: self.count)
        self.base.deallocate()
        self.base = base
        self.capacity = capacity
    }
}
