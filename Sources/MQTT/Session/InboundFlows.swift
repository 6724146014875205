import MQTTCodec

/// The identifiers of QoS 2 messages received and not yet released by their sender.
///
/// Held as a ring indexed by identifier, for senders count upwards; two that meet in one slot double the
/// ring, up to 128 KiB when all 65,535 are open. Nothing is allocated before the first.
///
/// Spec: MQTT 5.0 §4.3.3.
package struct InboundFlows: ~Copyable {
    private var ids: [UInt16] = []
    package private(set) var count = 0
    /// What the server waits for, where the acknowledging is left to the owner.
    private enum Answer: Hashable {
        /// PUBREC, as soon as the owner says so.
        case record
        /// PUBREC with this reason, which came while nobody could be told.
        case refusal(ReasonCode)
        /// PUBCOMP, as soon as the owner says so; the flow itself is over.
        case completion
    }

    private var unanswered: [UInt16: Answer] = [:]

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
                if !self.unanswered.isEmpty { self.unanswered[id] = nil }
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
        if !self.unanswered.isEmpty { self.unanswered[id] = nil }
        return true
    }

    mutating func awaitsRecord(_ id: UInt16) { self.unanswered[id] = .record }

    func isAwaitingRecord(_ id: UInt16) -> Bool { self.unanswered[id] == .record }

    /// `false` if no message waits for its PUBREC under this identifier.
    mutating func record(_ id: UInt16) -> Bool {
        guard self.unanswered[id] == .record else { return false }
        self.unanswered[id] = nil
        return true
    }

    /// Keeps a refusal until the message comes again.
    mutating func refuses(_ id: UInt16, _ reason: ReasonCode) { self.unanswered[id] = .refusal(reason) }

    /// The refusal that was kept, which ends the flow.
    mutating func takeRefusal(_ id: UInt16) -> ReasonCode? {
        guard case .refusal(let reason)? = self.unanswered[id] else { return nil }
        _ = self.end(id)
        return reason
    }

    mutating func awaitsCompletion(_ id: UInt16) { self.unanswered[id] = .completion }

    func isAwaitingCompletion(_ id: UInt16) -> Bool { self.unanswered[id] == .completion }

    mutating func completed(_ id: UInt16) {
        if self.isAwaitingCompletion(id) { self.unanswered[id] = nil }
    }

    package mutating func removeAll() {
        self.ids = []
        self.count = 0
        self.unanswered = [:]
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
