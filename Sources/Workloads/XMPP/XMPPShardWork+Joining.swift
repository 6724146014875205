package import Measurement
import NIOCore
import Transport
package import XMPP
import XMPPCodec

// A client that is logged in and on its way into its group.
extension XMPPShardWork {
    /// Tokens of the requests on the way in.
    enum Request {
        static let configuration: UInt64 = 0
        static let roster: UInt64 = 1
        static let barrier: UInt64 = 2
    }

    func join(_ place: Int, _ groups: XMPPGroups, now: NIODeadline) {
        self.clients[place].stage = .joining
        groups.members[place].mayRetry = true
        groups.members[place].asked = now
        self.setDeadline(place, groups, now + self.load.ackTimeout)
        self.load.work == .muc ? self.enterRoom(place, groups) : self.askForRoster(place, groups)
    }

    func setDeadline(_ place: Int, _ groups: XMPPGroups, _ deadline: NIODeadline) {
        groups.members[place].deadline = deadline
        self.wantsTimer(place, at: deadline)
    }

    func joinTimer(_ place: Int, now: NIODeadline) {
        guard let groups = self.groups, now < groups.members[place].deadline else { return self.joinTimedOut(place) }
        self.clients[place].connection?.timerFired(now: now)
        guard self.clients[place].stage == .joining else { return }
        self.wantsTimer(place, at: groups.members[place].deadline)
        self.askAgain(place, groups, now: now)
    }

    func joinTimedOut(_ place: Int) {
        guard self.clients[place].stage == .joining, let groups = self.groups else { return }
        let group = groups.membership(place).group
        let isOpener = groups.groups[group].opener == Int32(place)
        let words =
            switch groups.members[place].step {
            case .waiting: "no client opened the room \(self.room(of: place)) within the acknowledgement timeout"
            case .asked:
                "no answer from the room \(self.room(of: place)) within the acknowledgement timeout; check the service's address"
            case .held: "the room \(self.room(of: place)) held a client's nick beyond the acknowledgement timeout"
            case .opening:
                "no answer to the configuration of the room \(self.room(of: place)) within the acknowledgement timeout"
            case .listing: "no roster within the acknowledgement timeout"
            case .subscribing where !groups.members[place].isKnown:
                "no answer to the first presence within the acknowledgement timeout"
            case .subscribing, .within, .out:
                "a client missed \(groups.members[place].waits) contacts after the acknowledgement timeout: not subscribed"
            }
        // A room that does not answer one client would not answer the next ones either.
        let others = isOpener ? groups.groups[group].waiting : []
        for other in others { self.joinFailed(Int(other), "join timeout", words, mayRetry: true) }
        self.joinFailed(place, "join timeout", words, mayRetry: true)
    }

    /// The client does not join, and its connection is of no use.
    func joinFailed(_ place: Int, _ kind: String, _ words: String, mayRetry: Bool) {
        guard self.clients[place].stage == .joining, let groups = self.groups else { return }
        self.error(kind, words)
        groups.members[place].mayRetry = mayRetry
        self.clients[place].connection?.abort()
    }

    package func recordNotUp(_ place: Int, as end: UnansweredEnd) {
        guard let groups = self.groups, let ids = self.metrics.fanOut else { return }
        let age = self.age(since: groups.members[place].asked, end)
        self.meter.recordUnanswered(ids.joined, age, lane: MetricLane.measured, as: end)
    }

    package func joinEnded(_ place: Int, _ end: XMPPConnectionEnd) {
        guard let groups = self.groups else { return }
        self.forgetContacts(place, groups)
        groups.members[place].step = .out
        let group = groups.membership(place).group
        groups.groups[group].waiting.removeAll { $0 == Int32(place) }
        if groups.groups[group].opener == Int32(place) {
            groups.groups[group].opener = -1
            self.letNextOpen(groups, group)
        }
        // A client that never joined has not come up, so this is still its first connect.
        if !groups.members[place].wasWithin { self.tallies[place].connectNanoseconds = 0 }
        // This side decided to abort, and decided on a retry as well.
        self.connectFailed(place, canRetry: (end == .aborted || end.allowsRetry) && groups.members[place].mayRetry)
    }

    /// Sends a stanza of the join.
    func tell(_ place: Int, _ element: XMPPElement) { _ = try? self.clients[place].connection?.send(element) }

    /// Sends a request of the join; `payload` is the whole content of the IQ.
    func ask(_ place: Int, _ token: UInt64, _ type: String, to: JID?, _ payload: String) {
        let namespace = self.load.layers.contains(.webSocket) ? " xmlns='\(XMPPNamespace.client)'" : ""
        var head = Array("<iq\(namespace) type='\(type)'".utf8)
        if let to {
            head += Array(" to='".utf8)
            XMPPMessageWriter.escape(to.description.utf8, into: &head)
            head.append(UInt8(ascii: "'"))
        }
        _ = self.clients[place].connection?.request(
            token,
            to: to,
            timeout: self.load.ackTimeout,
            before: head + Array(" id='".utf8),
            after: Array("'>\(payload)</iq>".utf8)
        )
    }

    /// The answer to ``ask(_:_:_:to:_:)``.
    func answered(
        _ place: Int,
        _ groups: XMPPGroups,
        _ token: UInt64,
        _ answer: borrowing ElementView,
        now: NIODeadline
    ) {
        guard self.clients[place].stage == .joining else { return }
        let isError = answer.attribute("type", is: "error")
        switch token {
        case Request.configuration where isError: self.roomRefused(place, answer, "its configuration")
        case Request.configuration: self.roomOpens(place, groups, now: now)
        case Request.roster where isError:
            let error = StanzaError(answer.element())
            let condition = error?.condition.rawValue ?? "undefined-condition"
            self.joinFailed(
                place,
                "roster \(condition)",
                "the server gives out no roster: \(condition)\(error?.text.map { " (\($0))" } ?? "")",
                mayRetry: false
            )
        case Request.roster: self.rosterCame(place, groups, answer.element())
        // An error is an answer too: the server has received everything sent before.
        case Request.barrier: self.presenceIsKnown(place, groups, now: now)
        default: break
        }
    }

    /// Leaves the room before the stream closes (XEP-0045 §7.14).
    ///
    /// The stream itself sends the presence without an address.
    func sayGoodbye(_ place: Int) {
        guard self.load.work == .muc, let groups = self.groups, groups.members[place].step == .within else { return }
        let address = self.load.occupant(self.number(place))
        self.tell(place, XMPPElement.presence(to: address, type: "unavailable"))
    }
}

extension XMPPElement {
    static func presence(to address: String?, type: String? = nil, children: [Node] = []) -> XMPPElement {
        XMPPElement(
            "presence",
            namespace: XMPPNamespace.client,
            attributes: ["to": address, "type": type],
            children: children
        )
    }
}
