package import MQTTCodec
package import NIOCore

/// A publish that the peer has not completed, with the times from which its latency is measured.
package struct InFlightPublish: Hashable, Sendable {
    /// When the schedule wanted it sent.
    package var due: NIODeadline
    /// When its write began.
    package var written: NIODeadline
    /// The caller's number for the message; the session only keeps it.
    package var sequence: UInt64
    package var qos: QoS
    /// The peer has received it at QoS 2, so that only PUBCOMP is missing.
    package var isReceived = false

    package init(due: NIODeadline, written: NIODeadline, sequence: UInt64, qos: QoS) {
        self.due = due
        self.written = written
        self.sequence = sequence
        self.qos = qos
    }
}

/// The packet identifiers a client has in use: its publishes at QoS 1 and 2, and its subscribe and
/// unsubscribe requests.
///
/// Identifiers index a ring whose size is a power of two. An acknowledgement costs one array access, and a free slot
/// means that the identifier is free too. The first publish allocates the ring. It doubles up to the window, with 32
/// bytes a slot; a client that only subscribes has none.
///
/// Pure: it holds no clock, no channel and no promise.
///
/// Spec: MQTT 5.0 §2.2.1 (identifiers), §4.3 (QoS), §4.9 (flow control).
package struct OutboundWindow: ~Copyable {
    enum State: UInt8 {
        case free
        case awaitingPubAck
        /// QoS 1 of a resumed session, not sent again because the receive maximum has no room.
        case heldBackQoS1
        case awaitingPubRec
        /// The same at QoS 2.
        case heldBackQoS2
        /// PUBREC came, and PUBREL waits for the caller.
        case awaitingRelease
        case awaitingPubComp
        case subscribe
        case unsubscribe

        var isRequest: Bool { self == .subscribe || self == .unsubscribe }
        var isHeldBack: Bool { self == .heldBackQoS1 || self == .heldBackQoS2 }
    }

    struct Slot {
        var due = NIODeadline.uptimeNanoseconds(0)
        var written = NIODeadline.uptimeNanoseconds(0)
        var sequence: UInt64 = 0
        var id: UInt16 = 0
        var state = State.free
        /// The top bit is ``timedOut``; the others count the retransmissions on this connection.
        var marks: UInt16 = 0

        /// Past its acknowledgement timeout: the client no longer waits for it, but its identifier is still in use.
        var timedOut: Bool {
            get { self.marks & 0x8000 != 0 }
            set { self.marks = newValue ? self.marks | 0x8000 : self.marks & 0x7FFF }
        }

        var repeats: UInt16 {
            get { self.marks & 0x7FFF }
            set { self.marks = self.marks & 0x8000 | min(newValue, 0x7FFF) }
        }

        func publish() -> InFlightPublish {
            InFlightPublish(
                due: self.due,
                written: self.written,
                sequence: self.sequence,
                qos: self.state.rawValue <= State.heldBackQoS1.rawValue ? .atLeastOnce : .exactlyOnce
            )
        }

        /// The publish of a flow that ends without an answer.
        func unanswered() -> InFlightPublish {
            var publish = self.publish()
            publish.isReceived = self.state == .awaitingRelease || self.state == .awaitingPubComp
            return publish
        }
    }

    static var smallestRing: Int { 16 }
    static var largestRing: Int { 65_536 }

    /// Publishes that the client waits for at most; one that timed out has given its place back.
    private let limit: UInt16
    /// Publishes in flight at most, those that timed out included: the peer's receive maximum (§4.9).
    private var receiveMaximum = UInt16.max
    /// Publishes that timed out and keep their identifiers, at most; then no other one starts.
    static var mostTimedOut: Int { 1_024 }
    /// Publishes in flight at most, by all three limits; kept, since it changes far less often than it is asked for.
    private var most: Int
    /// Publishes whose last acknowledgement is outstanding; requests do not count (§4.9).
    package internal(set) var inFlight = 0
    /// The part of ``inFlight`` that the client still waits for: publishes within their acknowledgement timeout.
    package internal(set) var awaited = 0
    /// The part of ``inFlight`` that a resumed session has not sent again yet.
    package internal(set) var heldBack: UInt16 = 0
    private let defersReleases: Bool
    var lastID: UInt16 = 0
    var occupied = 0
    var slots: UnsafeMutableBufferPointer<Slot>

    package init(limit: Int, defersReleases: Bool = false) {
        precondition((1...65_535).contains(limit), "a window holds 1 to 65,535 publishes")
        self.limit = UInt16(limit)
        self.most = limit
        self.defersReleases = defersReleases
        self.slots = UnsafeMutableBufferPointer(start: nil, count: 0)
    }

    deinit {
        self.slots.deallocate()
    }

    /// How many more publishes may go out now.
    package var room: Int { max(0, min(self.most - self.inFlight, 65_535 - self.occupied)) }

    /// The number of timed out publishes or a limit has changed.
    mutating func adjust() {
        let timedOut = self.inFlight - self.awaited
        self.most = timedOut < Self.mostTimedOut ? min(Int(self.limit) + timedOut, Int(self.receiveMaximum)) : 0
    }

    /// Publishes that a resumed session sends again at once.
    package var mostAgain: Int { Int(min(self.limit, self.receiveMaximum)) }

    /// Applies CONNACK's receive maximum (§3.2.2.3.3); publishes beyond it stay in flight, and no new one starts.
    package mutating func setReceiveMaximum(_ maximum: Int) {
        precondition((1...65_535).contains(maximum), "a receive maximum of 0 is refused when CONNACK is decoded")
        self.receiveMaximum = UInt16(maximum)
        self.adjust()
    }

    /// Takes an identifier for a publish that is about to be written.
    ///
    /// The caller takes at most ``room``.
    package mutating func begin(_ publish: InFlightPublish) -> UInt16 {
        precondition(self.room > 0, "the caller asks for no more than `room`")
        let index = self.takeSlot()
        self.slots[index].due = publish.due
        self.slots[index].written = publish.written
        self.slots[index].sequence = publish.sequence
        self.slots[index].state = publish.qos == .atLeastOnce ? .awaitingPubAck : .awaitingPubRec
        self.inFlight += 1
        self.awaited += 1
        return self.slots[index].id
    }

    /// A SUBSCRIBE, an UNSUBSCRIBE or the answer to one, with its number of filters or codes if it has any.
    package enum Request: Hashable, Sendable {
        case subscribe(Int?)
        case unsubscribe(Int?)
    }

    /// Takes an identifier for a request; `nil` while all are in use.
    package mutating func begin(_ request: Request) -> UInt16? {
        guard self.occupied < 65_535 else { return nil }
        let index = self.takeSlot()
        let (state, count) = Self.slot(request)
        self.slots[index].state = state
        self.slots[index].sequence = UInt64(count ?? 0)
        return self.slots[index].id
    }

    package enum AnswerAction: Hashable, Sendable {
        case answered
        /// No request has this identifier.
        case unknown
        /// It answers another kind of request, or its codes are not as many as the filters (§3.9.3, §3.11.3).
        case mismatch
    }

    /// Frees the identifier of a request.
    package mutating func end(_ answer: Request, id: UInt16) -> AnswerAction {
        guard let index = self.index(of: id) else { return .unknown }
        let (state, count) = Self.slot(answer)
        guard self.slots[index].state == state else { return .mismatch }
        if let count, self.slots[index].sequence != UInt64(count) { return .mismatch }
        self.release(index)
        return .answered
    }

    private static func slot(_ request: Request) -> (State, Int?) {
        switch request {
        case .subscribe(let count): (.subscribe, count)
        case .unsubscribe(let count): (.unsubscribe, count)
        }
    }

    package enum AckAction: Hashable {
        /// The flow is over. With a reason of 0x80 or above the peer rejected the message.
        case completed(InFlightPublish, timedOut: Bool)
        /// PUBREC: the caller answers with PUBREL, and waits for PUBCOMP.
        case release(InFlightPublish, timedOut: Bool)
        /// PUBREC: PUBREL is sent when the caller calls for it.
        case releaseWhenTold(InFlightPublish, timedOut: Bool)
        /// PUBREC came again before the caller sent PUBREL.
        case awaitsRelease
        /// PUBREC for a released flow: PUBREL is sent again (§4.3.3), and no latency is measured.
        case releaseAgain
        /// The identifier is not in use. For PUBREC the answer is PUBREL with 0x92 (§4.3.3).
        case unknown
        /// An acknowledgement of the other QoS: a protocol error (§4.3).
        case wrongFlow
    }

    package mutating func received(_ type: PacketType, id: UInt16, failed: Bool) -> AckAction {
        guard let index = self.index(of: id) else { return .unknown }
        let slot = self.slots[index]
        switch (type, slot.state) {
        case (.pubAck, .awaitingPubAck):
            self.endPublish(index)
            return .completed(slot.publish(), timedOut: slot.timedOut)
        case (.pubRec, .awaitingPubRec) where failed:
            self.endPublish(index)
            return .completed(slot.publish(), timedOut: slot.timedOut)
        case (.pubRec, .awaitingPubRec):
            if self.defersReleases {
                self.slots[index].state = .awaitingRelease
                return .releaseWhenTold(slot.publish(), timedOut: slot.timedOut)
            }
            self.slots[index].state = .awaitingPubComp
            return .release(slot.publish(), timedOut: slot.timedOut)
        case (.pubRec, .awaitingPubComp):
            return .releaseAgain
        case (.pubComp, .awaitingPubComp):
            self.endPublish(index)
            return .completed(slot.publish(), timedOut: slot.timedOut)
        case (.pubRec, .awaitingRelease):
            return .awaitsRelease
        case (_, .heldBackQoS1), (_, .heldBackQoS2):
            // The server received it on the previous connection.
            self.endHold(index)
            return self.received(type, id: id, failed: failed)
        default:
            return .wrongFlow
        }
    }

    /// Times out each publish written before `deadline` and not yet acknowledged, and calls `body` once for each.
    ///
    /// Its identifier stays in use (§2.2.1).
    ///
    /// - Returns: the earliest write time among the remaining publishes, for the next timer.
    package mutating func expire(writtenBefore deadline: NIODeadline, _ body: (InFlightPublish) -> Void) -> NIODeadline?
    {
        var earliest: NIODeadline?
        for index in self.slots.indices {
            let slot = self.slots[index]
            guard slot.state != .free, !slot.state.isRequest, !slot.timedOut else { continue }
            if slot.written <= deadline {
                self.slots[index].timedOut = true
                self.awaited -= 1
                body(slot.unanswered())
            } else if earliest.map({ slot.written < $0 }) ?? true {
                earliest = slot.written
            }
        }
        self.adjust()
        return earliest
    }

    /// Ends every flow, as when the connection is lost without a session, and calls `body` for each publish.
    package mutating func abandon(_ body: (InFlightPublish, _ timedOut: Bool) -> Void) {
        for index in self.slots.indices where self.slots[index].state != .free {
            let slot = self.slots[index]
            self.release(index)
            if !slot.state.isRequest { body(slot.unanswered(), slot.timedOut) }
        }
        self.inFlight = 0
        self.awaited = 0
        self.heldBack = 0
        self.adjust()
    }

    /// The earliest due time among publishes that the client still waits for.
    ///
    /// The cost is that of ``slotCount`` slots.
    package var oldestDue: NIODeadline? {
        guard self.awaited > 0 else { return nil }
        var oldest: NIODeadline?
        let publishes = State.awaitingPubAck.rawValue...State.awaitingPubComp.rawValue
        for slot in self.slots where publishes.contains(slot.state.rawValue) && !slot.timedOut {
            oldest = min(oldest ?? slot.due, slot.due)
        }
        return oldest
    }

    package var slotCount: Int { self.awaited > 0 ? self.slots.count : 0 }

    func index(of id: UInt16) -> Int? {
        guard self.slots.count > 0 else { return nil }
        let index = Int(id) & (self.slots.count - 1)
        return self.slots[index].state != .free && self.slots[index].id == id ? index : nil
    }

    private mutating func takeSlot() -> Int {
        if self.occupied >= self.slots.count { self.grow() }
        // Acknowledgements come in any order, so the next slot may be in use; one slot is free.
        while true {
            self.lastID = self.lastID == .max ? 1 : self.lastID + 1
            let index = Int(self.lastID) & (self.slots.count - 1)
            if self.slots[index].state == .free {
                self.slots[index].id = self.lastID
                self.slots[index].marks = 0
                self.occupied += 1
                return index
            }
        }
    }

    mutating func grow() {
        let size = self.slots.count == 0 ? Self.smallestRing : self.slots.count * 2
        precondition(size <= Self.largestRing, "all 65,535 packet identifiers are in use")
        let larger = UnsafeMutableBufferPointer<Slot>.allocate(capacity: size)
        larger.initialize(repeating: Slot())
        for slot in self.slots where slot.state != .free { larger[Int(slot.id) & (size - 1)] = slot }
        self.slots.deallocate()
        self.slots = larger
    }

    mutating func endPublish(_ index: Int) {
        let timedOut = self.slots[index].timedOut
        if !timedOut { self.awaited -= 1 }
        self.release(index)
        self.inFlight -= 1
        if timedOut { self.adjust() }
    }

    mutating func release(_ index: Int) {
        self.slots[index].state = .free
        self.occupied -= 1
    }
}
