/// Where messages of a topic go, resolved once and kept until a subscription changes.
struct Route {
    /// One for each client with a subscription of its own.
    struct Target {
        var session: Int32
        /// -1 when every subscription of the client that takes the topic was lost with its connection.
        var connection: Int32
        /// The subscription that decides the QoS, and whose faults apply.
        var subscription: Int32
        var qos: UInt8
        var noLocal: Bool
        var retainAsPublished: Bool
        /// Subscription identifiers as encoded properties (0x0B and the number, each), for MQTT 5.
        var identifiers: [UInt8]
    }

    var topic: [UInt8]
    var hash: UInt64
    var version: UInt64
    var targets: [Target]
    /// Share groups, of which one member gets each message.
    var groups: [Int32]
}

/// Exact topic bytes to their ``Route``: an open-addressed table, so that the bytes of a packet are looked up where
/// they lie, without a key of their own.
///
/// About 150 bytes and the topic, for each topic seen; emptied when full.
struct TopicCache {
    private static let maximum = 131_072

    private var slots: [Int32] = Array(repeating: -1, count: 256)
    private(set) var routes: [Route] = []

    /// The index of the topic's route, or nil when it is not here or older than `version`.
    func find(_ topic: UnsafeRawBufferPointer, hash: UInt64, version: UInt64) -> Int? {
        let mask = self.slots.count - 1
        var slot = Int(truncatingIfNeeded: hash) & mask
        while true {
            let index = Int(self.slots[slot])
            if index < 0 { return nil }
            if self.routes[index].hash == hash, Self.equal(self.routes[index].topic, topic) {
                return self.routes[index].version == version ? index : nil
            }
            slot = (slot + 1) & mask
        }
    }

    mutating func insert(_ route: Route) -> Int {
        if self.routes.count >= Self.maximum {
            self.routes.removeAll(keepingCapacity: true)
            self.slots = Array(repeating: -1, count: self.slots.count)
        }
        // At most half full.
        if self.routes.count * 2 >= self.slots.count { self.grow() }
        let mask = self.slots.count - 1
        var slot = Int(truncatingIfNeeded: route.hash) & mask
        while self.slots[slot] >= 0 {
            let index = Int(self.slots[slot])
            if self.routes[index].hash == route.hash, self.routes[index].topic == route.topic {
                self.routes[index] = route
                return index
            }
            slot = (slot + 1) & mask
        }
        self.slots[slot] = Int32(self.routes.count)
        self.routes.append(route)
        return self.routes.count - 1
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

    private static func equal(_ stored: [UInt8], _ topic: UnsafeRawBufferPointer) -> Bool {
        guard stored.count == topic.count else { return false }
        return stored.withUnsafeBytes { stored in
            for index in 0..<stored.count where stored[index] != topic[index] { return false }
            return true
        }
    }

    /// Eight bytes a step, multiply and fold; the table is private to one process, so no seed.
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
