import MQTTCodec
import NIOCore

/// The QoS 1 and 2 PUBLISH packets in flight to one client, and those that wait for room.
///
/// Nothing is sent again on the same connection (§4.4). If the session ends with its connection, only the packet
/// identifiers in flight are kept: three bytes each. Waiting packets are encoded in one buffer.
///
/// Spec: MQTT 5.0 §4.3, §4.4, §4.9.
struct DeliveryQueue {
    private enum Slot {
        static let free: UInt8 = 0
        static let awaitingPubAck: UInt8 = 1
        static let awaitingPubRec: UInt8 = 2
        static let awaitingPubComp: UInt8 = 3
        /// The message is from an earlier connection, and not yet sent on this one.
        static let isPending: UInt8 = 0x80
    }

    /// The effect of an acknowledgement.
    enum Outcome: Hashable {
        /// The flow continues: PUBREL is due.
        case release
        /// The flow has ended; its identifier is free.
        case done
        /// No flow has this identifier.
        case unknown
        /// The flow is of another kind or at another step; a protocol error.
        case wrong
    }

    /// The fate of the next message in line.
    enum Moved: Hashable {
        case sent(Tally)
        /// A retransmission of a message from an earlier connection.
        case sentAgain(Tally)
        case released
        /// Its expiry interval has passed.
        case expired(Tally)
        /// It exceeds the client's maximum; `isDelivered`: an earlier connection took it.
        case tooLarge(Tally, isDelivered: Bool)
    }

    var limit: Int
    private(set) var inFlight = 0
    private var slots: [UInt8] = []
    private var freeIDs: [UInt16] = []
    private var queue = MessageQueue()
    /// The messages in flight of a session that outlives its connection.
    private(set) var journal: FlightJournal?

    init(limit: Int, isKept: Bool = false) {
        self.limit = limit
        if isKept { self.journal = FlightJournal() }
    }

    /// Whether a message waits for room or for retransmission.
    var hasQueue: Bool { !self.queue.isEmpty || self.journal?.pending.isEmpty == false }
    var queuedBytes: Int { self.queue.byteCount }
    var queuedCount: Int { self.queue.count }
    /// Bytes of waiting messages and of messages that may have to be sent again.
    var storedBytes: Int { self.queue.byteCount + (self.journal?.byteCount ?? 0) }

    /// A packet identifier for a PUBLISH that is sent now; 0 if it has to wait.
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

    mutating func enqueue(_ writer: PublishWriter, tally: Tally, now: NIODeadline) {
        self.queue.append(writer, MessageQueue.Header(writer, tally: tally, now: now))
    }

    /// Stores the message being sent, since the session outlives the connection.
    func remember(_ id: UInt16, _ writer: PublishWriter, tally: Tally, now: NIODeadline) {
        let header = MessageQueue.Header(writer, tally: tally, now: now)
        var bytes = ByteBuffer()
        bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: writer.count) { memory in
            if let base = memory.baseAddress { writer.write(to: base, packetID: id) }
            return writer.count
        }
        self.journal?.remember(id, header, bytes)
    }

    // MARK: Waiting messages

    /// Moves the next waiting message to `out` if there is room: retransmissions first, then new messages.
    ///
    /// - Returns: its fate, or nil if nothing moved.
    mutating func moveNext(to out: inout ByteBuffer, maximumSize: Int, now: NIODeadline) -> Moved? {
        guard self.inFlight < self.limit else { return nil }
        if let journal = self.journal {
            while let id = journal.popPending() {
                if let moved = self.sendAgain(id, journal, to: &out, maximumSize: maximumSize, now: now) {
                    return moved
                }
            }
        }
        guard let (header, bytes) = self.queue.popFirst() else { return nil }
        if header.isExpired(at: now) { return .expired(header.tally) }
        if bytes.readableBytes > maximumSize { return .tooLarge(header.tally, isDelivered: false) }
        let id = self.allocate(qos: header.qos)
        Self.write(bytes, header, id: id, isRepeated: false, to: &out, now: now)
        if let journal = self.journal {
            // A copy: a slice would retain the whole output.
            journal.remember(id, header, ByteBuffer(bytes: bytes.readableBytesView))
        }
        return .sent(header.tally)
    }

    private mutating func sendAgain(
        _ id: UInt16,
        _ journal: FlightJournal,
        to out: inout ByteBuffer,
        maximumSize: Int,
        now: NIODeadline
    ) -> Moved? {
        let slot = self.slots[Int(id) - 1]
        // It has been answered in the meantime.
        guard slot & Slot.isPending != 0, let flight = journal.flights[id] else { return nil }
        let header = flight.header
        guard slot & ~Slot.isPending != Slot.awaitingPubComp else {
            self.begin(id, journal)
            out.writeWithUnsafeMutableBytes(minimumWritableBytes: 4) { memory in
                if let base = memory.baseAddress { AcknowledgementBytes.write(.pubRel, id: id, to: base) }
                return 4
            }
            return .released
        }
        let isTooLarge = flight.bytes.readableBytes > maximumSize
        if isTooLarge || !flight.isDelivered && header.isExpired(at: now) {
            self.free(id)
            return isTooLarge ? .tooLarge(header.tally, isDelivered: flight.isDelivered) : .expired(header.tally)
        }
        // [MQTT-3.3.1-1]: a retransmission needs a first transmission.
        Self.write(flight.bytes, header, id: id, isRepeated: flight.isDelivered, to: &out, now: now)
        self.begin(id, journal)
        return flight.isDelivered ? .sentAgain(header.tally) : .sent(header.tally)
    }

    /// A flow of an earlier connection continues on this one.
    private mutating func begin(_ id: UInt16, _ journal: FlightJournal) {
        self.slots[Int(id) - 1] &= ~Slot.isPending
        self.inFlight += 1
        journal.sendAgain(id)
    }

    private static func write(
        _ bytes: ByteBuffer,
        _ header: MessageQueue.Header,
        id: UInt16,
        isRepeated: Bool,
        to out: inout ByteBuffer,
        now: NIODeadline
    ) {
        let start = out.writerIndex
        out.writeImmutableBuffer(bytes)
        out.setInteger(id, at: start + Int(header.packetIDOffset))
        if isRepeated, let first: UInt8 = out.getInteger(at: start) { out.setInteger(first | 0b1000, at: start) }
        if header.expiryOffset > 0 { out.setInteger(header.remaining(at: now), at: start + Int(header.expiryOffset)) }
    }

    /// Removes waiting messages one by one after the session has ended.
    mutating func abandonNext() -> Tally? { self.queue.popFirst()?.header.tally }

    /// Messages in flight that were never handed out, after the session has ended.
    var undelivered: [Tally] { self.journal?.flights.values.filter { !$0.isDelivered }.map(\.header.tally) ?? [] }

    // MARK: Between connections

    /// The connection has ended and the session continues: the next connection takes over all messages in flight.
    mutating func park(takenBack: (Tally, Bool) -> Void) {
        self.journal?.park(takenBack: takenBack)
        self.inFlight = 0
        for index in self.slots.indices where self.slots[index] != Slot.free { self.slots[index] |= Slot.isPending }
    }

    /// Converts waiting and in-flight messages to the form of another version.
    mutating func convert(from old: ProtocolVersion, to new: ProtocolVersion) {
        guard (old == .v5) != (new == .v5) else { return }
        var rest = MessageQueue()
        while let (header, bytes) = self.queue.popFirst() {
            let (newHeader, newBytes) = PublishForm.convert(header, bytes, fromVersion5: old == .v5)
            rest.append(newBytes, newHeader)
        }
        self.queue = rest
        guard let journal = self.journal else { return }
        for (id, flight) in journal.flights where flight.bytes.readableBytes > 0 {
            let (header, bytes) = PublishForm.convert(flight.header, flight.bytes, fromVersion5: old == .v5)
            journal.replace(id, header, bytes)
        }
    }

    // MARK: Acknowledgements

    mutating func pubAck(_ id: UInt16) -> Outcome { self.end(id, from: Slot.awaitingPubAck) }

    mutating func pubRec(_ id: UInt16, failed: Bool) -> Outcome {
        if failed { return self.end(id, from: Slot.awaitingPubRec) }
        guard let slot = self.slot(id) else { return .unknown }
        switch slot & ~Slot.isPending {
        case Slot.awaitingPubRec:
            if slot & Slot.isPending != 0 { self.inFlight += 1 }
            self.slots[Int(id) - 1] = Slot.awaitingPubComp
            self.journal?.release(id)
            return .release
        // A second PUBREC from a 3.1 client, which may send it again: PUBREL again.
        case Slot.awaitingPubComp: return .release
        default: return .wrong
        }
    }

    mutating func pubComp(_ id: UInt16) -> Outcome { self.end(id, from: Slot.awaitingPubComp) }

    private mutating func end(_ id: UInt16, from wanted: UInt8) -> Outcome {
        guard let slot = self.slot(id) else { return .unknown }
        guard slot & ~Slot.isPending == wanted else { return .wrong }
        if slot & Slot.isPending == 0 { self.inFlight -= 1 }
        self.free(id)
        return .done
    }

    private mutating func free(_ id: UInt16) {
        self.slots[Int(id) - 1] = Slot.free
        self.freeIDs.append(id)
        self.journal?.forget(id)
    }

    private func slot(_ id: UInt16) -> UInt8? {
        guard id >= 1, Int(id) <= self.slots.count, self.slots[Int(id) - 1] != Slot.free else { return nil }
        // A message that no connection has handed out cannot have been answered.
        if let flight = self.journal?.flights[id], !flight.isDelivered { return nil }
        return self.slots[Int(id) - 1]
    }
}

/// The category in which a written PUBLISH is counted.
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
    /// The publisher's QoS.
    var qos: UInt8
}
