import NIOCore

// `$SYS`.
extension Broker {
    /// Topics below `$SYS/broker/` and their values, with mosquitto's names where it has them.
    func statistics(now: NIODeadline) -> [(topic: String, value: String)] {
        let counters = self.counters
        let stored = counters.waiting.total + counters.retained
        var lines: [(topic: String, value: String)] = [
            ("version", "clamor"),
            ("uptime", "\((now - self.started).nanoseconds / 1_000_000_000) seconds"),
            ("clients/connected", "\(counters.clientsNow)"),
            ("clients/active", "\(counters.clientsNow)"),
            ("clients/inactive", "\(counters.sessionsAway)"),
            ("clients/disconnected", "\(counters.sessionsAway)"),
            ("clients/expired", "\(counters.sessionsExpired)"),
            ("clients/total", "\(counters.clientsNow + counters.sessionsAway)"),
            ("clients/maximum", "\(counters.clientsMaximum)"),
            ("connections/total", "\(counters.connections)"),
            ("subscriptions/count", "\(counters.subscriptions)"),
            ("retained messages/count", "\(counters.retained)"),
            ("bytes/received", "\(counters.receivedBytes)"),
            ("bytes/sent", "\(counters.sentBytes)"),
            ("messages/received", "\(counters.receivedPackets)"),
            ("messages/stored", "\(stored)"),
            ("store/messages/count", "\(stored)"),
            ("store/messages/bytes", "\(counters.storedBytes)"),
            ("publish/messages/received", "\(counters.received.total + counters.receivedDUP.total)"),
            ("publish/messages/sent", "\(counters.delivered.total + counters.deliveredRetained.total)"),
            ("publish/messages/dropped", "\(counters.dropped.total + counters.queueFull.total)"),
        ]
        let families: [(String, CountPerQoS)] = [
            ("publish/messages/received", counters.received), ("publish/messages/sent", counters.delivered),
            ("publish/messages/resent", counters.receivedDUP), ("publish/messages/dropped", counters.dropped),
            ("publish/messages/duplicated", counters.duplicated), ("publish/messages/reordered", counters.reordered),
            ("publish/messages/delayed", counters.delayed), ("publish/messages/offline", counters.notDeliveredOffline),
        ]
        for (name, count) in families {
            for qos: UInt8 in 0...2 { lines.append(("\(name)/qos/\(qos)", "\(count[qos])")) }
        }
        return lines
    }

    mutating func publishStatistics(now: NIODeadline) {
        for (name, value) in self.statistics(now: now) {
            let topic = Array("$SYS/broker/\(name)".utf8)
            let route = topic.withUnsafeBytes { self.route($0) }
            for target in route.targets where target.connection >= 0 {
                self.sendStatistic(topic, value, to: ConnectionID(target.connection), identifiers: target.identifiers)
            }
        }
    }

    /// Sends the values at once, as mosquitto sends its retained ones.
    mutating func sendStatistics(to index: Int32, now: NIODeadline) {
        let subscription = self.subscriptions[Int(index)]
        let filter = TopicLevels.split(subscription.filter)
        let connection = ConnectionID(self.sessions[Int(subscription.session)].connection)
        for (name, value) in self.statistics(now: now) {
            let topic = Array("$SYS/broker/\(name)".utf8)
            guard TopicLevels.matches(filter: filter, topic: TopicLevels.split(topic)) else { continue }
            subscription.identifier.withUnsafeBytes {
                self.sendStatistic(topic, value, to: connection, identifiers: $0)
            }
        }
    }

    private mutating func sendStatistic(
        _ topic: [UInt8],
        _ value: String,
        to connection: ConnectionID,
        identifiers: UnsafeRawBufferPointer
    ) {
        KeptMessage(topic: topic, payload: Array(value.utf8), properties: [], qos: 0, retain: true).withView {
            self.send(
                $0,
                to: connection,
                qos: 0,
                retain: true,
                identifiers: identifiers,
                tally: Tally(kind: .statistics, qos: 0)
            )
        }
    }
}
