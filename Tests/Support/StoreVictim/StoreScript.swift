package import MQTT
import MQTTCodec

/// The commits of a client with a window of 16, the same for one seed in any process.
package struct StoreScript: Sequence, IteratorProtocol {
    private var dice: StoreDice
    /// Ours, in order, with how far they are.
    private var flows: [(sequence: UInt64, stage: MQTTStoredMessage.Stage, qos: QoS)] = []
    private var received: [PacketID] = []
    private var lastSequence: UInt64 = 0
    private var lastID: UInt16 = 65_500

    package init(seed: UInt64) { self.dice = StoreDice(state: seed) }

    /// The changes of the next commit; there is always one.
    package mutating func next() -> [MQTTStoreChange]? {
        if self.dice.roll(400) == 0 {
            self.flows = []
            self.received = []
            return [.removeAll]
        }
        var changes: [MQTTStoreChange] = []
        for _ in 0...self.dice.roll(8) { changes.append(self.change()) }
        return changes
    }

    private mutating func change() -> MQTTStoreChange {
        switch self.dice.roll(8) {
        case 0...2 where self.flows.count < 40: return self.insert()
        case 3 where self.received.count < 20: return self.receive()
        case 4 where !self.received.isEmpty:
            return .forget(self.received.remove(at: self.dice.roll(self.received.count)))
        default: return self.step() ?? self.insert()
        }
    }

    private mutating func insert() -> MQTTStoreChange {
        self.lastSequence += 1
        let message = self.message()
        self.flows.append((self.lastSequence, .queued, message.qos))
        return .insert(MQTTStoredMessage(sequence: self.lastSequence, stage: .queued, message: message))
    }

    private mutating func receive() -> MQTTStoreChange {
        let id = self.nextID()
        self.received.append(id)
        self.lastSequence += 1
        return .insert(MQTTStoredMessage(sequence: self.lastSequence, stage: .received(id), message: self.message()))
    }

    /// One of the first 16 goes on.
    private mutating func step() -> MQTTStoreChange? {
        if self.flows.isEmpty { return nil }
        let index = self.dice.roll(Swift.min(16, self.flows.count))
        let flow = self.flows[index]
        switch flow.stage {
        case .queued: self.flows[index].stage = .published(self.nextID())
        case .published(let id) where flow.qos == .exactlyOnce: self.flows[index].stage = .released(id)
        default:
            self.flows.remove(at: index)
            return .remove(sequence: flow.sequence)
        }
        return .advance(sequence: flow.sequence, to: self.flows[index].stage)
    }

    /// Identifiers go round, so some rounds have them in another order than the messages.
    private mutating func nextID() -> PacketID {
        self.lastID = self.lastID == .max ? 1 : self.lastID + 1
        return PacketID(rawValue: self.lastID) ?? 1
    }

    private mutating func message() -> MQTTMessage {
        // Beyond 1,002 bytes a row needs pages of its own.
        let size = [0, 1, 100, 100, 100, 1200, 9000][self.dice.roll(7)]
        let byte = UInt8(truncatingIfNeeded: self.lastSequence)
        var properties = Properties()
        if self.dice.roll(3) == 0 { properties = [.userProperty("name", "value"), .contentType("text/plain")] }
        return MQTTMessage(
            topic: "store/\(self.dice.roll(10))",
            payload: Array(repeating: byte, count: size),
            qos: self.dice.roll(2) == 0 ? .atLeastOnce : .exactlyOnce,
            retain: self.dice.roll(4) == 0,
            properties: properties
        )
    }
}

/// SplitMix64.
package struct StoreDice {
    package var state: UInt64

    package init(state: UInt64) { self.state = state }

    /// 0 ..< sides.
    package mutating func roll(_ sides: Int) -> Int {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var z = self.state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((z ^ (z >> 31)) % UInt64(sides))
    }
}

/// The expected content of a store after some changes, in the simplest form.
package struct StoreModel: Equatable {
    private var ours: [MQTTStoredMessage] = []
    private var theirs: [MQTTStoredMessage] = []

    package init() {}

    package mutating func apply(_ changes: [MQTTStoreChange]) {
        for change in changes {
            switch change {
            case .insert(let message):
                if case .received = message.stage { self.theirs.append(message) } else { self.ours.append(message) }
            case .advance(let sequence, let stage):
                for index in self.ours.indices where self.ours[index].sequence == sequence {
                    self.ours[index].stage = stage
                }
            case .remove(let sequence): self.ours.removeAll { $0.sequence == sequence }
            case .forget(let id): self.theirs.removeAll { $0.stage == .received(id) }
            case .removeAll: self = StoreModel()
            }
        }
    }

    package var messages: [MQTTStoredMessage] {
        self.ours.sorted { $0.sequence < $1.sequence } + self.theirs.sorted { $0.sequence < $1.sequence }
    }
}
