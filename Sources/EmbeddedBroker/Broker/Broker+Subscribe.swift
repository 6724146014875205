import MQTTCodec
import NIOCore

extension Broker {
    /// Levels of a filter, including `$share` and the group name.
    ///
    /// The tree is searched by recursion, as deep as a filter goes. A filter's maximum of
    /// 65,536 levels would overflow the stack.
    private static let maximumLevels = 1_024
    /// Filters of a packet that are granted: others would keep the loop from its clients for more than 10 ms.
    static let maximumFilters = 1_024

    mutating func subscribe(_ packet: Subscribe, from connection: ConnectionID, now: NIODeadline) {
        let session = self.connections[connection].session
        let limits = self.configuration.limits
        var identifier: [UInt8] = []
        if let number = packet.properties.subscriptionIdentifier {
            // §3.2.2.3.12
            guard limits.subscriptionIdentifiersAvailable else {
                return self.fail(connection, .subscriptionIdentifiersNotSupported, now: now)
            }
            identifier = Self.encode(identifier: number)
        }
        var codes: [UInt8] = []
        var wantsRetained: [Int32] = []
        for (place, wanted) in packet.subscriptions.enumerated() {
            guard place < Self.maximumFilters else {
                guard self.refuse(.quotaExceeded, &codes, on: connection, now: now) else { return }
                continue
            }
            let key = Array(wanted.filter.utf8)
            let isKnown = self.sessions[Int(session)].subscriptions[key] != nil
            guard isKnown || self.subscriptionBytes + Self.bytes(of: key) <= self.configuration.subscriptionBytes else {
                guard self.refuse(.quotaExceeded, &codes, on: connection, now: now) else { return }
                continue
            }
            guard let filter = try? TopicFilter(validating: wanted.filter),
                key.count(where: { $0 == TopicLevels.slash }) < Self.maximumLevels
            else {
                guard self.refuse(.topicFilterInvalid, &codes, on: connection, now: now) else { return }
                continue
            }
            // [MQTT-3.8.3-4]
            if filter.share != nil, wanted.noLocal { return self.fail(connection, .protocolError, now: now) }
            if let reason = self.objection(to: filter) {
                // §3.2.2.3.11, §3.2.2.3.13: the client knows the limit from CONNACK and ignores it.
                if self.connections[connection].isVersion5 { return self.fail(connection, reason, now: now) }
                guard self.refuse(reason, &codes, on: connection, now: now) else { return }
                continue
            }
            guard self.connections[connection].extras?.user?.maySubscribe(to: filter) ?? true else {
                guard self.refuse(.notAuthorized, &codes, on: connection, now: now) else { return }
                continue
            }
            let (index, isNew) = self.place(Array(filter.filter.utf8), share: filter.share, key: key, for: session)
            self.subscriptions[Int(index)].qos = min(wanted.qos.rawValue, limits.maximumQoS)
            self.subscriptions[Int(index)].noLocal = wanted.noLocal
            self.subscriptions[Int(index)].retainAsPublished = wanted.retainAsPublished
            self.subscriptions[Int(index)].identifier = identifier
            codes.append(self.subscriptions[Int(index)].qos)
            let sends = wanted.retainHandling == .send || wanted.retainHandling == .sendIfNew && isNew
            // §4.8.2: a shared subscription gets no retained messages.
            if sends, filter.share == nil { wantsRetained.append(index) }
        }
        self.version += 1
        var answer = SubAck(packet.packetID, codes: codes)
        if let code = codes.first(where: { $0 >= 0x80 }) { self.explain(code, in: &answer.properties, on: connection) }
        guard self.sendFitting(.subAck(answer), to: connection) else {
            return self.fail(connection, .packetTooLarge, now: now)
        }
        self.sendRetained(to: wantsRetained, on: connection, now: now)
    }

    private func objection(to filter: TopicFilter) -> ReasonCode? {
        let limits = self.configuration.limits
        if filter.share != nil, !limits.sharedAvailable { return .sharedSubscriptionsNotSupported }
        if filter.hasWildcard, !limits.wildcardsAvailable { return .wildcardSubscriptionsNotSupported }
        return nil
    }

    /// Adds the return code of a rejected filter.
    ///
    /// - Returns: false if the connection was ended: the SUBACK of 3.1 has no code for a failure.
    private mutating func refuse(
        _ reason: ReasonCode,
        _ codes: inout [UInt8],
        on connection: ConnectionID,
        now: NIODeadline
    ) -> Bool {
        switch self.connections[connection].version {
        case .v31:
            // Earlier filters of the packet stay granted.
            self.version += 1
            self.fail(connection, reason, now: now)
            return false
        case .v311: codes.append(0x80)
        case .v5: codes.append(reason.rawValue)
        }
        return true
    }

    /// Finds the client's subscription with exactly this key, or creates it.
    ///
    /// The subscription that has no filter is in no tree.
    mutating func place(
        _ filter: [UInt8],
        share: String? = nil,
        key: [UInt8],
        for session: Int32
    ) -> (Int32, isNew: Bool) {
        if let index = self.sessions[Int(session)].subscriptions[key] {
            // [MQTT-3.8.4-3]: replaced in place, so no message is lost; a sleeping subscription wakes up.
            let wasLive = self.subscriptions[Int(index)].isLive
            self.subscriptions[Int(index)].isLive = true
            if !wasLive, self.subscriptions[Int(index)].isStatistics { self.statisticsSubscriptions += 1 }
            return (index, !wasLive)
        }
        self.subscriptionsMade += 1
        self.subscriptionBytes += Self.bytes(of: key)
        var new = BrokerSubscription(filter: filter, session: session, serial: self.subscriptionsMade)
        new.isStatistics = filter.starts(with: Array("$SYS".utf8))
        if new.isStatistics { self.statisticsSubscriptions += 1 }
        if self.faults.touchesPublish { new.faults = self.makeFaultState(number: self.subscriptionsMade) }
        let index: Int32
        if let reused = self.freeSubscriptions.popLast() {
            index = reused
        } else {
            index = Int32(self.subscriptions.count)
            self.subscriptions.append(new)
        }
        if let share {
            let group = self.group(named: Array(share.utf8), filter: filter)
            self.groups[Int(group)].members.append(index)
            new.group = group
        } else if !filter.isEmpty {
            self.trie.insert(index * 2, under: filter)
        }
        self.subscriptions[Int(index)] = new
        self.sessions[Int(session)].subscriptions[key] = index
        return (index, true)
    }

    /// The memory of a subscription, about: its record, its keys, and a node of the tree for each level.
    private static func bytes(of key: [UInt8]) -> Int {
        256 + 3 * key.count + 200 * (1 + key.count { $0 == TopicLevels.slash })
    }

    private mutating func group(named name: [UInt8], filter: [UInt8]) -> Int32 {
        let key = name + [TopicLevels.slash] + filter
        if let group = self.groupsByName[key] { return group }
        let new = ShareGroup(name: key, filter: filter)
        let group: Int32
        if let reused = self.freeGroups.popLast() {
            group = reused
            self.groups[Int(group)] = new
        } else {
            group = Int32(self.groups.count)
            self.groups.append(new)
        }
        self.groupsByName[key] = group
        self.trie.insert(group * 2 + 1, under: filter)
        return group
    }

    mutating func unsubscribe(_ packet: Unsubscribe, from connection: ConnectionID) {
        let session = self.connections[connection].session
        var codes: [UInt8] = []
        for filter in packet.filters {
            let key = Array(filter.utf8)
            // [MQTT-3.10.4-1]: compared byte by byte.
            if let index = self.sessions[Int(session)].subscriptions[key], self.subscriptions[Int(index)].isLive {
                self.remove(index, key, of: session)
                codes.append(ReasonCode.success.rawValue)
            } else {
                codes.append(ReasonCode.noSubscriptionExisted.rawValue)
            }
        }
        self.version += 1
        guard self.sendFitting(.unsubAck(UnsubAck(packet.packetID, codes: codes)), to: connection) else {
            return self.fail(connection, .packetTooLarge, now: self.clock)
        }
    }

    /// Removes a subscription; the caller increments `version`.
    mutating func remove(_ index: Int32, _ key: [UInt8], of session: Int32) {
        let old = self.subscriptions[Int(index)]
        if old.isLive, old.isStatistics { self.statisticsSubscriptions -= 1 }
        self.loseHeld(of: index)
        self.sessions[Int(session)].subscriptions[key] = nil
        self.subscriptionBytes -= Self.bytes(of: key)
        if old.group >= 0 {
            let group = Int(old.group)
            self.groups[group].members.removeAll { $0 == index }
            if self.groups[group].members.isEmpty {
                self.trie.remove(old.group * 2 + 1, under: old.filter)
                self.groupsByName[self.groups[group].name] = nil
                self.freeGroups.append(old.group)
            }
        } else if !old.filter.isEmpty {
            self.trie.remove(index * 2, under: old.filter)
        }
        self.subscriptions[Int(index)] = BrokerSubscription(filter: [], session: -1, isLive: false, serial: 0)
        self.freeSubscriptions.append(index)
    }

    /// Keeps a subscription whose client lost its connection, to count the messages it misses.
    mutating func sleep(_ index: Int32) {
        guard self.subscriptions[Int(index)].isLive else { return }
        if self.subscriptions[Int(index)].isStatistics { self.statisticsSubscriptions -= 1 }
        self.subscriptions[Int(index)].isLive = false
    }

    private static func encode(identifier: UInt32) -> [UInt8] {
        var bytes: [UInt8] = [0x0B]
        var rest = identifier
        repeat {
            let byte = UInt8(rest & 0x7F)
            rest >>= 7
            bytes.append(rest > 0 ? byte | 0x80 : byte)
        } while rest > 0
        return bytes
    }
}
