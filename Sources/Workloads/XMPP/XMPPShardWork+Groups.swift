import Ledger
import LoadEngine
import LoopContext
import Measurement
import NIOCore
import XMPP
import XMPPCodec

// Stanzas to a whole group: their sending, their outcome, and the members that receive them.
extension XMPPShardWork {
    /// Records that stanzas are sent to all members of the group.
    ///
    /// - Returns: the number of deliveries.
    func beginFlights(_ place: Int, _ groups: XMPPGroups, _ first: UInt64, _ count: Int) -> Int64 {
        groups.members[place].sentAt = self.context.now
        var receivers = groups.groups[groups.membership(place).group].within
        // A client is no contact of its own.
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

    private func roomMessage(_ place: Int, _ groups: XMPPGroups, _ element: borrowing ElementView, now: NIODeadline) {
        if element.attribute("type", is: "error") { return self.refused(place, element) }
        // §8.1: the room's subject, which it sends to each new occupant.
        guard let ids = self.metrics.message, !(element.firstChild("subject") != nil) else { return }
        self.tallies[place].received += 1
        // A room may send history in spite of `maxstanzas='0'`.
        guard !(element.firstChild("delay", "urn:xmpp:delay") != nil) else { return self.meter.add(ids.delayed) }
        self.meter.add(ids.fresh)
        _ = self.matchArrival(place, groups, element, in: "body", now: now)
    }

    /// Matches an arrival with its send, by the header in its text.
    ///
    /// - Returns: whether a member of the client's group sent it.
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
        let membership = groups.membership(place)
        guard let sender = groups.sender(header.publisher, heardBy: membership.group) else {
            self.countStranger(groups, header)
            return false
        }
        if self.load.work == .presence, sender == membership.member { return false }
        let arrival = groups.ledger.pointee.arrived(client: place, member: sender, sequence: header.sequence)
        if case .duplicate = arrival { return true }
        let origin = groups.place(group: membership.group, member: sender)
        if let ids = self.metrics.message { self.recordDelivery(place, self.number(origin), header, ids, now: now) }
        let member = groups.members.baseAddress.map { $0 + place }
        guard let member, member.pointee.step == .within,
            member.pointee.from.isEmpty || header.sequence >= member.pointee.from[sender]
        else { return true }
        self.countArrival(origin, groups, header, reader: place, now: now)
        return true
    }

    /// One more receiver has the sender's stanza.
    private func countArrival(
        _ sender: Int,
        _ groups: XMPPGroups,
        _ header: PayloadHeader,
        reader: Int,
        now: NIODeadline
    ) {
        let arrival = groups.members[sender].flights.arrived(header.sequence)
        // Only tracked stanzas are part of the balance.
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

    /// In closed loop a client may send one more for each stanza of this connection that has reached every receiver.
    private func giveCredit(_ place: Int, _ sequence: UInt64, reader: Int?, now: NIODeadline) {
        guard !self.load.isOpenLoop, sequence >= self.clients[place].connectionFirst else { return }
        let before = self.room(place)
        self.clients[place].own.credit += 1
        // For the client whose read this is, the end of the read checks.
        if before == 0, place != reader, self.room(place) > 0 { self.shard.markAble(place, at: now) }
    }

    /// The sender is a client of this run in another group: rosters keep contacts of earlier runs.
    private func countStranger(_ groups: XMPPGroups, _ header: PayloadHeader) {
        guard groups.exists(header.publisher) else { return groups.ledger.pointee.countForeign() }
        self.error(
            "stray \(self.load.stanza ?? "stanza")",
            self.load.work == .presence
                ? "a presence came to a client that is no contact in this run; rosters hold contacts of a run with other groups"
                : "a message came to a client in another room"
        )
    }

    /// A stanza was returned as an error and is no longer awaited.
    func refused(_ place: Int, _ groups: XMPPGroups, _ sequence: UInt64) {
        let left = groups.members[place].flights.drop(sequence).left
        guard left > 0 else { return }
        self.received.expected -= left
        self.giveCredit(place, sequence, reader: place, now: self.context.now)
    }

    /// Only one receiver returned the stanza, because its server is full or unreachable.
    func refused(_ place: Int, _ groups: XMPPGroups, byContact element: borrowing ElementView) {
        self.countError(element)
        guard let sequence = self.sequence(place, of: element) else { return }
        let membership = groups.membership(place)
        if let contact = self.contact(element.attribute("from"), groups, of: membership.group) {
            let other = groups.place(group: membership.group, member: contact)
            groups.addMissed(other, membership.member, sequence..<sequence + 1)
        }
        self.countMiss(place, groups, sequence, reader: place)
    }

    /// A stanza will not reach one of its receivers.
    private func countMiss(_ sender: Int, _ groups: XMPPGroups, _ sequence: UInt64, reader: Int?) {
        let flight = groups.members[sender].flights.miss(sequence)
        guard flight.isKnown else { return }
        self.received.expected -= 1
        guard flight.isDone else { return }
        groups.givenUp += 1
        self.giveCredit(sender, sequence, reader: reader, now: self.context.now)
    }

    /// The last stanzas of a connection were never sent.
    ///
    /// The sent ones may still arrive and are awaited.
    func dropUnsent(_ place: Int, _ groups: XMPPGroups, _ range: Range<UInt64>, neverSent: UInt64) {
        let sent = range.upperBound - min(neverSent, range.upperBound - range.lowerBound)
        for sequence in groups.members[place].flights.sequences(below: range.upperBound) where sequence >= sent {
            self.received.expected -= groups.members[place].flights.drop(sequence).left
        }
    }

    // MARK: - Joining and leaving

    /// The client has joined, and receives every message from now on.
    func markWithin(_ place: Int, _ groups: XMPPGroups, now: NIODeadline) {
        let membership = groups.membership(place)
        let member = groups.members.baseAddress.map { $0 + place }
        guard let member, self.clients[place].stage == .joining else { return }
        member.pointee.step = .within
        member.pointee.wasWithin = true
        groups.groups[membership.group].within += 1
        self.noteMissed(place, groups, membership.group)
        self.clients[place].own.credit = Int32(clamping: self.load.window)
        if let ids = self.metrics.fanOut { self.meter.record(ids.joined, (now - member.pointee.asked).nanoseconds) }
        self.markUp(place, now: now)
        // In closed loop a client does not send while it is alone.
        guard self.load.work == .presence, !self.load.isOpenLoop, groups.groups[membership.group].within == 2 else {
            return
        }
        for number in 0..<groups.size {
            let other = groups.place(group: membership.group, member: number)
            if other != place, self.room(other) > 0 { self.shard.markAble(other, at: now) }
        }
    }

    /// Other members sent messages before the client joined.
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

    /// The client leaves, so its messages are no longer awaited.
    func leaveGroup(_ place: Int, _ groups: XMPPGroups, saysSo: Bool) {
        guard groups.members[place].step == .within else { return }
        if saysSo { self.sayGoodbye(place) }
        self.forgetContacts(place, groups)
        let membership = groups.membership(place)
        groups.members[place].step = .out
        groups.groups[membership.group].within -= 1
        // The last occupant's departure ends a room that is not persistent.
        if groups.groups[membership.group].within == 0 { groups.groups[membership.group].isOpen = false }
        guard self.load.hasLedger else { return }
        let from = groups.members[place].from
        for member in 0..<groups.size {
            let sender = groups.place(group: membership.group, member: member)
            if self.load.work == .presence, sender == place { continue }
            for sequence in groups.members[sender].flights.sequences(below: self.clients[sender].sequence) {
                // Messages sent before the client joined do not wait for it, nor do messages that it has.
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

    /// Stanzas that have not reached every member are given up, with the age of the client's last one in their stage.
    ///
    /// - Returns: how many.
    @discardableResult
    func giveUpFlights(_ place: Int, _ groups: XMPPGroups, as end: UnansweredEnd) -> Int {
        let open = groups.members[place].flights.sequences(below: self.clients[place].sequence)
        for sequence in open {
            let flight = groups.members[place].flights.drop(sequence)
            self.received.expected -= flight.left
            groups.givenUp += 1
            guard let ids = self.metrics.fanOut?.receivers else { continue }
            let due = self.due(place, of: sequence)
            let age = self.age(since: .uptimeNanoseconds(UInt64(max(0, due.last))), end)
            for id in flight.isUnheard ? [ids.first, ids.last] : [ids.last] {
                self.meter.recordUnanswered(id, age, lane: due.lane, as: end)
            }
        }
        return open.count
    }

    /// The books of this loop's groups.
    func takeGroups(_ groups: XMPPGroups) -> XMPPResult.Groups {
        var result = XMPPResult.Groups(
            ledger: groups.ledger.pointee.export { place, member in
                let membership = groups.membership(place)
                return groups.id(group: membership.group, member: member ?? membership.member)
            }
        )
        result.unfinished = groups.givenUp
        for place in 0..<self.places.count {
            result.unfinished += UInt64(groups.members[place].flights.open)
            let membership = groups.membership(place)
            if groups.members[place].step != .within { self.noteMissed(place, groups, membership.group) }
            let id = groups.id(group: membership.group, member: membership.member)
            for (member, missed) in groups.members[place].missed.enumerated() where !missed.isEmpty {
                result.missed[id, default: [:]][groups.id(group: membership.group, member: member)] = missed
            }
        }
        return result
    }
}
