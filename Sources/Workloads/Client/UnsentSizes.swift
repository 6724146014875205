/// Sizes of the messages in a write, where they differ and the kernel may not have taken them all.
///
/// One per event loop. It uses memory only for clients whose socket did not take a whole write.
struct UnsentSizes {
    /// Sizes of the current write.
    private var batch: [Int32] = []
    private var writer: Int32?
    private var pending: [Int32: [Int32]] = [:]

    /// Messages of the current write.
    var count: Int { self.batch.count }

    mutating func begin(_ place: Int) {
        // A write that ends its connection may start another client's write.
        if let writer = self.writer { self.pending[writer] = self.batch }
        self.batch.removeAll(keepingCapacity: true)
        self.writer = Int32(place)
    }

    mutating func add(_ size: Int) { self.batch.append(Int32(truncatingIfNeeded: size)) }

    /// The write is done; `isWhole` if the kernel took all of it.
    mutating func end(_ place: Int, isWhole: Bool) {
        guard self.writer == Int32(place) else {
            if isWhole { self.forget(place) }
            return
        }
        self.writer = nil
        if !isWhole { self.pending[Int32(place)] = self.batch }
    }

    mutating func forget(_ place: Int) {
        if self.writer == Int32(place) { self.writer = nil }
        if !self.pending.isEmpty { self.pending[Int32(place)] = nil }
    }

    /// How many of the client's last messages are whole within the last `bytes` of its last write.
    ///
    /// `size`: the size of each message, if all are equal.
    func whole(_ place: Int, of count: Int, in bytes: Int, each size: Int32) -> Int {
        guard bytes > 0 else { return 0 }
        let sizes = self.writer == Int32(place) ? self.batch : self.pending.isEmpty ? nil : self.pending[Int32(place)]
        guard let sizes else { return min(count, bytes / max(1, Int(size))) }
        var (left, whole) = (bytes, 0)
        for size in sizes.suffix(count).reversed() {
            guard left >= Int(size) else { break }
            left -= Int(size)
            whole += 1
        }
        return whole
    }
}
