// The receivers of a topic's messages.
extension Broker {
    /// The route of a topic, resolved again if it is not cached or a subscription has changed.
    ///
    /// Its pointers are valid until the next call.
    @inline(__always)
    mutating func route(_ topic: UnsafeRawBufferPointer) -> Route {
        self.cache.find(topic, version: self.version) ?? self.resolve(topic)
    }

    private mutating func resolve(_ topic: UnsafeRawBufferPointer) -> Route {
        var targets: [RouteTarget] = []
        var identifiers: [[UInt8]] = []
        var groups: [Int32] = []
        var targetOf: [Int32: Int] = [:]
        if let client = self.addressee(of: topic) {
            if let own = self.ownSubscription(of: client) { self.merge(own, into: &targets, &identifiers, &targetOf) }
        } else {
            self.trie.match(Array(topic)) { value in
                if value & 1 == 1 {
                    groups.append(value / 2)
                } else {
                    self.merge(value / 2, into: &targets, &identifiers, &targetOf)
                }
            }
        }
        let route = Route(
            topic: topic,
            hash: TopicCache.hash(topic),
            version: self.version,
            targets: targets,
            identifiers: identifiers,
            groups: groups
        )
        self.cache.insert(route)
        return route
    }

    /// Merges a subscription into its client's only target.
    private func merge(
        _ index: Int32,
        into targets: inout [RouteTarget],
        _ identifiers: inout [[UInt8]],
        _ targetOf: inout [Int32: Int]
    ) {
        let subscription = self.subscriptions[Int(index)]
        let new = RouteTarget(
            session: subscription.session,
            connection: subscription.isLive ? self.sessions[Int(subscription.session)].connection : -1,
            subscription: index,
            qos: subscription.qos,
            noLocal: subscription.noLocal,
            retainAsPublished: subscription.retainAsPublished,
            isLive: subscription.isLive
        )
        guard let position = targetOf[subscription.session] else {
            targetOf[subscription.session] = targets.count
            targets.append(new)
            identifiers.append(subscription.identifier)
            return
        }
        let old = targets[position]
        if !new.isLive {
            // A publisher's own message does not count as missed if all its lost subscriptions are No Local.
            if !old.isLive { targets[position].noLocal = old.noLocal && new.noLocal }
            return
        }
        if !old.isLive {
            targets[position] = new
            identifiers[position] = subscription.identifier
            return
        }
        // §3.3.4: one copy at the highest QoS, with every identifier [MQTT-3.3.4-3], [MQTT-3.3.4-4].
        if new.qos > old.qos { targets[position] = new }
        identifiers[position] += subscription.identifier
        targets[position].noLocal = old.noLocal && new.noLocal
        targets[position].retainAsPublished = old.retainAsPublished || new.retainAsPublished
    }
}
