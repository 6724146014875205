/// Where the PUBLISH of this turn lie that need no packet identifier: each written once, however many clients get it.
///
/// A client's output is a range of it for as long as what goes to the client lies there without a gap, as it does for
/// one publisher's messages to one client, for all that goes to one client, and for the same messages to many. It is
/// empty again as soon as no client refers to it, so the bytes stay in the cache for the writes.
struct SharedFrames: ~Copyable {
    /// From here on the clients that refer to it are to be written, for the rest of the turn would only make it larger.
    static let wantedBytes = 128 << 10
    /// Offsets have 31 bits.
    private static let maximum = 1 << 30
    /// What an empty one keeps.
    private static let kept = 1 << 20

    private var memory: UnsafeMutableRawPointer
    private(set) var capacity = 256 << 10
    private(set) var count = 0
    /// Clients whose output refers to it.
    private var holders = 0
    /// The frames of the message that is being distributed, by form; those that are not written yet are below 0.
    private var starts = SIMD4<Int32>(repeating: -1)
    private var ends = SIMD4<Int32>(repeating: -1)

    init() { self.memory = .allocate(byteCount: self.capacity, alignment: 16) }

    deinit { self.memory.deallocate() }

    /// The bytes of a range that a client still holds; valid until the next change.
    mutating func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        assert(range.lowerBound >= 0 && range.upperBound <= self.count, "frames that are gone")
        return UnsafeRawBufferPointer(start: self.memory + range.lowerBound, count: range.count)
    }

    /// Another message comes.
    @inline(__always)
    mutating func beginMessage() {
        self.starts = SIMD4(repeating: -1)
        // Frames that were copied and never held.
        if self.holders == 0, self.count > 0 { self.empty() }
    }

    /// Gives back the memory of frames that nobody holds.
    mutating func trim() { if self.holders == 0 { self.empty() } }

    /// The frame of the message for a client of this version, written if no client before wanted the same one.
    ///
    /// - Returns: nil when there is no room left, or the frame would be more than a PUBLISH can be.
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
            // As it came, but for what the flags say.
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

    /// One client less; without any the frames are gone, also those of the message that is being distributed.
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
