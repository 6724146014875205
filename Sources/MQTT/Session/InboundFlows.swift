/// The identifiers of QoS 2 messages received and not yet released by their sender.
///
/// Held as a ring indexed by identifier, for senders count upwards; two that meet in one slot double the
/// ring, up to 128 KiB when all 65,535 are open. Nothing is allocated before the first.
///
/// Spec: MQTT 5.0 §4.3.3.
package struct InboundFlows: ~Copyable {
    private var ids: [UInt16] = []
    package private(set) var count = 0

    package init() {}

    /// Notes a QoS 2 message; `false` if it is the repetition of one that was delivered already.
    package mutating func begin(_ id: UInt16) -> Bool {
        if self.ids.isEmpty { self.ids = Array(repeating: 0, count: 16) }
        while true {
            let index = Int(id) & (self.ids.count - 1)
            if self.ids[index] == id { return false }
            if self.ids[index] == 0 {
                self.ids[index] = id
                self.count += 1
                return true
            }
            self.grow()
        }
    }

    /// Forgets a message that its sender has released; `false` if there was none.
    package mutating func end(_ id: UInt16) -> Bool {
        guard !self.ids.isEmpty else { return false }
        let index = Int(id) & (self.ids.count - 1)
        guard self.ids[index] == id else { return false }
        self.ids[index] = 0
        self.count -= 1
        return true
    }

    package mutating func removeAll() {
        self.ids = []
        self.count = 0
    }

    /// Doubles until no two open identifiers share a slot: at 65,536 slots none can.
    private mutating func grow() {
        var larger = Array(repeating: UInt16(0), count: self.ids.count * 2)
        for id in self.ids where id != 0 {
            larger[Int(id) & (larger.count - 1)] = id
        }
        self.ids = larger
    }
}
