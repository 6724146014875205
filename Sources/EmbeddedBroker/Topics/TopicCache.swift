/// One receiver of a topic's messages: a client with a subscription of its own.
struct RouteTarget {
    var session: Int32
    /// -1 while the client is offline.
    var connection: Int32
    /// The subscription that decides the QoS and whose faults apply.
    var subscription: Int32
    var qos: UInt8
    var noLocal: Bool
    var retainAsPublished: Bool
    /// False if every matching subscription of the client was lost with its session.
    var isLive = true
    /// Subscription identifiers as encoded properties (0x0B and the number, each), for MQTT 5.
    var identifiers = UnsafeRawBufferPointer(start: nil, count: 0)
}

/// The receivers of a topic's messages, resolved once and kept until a subscription changes.
///
/// Plain pointers into one block of memory, so that its use for a message needs no reference counting.
struct Route {
    let hash: UInt64
    let version: UInt64
    let targets: UnsafeBufferPointer<RouteTarget>
    /// Share groups; each message goes to one member.
    let groups: UnsafeBufferPointer<Int32>
    let topic: UnsafeRawBufferPointer
    private let memory: UnsafeMutableRawPointer
    /// Size of the route in bytes.
    let byteCount: Int

    /// Copies all arguments; `identifiers` has the identifiers of each of the `targets`.
    init(
        topic: UnsafeRawBufferPointer,
        hash: UInt64,
        version: UInt64,
        targets: [RouteTarget],
        identifiers: [[UInt8]],
        groups: [Int32]
    ) {
        let targetBytes = targets.count * MemoryLayout<RouteTarget>.stride
        let groupBytes = groups.count * MemoryLayout<Int32>.stride
        let identifierBytes = identifiers.reduce(0) { $0 + $1.count }
        self.byteCount = max(1, targetBytes + groupBytes + topic.count + identifierBytes)
        self.memory = .allocate(byteCount: self.byteCount, alignment: MemoryLayout<RouteTarget>.alignment)
        let firstTarget = self.memory.bindMemory(to: RouteTarget.self, capacity: targets.count)
        let firstGroup = (self.memory + targetBytes).bindMemory(to: Int32.self, capacity: groups.count)
        var end = self.memory + targetBytes + groupBytes
        if let base = topic.baseAddress { end.copyMemory(from: base, byteCount: topic.count) }
        self.topic = UnsafeRawBufferPointer(start: end, count: topic.count)
        end += topic.count
        for index in targets.indices {
            var target = targets[index]
            let bytes = identifiers[index]
            bytes.withUnsafeBytes { if let base = $0.baseAddress { end.copyMemory(from: base, byteCount: $0.count) } }
            target.identifiers = UnsafeRawBufferPointer(start: end, count: bytes.count)
            end += bytes.count
            (firstTarget + index).initialize(to: target)
        }
        for index in groups.indices { (firstGroup + index).initialize(to: groups[index]) }
        self.targets = UnsafeBufferPointer(start: firstTarget, count: targets.count)
        self.groups = UnsafeBufferPointer(start: firstGroup, count: groups.count)
        self.hash = hash
        self.version = version
    }

    func deallocate() { self.memory.deallocate() }
}

/// Maps exact topic bytes to their ``Route``: an open-addressed table that looks up the bytes of a packet in place,
/// without allocating a key.
///
/// Each topic takes about 140 bytes, the topic itself, and 40 bytes per receiver. The table is emptied when full.
struct TopicCache: ~Copyable {
    private static let maximum = 131_072
    /// Limit for all routes together, since topics may be long and receivers many.
    private static let maximumBytes = 64 << 20

    private var slots: [Int32] = Array(repeating: -1, count: 256)
    private var routes: [Route] = []
    /// Slot of the last hit: most messages have the same topic as the one before.
    private var last = -1
    private(set) var byteCount = 0

    deinit { for route in self.routes { route.deallocate() } }

    /// The topic's route, or nil if it is not cached or older than `version`.
    ///
    /// Its pointers are valid until the next ``insert(_:)``.
    @inline(__always)
    mutating func find(_ topic: UnsafeRawBufferPointer, version: UInt64) -> Route? {
        if self.last >= 0 {
            let route = self.routes[self.last]
            if route.version == version, Self.equal(route.topic, topic) { return route }
        }
        return self.search(topic, version: version)
    }

    private mutating func search(_ topic: UnsafeRawBufferPointer, version: UInt64) -> Route? {
        let hash = Self.hash(topic)
        let mask = self.slots.count - 1
        var slot = Int(truncatingIfNeeded: hash) & mask
        while true {
            let index = Int(self.slots[slot])
            if index < 0 { return nil }
            let route = self.routes[index]
            if route.hash == hash, Self.equal(route.topic, topic) {
                guard route.version == version else { return nil }
                self.last = index
                return route
            }
            slot = (slot + 1) & mask
        }
    }

    mutating func insert(_ route: Route) {
        if self.routes.count >= Self.maximum || self.byteCount + route.byteCount > Self.maximumBytes { self.clear() }
        self.byteCount += route.byteCount
        // At most half full.
        if self.routes.count * 2 >= self.slots.count { self.grow() }
        let mask = self.slots.count - 1
        var slot = Int(truncatingIfNeeded: route.hash) & mask
        while self.slots[slot] >= 0 {
            let index = Int(self.slots[slot])
            if self.routes[index].hash == route.hash, Self.equal(self.routes[index].topic, route.topic) {
                self.byteCount -= self.routes[index].byteCount
                self.routes[index].deallocate()
                self.routes[index] = route
                return
            }
            slot = (slot + 1) & mask
        }
        self.slots[slot] = Int32(self.routes.count)
        self.routes.append(route)
    }

    private mutating func clear() {
        for route in self.routes { route.deallocate() }
        self.routes.removeAll(keepingCapacity: true)
        self.slots = Array(repeating: -1, count: self.slots.count)
        self.last = -1
        self.byteCount = 0
    }

    private mutating func grow() {
        self.slots = Array(repeating: -1, count: self.slots.count * 2)
        let mask = self.slots.count - 1
        for index in self.routes.indices {
            var slot = Int(truncatingIfNeeded: self.routes[index].hash) & mask
            while self.slots[slot] >= 0 { slot = (slot + 1) & mask }
            self.slots[slot] = Int32(index)
        }
    }

    /// Eight bytes per step; the last step overlaps.
    @inline(__always)
    private static func equal(_ stored: UnsafeRawBufferPointer, _ topic: UnsafeRawBufferPointer) -> Bool {
        guard stored.count == topic.count else { return false }
        guard stored.count >= 8 else { return stored.elementsEqual(topic) }
        var offset = 0
        let last = stored.count - 8
        while true {
            let left = stored.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            if left != topic.loadUnaligned(fromByteOffset: offset, as: UInt64.self) { return false }
            if offset == last { return true }
            offset = min(offset + 8, last)
        }
    }

    /// Eight bytes per step, multiply and fold.
    ///
    /// The table is private to one process, so it needs no seed.
    static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hash = UInt64(truncatingIfNeeded: bytes.count) &* 0x9E37_79B9_7F4A_7C15
        var offset = 0
        while offset + 8 <= bytes.count {
            hash = self.mix(hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset += 8
        }
        var rest: UInt64 = 0
        while offset < bytes.count {
            rest = rest << 8 | UInt64(bytes[offset])
            offset += 1
        }
        return self.mix(hash ^ rest)
    }

    private static func mix(_ value: UInt64) -> UInt64 {
        let product = (value ^ 0xA076_1D64_78BD_642F).multipliedFullWidth(by: 0xE703_7ED1_A0B4_28DB)
        return product.high ^ product.low
    }
}
