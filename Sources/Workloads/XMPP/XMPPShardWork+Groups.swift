import Ledger
import LoadEngine
import LoopContext
import Measurement
import NIOCore
import XMPP
import XMPPCodec

// Stanzas to a whole group: how they go out, what came of them, and who is there to hear them.
extension XMPPShardWork {
    /// Notes that stanzas leave for everybody who is in.
    ///
    /// - Returns: how many deliveries that are.
    func beginFlights(_ place: Int, _ groups: XMPPGroups, _ first: UInt64, _ count: Int) -> Int64 {
        groups.members[place].sentAt = self.context.now
        var receivers = groups.groups[groups.seat(place).group].within
        // Nobody is a contact of his own.
        if self.load.work == .presence { receivers -= 1 }
        guard self.load.hasLedger else { return 0 }
        var expected = Int64(receivers) * Int64(count)
        for index in 0..<UInt64(count) {
            let givenUp = groups.members[place].flights.begin(first + index, receivers: receivers)
            guard givenUp > 0 else { continue }
            groups.givenUp += 1
            expected -= givenUp
        }
        return expected
    }

    func received(_ place: Int, _ groups: XMPPGroups, _ element: borrowing ElementView, now: NIODeadline) {
        switch element.kind {
        case .message where self.load.work == .muc: self.roomMessage(place, groups, element, now: now)
        case .message: self.meter.add(self.metrics.otherMessages)
        case .presence where self.load.work == .muc:
            self.meter.add(self.metrics.presences)
            self.roomPresence(place, groups, element, now: now)
        case .presence: self.contactPresence(place, groups, element, now: now)
        case .iq: self.meter.add(self.metrics.iqs)
        case .other: break
        }
    }

    /// Takes what was said in the room.
    private func roomMessage(
        _ place: Int,
        _ groups: XMPPGroups,
        _ element: borrowing ElementView,
        now: NIODeadline
    ) {
        if element.attribute("type", is: "error") { return self.refused(place, element) }
        // §8.1: what the room is about, which it tells everybody who enters.
        guard let ids = self.metrics.message, !(element.firstChild("subject") != nil) else { return }
        self.tallies[place].received += 1
        // A room may remember in spite of `maxstanzas='0'`.
        guard !(element.firstChild("delay", "urn:xmpp:delay") != nil) else { return self.meter.add(ids.delayed) }
        self.meter.add(ids.fresh)
        _ = self.matchArrival(place, groups, element, in: "body", now: now)
    }

    /// Matches what came to what was sent, by the header in its text.
    ///
    /// - Returns: whether a member of its group sent it.
    func matchArrival(
        _ place: Int,
        _ groups: XMPPGroups,
        _ element: borrowing ElementView,
        in child: StaticString,
        now: NIODeadline
    ) -> Bool {
        var size = 0
        let table = self.base64
        let header = element.withText(ofChild: child) { text -> PayloadHeader? in
            size = text.count
            return XMPPBody.header(of: text, table: table)
        }
        self.meter.add(self.metrics.traffic.payloadReceived, UInt64(size))
        guard self.load.hasLedger else { return size > 0 }
        guard case .some(.some(let header)) = header, header.run == self.load.run else { return false }
        let seat = groups.seat(place)
        guard let sender = groups.sender(header.publisher, heardBy: seat.group) else {
            self.countStranger(groups, header)
            return false
        }
        if self.load.work == .presence, sender == seat.member { return false }
        let arrival = groups.ledger.pointee.arrived(client: place, member: sender, sequence: header.sequence)
        if case .duplicate = arrival { return true }
        if let ids = self.metrics.message { self.recordDelivery(header, ids, now: now) }
        let member = groups.members.baseAddress.map { $0 + place }
        guard let member, member.pointee.step == .within,
            member.pointee.from.isEmpty || header.sequence >= member.pointee.from[sender]
        else { return true }
        self.countArrival(groups.place(group: seat.group, member: sender), groups, header, reader: place, now: now)
        return true
    }

    /// One more has the sender's stanza.
    private func countArrival(
        _ sender: Int,
        _ groups: XMPPGroups,
        _ header: PayloadHeader,
        reader: Int,
        now: NIODeadline
    ) {
        let arrival = groups.members[sender].flights.arrived(header.sequence)
        // What is waited for, and nothing else, is in the balance.
        if arrival.isKnown { self.received.received += 1 }
        guard arrival.isFirst || arrival.isLast, let ids = self.metrics.fanOut?.receivers else { return }
        let due = header.due &- self.load.realtimeOffset
        let lane = self.slab.times.lane(.uptimeNanoseconds(UInt64(clamping: due)))
        let duration = Int64(now.uptimeNanoseconds) &- due
        if arrival.isFirst { self.meter.record(ids.first, duration, lane: lane) }
        guard arrival.isLast else { return }
        self.meter.record(ids.last, duration, lane: lane)
        self.giveCredit(sender, header.sequence, reader: reader, now: now)
    }

    /// In closed loop a client may send one more for each stanza of this connection that everybody has.
    private func giveCredit(_ place: Int, _ sequence: UInt64, reader: Int?, now: NIODeadline) {
        guard !self.load.isOpenLoop, sequence >= self.clients[place].connectionFirst else { return }
        let before = self.room(place)
        self.clients[place].own.credit += 1
        // Of the client whose read this is, the read's end asks.
        if before == 0, place != reader, self.room(place) > 0 { self.shard.markAble(place, at: now) }
    }

    /// Somebody of this run, but of another group: rosters hold contacts of earlier runs.
    private func countStranger(_ groups: XMPPGroups, _ header: PayloadHeader) {
        guard groups.exists(header.publisher) else { return groups.ledger.pointee.countForeign() }
        self.error(
            "stray \(self.load.stanza ?? "stanza")",
            self.load.work == .presence
                ? "a presence came to a client that is no contact in this run; rosters hold contacts of a run with other groups"
                : "a message came to a client in another room"
        )
    }

    /// A stanza came back: nobody waits for it.
    func refused(_ place: Int, _ groups: XMPPGroups, _ sequence: UInt64) {
        let left = groups.members[place].flights.drop(sequence)
        guard left > 0 else { return }
        self.received.expected -= left
        self.giveCredit(place, sequence, reader: place, now: self.context.now)
    }

    /// Who listens on a server that is full, or far away, bounced it alone.
    func refused(_ place: Int, _ groups: XMPPGroups, byContact element: borrowing ElementView) {
        self.countError(element)
        let number = element.withAttribute("id") { XMPPMessageWriter.number(ofID: $0) }
        guard case .some(.some(let number)) = number else { return }
        let next = self.clients[place].sequence
        let sequence = next &- UInt64(UInt32(truncatingIfNeeded: next) &- number)
        guard sequence < next else { return }
        let seat = groups.seat(place)
        if let contact = self.contact(element.attribute("from"), groups, of: seat.group) {
            let other = groups.place(group: seat.group, member: contact)
            groups.addMissed(other, seat.member, sequence..<sequence + 1)
        }
        self.countMiss(place, groups, sequence, reader: place)
    }

    /// A stanza will not come to one of its receivers.
    private func countMiss(_ sender: Int, _ groups: XMPPGroups, _ sequence: UInt64, reader: Int?) {
        let flight = groups.members[sender].flights.miss(sequence)
        guard flight.isKnown else { return }
        self.received.expected -= 1
        guard flight.isDone else { return }
        groups.givenUp += 1
        self.giveCredit(sender, sequence, reader: reader, now: self.context.now)
    }

    /// The last stanzas of a connection never left.
    ///
    /// What did leave may still come, and is waited for.
    func dropUnsent(_ place: Int, _ groups: XMPPGroups, _ range: Range<UInt64>, neverSent: UInt64) {
        let sent = range.upperBound - min(neverSent, range.upperBound - range.lowerBound)
        for sequence in groups.members[place].flights.sequences(below: range.upperBound) where sequence >= sent {
            self.received.expected -= groups.members[place].flights.drop(sequence)
        }
    }

    // MARK: - In and out

    /// The client is in, and hears everything from now on.
    func markWithin(_ place: Int, _ groups: XMPPGroups, now: NIODeadline) {
        let seat = groups.seat(place)
        let member = groups.members.baseAddress.map { $0 + place }
        guard let member, self.clients[place].stage == .joining else { return }
        member.pointee.step = .within
        member.pointee.wasWithin = true
        groups.groups[seat.group].within += 1
        self.noteMissed(place, groups, seat.group)
        self.clients[place].own.credit = Int32(clamping: self.load.window)
        if let ids = self.metrics.fanOut { self.meter.record(ids.joined, (now - member.pointee.asked).nanoseconds) }
        self.markUp(place, now: now)
        // In closed loop nobody speaks to nobody.
        guard self.load.work == .presence, !self.load.isOpenLoop, groups.groups[seat.group].within == 2 else { return }
        for number in 0..<groups.size {
            let other = groups.place(group: seat.group, member: number)
            if other != place, self.room(other) > 0 { self.shard.markAble(other, at: now) }
        }
    }

    /// Others spoke before the client was in.
    private func noteMissed(_ place: Int, _ groups: XMPPGroups, _ group: Int) {
        let next = (0..<groups.size).map { self.clients[groups.place(group: group, member: $0)].sequence }
        guard next.contains(where: { $0 > 0 }) else { return }
        let from = groups.members[place].from
        for member in 0..<groups.size {
            let first = from.isEmpty ? 0 : from[member]
            guard first < next[member] else { continue }
            groups.addMissed(place, member, first..<next[member])
        }
        groups.members[place].from = next
    }

    /// The client goes: nobody waits any more until it has what was sent.
    func leaveGroup(_ place: Int, _ groups: XMPPGroups, saysSo: Bool) {
        guard groups.members[place].step == .within else { return }
        if saysSo { self.sayGoodbye(place) }
        self.forgetContacts(place, groups)
        let seat = groups.seat(place)
        groups.members[place].step = .out
        groups.groups[seat.group].within -= 1
        // A room that is not persistent is gone with the last of its occupants.
        if groups.groups[seat.group].within == 0 { groups.groups[seat.group].isOpen = false }
        guard self.load.hasLedger else { return }
        let from = groups.members[place].from
        for member in 0..<groups.size {
            let sender = groups.place(group: seat.group, member: member)
            if self.load.work == .presence, sender == place { continue }
            for sequence in groups.members[sender].flights.sequences(below: self.clients[sender].sequence) {
                // What was sent before it came in does not wait for it, nor what it has.
                guard from.isEmpty || sequence >= from[member],
                    !groups.ledger.pointee.has(client: place, member: member, sequence: sequence)
                else { continue }
                self.countMiss(sender, groups, sequence, reader: nil)
            }
        }
        groups.members[place].from = (0..<groups.size).map { member in
            max(from.isEmpty ? 0 : from[member], groups.ledger.pointee.next(client: place, member: member))
        }
    }

    // MARK: - The end

    /// What this loop's groups hold, for the books.
    func takeGroups(_ groups: XMPPGroups) -> XMPPResult.Groups {
        var result = XMPPResult.Groups(
            ledger: groups.ledger.pointee.export { place, member in
                let seat = groups.seat(place)
                return groups.id(group: seat.group, member: member ?? seat.member)
            }
        )
        result.unfinished = groups.givenUp
        for place in 0..<self.places.count {
            result.unfinished += UInt64(groups.members[place].flights.open)
            let seat = groups.seat(place)
            if groups.members[place].step != .within { self.noteMissed(place, groups, seat.group) }
            let id = groups.id(group: seat.group, member: seat.member)
            for (member, missed) in groups.members[place].missed.enumerated() where !missed.isEmpty {
                result.missed[id, default: [:]][groups.id(group: seat.group, member: member)] = missed
            }
        }
        return result
    }
}
