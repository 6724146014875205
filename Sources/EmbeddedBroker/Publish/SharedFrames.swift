/// The PUBLISH frames of this turn without packet identifier.
///
/// Each is written once, however many clients get it.
///
/// A client's output is a range of these frames as long as its frames are contiguous. That is so for one publisher's
/// messages to one client, for all messages to one client, and for the same messages to many clients. The memory is
/// emptied as soon as no client refers to it, so the bytes stay in the cache for the writes.
struct SharedFrames: ~Copyable {
    /// From this size on the clients that refer to it should be written, since the turn would only make it larger.
    static let wantedBytes = 128 << 10
    /// Offsets have 31 bits.
    private static let maximum = 1 << 30
    /// Capacity that is kept when empty.
    private static let kept = 1 << 20

    private var memory: UnsafeMutableRawPointer
    private(set) var capacity = 256 << 10
    private(set) var count = 0
    /// Number of clients whose output refers to it.
    private var holders = 0
    /// Frames of the current message, by form; below 0 if not written yet.
    private var starts = SIMD4<Int32>(repeating: -1)
    private var ends = SIMD4<Int32>(repeating: -1)

    init() { self.memory = .allocate(byteCount: self.capacity, alignment: 16) }

    deinit { self.memory.deallocate() }

    /// The bytes of a range that a client still holds; valid until the next change.
    mutating func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        assert(range.lowerBound >= 0 && range.upperBound <= self.count, "frames that are gone")
        return UnsafeRawBufferPointer(start: self.memory + range.lowerBound, count: range.count)
    }

    /// Begins another message.
    @inline(__always)
    mutating func beginMessage() {
        self.starts = SIMD4(repeating: -1)
        // Frames that were copied and never held.
        if self.holders == 0, self.count > 0 { self.empty() }
    }

    /// Frees the memory if no client holds a frame.
    mutating func trim() { if self.holders == 0 { self.empty() } }

    /// The current message's frame for a client of this version, written at its first use.
    ///
    /// - Returns: nil if there is no room left, or if the frame exceeds the maximum of a PUBLISH.
    @inline(__always)
    mutating func frame(of message: MessageView, version5: Bool, retain: Bool) -> Range<Int>? {
        let form = (version5 ? 1 : 0) | (retain ? 2 : 0)
        let start = Int(self.starts[form])
        if start >= 0 { return Range(uncheckedBounds: (start, Int(self.ends[form]))) }
        return self.write(message, form: form, version5: version5, retain: retain)
    }

    private mutating func write(_ message: MessageView, form: Int, version5: Bool, retain: Bool) -> Range<Int>? {
        let start = self.count
        if let body = message.body(version5: version5) {
            // As it came, except for the flags.
            let header = 1 + PublishWriter.lengthOfLength(body.count)
            guard self.reserve(header + body.count), let source = body.baseAddress else { return nil }
            var end = self.memory + start
            end.storeBytes(of: 0x30 | (retain ? 1 : 0), as: UInt8.self)
            end += 1
            PublishWriter.writeLength(body.count, to: &end)
            end.copyMemory(from: source, byteCount: body.count)
            self.count += header + body.count
        } else {
            let writer = PublishWriter(message, version5: version5, qos: 0, retain: retain)
            guard writer.count <= PublishWriter.maximumCount, self.reserve(writer.count) else { return nil }
            writer.write(to: self.memory + start, packetID: 0)
            self.count += writer.count
        }
        self.starts[form] = Int32(truncatingIfNeeded: start)
        self.ends[form] = Int32(truncatingIfNeeded: self.count)
        return start..<self.count
    }

    private mutating func reserve(_ bytes: Int) -> Bool {
        let needed = self.count + bytes
        if needed <= self.capacity { return true }
        guard needed <= Self.maximum else { return false }
        self.capacity = max(needed, self.capacity * 2)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: self.capacity, alignment: 16)
        larger.copyMemory(from: self.memory, byteCount: self.count)
        self.memory.deallocate()
        self.memory = larger
        return true
    }

    mutating func hold() { self.holders += 1 }

    /// One holder fewer.
    ///
    /// Without holders the frames are gone, including those of the current message.
    mutating func letGo() {
        self.holders -= 1
        assert(self.holders >= 0, "let go more often than held")
        if self.holders == 0 { self.empty() }
    }

    private mutating func empty() {
        self.count = 0
        self.starts = SIMD4(repeating: -1)
        guard self.capacity > Self.kept else { return }
        self.memory.deallocate()
        self.capacity = Self.kept
        self.memory = .allocate(byteCount: self.capacity, alignment: 16)
    }
}
