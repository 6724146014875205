import MQTTCodec

/// The identifiers of received QoS 2 messages that their sender has not released.
///
/// Stored as a ring indexed by identifier, because senders count upwards. Two identifiers in one slot double the ring,
/// up to 128 KiB when all 65,535 are open. The first message allocates it.
///
/// Spec: MQTT 5.0 §4.3.3.
package struct InboundFlows: ~Copyable {
    private var ids: [UInt16] = []
    package private(set) var count = 0
    /// The answer that the server waits for, if the owner acknowledges.
    private enum Answer: Hashable {
        /// PUBREC, sent when the owner acknowledges.
        case record
        /// PUBREC with this reason; the owner rejected the message while there was no connection.
        case refusal(ReasonCode)
        /// PUBCOMP, sent when the owner completes the flow; the flow itself is over.
        case completion
    }

    private var unanswered: [UInt16: Answer] = [:]

    package init() {}

    /// Records a QoS 2 message; `false` if it is a retransmission of a delivered one.
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

    /// Removes a message that its sender has released; `false` if there was none.
    package mutating func end(_ id: UInt16) -> Bool {
        guard !self.ids.isEmpty else { return false }
        let index = Int(id) & (self.ids.count - 1)
        guard self.ids[index] == id else { return false }
        self.ids[index] = 0
        self.count -= 1
        if !self.unanswered.isEmpty { self.unanswered[id] = nil }
        return true
    }

    mutating func deferRecord(_ id: UInt16) { self.unanswered[id] = .record }
    func isAwaitingRecord(_ id: UInt16) -> Bool { self.unanswered[id] == .record }

    /// `false` if no message with this identifier waits for its PUBREC.
    mutating func record(_ id: UInt16) -> Bool {
        guard self.unanswered[id] == .record else { return false }
        self.unanswered[id] = nil
        return true
    }

    /// Stores a rejection until the message comes again.
    mutating func refuse(_ id: UInt16, _ reason: ReasonCode) { self.unanswered[id] = .refusal(reason) }

    /// Returns the stored rejection, which ends the flow.
    mutating func takeRefusal(_ id: UInt16) -> ReasonCode? {
        guard case .refusal(let reason)? = self.unanswered[id] else { return nil }
        _ = self.end(id)
        return reason
    }

    mutating func deferCompletion(_ id: UInt16) { self.unanswered[id] = .completion }
    func isAwaitingCompletion(_ id: UInt16) -> Bool { self.unanswered[id] == .completion }

    mutating func completed(_ id: UInt16) {
        if self.isAwaitingCompletion(id) { self.unanswered[id] = nil }
    }

    package mutating func removeAll() {
        self.ids = []
        self.count = 0
        self.unanswered = [:]
    }

    /// Doubles the ring until no two open identifiers share a slot: with 65,536 slots none can.
    private mutating func grow() {
        var larger = Array(repeating: UInt16(0), count: self.ids.count * 2)
        for id in self.ids where id != 0 { larger[Int(id) & (larger.count - 1)] = id }
        self.ids = larger
    }
}
