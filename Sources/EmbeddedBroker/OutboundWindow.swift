import NIOCore

/// The QoS 1 and 2 PUBLISH on their way to one client, and those that wait for room.
///
/// Nothing is sent again on a connection (§4.4), so of what is in flight only the packet identifiers are kept:
/// three bytes each. What waits lies encoded in one buffer.
///
/// Spec: MQTT 5.0 §4.3, §4.9.
struct OutboundWindow {
    private enum Slot {
        static let free: UInt8 = 0
        static let awaitingPubAck: UInt8 = 1
        static let awaitingPubRec: UInt8 = 2
        static let awaitingPubComp: UInt8 = 3
    }

    /// What an acknowledgement does.
    enum Outcome: Hashable {
        /// The flow goes on: PUBREL is due.
        case release
        /// The flow has ended; its identifier is free.
        case done
        /// No flow has this identifier.
        case unknown
        /// The flow is of another kind or at another step; a protocol error.
        case wrong
    }

    /// One waiting PUBLISH, in front of its bytes.
    struct Waiting {
        static let headerBytes = 12
        var count: Int
        var packetIDOffset: Int
        var qos: UInt8
        var tally: Tally
    }

    let limit: Int
    private(set) var inFlight = 0
    private var slots: [UInt8] = []
    private var freeIDs: [UInt16] = []
    private var queue = ByteBuffer()

    init(limit: Int) { self.limit = limit }

    var hasQueue: Bool { self.queue.readableBytes > 0 }
    var queuedBytes: Int { self.queue.readableBytes }

    /// An identifier for a PUBLISH that goes out now; 0 when it has to wait.
    mutating func take(qos: UInt8) -> UInt16 {
        guard self.inFlight < self.limit, !self.hasQueue else { return 0 }
        return self.allocate(qos: qos)
    }

    private mutating func allocate(qos: UInt8) -> UInt16 {
        self.inFlight += 1
        if let id = self.freeIDs.popLast() {
            self.slots[Int(id) - 1] = qos
            return id
        }
        self.slots.append(qos)
        return UInt16(self.slots.count)
    }

    mutating func enqueue(_ writer: PublishWriter, tally: Tally) {
        let count = writer.count
        self.queue.writeInteger(UInt32(count))
        self.queue.writeInteger(UInt32(writer.packetIDOffset))
        self.queue.writeInteger(writer.qos)
        self.queue.writeInteger(tally.kind.rawValue)
        self.queue.writeInteger(tally.qos)
        self.queue.writeInteger(UInt8(0))
        self.queue.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { memory in
            if let base = memory.baseAddress { writer.write(to: base, packetID: 0) }
            return count
        }
    }

    /// Moves the next waiting PUBLISH to `out` when there is room.
    ///
    /// - Returns: what it counts as, or nil when nothing moved.
    mutating func moveNext(to out: inout ByteBuffer) -> Tally? {
        guard self.inFlight < self.limit, let (waiting, bytes) = self.popQueue() else { return nil }
        let id = self.allocate(qos: waiting.qos)
        let start = out.writerIndex
        out.writeImmutableBuffer(bytes)
        out.setInteger(id, at: start + waiting.packetIDOffset)
        return waiting.tally
    }

    /// Takes what waits out, one by one, when the client has gone.
    mutating func abandonNext() -> Tally? { self.popQueue()?.0.tally }

    private mutating func popQueue() -> (Waiting, ByteBuffer)? {
        guard let count: UInt32 = self.queue.readInteger(), let offset: UInt32 = self.queue.readInteger(),
            let qos: UInt8 = self.queue.readInteger(), let kind: UInt8 = self.queue.readInteger(),
            let publisherQoS: UInt8 = self.queue.readInteger(), self.queue.readInteger(as: UInt8.self) != nil,
            let bytes = self.queue.readSlice(length: Int(count))
        else { return nil }
        let tally = Tally(kind: Tally.Kind(rawValue: kind) ?? .copy, qos: publisherQoS)
        let waiting = Waiting(count: Int(count), packetIDOffset: Int(offset), qos: qos, tally: tally)
        // An idle client keeps no buffer; a busy one does not let what it has read pile up in front.
        if self.queue.readableBytes == 0 {
            self.queue = ByteBuffer()
        } else if self.queue.readerIndex > 1 << 20, self.queue.readerIndex > self.queue.readableBytes {
            self.queue.discardReadBytes()
        }
        return (waiting, bytes)
    }

    mutating func pubAck(_ id: UInt16) -> Outcome { self.end(id, from: Slot.awaitingPubAck) }

    mutating func pubRec(_ id: UInt16, failed: Bool) -> Outcome {
        if failed { return self.end(id, from: Slot.awaitingPubRec) }
        guard let slot = self.slot(id) else { return .unknown }
        switch slot {
        case Slot.awaitingPubRec:
            self.slots[Int(id) - 1] = Slot.awaitingPubComp
            return .release
        // A second PUBREC, of a client that is entitled to send again (3.1): PUBREL again.
        case Slot.awaitingPubComp: return .release
        default: return .wrong
        }
    }

    mutating func pubComp(_ id: UInt16) -> Outcome { self.end(id, from: Slot.awaitingPubComp) }

    private mutating func end(_ id: UInt16, from wanted: UInt8) -> Outcome {
        guard let slot = self.slot(id) else { return .unknown }
        guard slot == wanted else { return .wrong }
        self.slots[Int(id) - 1] = Slot.free
        self.freeIDs.append(id)
        self.inFlight -= 1
        return .done
    }

    private func slot(_ id: UInt16) -> UInt8? {
        guard id >= 1, Int(id) <= self.slots.count, self.slots[Int(id) - 1] != Slot.free else { return nil }
        return self.slots[Int(id) - 1]
    }
}

/// What a PUBLISH counts as once it is written.
struct Tally: Hashable {
    enum Kind: UInt8 {
        /// One copy for one subscription.
        case copy
        /// The extra copy of `--duplicate`.
        case duplicate
        /// A retained message for a new subscription.
        case retained
        /// A `$SYS` topic.
        case statistics
    }

    var kind: Kind
    /// The publisher's.
    var qos: UInt8
}
