import LoadEngine
import LoopContext
import Measurement
package import NIOCore
import XMPP
package import XMPPCodec

// Circles of contacts: all members are subscribed to each other's presence (RFC 6121 §3).
//
// A client that comes later arranges the mutual subscriptions with the members that came before, and has joined when
// both rosters show them. So clients do not wait for later ones, and subscriptions of an earlier run are used as they
// are. Both clients' presences are at the server before either subscribes, so that no request has to wait in the store
// for its contact to become available (§3.1.3).
extension XMPPShardWork {
    /// The roster entry of one contact: what the roster and the pushes after it have shown.
    enum Contact {
        static let to: UInt8 = 1
        static let from: UInt8 = 2
        static let both: UInt8 = 3
        /// The subscription was requested on this connection.
        static let asked: UInt8 = 4
    }

    /// The bare JIDs of the loop's clients, which identify contacts, and the address that each client sends to.
    func addAddresses(_ groups: XMPPGroups) {
        for place in 0..<self.places.count {
            let number = self.number(place)
            if self.load.work == .muc {
                self.writer.pointee.addAddress(self.load.room(number % self.load.groups))
                continue
            }
            self.writer.pointee.addAddress("")
            if let jid = try? JID(self.load.user(number).bare) { groups.addresses[jid.description] = Int32(place) }
        }
    }

    func askForRoster(_ place: Int, _ groups: XMPPGroups) {
        groups.members[place].step = .listing
        // RFC 6121 §2.2: a client gets roster pushes only after it has requested the roster.
        self.ask(place, Request.roster, "get", to: nil, "<query xmlns='\(XMPPNamespace.roster)'/>")
    }

    func rosterCame(_ place: Int, _ groups: XMPPGroups, _ answer: XMPPElement) {
        let membership = groups.membership(place)
        for member in 0..<groups.size { groups.contacts[place * groups.size + member] = 0 }
        for item in answer.child("query", XMPPNamespace.roster)?.elements ?? [] {
            guard let contact = self.contact(item["jid"], groups, of: membership.group) else { continue }
            groups.contacts[place * groups.size + contact] = Self.subscription(item)
        }
        groups.members[place].step = .subscribing
        // One for the server's confirmation that it has the presence.
        groups.members[place].waits = 1
        groups.members[place].isKnown = false
        self.tell(place, .presence(to: nil))
        self.ask(place, Request.barrier, "get", to: self.server, "<ping xmlns='\(XMPPNamespace.ping)'/>")
    }

    /// The server has the client's presence: subscriptions with the members that came before are requested.
    func presenceIsKnown(_ place: Int, _ groups: XMPPGroups, now: NIODeadline) {
        let membership = groups.membership(place)
        groups.lastOrder += 1
        groups.members[place].order = groups.lastOrder
        groups.members[place].isKnown = true
        for member in 0..<groups.size where member != membership.member {
            let other = groups.place(group: membership.group, member: member)
            guard groups.members[other].order != 0, !self.isMutual(place, other, groups) else { continue }
            groups.members[place].waits += 1
            self.subscribe(place, groups, to: member)
            // An earlier run, or another program, may have left one direction of it.
            self.subscribe(other, groups, to: membership.member)
        }
        self.countMutualContact(place, groups, now: now)
    }

    private func subscribe(_ place: Int, _ groups: XMPPGroups, to member: Int) {
        let index = place * groups.size + member
        guard groups.contacts[index] & (Contact.to | Contact.asked) == 0 else { return }
        groups.contacts[index] |= Contact.asked
        self.tell(place, .presence(to: self.bare(groups, place, member), type: "subscribe"))
    }

    private func bare(_ groups: XMPPGroups, _ place: Int, _ member: Int) -> String {
        let other = groups.place(group: groups.membership(place).group, member: member)
        return self.load.user(self.number(other)).bare
    }

    /// The group member with this address.
    func contact(_ address: String?, _ groups: XMPPGroups, of group: Int) -> Int? {
        guard let address, let jid = try? JID(address), let place = groups.addresses[jid.bare.description] else {
            return nil
        }
        let membership = groups.membership(Int(place))
        return membership.group == group ? membership.member : nil
    }

    private static func subscription(_ item: XMPPElement) -> UInt8 {
        switch item["subscription"] {
        case "both": Contact.both
        case "to": Contact.to
        case "from": Contact.from
        default: 0
        }
    }

    private func isMutual(_ place: Int, _ other: Int, _ groups: XMPPGroups) -> Bool {
        let (one, two) = (groups.membership(place).member, groups.membership(other).member)
        let both = groups.contacts[place * groups.size + two] & groups.contacts[other * groups.size + one]
        return both & Contact.both == Contact.both
    }

    func contactPresence(_ place: Int, _ groups: XMPPGroups, _ element: borrowing ElementView, now: NIODeadline) {
        guard let type = element.attribute("type") else {
            // Answers to the server's own probes repeat earlier presences.
            guard let ids = self.metrics.message, !(element.firstChild("delay", "urn:xmpp:delay") != nil),
                self.matchArrival(place, groups, element, in: "status", now: now)
            else { return self.meter.add(self.metrics.presences) }
            self.tallies[place].received += 1
            return self.meter.add(ids.fresh)
        }
        self.meter.add(self.metrics.presences)
        let group = groups.membership(place).group
        switch type {
        case "subscribe":
            guard groups.members[place].hasRoster, let from = element.attribute("from"),
                let contact = self.contact(from, groups, of: group)
            else { return }
            self.tell(place, .presence(to: self.bare(groups, place, contact), type: "subscribed"))
            // A request of an earlier run comes from the store, perhaps before the contact is there.
            if groups.members[groups.place(group: group, member: contact)].order != 0 {
                self.subscribe(place, groups, to: contact)
            }
        case "error":
            if self.contact(element.attribute("from"), groups, of: group) != nil {
                return self.refused(place, groups, byContact: element)
            }
            self.refused(place, element)
        default: break
        }
    }

    /// A ping (XEP-0199), or a roster push (RFC 6121 §2.1.6).
    package func requested(_ place: Int, _ request: borrowing ElementView, now: NIODeadline) -> Bool {
        if request.attribute("type", is: "get"), request.firstChild("ping", "urn:xmpp:ping") != nil {
            self.clients[place].connection?.answer(request.element())
            return true
        }
        guard let groups = self.groups, self.load.work == .presence, let connection = self.clients[place].connection,
            request.firstChild("query", "jabber:iq:roster") != nil
        else { return false }
        let push = request.element()
        guard push["type"] == "set", connection.isFromOwnAccount(push) else { return false }
        connection.answer(push)
        let membership = groups.membership(place)
        for item in push.child("query", XMPPNamespace.roster)?.elements ?? [] {
            guard groups.members[place].hasRoster, let member = self.contact(item["jid"], groups, of: membership.group)
            else {
                continue
            }
            let other = groups.place(group: membership.group, member: member)
            let wasMutual = self.isMutual(place, other, groups)
            let index = place * groups.size + member
            // §2.6.3: pushes come in the order of the changes. But where two contacts approve each other at the same
            // time, ejabberd may send `both` first and then the `from` or `to` that was there before it. No client of a
            // run unsubscribes, so a push takes nothing back.
            groups.contacts[index] |= Self.subscription(item)
            guard !wasMutual, self.isMutual(place, other, groups) else { continue }
            let (one, two) = (groups.members[place].order, groups.members[other].order)
            if one != 0, two != 0 { self.countMutualContact(one > two ? place : other, groups, now: now) }
        }
        return true
    }

    func countMutualContact(_ place: Int, _ groups: XMPPGroups, now: NIODeadline) {
        guard groups.members[place].step == .subscribing else { return }
        groups.members[place].waits -= 1
        if groups.members[place].waits == 0 { self.markWithin(place, groups, now: now) }
    }

    /// The client is gone; its subscriptions are no longer awaited.
    func forgetContacts(_ place: Int, _ groups: XMPPGroups) {
        let order = groups.members[place].order
        guard order != 0 else { return }
        let membership = groups.membership(place)
        for member in 0..<groups.size where member != membership.member {
            let other = groups.place(group: membership.group, member: member)
            groups.contacts[other * groups.size + membership.member] &= Contact.both
            guard groups.members[other].order > order, !self.isMutual(place, other, groups) else { continue }
            self.countMutualContact(other, groups, now: self.context.now)
        }
        groups.members[place].order = 0
    }
}
