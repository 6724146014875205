import MQTTCodec
import NIOCore

// What goes out a second time, and what waits to.
extension OutboundWindow {
    /// Tells what has to go out again on a resumed session, in the order it first went out (§4.4, §4.6).
    ///
    /// It is PUBLISH with DUP before its PUBREC, and PUBREL behind it. Requests end with their connection. PUBREL takes
    /// nothing from the receive maximum; of the publishes beyond ``limit`` ``nextHeldBack()`` tells in its time (§4.9).
    package mutating func resume(_ body: (_ id: UInt16, InFlightPublish, _ released: Bool) -> Void) {
        for index in self.slots.indices where self.slots[index].state.isRequest { self.release(index) }
        var sent = 0
        for index in self.inOrder() {
            if self.slots[index].state.isHeldBack { self.endHold(index) }
            let slot = self.slots[index]
            switch slot.state {
            case .awaitingPubComp:
                body(slot.id, slot.publish(), true)
            case .awaitingPubAck, .awaitingPubRec:
                if sent < self.limit {
                    sent += 1
                    body(slot.id, slot.publish(), false)
                } else {
                    self.slots[index].state = slot.state == .awaitingPubAck ? .heldBackQoS1 : .heldBackQoS2
                    self.heldBack += 1
                }
            default: break
            }
        }
    }

    /// The next publish that was held back and has room now.
    package mutating func nextHeldBack() -> (id: UInt16, publish: InFlightPublish)? {
        guard self.heldBack > 0, self.inFlight - Int(self.heldBack) < self.limit else { return nil }
        let slots = self.slots
        let held = slots.indices.filter { slots[$0].state.isHeldBack }
        guard let first = held.min(by: { slots[$0].sequence < slots[$1].sequence }) else { return nil }
        self.endHold(first)
        return (self.slots[first].id, self.slots[first].publish())
    }

    mutating func endHold(_ index: Int) {
        self.slots[index].state = self.slots[index].state == .heldBackQoS1 ? .awaitingPubAck : .awaitingPubRec
        self.heldBack -= 1
    }

    /// Takes up the publishes of a process that is gone, each under its identifier.
    mutating func restore(_ publishes: [(id: UInt16, publish: InFlightPublish, released: Bool)]) {
        for (id, publish, released) in publishes where id != 0 && self.index(of: id) == nil {
            let index = self.takeSlot(for: id)
            self.slots[index].due = publish.due
            self.slots[index].written = publish.written
            self.slots[index].sequence = publish.sequence
            self.slots[index].state =
                released ? .awaitingPubComp : publish.qos == .atLeastOnce ? .awaitingPubAck : .awaitingPubRec
            self.inFlight += 1
            self.awaited += 1
            self.lastID = id
        }
    }

    /// PUBREL goes out now; `false` if no publish waits for that.
    mutating func releaseNow(_ id: UInt16) -> Bool {
        guard let index = self.index(of: id), self.slots[index].state == .awaitingRelease else { return false }
        self.slots[index].state = .awaitingPubComp
        return true
    }

    /// Frees the identifier of a request that was not sent.
    mutating func withdraw(_ id: UInt16) {
        if let index = self.index(of: id), self.slots[index].state.isRequest { self.release(index) }
    }

    /// Ends a publish that is not going to be sent, and frees its identifier.
    mutating func drop(_ id: UInt16) {
        guard let index = self.index(of: id), !self.slots[index].state.isRequest else { return }
        if self.slots[index].state.isHeldBack { self.endHold(index) }
        self.endPublish(index)
    }

    /// Has a QoS 2 publish go on as if its PUBREC had come; `false` if it waits for none.
    mutating func giveUp(_ id: UInt16) -> Bool {
        guard let index = self.index(of: id) else { return false }
        if self.slots[index].state == .heldBackQoS2 { self.endHold(index) }
        guard self.slots[index].state == .awaitingPubRec else { return false }
        self.slots[index].state = .awaitingRelease
        return true
    }

    // MARK: On a connection that stands

    /// Tells what is overdue, in order: each publish, or its PUBREL, as often as `age` goes into the time since its
    /// write.
    mutating func repeats(
        now: NIODeadline,
        every age: TimeAmount
    ) -> [(id: UInt16, publish: InFlightPublish, released: Bool)] {
        var overdue: [(id: UInt16, publish: InFlightPublish, released: Bool)] = []
        for index in self.inOrder() {
            guard let due = Self.nextRepeat(of: self.slots[index], every: age), due <= now else { continue }
            self.slots[index].repeats = Self.repeats(since: self.slots[index].written, now: now, every: age)
            let slot = self.slots[index]
            overdue.append((slot.id, slot.publish(), slot.state == .awaitingPubComp))
        }
        return overdue
    }

    func nextRepeat(every age: TimeAmount) -> NIODeadline? {
        self.slots.compactMap { Self.nextRepeat(of: $0, every: age) }.min()
    }

    /// Begins to count anew: everything has just gone out, and goes again no earlier than `age` from now.
    mutating func restartRepeats(now: NIODeadline, every age: TimeAmount) {
        for index in self.slots.indices where self.slots[index].state != .free {
            self.restartRepeats(at: index, now: now, every: age)
        }
    }

    /// The same for the publish with this identifier.
    mutating func restartRepeats(of id: UInt16, now: NIODeadline, every age: TimeAmount) {
        if let index = self.index(of: id) { self.restartRepeats(at: index, now: now, every: age) }
    }

    private mutating func restartRepeats(at index: Int, now: NIODeadline, every age: TimeAmount) {
        // Of a time that has begun, all of it.
        let end = now + age - .nanoseconds(1)
        self.slots[index].repeats = Self.repeats(since: self.slots[index].written, now: end, every: age)
    }

    private static func nextRepeat(of slot: Slot, every age: TimeAmount) -> NIODeadline? {
        switch slot.state {
        case .awaitingPubAck, .awaitingPubRec, .awaitingPubComp:
            let (wait, isTooLong) = age.nanoseconds.multipliedReportingOverflow(by: Int64(slot.repeats) + 1)
            // So often is enough for ever.
            return slot.repeats == 0x7FFF || isTooLong ? nil : slot.written + .nanoseconds(wait)
        default: return nil
        }
    }

    private static func repeats(since written: NIODeadline, now: NIODeadline, every age: TimeAmount) -> UInt16 {
        UInt16(clamping: max(0, (now - written).nanoseconds) / max(1, age.nanoseconds))
    }

    /// The publishes, by their sequence.
    private func inOrder() -> [Int] {
        let slots = self.slots
        let taken = slots.indices.filter { slots[$0].state != .free && !slots[$0].state.isRequest }
        return taken.sorted { slots[$0].sequence < slots[$1].sequence }
    }

    /// A slot for this identifier and no other.
    private mutating func takeSlot(for id: UInt16) -> Int {
        while self.slots.count == 0 || self.slots[Int(id) & (self.slots.count - 1)].state != .free { self.grow() }
        let index = Int(id) & (self.slots.count - 1)
        self.slots[index] = Slot()
        self.slots[index].id = id
        self.occupied += 1
        return index
    }
}
