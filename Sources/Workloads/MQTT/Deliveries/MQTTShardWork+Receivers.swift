import Ledger
import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import NIOCore

/// A `$share` filter of a client, and the place of its share group among the client's.
struct ShareFilter {
    let filter: TopicFilter
    let place: Int
}

// The loop's clients as the ledger's receivers, from plan to plan.
extension MQTTShardWork {
    /// Enters the clients that receive into the loop's ledgers.
    func addReceivers() {
        guard self.load.hasLedger || self.load.publishers == 0 else { return }
        let receiving = (0..<self.places.count).filter {
            self.deliveries.receiver(group: self.group, client: self.number($0)) != nil
        }
        self.ledger.pointee.reserve(subscriptions: receiving.count, streams: receiving.count)
        let hasShares = self.deliveries.hasShares(group: self.group)
        for place in receiving {
            let client = self.number(place)
            guard let receiver = self.deliveries.receiver(group: self.group, client: client) else { continue }
            self.clients[place].own.receiver = Int32(self.ledger.pointee.addSubscription(receiver))
            guard hasShares else { continue }
            for group in self.deliveries.shareGroups(group: self.group, client: client) {
                let index = self.members.addMember(group: group)
                if self.clients[place].own.member < 0 { self.clients[place].own.member = Int32(index) }
            }
        }
        guard hasShares, let first = receiving.first, !self.load.filtersVary else { return }
        self.shareFilters = self.filtersOfShares(self.number(first))
    }

    private func filtersOfShares(_ client: Int) -> [ShareFilter] {
        let shared = self.load.subscriptions(of: client).map(\.filter).filter { $0.hasPrefix("$share/") }
        return shared.enumerated().compactMap { place, filter in
            (try? TopicFilter(validating: filter)).map { ShareFilter(filter: $0, place: place) }
        }
    }

    /// The share group member that a message came to; `nil` if it came for an ordinary subscription.
    func member(_ place: Int, _ topic: UnsafeRawBufferPointer) -> Int? {
        let first = Int(self.clients[place].own.member)
        guard first >= 0 else { return nil }
        let filters: [ShareFilter]
        if let all = self.shareFilters {
            filters = all
        } else if let own = self.ownShareFilters[place] {
            filters = own
        } else {
            filters = self.filtersOfShares(self.number(place))
            self.ownShareFilters[place] = filters
        }
        // With one share group and no other filter there is nothing to tell apart.
        if filters.count == 1, self.load.filters.count <= 1 { return first }
        return filters.first { $0.filter.matches(topic: topic) }.map { first + $0.place }
    }

    /// The ordinary filters of a client that match a topic.
    func matchingFilters(_ place: Int, _ topic: UnsafeRawBufferPointer) -> Int {
        let filters = self.load.subscriptions(of: self.number(place)).map(\.filter)
        return filters.count { filter in
            !filter.hasPrefix("$share/") && (try? TopicFilter(validating: filter))?.matches(topic: topic) ?? false
        }
    }

    // MARK: - Presence

    /// Whether the server keeps the client's session, and with it its subscriptions, beyond this connection.
    private func keepsSession(_ place: Int) -> Bool {
        guard !self.sessions[place].options.cleanStart else { return false }
        return self.sessions[place].limits.sessionExpiry > 0
    }

    /// The client's subscriptions are in effect on this connection.
    func handlePresent(_ place: Int, resumed: Bool, now: NIODeadline) {
        if self.clients[place].own.isSilent { self.handleAbsent(place) }
        self.clients[place].own.isSilent = false
        let own = self.clients[place].own
        let isFirst = own.visits == 0
        self.clients[place].own.hasSubscribed = true
        self.clients[place].own.hasResumed = own.hasResumed || resumed
        self.clients[place].own.isAway = false
        self.clients[place].own.visits += 1
        guard self.load.hasLedger, own.receiver >= 0 else { return }
        var event = resumed ? PresenceMark.Event.resumed : .began
        if !isFirst, !resumed, self.keepsSession(place) {
            let expiry = TimeAmount.seconds(Int64(self.sessions[place].limits.sessionExpiry))
            if self.sessions[place].limits.sessionExpiry == .max || now < own.leftAt + expiry {
                event = .beganWithoutSession
            }
        }
        if self.joint != nil { return self.handlePresentInSegment(place, event, isFirst: isFirst, now: now) }
        let client = self.number(place)
        if !isFirst, event != .resumed { self.leaveShares(place, visit: own.visits - 1) }
        guard let hub = self.hub else { return }
        if let receiver = self.deliveries.receiver(group: self.group, client: client) {
            hub.tell(PresenceNews(receiver: receiver, visit: UInt64(own.visits), event: event))
        }
        guard isFirst || event != .resumed else { return }
        for group in self.deliveries.shareGroups(group: self.group, client: client) {
            hub.tell(PresenceNews(receiver: group, visit: 0, event: .began, isMember: true))
        }
    }

    /// Publishers elsewhere cannot say where they were: what is missing around an absence is excused.
    private func handlePresentInSegment(_ place: Int, _ event: PresenceMark.Event, isFirst: Bool, now: NIODeadline) {
        let receiver = Int(self.clients[place].own.receiver)
        if isFirst {
            guard now > self.shard.loadBegan else { return }
            self.ledger.pointee.beganLate(receiver)
            self.joint?.lateShares.formUnion(self.shareGroups(place))
            return
        }
        if event != .resumed { self.joint?.absentShares.formUnion(self.shareGroups(place)) }
        if event == .began { return self.ledger.pointee.open(receiver) }
        let highest = self.load.subscriptions(of: self.number(place)).map(\.qos).max() ?? .exactlyOnce
        self.ledger.pointee.open(receiver) { $0 == 0 || highest == .atMostOnce }
    }

    /// The server fell silent: what it owes the client is owed, unless the client comes back.
    func noteSilence(_ place: Int) {
        self.clients[place].own.isSilent = true
        self.clients[place].own.leftAt = self.context.now
        if !self.keepsSession(place) { self.clients[place].own.hasSubscribed = false }
    }

    /// The client's connection has ended.
    func handleAbsent(_ place: Int) {
        let own = self.clients[place].own
        guard own.visits > 0, !own.isAway else { return }
        self.clients[place].own.isAway = true
        if !own.isSilent { self.clients[place].own.leftAt = self.context.now }
        let endsSession = !self.keepsSession(place)
        if endsSession { self.clients[place].own.hasSubscribed = false }
        if endsSession, self.joint != nil { self.joint?.absentShares.formUnion(self.shareGroups(place)) }
        guard self.load.hasLedger, own.receiver >= 0, self.joint == nil, self.hub != nil,
            let receiver = self.deliveries.receiver(group: self.group, client: self.number(place))
        else { return }
        self.ledger.pointee.heads(of: Int(own.receiver)) { publisher, audience, next in
            let key = StreamKey(subscription: receiver, publisher: publisher, audience: audience)
            self.marks.append(PresenceMark(key, visit: UInt64(own.visits - 1), .left, at: next))
        }
        if endsSession { self.leaveShares(place, visit: own.visits - 1) }
    }

    /// The share groups that a client is a member of.
    func shareGroups(_ place: Int) -> [UInt32] {
        guard self.clients[place].own.member >= 0 else { return [] }
        return self.deliveries.shareGroups(group: self.group, client: self.number(place))
    }

    /// The server lets the client go as a member of its share groups.
    private func leaveShares(_ place: Int, visit: UInt32) {
        let client = self.number(place)
        let groups = self.deliveries.shareGroups(group: self.group, client: client)
        let visit = self.memberVisit(client, visit)
        for (index, group) in groups.enumerated() {
            self.members.heads(of: Int(self.clients[place].own.member) + index) { publisher, audience, next in
                let key = StreamKey(subscription: group, publisher: publisher, audience: audience)
                self.marks.append(PresenceMark(key, visit: visit, .left, at: next))
            }
            self.hub?.tell(PresenceNews(receiver: group, visit: visit, event: .closed, isMember: true))
        }
    }

    /// The number of a visit of a share group's member; no visit of a receiver has such a number.
    func memberVisit(_ client: Int, _ visit: UInt32) -> UInt64 {
        PresenceMark.memberVisits | UInt64(self.group) << 56 | UInt64(client) << 33 | UInt64(visit)
    }

    /// A QoS below the one that the client asked for.
    func noteGranted(_ place: Int, _ codes: [UInt8]) {
        let subscriptions = self.load.subscriptions(of: self.number(place))
        let client = self.number(place)
        let groups = self.deliveries.shareGroups(group: self.group, client: client)
        var share = 0
        for (subscription, code) in zip(subscriptions, codes) {
            let isShared = subscription.filter.hasPrefix("$share/")
            defer { if isShared { share += 1 } }
            guard code < subscription.qos.rawValue else { continue }
            let receiver =
                isShared
                ? (share < groups.count ? groups[share] : nil)
                : self.deliveries.receiver(group: self.group, client: client)
            if let receiver { self.granted[receiver] = min(self.granted[receiver] ?? 2, code) }
        }
    }
}
