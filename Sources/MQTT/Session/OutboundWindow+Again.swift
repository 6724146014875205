import MQTTCodec
import NIOCore

// Retransmissions, and publishes held back for them.
extension OutboundWindow {
    /// Passes each publish of a resumed session to `body`, in the order of its first sending (§4.4, §4.6).
    ///
    /// A publish is sent again as PUBLISH with DUP before its PUBREC, and as PUBREL after it. Requests end with their
    /// connection. PUBREL does not count towards the receive maximum. ``nextHeldBack()`` returns the publishes beyond
    /// ``mostAgain`` when there is room for them (§4.9).
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
                if sent < self.mostAgain {
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

    /// The next publish that was held back and now has room.
    package mutating func nextHeldBack() -> (id: UInt16, publish: InFlightPublish)? {
        guard self.heldBack > 0, self.inFlight - Int(self.heldBack) < self.mostAgain else { return nil }
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

    /// Restores the publishes of an ended process, each under its identifier.
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

    /// PUBREL is sent now; `false` if no publish waits for that.
    mutating func releaseNow(_ id: UInt16) -> Bool {
        guard let index = self.index(of: id), self.slots[index].state == .awaitingRelease else { return false }
        self.slots[index].state = .awaitingPubComp
        return true
    }

    /// Frees the identifier of a request that was not sent.
    mutating func withdraw(_ id: UInt16) {
        if let index = self.index(of: id), self.slots[index].state.isRequest { self.release(index) }
    }

    /// Ends a publish that will not be sent, and frees its identifier.
    mutating func drop(_ id: UInt16) {
        guard let index = self.index(of: id), !self.slots[index].state.isRequest else { return }
        if self.slots[index].state.isHeldBack { self.endHold(index) }
        self.endPublish(index)
    }

    /// Continues a QoS 2 publish as if its PUBREC had come; `false` if it does not wait for one.
    mutating func giveUp(_ id: UInt16) -> Bool {
        guard let index = self.index(of: id) else { return false }
        if self.slots[index].state == .heldBackQoS2 { self.endHold(index) }
        guard self.slots[index].state == .awaitingPubRec else { return false }
        self.slots[index].state = .awaitingRelease
        return true
    }

    // MARK: On an open connection

    /// Reports overdue publishes or their PUBRELs, in order.
    ///
    /// Each is reported as often as `age` goes into the time since its write.
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

    /// Restarts the count: all publishes have just been sent, and are due again no earlier than `age` from now.
    mutating func restartRepeats(now: NIODeadline, every age: TimeAmount) {
        for index in self.slots.indices where self.slots[index].state != .free {
            self.restartRepeats(at: index, now: now, every: age)
        }
    }

    /// Restarts the count for the publish with this identifier.
    mutating func restartRepeats(of id: UInt16, now: NIODeadline, every age: TimeAmount) {
        if let index = self.index(of: id) { self.restartRepeats(at: index, now: now, every: age) }
    }

    private mutating func restartRepeats(at index: Int, now: NIODeadline, every age: TimeAmount) {
        // A started interval counts as a whole one.
        let end = now + age - .nanoseconds(1)
        self.slots[index].repeats = Self.repeats(since: self.slots[index].written, now: end, every: age)
    }

    private static func nextRepeat(of slot: Slot, every age: TimeAmount) -> NIODeadline? {
        switch slot.state {
        case .awaitingPubAck, .awaitingPubRec, .awaitingPubComp:
            let (wait, isTooLong) = age.nanoseconds.multipliedReportingOverflow(by: Int64(slot.repeats) + 1)
            // The counter is full: this publish is not repeated any more.
            return slot.repeats == 0x7FFF || isTooLong ? nil : slot.written + .nanoseconds(wait)
        default: return nil
        }
    }

    private static func repeats(since written: NIODeadline, now: NIODeadline, every age: TimeAmount) -> UInt16 {
        UInt16(clamping: max(0, (now - written).nanoseconds) / max(1, age.nanoseconds))
    }

    /// The slots of the publishes, by sequence.
    private func inOrder() -> [Int] {
        let slots = self.slots
        let taken = slots.indices.filter { slots[$0].state != .free && !slots[$0].state.isRequest }
        return taken.sorted { slots[$0].sequence < slots[$1].sequence }
    }

    /// Takes a slot for exactly this identifier.
    private mutating func takeSlot(for id: UInt16) -> Int {
        while self.slots.count == 0 || self.slots[Int(id) & (self.slots.count - 1)].state != .free { self.grow() }
        let index = Int(id) & (self.slots.count - 1)
        self.slots[index] = Slot()
        self.slots[index].id = id
        self.occupied += 1
        return index
    }
}
