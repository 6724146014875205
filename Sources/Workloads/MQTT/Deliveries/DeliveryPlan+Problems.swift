import MQTT
import MQTTCodec

// Plans whose messages a ledger could not tell apart.
extension DeliveryPlan {
    static func problem(of groups: [Group]) -> String? {
        for group in groups where group.load.subscribes {
            let prefix = group.name.isEmpty ? "" : "\(group.name): "
            let heard = groups.filter { $0.load.publishes && $0.domain == group.domain }
            let problem =
                self.overlapProblem(of: group.load, heard) ?? self.retainProblem(of: group.load, heard)
                ?? self.answerProblem(of: group.load, heard)
            if let problem { return prefix + problem }
        }
        return groups.lazy.compactMap { self.replyProblem(of: $0, groups) }.first
    }

    /// Replies that no client could get.
    private static func replyProblem(of group: Group, _ groups: [Group]) -> String? {
        guard let reply = group.load.reply else { return nil }
        let prefix = group.name.isEmpty ? "reply: " : "\(group.name).reply: "
        let askers = groups.filter { $0.load.publishes && $0.domain == group.domain }
        if askers.isEmpty { return prefix + "no group sends messages that it could answer; add one that publishes" }
        let own = self.filters(of: group.load).map(Self.plain)
        let filter = reply.filter?.filterOfAllClients
        if let filter, !own.isEmpty, !own.contains(where: { MQTTLoad.overlap($0, filter) }) {
            return prefix + "'\(filter)' matches nothing that the group subscribes to; correct one of the two"
        }
        guard let topic = reply.topic?.filterOfAllClients else {
            let hasP2P = askers.contains { $0.load.streams.contains { $0.p2p != nil } }
            return hasP2P ? nil : prefix + "p2p answers messages over P2P, and no group sends any; name a topic"
        }
        let hears = askers.contains { asker in
            asker.load.streams.contains { $0.responseTopic != nil }
                || self.filters(of: asker.load).contains { MQTTLoad.overlap(Self.plain($0), topic) }
        }
        return hears ? nil : prefix + "no client that sends messages hears '\(topic)'; let its group subscribe"
    }

    /// Filters by which the clients of a load receive, apart from requests and their answers.
    private static func filters(of load: MQTTLoad) -> [String] {
        guard load.topology != .request, let first = load.subscribingClients.first else { return [] }
        return load.filters.isEmpty ? load.subscriptions(of: first).map(\.filter) : load.filters.map(\.pattern)
    }

    /// Without properties an answer looks like its request (MQTT 5.0 §3.3.2.3.6).
    private static func answerProblem(of load: MQTTLoad, _ heard: [Group]) -> String? {
        guard load.subscriberSession.version != .v5 else { return nil }
        for case let topic? in heard.filter({ $0.load.topology == .request }).flatMap(\.load.streams)
            .map({ $0.responseTopic?.filterOfAllClients })
        {
            guard let filter = self.filters(of: load).first(where: { MQTTLoad.overlap($0, topic) }) else { continue }
            return "'\(filter)' matches the answers '\(topic)', and MQTT 3.1.1 does not tell them from their requests; "
                + "use version 5"
        }
        return nil
    }

    /// Copies for a `$share` filter and for another filter of the same client look alike.
    private static func overlapProblem(of load: MQTTLoad, _ heard: [Group]) -> String? {
        let filters = self.filters(of: load)
        let shared = filters.filter { $0.hasPrefix("$share/") }
        for share in shared {
            for other in filters where other != share && MQTTLoad.overlap(share, other) {
                for stream in heard.flatMap(\.load.streams) {
                    let topic = stream.topic.filterOfAllClients
                    guard MQTTLoad.overlap(share, topic), MQTTLoad.overlap(other, topic) else { continue }
                    return "'\(share)' and '\(other)' of one client match '\(topic)', and their copies cannot be told "
                        + "apart; give them to two groups"
                }
            }
        }
        return nil
    }

    /// With Retain As Published a stored copy looks like a new message (MQTT 5.0 §3.8.3.1).
    private static func retainProblem(of load: MQTTLoad, _ heard: [Group]) -> String? {
        guard heard.contains(where: { $0.load.streams.contains(where: \.retain) }) else { return nil }
        let options = load.filters.isEmpty ? [load.subscribeOptions] : load.filters.map(\.options)
        guard options.contains(where: { $0.retainAsPublished && $0.retainHandling != .doNotSend }) else { return nil }
        return "retain as published beside a publisher that retains: stored copies look like new messages; set retain "
            + "handling 2, or leave one of the two out"
    }
}
